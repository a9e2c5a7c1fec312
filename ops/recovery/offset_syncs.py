"""Offsets that a failback corrects: MirrorMaker's offset syncs and checkpoints.

Records that are copied back get new offsets at the source. For these the mirror's old offset syncs give wrong offsets
on the target, and a group would be set too far. MirrorMaker uses the last sync and checkpoint, so one correct one of
each replaces the old ones. Formats: OffsetSync and Checkpoint of connect-mirror.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from contract.verification_request import Mirror
from kafka.cluster import Cluster
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
