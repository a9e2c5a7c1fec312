"""Made-up logs with faults in them, and the comparison run on them without Spark: its reader slices Python lists."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from spark.records import chunks, compare, logs
from spark.records.extents import Extent
from spark.records.findings import PartitionResult
from spark.records.offsets import GroupPosition
from spark.records.pairing import Row

from .oracle import Log, Logs, Record

TOPIC = "t"
Place = tuple[str, int]
Rows = list[tuple[Place, int, Record]]


@dataclass(frozen=True)
class Sizes:
    """How finely the comparison cuts: zero bits of a cut, records of a batch, and of a stretch that counts as large."""

    bits: int = 2
    batch: int = 5
    large: int = 20_000


@dataclass
class Lists:
    """Stands in for the reader of the clusters: the same questions, answered with lists."""

    partitions: Mapping[int, Logs]
    extents: Mapping[Place, Extent] = field(default_factory=dict)
    spark: None = None

    def before_cut(self, places: Iterable[Place]) -> Rows:
        return self._rows(places, lambda log: [one for one in log.source if one[0] < log.cut])

    def after_cut(self, places: Iterable[Place]) -> Rows:
        return self._rows(places, lambda log: [one for one in log.source if one[0] >= log.cut])

    def source(self, places: Iterable[Place], isolation: str | None = None) -> Rows:
        every = isolation == "read_uncommitted"
        return self._rows(places, lambda log: sorted_log([*log.source, *(log.aborted if every else ())]))

    def target(self, places: Iterable[Place]) -> Rows:
        return self._rows(places, lambda log: log.target)

    def source_windows(self, windows: Mapping[Place, Sequence[logs.Window]]) -> Rows:
        return [row for row in self.source(windows) if _inside(row[1], windows[row[0]])]

    def target_windows(self, windows: Mapping[Place, Sequence[logs.Window]]) -> Rows:
        return [row for row in self.target(windows) if _inside(row[1], windows[row[0]])]

    def _rows(self, places: Iterable[Place], chosen: Any) -> Rows:
        return [(place, *one) for place in places for one in chosen(self.partitions[place[1]])]


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


def found_without_spark(
    partitions: Mapping[int, Logs], sizes: Sizes, groups: Sequence[GroupPosition] = ()
) -> tuple[list[PartitionResult], list[GroupPosition]]:
    """Run the whole comparison on lists; nothing of what it decides is replaced, only what reads."""
    held = {(TOPIC, number): _extent(number, log) for number, log in partitions.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "Reader", lambda *_: Lists(partitions, held))
        patch.setattr(compare, "scan", partial(_scan, sizes))
        patch.setattr(compare, "watched", lambda *_: nullcontext())
        patch.setattr(compare, "rows", _rows)
        patch.setattr(compare, "offsets", _offsets)
        patch.setattr(compare, "occurrences", _occurrences)
        patch.setattr(logs, "LARGE_RECORDS", sizes.large)
        found = compare.Comparison(None, _Request(), list(held.values())).run(groups, lambda _: None)  # type: ignore[arg-type]
    return found.partitions, found.groups


@dataclass(frozen=True)
class _Limits:
    isolation: str = "read_committed"


@dataclass(frozen=True)
class _Request:
    limits: _Limits = _Limits()


def _extent(number: int, log: Logs) -> Extent:
    return Extent(
        topic=TOPIC,
        partition=number,
        source_start=log.source_start,
        cut=log.cut,
        source_end=max([log.cut, *(offset + 1 for offset, _ in log.source)]),
        target_topic=TOPIC,
        target_start=log.target_start,
        target_end=max([log.target_start, *(offset + 1 for offset, _ in log.target)]),
        position=log.position,
        compacted=log.compacted,
    )


def _scan(sizes: Sizes, _: object, named: Mapping[str, Rows], places: Iterable[Place], bits: int) -> Any:
    assert bits >= sizes.bits
    return {
        name: {place: _pieces(sizes, [row for row in held if row[0] == place]) for place in places}
        for name, held in named.items()
    }


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
        yield pa.RecordBatch.from_arrays(arrays, names=["place", "offset", "a", "b"])


def _rows(held: Rows | None) -> dict[Place, list[Row]]:
    found: dict[Place, list[Row]] = defaultdict(list)
    for place, offset, record in held or []:
        parts = (None if part is None else hash(part) for part in (record.key, record.value, record.headers))
        key, value, headers = parts
        found[place].append(Row(offset, digest(record), key, value, headers or 0, record.timestamp))
    return found


def _offsets(held: Rows | None) -> dict[Place, list[int]]:
    found: dict[Place, list[int]] = defaultdict(list)
    for place, offset, _ in held or []:
        found[place].append(offset)
    return found


def _occurrences(_: object, named: Mapping[str, Rows], wanted: Iterable[str]) -> Any:
    sought = set(wanted)
    found: dict[str, dict[tuple[Place, str], tuple[int, int]]] = {}
    for name, held in named.items():
        places: dict[tuple[Place, str], list[int]] = defaultdict(list)
        for place, offset, record in held:
            places[place, digest(record)].append(offset)
        found[name] = {key: (len(at), min(at)) for key, at in places.items() if key[1] in sought}
    return found


def _inside(offset: int, windows: Sequence[logs.Window]) -> bool:
    return any(window.low <= offset < window.high for window in windows)
