"""Made-up logs with faults in them, and the comparison run on them without Spark: its reader slices Python lists."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, cast

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from contract.verification_request import ClusterConfig, Request
from kafka.group_positions import GroupPosition
from spark.comparison import chunks, compare, logs
from spark.comparison.difference import Row
from spark.comparison.findings import PartitionResult
from spark.comparison.offset_ranges import (
    ComparisonEngine,
    Occurrences,
    OffsetRange,
    Pieces,
    Reader,
    Windows,
    WindowSum,
)
from spark.comparison.reading import ReadRange
from spark.comparison.spark_engine import SparkReader
from spark.progress import Progress

from .oracle import Log, Logs, Record

TOPIC, COPY = "t", "mirrored.t"
Place = tuple[str, int]
Rows = list[tuple[Place, int, Record]]


@dataclass(frozen=True)
class Sizes:
    """How finely the comparison cuts: zero bits of a cut, records of a batch, and of a stretch that counts as large.

    A window has 2**`window_bits` offsets.
    """

    bits: int = 2
    batch: int = 5
    large: int = 20_000
    window_bits: int = 2


@dataclass(frozen=True)
class Brokers:
    """Stands in for both clusters: what a consumer with this isolation gets of these offsets."""

    partitions: Mapping[int, Logs]

    def read(self, side: ClusterConfig, ranges: Sequence[ReadRange], isolation: str, names: Mapping[str, str]) -> Rows:
        assert len({(one.topic, one.partition) for one in ranges}) == len(ranges), (
            "Spark reads one range of a partition"
        )
        return [
            ((names.get(one.topic, one.topic), one.partition), *row)
            for one in ranges
            for row in self._log(side.role, one.partition, isolation)
            if one.start <= row[0] < one.end
        ]

    def _log(self, side: str, number: int, isolation: str) -> Log:
        logs = self.partitions[number]
        if side == "target":
            return logs.target
        hidden = [*logs.aborted, *logs.pending] if isolation == "read_uncommitted" else []
        return sorted_log([*logs.source, *hidden])


def sorted_log(log: Log) -> Log:
    """The records in the order of their offsets."""
    return sorted(log, key=lambda one: one[0])


def words(record: Record) -> tuple[int, int]:
    """A digest of 128 bits of a record, as two signed words."""
    whole = blake2b(repr(record).encode(), digest_size=16).digest()
    return int.from_bytes(whole[:8], "big", signed=True), int.from_bytes(whole[8:], "big", signed=True)


def digest(record: Record) -> str:
    """The digest as hexadecimal digits."""
    a, b = words(record)
    return f"{a % 2**64:016X}{b % 2**64:016X}"


class Lists:
    """An `Engine` whose frames are lists of records."""

    def __init__(self, brokers: Brokers, sizes: Sizes) -> None:
        self._brokers = brokers
        self._sizes = sizes

    def read(self, side: ClusterConfig, ranges: Sequence[ReadRange], isolation: str, names: Mapping[str, str]) -> Rows:
        return self._brokers.read(side, ranges, isolation, names)

    def union(self, frames: Iterable[Rows | None]) -> Rows:
        return [row for frame in frames if frame for row in frame]

    def watched(self, *_: object) -> AbstractContextManager[None]:
        return nullcontext()

    def windows(
        self, logs: Mapping[str, tuple[Rows, int]], topic_partitions: Iterable[Place], bits: int
    ) -> dict[str, Windows]:
        return {name: window_sums(held, shift, self._sizes.window_bits) for name, (held, shift) in logs.items()}

    def scan(self, named: Mapping[str, Rows], topic_partitions: Iterable[Place], bits: int) -> dict[str, Pieces]:
        assert bits >= self._sizes.bits
        return {
            name: {tp: _pieces(self._sizes, [row for row in held if row[0] == tp]) for tp in topic_partitions}
            for name, held in named.items()
        }

    def inexact(self) -> set[Place]:
        return set()

    def rows(self, held: Rows | None) -> dict[Place, list[Row]]:
        found: dict[Place, list[Row]] = defaultdict(list)
        for tp, offset, record in sorted(held or [], key=lambda row: row[:2]):
            parts = (None if part is None else hash(part) for part in (record.key, record.value, record.headers))
            key, value, headers = parts
            found[tp].append(Row(offset, digest(record), key, value, headers or 0, record.timestamp))
        return found

    def offsets(self, held: Rows | None) -> dict[Place, list[int]]:
        found: dict[Place, list[int]] = defaultdict(list)
        for tp, offset, _ in sorted(held or [], key=lambda row: row[:2]):
            found[tp].append(offset)
        return found

    def occurrences(self, named: Mapping[str, Rows], wanted: Iterable[str]) -> dict[str, Occurrences]:
        sought = set(wanted)
        found: dict[str, Occurrences] = {}
        for name, held in named.items():
            topic_partitions: dict[tuple[Place, str], list[int]] = defaultdict(list)
            for tp, offset, record in held:
                topic_partitions[tp, digest(record)].append(offset)
            found[name] = {key: (len(at), min(at)) for key, at in topic_partitions.items() if key[1] in sought}
        return found


def window_sums(held: Rows, shift: int, bits: int) -> Windows:
    """The sums of windows as Spark adds them up, of another hash."""
    found: Windows = defaultdict(dict)
    for tp, offset, record in sorted(held, key=lambda row: row[:2]):
        place = offset - shift
        a, b = (hash((place, word)) for word in words(record))
        one = found[tp].get(place >> bits, WindowSum(offset, offset, 0, 0, 0))
        found[tp][place >> bits] = WindowSum(one.first, offset, one.records + 1, one.a ^ a, one.b ^ b)
    return found


def no_spark() -> SparkReader:
    """Stands for the start of Spark where nothing may need it."""
    raise AssertionError("Spark is asked for")


def found_without_spark(
    partitions: Mapping[int, Logs],
    sizes: Sizes,
    groups: Sequence[GroupPosition] = (),
    engine: ComparisonEngine[Any] | None = None,
) -> tuple[list[PartitionResult], list[GroupPosition]]:
    """Run the whole comparison on lists; nothing of what it decides is replaced, only what reads."""
    held = {(TOPIC, number): offset_range(number, log) for number, log in partitions.items()}
    engine = engine or Lists(Brokers(partitions), sizes)
    reader = Reader(engine, cast("Request", request()), held.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "LARGE_RECORDS", sizes.large)
        found = compare.Comparison(reader, no_spark).run(groups, Progress())
    return found.partitions, found.groups


@dataclass(frozen=True)
class _Limits:
    isolation: str = "read_committed"


@dataclass(frozen=True)
class MadeUpSide:
    """The little of a side that its reading asks for."""

    role: str
    alias: str = "site"
    user: str = "reader"
    client_config: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Request:
    limits: _Limits = _Limits()
    source: MadeUpSide = MadeUpSide("source")
    target: MadeUpSide = MadeUpSide("target")


def request() -> _Request:
    """The little of a request that the comparison asks for."""
    return _Request()


def offset_range(number: int, log: Logs) -> OffsetRange:
    """What a run reads of these logs."""
    end = max([log.cut, *(offset + 1 for offset, _ in log.source)])
    return OffsetRange(
        topic=TOPIC,
        partition=number,
        source_start=log.source_start,
        cut=log.cut,
        source_end=log.pending[0][0] if log.pending else end,
        pending_end=max([end, *(offset + 1 for offset, _ in log.pending)]),
        target_topic=COPY,
        target_start=log.target_start,
        target_end=max([log.target_start, *(offset + 1 for offset, _ in log.target)]),
        position=log.position,
        cleaned_at_source=log.compacted and log.never_cleaned != "source",
        cleaned_at_target=log.compacted and log.never_cleaned != "target",
    )


def _pieces(sizes: Sizes, held: Rows) -> list[chunks.Chunk]:
    table = list(chunks.cut_batches(_batches(held, sizes.batch), sizes.bits))
    if not table:
        return []
    merged = pa.Table.from_batches(table)
    return chunks.in_order(merged.column(name).to_numpy() for name in chunks.COLUMNS[1:])


def _batches(held: Rows, size: int) -> Iterator[pa.RecordBatch]:
    for low in range(0, len(held), size):
        part = held[low : low + size]
        columns = [[7] * len(part), [row[1] for row in part], *zip(*(words(row[2]) for row in part), strict=True)]
        arrays = [pa.array(np.array(column, dtype=np.int64)) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=["log", "offset", "a", "b"])
