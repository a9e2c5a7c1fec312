"""This process alone as the engine of a comparison: for so few records that Spark would start longer than it reads.

Each range is read once with a consumer; of a record only its hashes are kept.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from spark.clusters.cluster import Cluster, Partition
from spark.clusters.refusals import PASSING
from spark.errors import SessionError
from spark.progress import Progress
from spark.records import chunks
from spark.records.engine import Digest, Occurrences, Pieces
from spark.records.hashing import Hashes, digest_of, hashes
from spark.records.pairing import Row
from spark.records.ranges import Range
from spark.records.sources import FETCH_S
from spark.request.model import Side

BATCH = 100  # messages held at once, of up to the largest size
POLL_S = 0.5
Log = dict[int, Hashes]
"""Records by their offsets."""


@dataclass(frozen=True)
class Part:
    """A range of one side, read with an isolation; `place` is what the source calls its partition."""

    role: str
    isolation: str
    range: Range
    place: Partition

    @property
    def log(self) -> tuple[str, str, Partition]:
        """What may be read once for several ranges."""
        return self.role, self.isolation, self.place


class SingleProcess:
    """An `Engine` whose frames are parts that are read when somebody asks for what is in them."""

    def __init__(self, *clusters: Cluster) -> None:
        self._clusters = {cluster.side.role: cluster for cluster in clusters}
        self._read: dict[tuple[str, str, Partition], list[tuple[Range, Log]]] = defaultdict(list)
        self._advance: Callable[[int, int], None] = lambda *_: None

    def read(self, side: Side, ranges: Sequence[Range], isolation: str, names: Mapping[str, str]) -> list[Part]:
        """Return the records of these ranges, which a job reads when it needs them."""
        return [Part(side.role, isolation, one, (names.get(one.topic, one.topic), one.partition)) for one in ranges]

    def union(self, frames: Iterable[list[Part] | None]) -> list[Part] | None:
        """Return the records of all of these, None if there are none."""
        return [part for frame in frames if frame for part in frame] or None

    @contextmanager
    def watched(self, progress: Progress, stage: str, partitions: int, records: int) -> Iterator[None]:
        """Advance the progress while the block reads."""
        progress.stage(stage)
        seen: dict[str, int] = defaultdict(int)

        def advance(ended: int, read: int) -> None:
            seen["partitions"] += ended
            seen["records"] += read
            progress.advance(min(seen["partitions"], partitions), partitions, min(seen["records"], records), records)

        self._advance = advance
        try:
            yield
        finally:
            self._advance = lambda *_: None

    def scan(self, logs: Mapping[str, list[Part]], places: Sequence[Partition], bits: int) -> dict[str, Pieces]:
        """Return the pieces of chunks of each named log and partition."""
        self._load([part for parts in logs.values() for part in parts])
        return {name: self._pieces(parts, bits) for name, parts in logs.items()}

    def rows(self, records: list[Part] | None) -> dict[Partition, list[Row]]:
        """Return the records of each partition."""
        return {
            place: [Row(offset, digest_of(*record[:2]), *record[2:]) for offset, record in log.items()]
            for place, log in self._logs(records or []).items()
        }

    def offsets(self, records: list[Part] | None) -> dict[Partition, list[int]]:
        """Return the offsets of the records of each partition."""
        return {place: list(log) for place, log in self._logs(records or []).items()}

    def occurrences(self, logs: Mapping[str, list[Part]], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
        """Return where digests occur in whole logs."""
        sought = set(wanted)
        found: dict[str, Occurrences] = {}
        for name, parts in logs.items():
            held = found[name] = {}
            for place, log in self._logs(parts).items():
                for offset, (a, b, *_) in log.items():
                    if (digest := digest_of(a, b)) in sought:
                        records, first = held.get((place, digest), (0, offset))
                        held[place, digest] = (records + 1, first)
        return found

    def _pieces(self, parts: Sequence[Part], bits: int) -> Pieces:
        found: Pieces = {}
        for place, log in self._logs(parts).items():
            if not log:
                continue
            offsets = np.fromiter(log, dtype=np.int64, count=len(log))
            words = np.array([(a, b) for a, b, *_ in log.values()], dtype=np.int64)
            columns = [np.zeros(len(log), dtype=np.int64), offsets, words[:, 0], words[:, 1]]
            batch = pa.RecordBatch.from_arrays(
                [pa.array(column) for column in columns], names=["place", "offset", "a", "b"]
            )
            (cut,) = chunks.cut_batches([batch], bits)
            found[place] = chunks.in_order(column.to_numpy(zero_copy_only=False) for column in cut.columns[1:])
        return found

    def _logs(self, parts: Iterable[Part]) -> dict[Partition, Log]:
        """The records of each partition in the order of their offsets."""
        wanted = list(parts)
        self._load(wanted)
        found: dict[Partition, Log] = defaultdict(dict)
        for part in wanted:
            start, end = part.range.start, part.range.end
            whole = self._holding(part) or {}
            found[part.place] |= {offset: record for offset, record in whole.items() if start <= offset < end}
        return {place: dict(sorted(log.items())) for place, log in found.items()}

    def _holding(self, part: Part) -> Log | None:
        """What was read of this part already, or of a longer one."""
        for held, log in self._read[part.log]:
            if held.start <= part.range.start and part.range.end <= held.end:
                return log
        return None

    def _load(self, parts: Iterable[Part]) -> None:
        """Read what was not read yet; a consumer reads one range of a partition at a time."""
        turns: dict[tuple[str, str], list[dict[Partition, Part]]] = defaultdict(list)
        for part in dict.fromkeys(parts):
            if self._holding(part) is not None:
                continue
            waiting = turns[part.role, part.isolation]
            free = next((turn for turn in waiting if part.place not in turn), None)
            if free is None:
                waiting.append(free := {})
            free[part.place] = part
        for (role, isolation), waiting in turns.items():
            for turn in waiting:
                ranges = [part.range for part in turn.values()]
                read = read_ranges(self._clusters[role], isolation, ranges, self._advance)
                for part in turn.values():
                    self._read[part.log].append((part.range, read[part.range.topic, part.range.partition]))


def read_ranges(
    cluster: Cluster, isolation: str, ranges: Sequence[Range], advance: Callable[[int, int], None]
) -> dict[Partition, Log]:
    """Return the data records of these ranges, one of each partition.

    Raises ClusterError for what the user may not read, SessionError when no record comes for FETCH_S.
    """
    wanted = {(one.topic, one.partition): one for one in ranges}
    found: dict[Partition, Log] = {place: {} for place in wanted}
    consumer = cluster.consumer(isolation, {"enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(one.topic, one.partition, one.start) for one in ranges])
        heard = time.monotonic()
        while wanted:
            messages = consumer.consume(BATCH, timeout=POLL_S)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > FETCH_S:
                raise SessionError(_silence(cluster, wanted.values(), found))
            before = len(wanted)
            read = _take(cluster, consumer, messages, wanted, found)
            advance(before - len(wanted), read)
    finally:
        consumer.close()
    return found


def _take(
    cluster: Cluster,
    consumer: Consumer,
    messages: Iterable[Message],
    wanted: dict[Partition, Range],
    found: Mapping[Partition, Log],
) -> int:
    """Keep the hashes of the records that are wanted, and end the ranges that are read; return how many were kept."""
    kept = 0
    for message in messages:
        place: Any = message.topic(), message.partition()
        part = wanted.get(place)
        if part is None:
            continue
        offset: Any = message.offset()
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                # A log that ends in front of the range lost its leader and comes back, or falls silent.
                if offset >= part.end:
                    _end(consumer, place, wanted)
            elif error.code() not in PASSING:
                what = f"read topic {part.topic}"
                cluster.refusals.call(what, KafkaException(error), ("Read", f"topic {part.topic}"))
            continue
        if offset < part.end:
            key: Any = message.key()
            value: Any = message.value()
            headers: Any = message.headers()
            found[place][offset] = hashes(key, value, headers, message.timestamp()[1])
            kept += 1
        if offset >= part.end - 1:
            _end(consumer, place, wanted)
    return kept


def _end(consumer: Consumer, place: Partition, wanted: dict[Partition, Range]) -> None:
    consumer.pause([TopicPartition(*place)])
    del wanted[place]


def _silence(cluster: Cluster, ranges: Iterable[Range], found: Mapping[Partition, Log]) -> str:
    one = min(ranges, key=lambda part: (part.topic, part.partition))
    at = max(found[one.topic, one.partition], default=one.start - 1) + 1
    what = f"no record came from offset {at} on within {FETCH_S} s (topic {one.topic}, partition {one.partition})"
    fix = "Check that its brokers stay up and that their advertised listeners can be reached from here."
    return cluster.refusals.message(what, fix)
