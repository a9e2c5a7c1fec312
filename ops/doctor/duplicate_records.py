"""Whether the first records of partitions are twice in the remote topic: the mirror lost its position and began again.

The offset of the second one follows from MirrorMaker's own offset syncs; the records themselves are the proof. Only a
few records of each partition are compared. It does not replace the verification.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from contract.verification_request import Mirror
from kafka.checkpoints import OffsetSyncHistory, OffsetTranslation, with_syncs
from kafka.cluster import Cluster
from kafka.raw_consumer import headers_as_copied
from kafka.topic_metadata import topic_configs
from kafka.topic_partition import TopicPartition
from ops.doctor.observations import DuplicateRecord

PARTITIONS_MAX = 300
COMPARED = 3
SCANNED = 200
READ_S = 10.0
_COMMITTED, _UNCOMMITTED = "read_committed", "read_uncommitted"
Content = tuple[object, ...]
Records = list[tuple[int, Content]]
"""Offsets, each with the content of its record."""


@dataclass(frozen=True, kw_only=True)
class DuplicateScan:
    """The partitions with a duplicate record, how many partitions were compared, and how many could have been."""

    duplicates: tuple[DuplicateRecord, ...]
    compared: int
    partitions: int


def find_duplicate_records(
    source: Cluster, target: Cluster, mirror: Mirror, topics: Mapping[str, int]
) -> DuplicateScan:
    """Return the partitions whose first records at the source are at two offsets on the target.

    Args:
        source: the connected source.
        target: the connected target.
        mirror: how it names remote topics, and where it keeps its offset syncs.
        topics: carried topics of the source with the number of partitions, which is the same on both sides. Compacted
            topics are left out.
    """
    syncs = with_syncs(OffsetTranslation(), source, target, mirror).syncs or {}
    plain = _not_compacted(source, topics)
    known = [tp for tp in sorted(syncs) if tp[0] in plain and tp[1] < topics[tp[0]]]
    topic_partitions = _with_records(source, known[:PARTITIONS_MAX])
    remote = {tp: TopicPartition(mirror.target_topic(tp.topic), tp.partition) for tp in topic_partitions}
    firsts = _read(source, source.starts(topic_partitions), COMPARED)
    begins = _first_not_older(target, {remote[tp]: one for tp, one in firsts.items() if one})
    found_first = _read(target, begins, SCANNED)
    found = []
    for tp, originals in firsts.items():
        first = _offset_of(originals, found_first.get(remote[tp], []))
        if first is None:
            continue
        expected = _expected(syncs[tp], originals[0][0], first)
        second = next((at for at in expected if _is_at(at, originals, target, remote[tp])), None)
        if second is not None:
            found.append(
                DuplicateRecord(
                    topic=tp[0],
                    remote_topic=remote[tp].topic,
                    partition=tp[1],
                    source=originals[0][0],
                    first=first,
                    second=second,
                )
            )
    return DuplicateScan(duplicates=tuple(found), compared=min(len(known), PARTITIONS_MAX), partitions=len(known))


def _expected(history: OffsetSyncHistory, offset: int, first: int) -> list[int]:
    """Return the target offsets that the syncs give for a source offset, if greater than the first one found."""
    newest = list(history.newest)
    ends = [one for one in (newest[:1] + newest[-1:]) if one.upstream >= offset]
    return sorted({at for one in ends if (at := one.downstream - (one.upstream - offset)) > first})


def _offset_of(originals: Records, records: Records) -> int | None:
    """Return the offset at which these records begin among others; None if they are not there."""
    contents = [content for _, content in originals]
    for at, (offset, _) in enumerate(records):
        if [content for _, content in records[at : at + len(contents)]] == contents:
            return offset
    return None


def _is_at(offset: int, originals: Records, target: Cluster, remote: TopicPartition) -> bool:
    there = _read(target, {remote: offset}, len(originals)).get(remote, [])
    return bool(there) and there[0][0] == offset and [one for _, one in there] == [one for _, one in originals]


def _not_compacted(source: Cluster, topics: Iterable[str]) -> set[str]:
    configs = topic_configs(source, topics).found
    return {
        name
        for name, config in configs.items()
        if "compact" not in str(config["cleanup.policy"].value)
        and config["message.timestamp.type"].value == "CreateTime"
    }


def _with_records(source: Cluster, topic_partitions: list[TopicPartition]) -> list[TopicPartition]:
    starts, ends = source.starts(topic_partitions), source.ends(topic_partitions, _COMMITTED)
    return [tp for tp in topic_partitions if starts[tp] < ends[tp]]


def _first_not_older(target: Cluster, firsts: Mapping[TopicPartition, Records]) -> dict[TopicPartition, int]:
    """Return the first offset of each remote partition whose record is not older than the first one at the source."""
    by_time: dict[int, list[TopicPartition]] = {}
    for tp, records in firsts.items():
        by_time.setdefault(int(str(records[0][1][0])), []).append(tp)
    found: dict[TopicPartition, int] = {}
    for moment, partitions in by_time.items():
        found |= target.offsets(partitions, OffsetSpec.for_timestamp(moment), _UNCOMMITTED)
    return {tp: offset for tp, offset in found.items() if offset >= 0}


def _read(cluster: Cluster, starts: Mapping[TopicPartition, int], count: int) -> dict[TopicPartition, Records]:
    """Return up to `count` records of each partition from an offset on; fewer where it ends or answers too late."""
    found: dict[TopicPartition, Records] = {tp: [] for tp in starts}
    ends = cluster.ends(starts, _COMMITTED)
    left = {tp for tp, at in starts.items() if at < ends[tp]}
    if not left:
        return found
    consumer = cluster.consumer(_COMMITTED)
    try:
        consumer.assign([ClientTopicPartition(*tp, starts[tp]) for tp in left])
        deadline = time.monotonic() + READ_S
        while left and time.monotonic() < deadline:
            for message in consumer.consume(500, timeout=0.2):
                tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
                if message.error() is not None or tp not in left:
                    continue
                kind, stamp = message.timestamp()
                content = (
                    -1 if kind == TIMESTAMP_NOT_AVAILABLE else stamp,
                    message.key(),
                    message.value(),
                    tuple(headers_as_copied(message) or ()),
                )
                found[tp].append((int(message.offset() or 0), content))
                if len(found[tp]) >= count:
                    left.discard(tp)
                    consumer.pause([ClientTopicPartition(*tp)])
            waiting = [ClientTopicPartition(*tp) for tp in left]
            for at in consumer.position(waiting) if waiting else []:
                if at.offset >= ends[TopicPartition(at.topic, at.partition)]:
                    left.discard(TopicPartition(at.topic, at.partition))
    finally:
        consumer.close()
    return found
