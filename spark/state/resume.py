"""From where a run may go on: pure judgement of one partition's entry against what its logs hold now."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.cluster import Cluster
from kafka.raw_consumer import UndecodableError, headers
from kafka.topic_partition import TopicPartition
from spark.comparison.offset_ranges import OffsetRange
from spark.state import TAIL_RECORDS, Anchor, Entry, TailRecord


@dataclass(frozen=True)
class Resumed:
    """Offsets of both sides from which a partition is compared; what lies before was verified by an earlier run."""

    source_offset: int
    target_offset: int


@dataclass(frozen=True)
class Needed:
    """Lowest offsets that must be inside what is compared: where groups stand. None: nothing asks for any."""

    source: int | None = None
    target: int | None = None


@dataclass(frozen=True, kw_only=True)
class CurrentLogs:
    """What the two sides are now: ids of topics by their names, and the records where the tails of the state are."""

    source_ids: Mapping[str, str | None]
    target_ids: Mapping[str, str | None]
    source_tails: Mapping[TopicPartition, Sequence[TailRecord]] = field(default_factory=dict)
    target_tails: Mapping[TopicPartition, Sequence[TailRecord]] = field(default_factory=dict)


def doubt(entry: Entry, offset_range: OffsetRange, logs: CurrentLogs) -> str | None:
    """Return why an entry does not hold for these logs any more, before their tails are read; None when it may."""
    ids = (logs.source_ids.get(offset_range.topic), logs.target_ids.get(offset_range.target_topic))
    known = (entry.source_topic_id, entry.target_topic_id)
    bounds = (
        ("source", entry.source_tail, entry.verified, offset_range.source_start, offset_range.cut),
        ("target", entry.target_tail, entry.anchors[-1][1], offset_range.target_start, offset_range.target_end),
    )
    for (side, tail, verified, start, end), now, then in zip(bounds, ids, known, strict=True):
        if now is None:
            return f"the {side} does not report the topic's id"
        if now != then:
            return f"the topic was deleted and created again at the {side}"
        if end < verified:
            return f"the {side} ends at offset {end}, before the verified offset {verified}: records were cut off"
        if not tail or start > tail[0][0]:
            return f"the {side}'s log starts at offset {start}: the last verified records are gone"
    return None


def changed(entry: Entry, offset_range: OffsetRange, logs: CurrentLogs) -> str | None:
    """Return why the last verified records are not what they were; None when they are."""
    there = TopicPartition(offset_range.target_topic, offset_range.partition)
    for side, tail, now in (
        ("source", entry.source_tail, logs.source_tails.get(entry.topic_partition)),
        ("target", entry.target_tail, logs.target_tails.get(there)),
    ):
        if now is None:
            return f"the last verified records of the {side} could not be read"
        if tuple(now) != tail:
            held = dict(now)
            odd = next((offset for offset, digest in tail if held.get(offset) != digest), tail[-1][0])
            return (
                f"the {side} holds another record at the verified offset {odd}: its log was truncated and written again"
            )
    return None


def start(entry: Entry, offset_range: OffsetRange, needed: Needed) -> Resumed | str:
    """Return the offsets to go on from: one anchor before the greatest that leaves what is needed inside.

    One before: some record that is verified already is compared again, so that no partition with records passes
    without a comparison, and a group at the verified offset has the image of a record to be measured by.
    """
    kept = [one for one in entry.anchors if one[0] >= offset_range.source_start and one[1] >= offset_range.target_start]
    usable = [
        one
        for one in kept
        if (needed.source is None or one[0] <= needed.source) and (needed.target is None or one[1] <= needed.target)
    ]
    if len(usable) > 1:
        return Resumed(*usable[-2])
    if len(kept) > 1:
        return "a group's position lies before every verified offset that the state remembers"
    return "the state remembers no earlier verified offset that both logs still hold"


def anchors(verified: Anchor, source: Sequence[TailRecord], target: Sequence[TailRecord]) -> list[Anchor]:
    """Return the verified offsets and, before them, those of the records at the end that correspond one to one.

    What the target holds in between (copies of aborted records, which fail nothing) is stepped over.
    """
    found = [verified]
    left = list(target)
    for offset, digest in reversed(source):
        while left and left[-1][1] != digest:
            left.pop()
        if not left:
            break
        found.append((offset, left.pop()[0]))
    return found[::-1]


DEADLINE_S = 60.0
SPAN_MAX = 4096  # offsets looked back for TAIL_RECORDS records: transactions leave holes
SMALL_FETCHES = {"max.partition.fetch.bytes": 65_536, "queued.max.messages.kbytes": 4096, "queued.min.messages": 1}


def last_before(
    cluster: Cluster, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], isolation: str
) -> dict[TopicPartition, tuple[TailRecord, ...]]:
    """Return the last TAIL_RECORDS records before each end, fewer where the log or SPAN_MAX offsets hold fewer."""
    found: dict[TopicPartition, tuple[TailRecord, ...]] = {}
    span = TAIL_RECORDS
    wanted = {tp: end for tp, end in ends.items() if end > starts[tp]}
    while wanted:
        ranges = {tp: (max(starts[tp], end - span), end) for tp, end in wanted.items()}
        read = records(cluster, ranges, isolation)
        found |= {tp: rows[-TAIL_RECORDS:] for tp, rows in read.items()}
        wanted = {
            tp: end
            for tp, end in wanted.items()
            if tp in read and len(read[tp]) < TAIL_RECORDS and ranges[tp][0] > starts[tp]
        }
        span *= 16
        if span > SPAN_MAX:
            break
    return found


def records(
    cluster: Cluster, ranges: Mapping[TopicPartition, tuple[int, int]], isolation: str, deadline_s: float = DEADLINE_S
) -> dict[TopicPartition, tuple[TailRecord, ...]]:
    """Return offset and digest of the records in [first, end) of each partition.

    A partition that could not be read to its end within the deadline, or not at all, is left out.
    """
    rows: dict[TopicPartition, list[TailRecord]] = {tp: [] for tp in ranges}
    wanted = {tp: one for tp, one in ranges.items() if one[1] > one[0]}
    config = {**SMALL_FETCHES, "auto.offset.reset": "error"}
    deadline = time.monotonic() + deadline_s
    refused: set[TopicPartition] = set()
    for open_consumer in (cluster.consumer, cluster.raw_consumer):
        if not wanted:
            break
        failed, undecodable = _read(open_consumer(isolation, config), wanted, rows, deadline)
        refused |= failed
        wanted = {tp: wanted[tp] for tp in undecodable}
        for tp in undecodable:
            rows[tp].clear()
    return {tp: tuple(found) for tp, found in rows.items() if tp not in refused}


def _read(
    consumer: Any,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    rows: Mapping[TopicPartition, list[TailRecord]],
    deadline: float,
) -> tuple[set[TopicPartition], set[TopicPartition]]:
    """Add the records to the rows and close the consumer; return the partitions that failed, and the undecodable ones.

    A partition is undecodable if this consumer cannot decode the headers of one of its records.
    """
    failed: set[TopicPartition] = set()
    undecodable: set[TopicPartition] = set()
    left = {tp: end for tp, (_, end) in ranges.items()}
    try:
        consumer.assign([ClientTopicPartition(*tp, ranges[tp][0]) for tp in left])
        while left and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
                offset = int(message.offset() or 0)
                if message.error() is not None:
                    failed.add(tp)
                elif tp in left and offset < left[tp] and tp not in undecodable:
                    try:
                        rows[tp].append((offset, digest(message)))
                    except UndecodableError:
                        undecodable.add(tp)
            done = {
                TopicPartition(part.topic, part.partition)
                for part in consumer.position([ClientTopicPartition(*tp) for tp in left])
                if part.offset >= left[TopicPartition(part.topic, part.partition)]
            }
            if ended := done | ((failed | undecodable) & set(left)):
                consumer.incremental_unassign([ClientTopicPartition(*tp) for tp in ended])
                left = {tp: end for tp, end in left.items() if tp not in ended}
    except KafkaException:
        pass  # what is not read to its end is left out
    finally:
        consumer.close()
    return failed | set(left), undecodable - failed


def digest(message: Any) -> str:
    """Return the first 32 hexadecimal digits of the SHA-256 of a message's key, value, headers and timestamp.

    Each part carries its length, null has its own mark. It is not the comparison's digest: both sides' are made here.
    Raises UndecodableError for a name of a header that is not UTF-8.
    """
    parts = [message.key(), message.value(), str(message.timestamp()[1])]
    parts += [part for header in headers(message) or () for part in header]
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(b"N" if data is None else b"V%d:" % len(data))
        found.update(data or b"")
    return found.hexdigest()[:32]
