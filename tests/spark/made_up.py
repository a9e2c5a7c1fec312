"""Made-up logs with faults in them, and the comparison run on them without Spark: its reader slices Python lists."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from spark.records import chunks, compare, extents, logs
from spark.records.extents import Extent
from spark.records.findings import PartitionResult
from spark.records.offsets import GroupPosition
from spark.records.pairing import Row
from spark.records.sources import Range

from .oracle import Log, Logs, Record

TOPIC, COPY = "t", "mirrored.t"
Place = tuple[str, int]
Rows = list[tuple[Place, int, Record]]


@dataclass(frozen=True)
class Sizes:
    """How finely the comparison cuts: zero bits of a cut, records of a batch, and of a stretch that counts as large."""

    bits: int = 2
    batch: int = 5
    large: int = 20_000


@dataclass(frozen=True)
class Brokers:
    """Stands in for both clusters: what a consumer with this isolation gets of these offsets."""

    partitions: Mapping[int, Logs]

    def read(self, _: object, side: str, ranges: Sequence[Range], isolation: str, names: Mapping[str, str]) -> Rows:
        assert len({(one.topic, one.partition) for one in ranges}) == len(ranges), (
            "Spark reads one range of a partition"
        )
        return [
            ((names.get(one.topic, one.topic), one.partition), *row)
            for one in ranges
            for row in self._log(side, one.partition, isolation)
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


def found_without_spark(
    partitions: Mapping[int, Logs], sizes: Sizes, groups: Sequence[GroupPosition] = ()
) -> tuple[list[PartitionResult], list[GroupPosition]]:
    """Run the whole comparison on lists; nothing of what it decides is replaced, only what reads."""
    held = {(TOPIC, number): extent(number, log) for number, log in partitions.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extents, "read", Brokers(partitions).read)
        patch.setattr(extents, "_union", lambda frames: [row for frame in frames if frame for row in frame])
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
    source: str = "source"
    target: str = "target"


def request() -> _Request:
    """The little of a request that the comparison asks for."""
    return _Request()


def extent(number: int, log: Logs) -> Extent:
    """What a run reads of these logs."""
    end = max([log.cut, *(offset + 1 for offset, _ in log.source)])
    return Extent(
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
    for place, offset, record in sorted(held or [], key=lambda row: row[:2]):
        parts = (None if part is None else hash(part) for part in (record.key, record.value, record.headers))
        key, value, headers = parts
        found[place].append(Row(offset, digest(record), key, value, headers or 0, record.timestamp))
    return found


def _offsets(held: Rows | None) -> dict[Place, list[int]]:
    found: dict[Place, list[int]] = defaultdict(list)
    for place, offset, _ in sorted(held or [], key=lambda row: row[:2]):
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
