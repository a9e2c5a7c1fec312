"""Offsets that a failback corrects: MirrorMaker's offset syncs and checkpoints.

Records that are copied back get new offsets at the source. For these the mirror's old offset syncs give wrong offsets
on the target, and a group would be set too far. MirrorMaker uses the last sync and checkpoint, so one correct one of
each replaces the old ones. Formats: OffsetSync and Checkpoint of connect-mirror.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from confluent_kafka import KafkaError, Producer

from contract.verification_request import Mirror
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

WRITTEN_WITHIN_S = 20.0
_CHECKPOINT_VERSION = 0


@dataclass(frozen=True, kw_only=True, slots=True)
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
) -> Iterator[OffsetMapping]:
    """Yield a checkpoint for each group's committed offset in these partitions."""
    wanted = set(topic_partitions)
    for group, positions in sorted(source.items()):
        for tp, upstream in sorted(positions.items()):
            if tp in wanted and tp in target.get(group, {}):
                yield OffsetMapping(topic_partition=tp, upstream=upstream, downstream=target[group][tp], group=group)


def write(mappings: Iterable[OffsetMapping], mirror: Mirror, source: Cluster, target: Cluster) -> int:
    """Append the mappings to MirrorMaker's own topics, and return how many; raises OpsError. Idempotent.

    The mirror must be stopped. Each mapping is taken when it is written: there may be a million.
    """
    syncs, number = mirror.offset_syncs_topic, 0
    of_groups, of_places = _Appender(target, mirror.checkpoints_name), None
    if syncs is not None:
        of_places = _Appender(source if syncs.location == "source" else target, syncs.name)
    for mapping in mappings:
        number += 1
        if mapping.group is not None:
            of_groups.append(*_checkpoint(mapping, mirror))
        elif of_places is not None:
            of_places.append(*_sync(mapping))
    of_groups.finish()
    if of_places is not None:
        of_places.finish()
    return number


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


class _Appender:
    """Appends records to one topic; the client holds so many of them as its queue takes."""

    def __init__(self, side: Cluster, topic: str) -> None:
        self._side = side
        self._topic = topic
        self._problems: list[str] = []
        self._producer: Producer | None = None

    def append(self, key: bytes, value: bytes) -> None:
        """Append a record; raises OpsError once one was refused, or if for `WRITTEN_WITHIN_S` none is taken."""
        if self._producer is None:
            self._producer = self._side.producer({"message.timeout.ms": int(WRITTEN_WITHIN_S * 1000)})
        while True:
            try:
                self._producer.produce(self._topic, key=key, value=value, on_delivery=self._delivered)
            except BufferError:  # the queue is full
                if not self._producer.poll(WRITTEN_WITHIN_S + 5):
                    self._refuse()
            else:
                break
        self._producer.poll(0)
        if self._problems:
            self._refuse()

    def finish(self) -> None:
        """Wait until all records are written; raises OpsError if one is not."""
        if self._producer is not None and (self._producer.flush(WRITTEN_WITHIN_S + 5) or self._problems):
            self._refuse()

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self._problems.append(error.str())

    def _refuse(self) -> NoReturn:
        side, got = self._side.side, self._problems[0] if self._problems else "no answer"
        raise OpsError(
            f"cluster {side.alias}: topic {self._topic} must accept the offset mappings (got {got}). Give user "
            f"{side.user} Write on it and run this again."
        )
