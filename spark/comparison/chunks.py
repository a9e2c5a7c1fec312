"""Cuts a log into chunks where its content decides so, and signs each chunk by its records and their order.

A chunk begins at a record whose digest ends in zero bits. Both sides of a mirror therefore cut at the same records,
whatever their offsets: a lost, doubled or foreign record changes the chunk that it is in and no other. Pure NumPy on
digests of 128 bits, held as two words; sums are modulo 2**64.
"""

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

Words = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]
Signature = tuple[int, int, int, int, int]
COLUMNS = ["log", "first", "last", "records", "begins", "a0", "a1", "b0", "b1"]
SCHEMA = ", ".join(f"{name} {'boolean' if name == 'begins' else 'long'}" for name in COLUMNS)
_WORD = 2**64
INEXACT = 1
"""The bit of a log's number that says that a digest may be that of another record: one of a chunk marks the chunk."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records `first` to `last` (offsets, inclusive), `records` in number; `begins` if the first one is a cut.

    `sums` are, for each word of the digests, the sum and the sum weighted by the position in the chunk.
    """

    first: int
    last: int
    records: int
    begins: bool
    sums: tuple[int, int, int, int]

    @property
    def signature(self) -> Signature:
        """What two chunks have in common that hold the same records in the same order."""
        return (self.records, *self.sums)

    def joined(self, other: "Chunk") -> "Chunk":
        """Return this chunk with the records of the next one behind it."""
        a0, a1, b0, b1 = self.sums
        c0, c1, d0, d1 = other.sums
        moved = self.records
        sums = (
            (a0 + c0) % _WORD,
            (a1 + c1 + moved * c0) % _WORD,
            (b0 + d0) % _WORD,
            (b1 + d1 + moved * d0) % _WORD,
        )
        return Chunk(self.first, other.last, self.records + other.records, self.begins, sums)


