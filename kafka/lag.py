"""How far the mirror is behind the source now: in records, in seconds, and over the time of the run.

The position is the one that the source connector has committed, so up to one interval of Connect's offset flushes
(`offset.flush.interval.ms`) is in every number.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Request
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.errors import ClusterError
from kafka.mirror_position import PositionReader
from kafka.topic_partition import TopicPartition

POINTS_MAX = 240
AHEAD_S = 60.0
"""How far a record's timestamp may be ahead of this clock: further, and nobody knows how old it is."""


@dataclass(frozen=True, kw_only=True)
class PartitionLag:
    """One partition: `position` is the last source offset copied (None: none yet), `source_end` the end now.

    `records` are the offsets from the first record not mirrored to the end; `seconds` is that record's age by its own
    timestamp `first_ms`. Both are None when the record could not be read in time, `seconds` also if its timestamp lies
    ahead. `log_start` is the log start offset.
    """

    topic: str
    partition: int
    position: int | None
    source_end: int
    records: int
    seconds: float | None
    first_ms: int | None = None
    log_start: int = 0

    @property
    def following(self) -> int:
        """The first offset that is not copied and still there."""
        return self.log_start if self.position is None else max(self.position + 1, self.log_start)

    def document(self) -> dict[str, Any]:
        """Return what reports have of it, as JSON values."""
        names = ("topic", "partition", "position", "source_end", "records", "seconds")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """The lag of all partitions at one moment, in seconds since the start of the run."""

    at_s: float
    partitions: tuple[PartitionLag, ...]

    @property
    def records(self) -> int:
        """Records behind in all partitions together."""
        return sum(one.records for one in self.partitions)

    @property
    def seconds(self) -> float | None:
        """Age of the oldest record not yet mirrored; None when the age in some partition is not known."""
        ages = [one.seconds for one in self.partitions]
        known = [age for age in ages if age is not None]
        return max(known, default=0.0) if len(known) == len(ages) else None

    def document(self) -> dict[str, Any]:
        """Return the measurement as JSON values."""
        return {
            "at_seconds": self.at_s,
            "records": self.records,
            "seconds": self.seconds,
            "partitions": [one.document() for one in self.partitions],
        }


@dataclass
class Lag:
    """What was measured: at the cut, at the end (None: could not be), and points [seconds since start, records]."""

    at_cut: Measure | None = None
    at_end: Measure | None = None
    series: list[tuple[float, int]] = field(default_factory=list)

    @property
    def copied_at_cut(self) -> dict[TopicPartition, int]:
        """The last source offset that was copied then, by partition; without those of which none is known."""
        parts = self.at_cut.partitions if self.at_cut is not None else ()
        return {TopicPartition(one.topic, one.partition): one.position for one in parts if one.position is not None}

    def document(self) -> dict[str, Any]:
        """Return the lag as JSON values."""
        return {
            "at_cut": self.at_cut.document() if self.at_cut else None,
            "at_end": self.at_end.document() if self.at_end else None,
            "series": [list(point) for point in self.series],
        }


