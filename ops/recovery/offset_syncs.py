"""Offsets that a failback corrects: MirrorMaker's offset syncs and checkpoints, and how far a lost mirror had copied.

Records that are copied back get new offsets at the source. For these the mirror's old offset syncs give wrong offsets
on the target, and a group would be set too far. MirrorMaker uses the last sync and checkpoint, so one correct one of
each replaces the old ones. Formats: OffsetSync and Checkpoint of connect-mirror.

A mirror commits its position only now and then. The records that it had copied after its last commit are the last ones
on the target, in the same order; they are found by their content, so that they are not copied twice.
"""

import hashlib
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Message
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Mirror
from kafka.cluster import Cluster
from kafka.raw_consumer import headers_as_copied
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

WRITTEN_WITHIN_S = 20.0
_CHECKPOINT_VERSION = 0


@dataclass(frozen=True, kw_only=True)
class OffsetMapping:
    """The target offset `downstream` that corresponds to the source offset `upstream`: the same record comes next.

    With a `group` it is a checkpoint of the group, without one an offset sync of the partition.
    """

    topic_partition: TopicPartition
    upstream: int
    downstream: int
    group: str | None = None


def of_partitions(
    topic_partitions: Iterable[TopicPartition],
    source: tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]],
    target: tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]],
) -> list[OffsetMapping]:
    """Return offset syncs that map the log start and end offsets of partitions with the same records on both sides.

    The first one of a partition is older than all others, so that MirrorMaker clears its store
    (OffsetSyncStore.updateSyncArray).

    Args:
        places: Source partitions.
        source: Log start offsets and log end offsets on the source.
        target: The same on the target.
    """
    found = []
    for tp in sorted(topic_partitions):
        ends = source[1].get(tp, 0), target[1].get(tp, 0)
        starts = source[0].get(tp, 0), target[0].get(tp, 0)
        pairs = ((-1, starts[1] - 1), starts, ends)
        found += [
            OffsetMapping(topic_partition=tp, upstream=upstream, downstream=downstream)
            for upstream, downstream in pairs
        ]
    return found


def of_groups(
    topic_partitions: Iterable[TopicPartition],
    source: Mapping[str, Mapping[TopicPartition, int]],
    target: Mapping[str, Mapping[TopicPartition, int]],
) -> list[OffsetMapping]:
    """Return a checkpoint for each group's committed offset in these partitions."""
    wanted = set(topic_partitions)
    return [
        OffsetMapping(topic_partition=tp, upstream=upstream, downstream=target[group][tp], group=group)
        for group, positions in sorted(source.items())
        for tp, upstream in sorted(positions.items())
        if tp in wanted and tp in target.get(group, {})
    ]


def write(mappings: Iterable[OffsetMapping], mirror: Mirror, source: Cluster, target: Cluster) -> None:
    """Append the mappings to MirrorMaker's own topics; raises OpsError. The mirror must be stopped. Idempotent."""
    syncs = mirror.offset_syncs_topic
    found = list(mappings)
    of_groups = [_checkpoint(mapping, mirror) for mapping in found if mapping.group is not None]
    _append(target, mirror.checkpoints_name, of_groups)
    if syncs is not None:
        of_places = [_sync(mapping) for mapping in found if mapping.group is None]
        _append(source if syncs.location == "source" else target, syncs.name, of_places)


def _sync(mapping: OffsetMapping) -> tuple[bytes, bytes]:
    topic, partition = mapping.topic_partition
    return _string(topic) + struct.pack(">i", partition), struct.pack(">qq", mapping.upstream, mapping.downstream)


def _checkpoint(mapping: OffsetMapping, mirror: Mirror) -> tuple[bytes, bytes]:
    topic, partition = mapping.topic_partition
    key = _string(str(mapping.group)) + _string(mirror.target_topic(topic)) + struct.pack(">i", partition)
    value = struct.pack(">hqq", _CHECKPOINT_VERSION, mapping.upstream, mapping.downstream) + _string("")
    return key, value


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _append(side: Cluster, topic: str, records: Sequence[tuple[bytes, bytes]]) -> None:
    if not records:
        return
    problems: list[str] = []
    producer = side.producer({"message.timeout.ms": int(WRITTEN_WITHIN_S * 1000)})
    for key, value in records:
        producer.produce(
            topic, key=key, value=value, on_delivery=lambda error, _: problems.append(error.str()) if error else None
        )
        producer.poll(0)
    if producer.flush(WRITTEN_WITHIN_S + 5) or problems:
        raise OpsError(
            f"cluster {side.side.alias}: topic {topic} must accept the offset mappings (got "
            f"{problems[0] if problems else 'no answer'}). Give user {side.side.user} Write on it and run this again."
        )


SILENT_S = 60.0
Record = tuple[int, bytes]
"""Offset and digest of content."""


def last_copied_offsets(
    source: Cluster,
    target: Cluster,
    committed: Mapping[TopicPartition, int],
    source_ends: Mapping[TopicPartition, int],
    boundary: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return the last source offset that is on the target, for partitions where that is more than was committed.

    `committed` is the last offset whose copying the mirror has committed, `boundary` where the target ended when the
    mirror was stopped. Names are the same on both sides.
    """
    found: dict[TopicPartition, int] = {}
    for tp, end in sorted(source_ends.items()):
        start = committed.get(tp, -1) + 1
        length = min(end - start, boundary.get(tp, 0))
        if length <= 0:
            continue
        ahead = _read(source, tp, start, end)
        tail = _read(target, tp, max(0, boundary[tp] - length), boundary[tp])
        common = overlap([digest for _, digest in ahead], [digest for _, digest in tail])
        if common:
            found[tp] = ahead[common - 1][0]
    return found


def overlap(ahead: Sequence[bytes], tail: Sequence[bytes]) -> int:
    """Return how many of the first of `ahead` are the last of `tail`, as many as possible."""
    borders: list[int] = []
    length = 0
    for item in ahead:
        while borders and length and (length == len(ahead) or ahead[length] != item):
            length = borders[length - 1]
        length = length + 1 if borders and ahead[length] == item else 0
        borders.append(length)
    length = 0
    for item in tail:
        while length and (length == len(ahead) or ahead[length] != item):
            length = borders[length - 1]
        if ahead and ahead[length] == item:
            length += 1
    return length


def _read(side: Cluster, tp: TopicPartition, start: int, end: int) -> list[Record]:
    """Records of [start, end), of aborted transactions none."""
    consumer: Consumer = side.consumer("read_committed")
    found: list[Record] = []
    try:
        consumer.assign([ClientTopicPartition(*tp, start)])
        deadline = time.monotonic() + SILENT_S
        while time.monotonic() < deadline:
            read = [message for message in consumer.consume(1000, timeout=0.2) if message.error() is None]
            within = [(int(message.offset() or 0), message) for message in read]
            found += [(offset, _digest(message)) for offset, message in within if offset < end]
            deadline = time.monotonic() + SILENT_S if read else deadline
            if consumer.position([ClientTopicPartition(*tp)])[0].offset >= end:
                return found
        raise OpsError(
            f"{side.side.role} {side.side.alias}: {tp[0]}-{tp[1]} must be readable from {start} to {end} (got "
            f"{len(found)} records, then none for {SILENT_S:.0f} s). Check the brokers, then run the command again."
        )
    finally:
        consumer.close()


def _digest(message: Message) -> bytes:
    kind, stamp = message.timestamp()
    named = headers_as_copied(message)
    parts = (message.key(), message.value(), named, stamp if kind == TIMESTAMP_CREATE_TIME else None)
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()