def mask_bits(records: int, chunks_max: int = 50_000) -> int:
    """Return how many zero bits a cut must have: chunks of 2048 records, longer ones where there would be too many."""
    return max(11, (records // chunks_max).bit_length())


def cuts(first_word: Words, bits: int, before: int | None) -> npt.NDArray[np.bool_]:
    """Return where a chunk begins. Of equal records in a row only the first is a cut: they must not make it endless.

    `before` is the first word of the record in front of these, None if it is not known.
    """
    zero = (first_word & np.uint64((1 << bits) - 1)) == 0
    repeated = np.empty(len(first_word), dtype=np.bool_)
    if len(first_word):
        repeated[0] = before is not None and int(first_word[0]) == before
        np.equal(first_word[1:], first_word[:-1], out=repeated[1:])
    found: npt.NDArray[np.bool_] = zero & ~repeated
    return found


def pieces(
    offsets: Offsets, first_word: Words, second_word: Words, bits: int, before: int | None = None
) -> list[npt.NDArray[Any]]:
    """Return the chunks of records that follow each other; the first may be an end. Columns: COLUMNS without log."""
    begins = cuts(first_word, bits, before)
    starts = np.flatnonzero(begins)
    if not len(starts) or starts[0] != 0:
        starts = np.concatenate(([0], starts))
    index = np.arange(len(offsets), dtype=np.uint64)
    at = starts.astype(np.uint64)
    sums = []
    for word in (first_word, second_word):
        plain = np.add.reduceat(word, starts)
        sums += [plain, np.add.reduceat(word * index, starts) - at * plain]
    ends = np.append(starts[1:], len(offsets)) - 1
    return [offsets[starts], offsets[ends], ends - starts + 1, begins[starts], *sums]


def signed_pieces(
    offsets: npt.NDArray[np.int64],
    a: npt.NDArray[np.int64],
    b: npt.NDArray[np.int64],
    bits: int,
    before: int | None = None,
) -> list[npt.NDArray[np.int64]]:
    """Return what `pieces` does, of and as signed numbers: Spark and Arrow's schema have no others."""
    columns = pieces(offsets, a.view(np.uint64), b.view(np.uint64), bits, before)
    return [column.view(np.int64) if column.dtype == np.uint64 else column for column in columns]


def cut_batches(batches: Iterable[pa.RecordBatch], bits: int) -> Iterator[pa.RecordBatch]:
    """Return the pieces of batches with the columns log, offset, a, b; see SCHEMA. Runs in Spark's workers.

    The number of a log may have the bit INEXACT; then that of its pieces from the same batch has it too.
    """
    log, before = None, None
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers, offsets, a, b = (column.to_numpy() for column in batch.columns)
        logs = numbers & ~INEXACT
        edges = np.flatnonzero(np.diff(logs)) + 1
        for low, high in itertools.pairwise([0, *edges.tolist(), len(logs)]):
            if logs[low] != log:
                log, before = logs[low], None
            signed = signed_pieces(offsets[low:high], a[low:high], b[low:high], bits, before)
            before = int(a[low:high].view(np.uint64)[-1])
            number = log | np.bitwise_or.reduce(numbers[low:high] & INEXACT)
            where = np.full(len(signed[0]), number, dtype=np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in (where, *signed)], names=COLUMNS)


def in_order(columns: Iterable[npt.NDArray[Any]]) -> list[Chunk]:
    """Return the pieces of one log, as `pieces` gives them, sorted by their offsets."""
    unsigned = [column.view(np.uint64) if at > 3 else column for at, column in enumerate(columns)]
    rows = sorted(zip(*(column.tolist() for column in unsigned), strict=True))
    return [Chunk(first, last, count, cut, (a, b, c, d)) for first, last, count, cut, a, b, c, d in rows]


def joined(parts: Iterable[Chunk]) -> list[Chunk]:
    """Return whole chunks of pieces in the order of their offsets: one that begins none continues the last one."""
    return list(_joined(parts))


def _joined(parts: Iterable[Chunk]) -> Iterator[Chunk]:
    held: Chunk | None = None
    for part in parts:
        if held is not None and not part.begins:
            held = held.joined(part)
            continue
        if held is not None:
            yield held
        held = part
    if held is not None:
        yield held


Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Chunks [source_from, source_to) and [target_from, target_to) that stand between two corresponding ones."""

    source_from: int
    source_to: int
    target_from: int
    target_to: int


def align(source: Sequence[Hashable], target: Sequence[Hashable]) -> list[Pair]:
    """Return index pairs of equal elements, increasing on both sides.

    Equal beginnings and ends correspond. In between elements that are unique on both sides anchor the rest (patience
    difference): the longest increasing series of them, each grown by its equal neighbours.
    """
    found: list[Pair] = []
    waiting = [(0, len(source), 0, len(target))]
    while waiting:
        low, high, there, end = waiting.pop()
        while low < high and there < end and source[low] == target[there]:
            found.append((low, there))
            low, there = low + 1, there + 1
        while low < high and there < end and source[high - 1] == target[end - 1]:
            high, end = high - 1, end - 1
            found.append((high, end))
        if low < high and there < end:
            waiting += _between(_anchors(source, target, low, high, there, end), low, high, there, end)
    return sorted(found)


def _between(anchors: list[Pair], low: int, high: int, there: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The parts that each begin with an anchor; nothing without anchors, for then nothing corresponds."""
    if not anchors:
        return
    yield low, anchors[0][0], there, anchors[0][1]
    for (one, other), (next_one, next_other) in zip(anchors, [*anchors[1:], (high, end)], strict=True):
        yield one, next_one, other, next_other


def _anchors(
    source: Sequence[Hashable], target: Sequence[Hashable], low: int, high: int, there: int, end: int
) -> list[Pair]:
    once = _unique(source, low, high)
    pairs = [(once[key], at) for key, at in _unique(target, there, end).items() if key in once]
    return _longest_increasing(sorted(pairs))


def _unique(elements: Sequence[Hashable], low: int, high: int) -> dict[Hashable, int]:
    counts = Counter(elements[low:high])
    return {elements[at]: at for at in range(low, high) if counts[elements[at]] == 1}


def _longest_increasing(pairs: list[Pair]) -> list[Pair]:
    """The longest series of pairs, sorted by the first index, in which the second index increases too."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, at) in enumerate(pairs):
        place = bisect_left(tails, at)
        before.append(ends[place - 1] if place else -1)
        if place == len(tails):
            tails.append(at)
            ends.append(number)
        else:
            tails[place], ends[place] = at, number
    series: list[Pair] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        series.append(pairs[number])
        number = before[number]
    return series[::-1]


def stretches(pairs: Sequence[Pair], sources: int, targets: int) -> list[Stretch]:
    """Return what is between corresponding elements, where at least one side has something."""
    found = []
    low = there = 0
    for one, other in [*pairs, (sources, targets)]:
        if one > low or other > there:
            found.append(Stretch(low, one, there, other))
        low, there = one + 1, other + 1
    return found