class LagMeter:
    """Measures the lag of the partitions that a run compares. Without a reader of positions nothing is measured."""

    def __init__(
        self, source: Cluster, request: Request, reader: PositionReader | None, partitions: Iterable[TopicPartition]
    ) -> None:
        self.lag = Lag()
        self.unanswered: str | None = None
        """Why the last `at_end` has measured nothing, without a full stop."""
        self._source = source
        self._isolation = request.limits.isolation
        self._reader = reader
        self._partitions = sorted(partitions)
        self._started = time.monotonic()
        self._apart_s = 0.0

    def at_cut(self) -> None:
        """Measure at the beginning of the wait."""
        self.lag.at_cut = self._measure()

    def at_end(self) -> None:
        """Measure when everything has been compared; a cluster that no longer answers leaves it unknown."""
        self.unanswered = None
        try:
            self.lag.at_end = self._measure()
        except ClusterError as error:
            self.unanswered = str(error).rstrip(".")

    def sample(self, positions: Mapping[TopicPartition, int]) -> None:
        """Take one point of the series; the distance of the points grows so that they never are too many."""
        now = round(time.monotonic() - self._started, 1)
        series = self.lag.series
        if series and now - series[-1][0] < self._apart_s:
            return
        ends = self._source.ends(self._partitions, self._isolation)
        starts = self._source.starts(self._partitions)
        self._add(now, sum(ends[tp] - at for tp, at in _following(positions, starts, ends).items()))

    def _add(self, now: float, records: int) -> None:
        self.lag.series.append((now, records))
        if len(self.lag.series) > POINTS_MAX:
            self.lag.series = thinned(self.lag.series)
            self._apart_s = 2 * max(self._apart_s, 1.0)

    def _measure(self) -> Measure | None:
        if self._reader is None:
            return None
        positions = self._reader.read()
        ends = self._source.ends(self._partitions, self._isolation)
        starts = self._source.starts(self._partitions)
        following = _following(positions, starts, ends)
        behind = {tp: at for tp, at in following.items() if at < ends[tp]}
        first = first_records(self._source, behind, ends, self._isolation)
        now_ms = time.time() * 1000
        measure = Measure(
            at_s=round(time.monotonic() - self._started, 1),
            partitions=tuple(
                _lag(tp, positions.get(tp), starts[tp], ends[tp], tp in behind, first.get(tp, (None, None)), now_ms)
                for tp in self._partitions
            ),
        )
        self._add(measure.at_s, measure.records)
        return measure


def thinned(series: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return every other point; the first and the last stay."""
    return [*series[:-1:2], series[-1]]


def _following(
    positions: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the first offset that is still to be mirrored: never below the log start, never past the end."""
    return {
        tp: min(max(positions[tp] + 1, start) if tp in positions else start, ends[tp]) for tp, start in starts.items()
    }


def _lag(
    tp: TopicPartition,
    position: int | None,
    start: int,
    end: int,
    behind: bool,
    first: tuple[int | None, int | None],
    now_ms: float,
) -> PartitionLag:
    offset, timestamp = first
    seconds: float | None = 0.0
    if timestamp is not None:
        seconds = age_s(timestamp, now_ms)
    elif behind and offset != end:
        seconds = None
    # Offsets after the position may all belong to transaction markers: then the first record read lies at the end.
    after = (position + 1 if position is not None else 0) if offset is None else offset
    records = max(0, end - after) if behind else 0
    return PartitionLag(
        topic=tp[0],
        partition=tp[1],
        position=position,
        source_end=end,
        records=records,
        seconds=seconds,
        first_ms=timestamp,
        log_start=start,
    )


def age_s(timestamp_ms: int, now_ms: float) -> float | None:
    """Return the age of a record in seconds; None if it comes from a clock that is ahead by more than `AHEAD_S`."""
    seconds = (now_ms - timestamp_ms) / 1000
    return round(max(0.0, seconds), 1) if seconds >= -AHEAD_S else None


def first_records(
    cluster: Cluster, following: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], isolation: str
) -> dict[TopicPartition, tuple[int, int | None]]:
    """Return offset and timestamp (ms) of the first record at or after each offset and before the end.

    (end, None) where only transaction markers are left; a partition that did not answer in time is missing.
    """
    found: dict[TopicPartition, tuple[int, int | None]] = {}
    if not following:
        return found
    consumer = cluster.consumer(isolation)
    try:
        consumer.assign([ClientTopicPartition(*tp, at) for tp, at in following.items()])
        deadline = time.monotonic() + CALL_DEADLINE_S
        while len(found) < len(following) and time.monotonic() < deadline:
            for message in consumer.consume(100, timeout=0.2):
                tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
                if message.error() is not None or tp in found:
                    continue
                offset, (kind, stamp) = int(message.offset() or 0), message.timestamp()
                timestamp = int(stamp) if kind != TIMESTAMP_NOT_AVAILABLE else None
                found[tp] = (offset, timestamp) if offset < ends[tp] else (ends[tp], None)
                consumer.pause([ClientTopicPartition(*tp)])
            waiting = [ClientTopicPartition(*tp) for tp in following if tp not in found]
            for at in consumer.position(waiting) if waiting else []:
                if at.offset >= ends[TopicPartition(at.topic, at.partition)]:
                    found[TopicPartition(at.topic, at.partition)] = (ends[TopicPartition(at.topic, at.partition)], None)
    finally:
        consumer.close()
    return found
