"""The engine of a comparison without Spark: for so few records that Spark would start longer than it reads.

Each range is read once, by this process or, where there is enough to read, by one process for each core. Of a record
only its hashes are kept.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from contract.verification_request import ClusterConfig
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.comparison import chunks
from spark.comparison.difference import Row
from spark.comparison.offset_ranges import Digest, Occurrences, Pieces, Windows
from spark.comparison.reading import (
    HEADERS,
    KEY,
    NULL_KEY,
    NULL_VALUE,
    NULLS,
    OFFSET,
    TIMESTAMP,
    VALUE,
    A,
    B,
    Log,
    ReadRange,
    digest_of,
    in_order,
)
from spark.comparison.reading_processes import Task, read_all
from spark.progress import Progress


@dataclass(frozen=True)
class Part:
    """A range of one side, read with an isolation level; `tp` is the partition by the source's name."""

    role: str
    isolation: str
    range: ReadRange
    topic_partition: TopicPartition

    @property
    def log(self) -> tuple[str, str, TopicPartition]:
        """The log of which several ranges may be read at once."""
        return self.role, self.isolation, self.topic_partition


class WithoutSpark:
    """An `Engine` whose frames are parts that are read when somebody asks for what is in them."""

    def __init__(self, *clusters: Cluster) -> None:
        self.cache = LogCache(clusters)

    def read(
        self, side: ClusterConfig, ranges: Sequence[ReadRange], isolation: str, names: Mapping[str, str]
    ) -> list[Part]:
        """Return the records of these ranges, which a job reads when it needs them."""
        return parts(side, ranges, isolation, names)

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

        before, self.cache.advance = self.cache.advance, advance
        try:
            yield
        finally:
            self.cache.advance = before

    def windows(
        self, logs: Mapping[str, tuple[list[Part], int]], topic_partitions: Sequence[TopicPartition], bits: int
    ) -> dict[str, Windows]:
        """Return no windows: here chunks cost no more than they would."""
        return {}

    def scan(
        self, logs: Mapping[str, list[Part]], topic_partitions: Sequence[TopicPartition], bits: int
    ) -> dict[str, Pieces]:
        """Return the pieces of chunks of each named log and partition."""
        self.cache.load([part for log in logs.values() for part in log])
        return {name: self._pieces(log, bits) for name, log in logs.items()}

    def inexact(self) -> set[TopicPartition]:
        """Return no partition: every record is read as it is."""
        return set()

    def rows(self, records: list[Part] | None) -> dict[TopicPartition, list[Row]]:
        """Return the records of each partition."""
        return {tp: [row_of(record) for record in log.tolist()] for tp, log in self.cache.logs(records or []).items()}

    def offsets(self, records: list[Part] | None) -> dict[TopicPartition, list[int]]:
        """Return the offsets of the records of each partition."""
        return {tp: log[:, OFFSET].tolist() for tp, log in self.cache.logs(records or []).items()}

    def occurrences(self, logs: Mapping[str, list[Part]], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
        """Return where digests occur in whole logs."""
        sought = set(wanted)
        first_words = np.array([int(digest[:16], 16) for digest in sought], dtype=np.uint64).view(np.int64)
        found: dict[str, Occurrences] = {}
        for name, whole in logs.items():
            held = found[name] = {}
            for tp, log in self.cache.logs(whole).items():
                likely = log[np.isin(log[:, A], first_words)]
                for offset, a, b in likely[:, [OFFSET, A, B]].tolist():
                    if (digest := digest_of(a, b)) in sought:
                        records, first = held.get((tp, digest), (0, offset))
                        held[tp, digest] = (records + 1, first)
        return found

    def _pieces(self, log_parts: Sequence[Part], bits: int) -> Pieces:
        found: Pieces = {}
        for tp, log in self.cache.logs(log_parts).items():
            if not len(log):
                continue
            offsets, a, b = (np.ascontiguousarray(log[:, at]) for at in (OFFSET, A, B))
            found[tp] = chunks.in_order(chunks.signed_pieces(offsets, a, b, bits))
        return found


def row_of(record: Sequence[int]) -> Row:
    """Return a record of a log as a row."""
    nulls = record[NULLS]
    return Row(
        record[OFFSET],
        digest_of(record[A], record[B]),
        None if nulls & NULL_KEY else record[KEY],
        None if nulls & NULL_VALUE else record[VALUE],
        record[HEADERS],
        record[TIMESTAMP],
    )


def parts(side: ClusterConfig, ranges: Sequence[ReadRange], isolation: str, names: Mapping[str, str]) -> list[Part]:
    """Return these ranges of one side; `names` maps a topic of its cluster to the source's name."""
    return [
        Part(side.role, isolation, one, TopicPartition(names.get(one.topic, one.topic), one.partition))
        for one in ranges
    ]


class LogCache:
    """Reads parts when their records are asked for, and keeps what it has read.

    `advance` is called with the numbers of partitions and records read since the last call.
    """

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        self._clusters = {cluster.side.role: cluster for cluster in clusters}
        self._read: dict[tuple[str, str, TopicPartition], list[tuple[ReadRange, Log]]] = defaultdict(list)
        self.advance: Callable[[int, int], None] = lambda *_: None

    def logs(self, wanted: Sequence[Part]) -> dict[TopicPartition, Log]:
        """Return the records of each partition in the order of their offsets, each once."""
        self.load(wanted)
        found: dict[TopicPartition, list[Log]] = defaultdict(list)
        for part in wanted:
            whole = self._holding(part)
            if whole is not None:
                start, end = np.searchsorted(whole[:, OFFSET], [part.range.start, part.range.end])
                found[part.topic_partition].append(whole[start:end])
        return {tp: logs[0] if len(logs) == 1 else in_order(np.concatenate(logs)) for tp, logs in found.items()}

    def load(self, wanted: Iterable[Part]) -> None:
        """Read what was not read yet, as much of it together as a consumer can: one range of a partition at a time."""
        turns: dict[tuple[str, str], list[dict[TopicPartition, Part]]] = defaultdict(list)
        for part in dict.fromkeys(wanted):
            if self._holding(part) is not None:
                continue
            waiting = turns[part.role, part.isolation]
            free = next((turn for turn in waiting if part.topic_partition not in turn), None)
            if free is None:
                waiting.append(free := {})
            free[part.topic_partition] = part
        every = [(*log, [*turn.values()]) for log, waiting in turns.items() for turn in waiting]
        tasks = [
            Task(self._clusters[role], isolation, tuple(part.range for part in turn)) for role, isolation, turn in every
        ]
        for (_, _, turn), read in zip(every, read_all(tasks, self.advance), strict=True):
            for part in turn:
                self._read[part.log].append((part.range, read[TopicPartition(part.range.topic, part.range.partition)]))

    def _holding(self, part: Part) -> Log | None:
        """Return what was read of this range or of a longer one, None if neither was."""
        for held, log in self._read[part.log]:
            if held.start <= part.range.start and part.range.end <= held.end:
                return log
        return None
