"""Where consumers stand on the other side, by the records of one partition: for all positions of a partition at once.

Pure NumPy on offsets of 64 bits. Does not read records, nor know whose positions they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafka.group_positions import NONE
from spark.comparison.difference import Difference, Matched

Numbers = npt.NDArray[np.int64]
_FAR = np.iinfo(np.int64).max
_SOURCE, _TARGET = 0, 1


@dataclass(frozen=True)
class Judged:
    """What going on at `synced` means for each consumer that has read up to `committed`. NONE: unknown.

    `lowest` is NONE while nothing has an image. `back`: where at the source a consumer goes on that has read on the
    target up to the synced offset.
    """

    lowest: Numbers
    back: Numbers
    unread: Numbers
    skipped: Numbers
    repeated: Numbers


class Placing:
    """The records of one partition that have an image, in order.

    `found` are the differences of the stretches between matched records: none of their records is in two of them.
    """

    def __init__(self, matched: Sequence[Matched], found: Sequence[Difference]) -> None:
        self._matched = matched
        pairs = np.array(
            [(one.source_first, one.target_first, one.source_last, one.target_last, one.records) for one in matched],
            dtype=np.int64,
        ).reshape(-1, 5)
        self._firsts, self._lasts, self._records = (pairs[:, 0], pairs[:, 1]), (pairs[:, 2], pairs[:, 3]), pairs[:, 4]
        self._before = np.concatenate(([0], np.cumsum(self._records)))
        lengths = self._lasts[_SOURCE] - self._firsts[_SOURCE], self._lasts[_TARGET] - self._firsts[_TARGET]
        self._dense = (lengths[0] == lengths[1]) & (lengths[1] == self._records - 1)
        self._own: tuple[Numbers, Numbers] = (_sorted([]), _sorted([]))
        self._own_starts = (np.zeros_like(self._records), np.zeros_like(self._records))
        self._own_known = np.zeros(len(matched), dtype=np.bool_)
        images = np.array([pair for one in found for pair in one.images], dtype=np.int64).reshape(-1, 2)
        self._rows = images[np.argsort(images[:, _SOURCE], kind="stable")]
        by_image = self._rows[np.argsort(self._rows[:, _TARGET], kind="stable")]
        self._images = by_image[:, _TARGET]
        self._first_image, self._first_row = _least_from(self._rows[:, _TARGET]), _least_from(by_image[:, _SOURCE])
        self._without = _sorted([row.offset for one in found for row in (*one.lost, *one.waiting)])
        self._missing = [run for one in found for run in one.missing]

    def holed(self, committed: Numbers, synced: Numbers) -> list[Matched]:
        """Return the pairs whose own offsets must be known to place these offsets of the source and of the target."""
        at = [self._pair_of(committed, _SOURCE), self._pair_of(synced, _TARGET)]
        found = np.unique(np.concatenate(at))
        found = found[found < len(self._matched)]
        return [self._matched[number] for number in found[~self._dense[found]].tolist()]

    def know(self, holed: Sequence[Matched], source: Numbers, target: Numbers) -> None:
        """Take in the offsets of all records of these pairs on both sides, sorted; others may be among them."""
        ends = np.array([pair.source_last for pair in holed], dtype=np.int64)
        self._own_known[np.searchsorted(self._lasts[_SOURCE], ends)] = True
        self._own = source, target
        self._own_starts = (
            np.searchsorted(source, self._firsts[_SOURCE]),
            np.searchsorted(target, self._firsts[_TARGET]),
        )

    def judge(self, committed: Numbers, synced: Numbers) -> Judged:
        """Return what going on at `synced`, NONE for nowhere, means for consumers that have read up to `committed`."""
        is_synced, total = synced != NONE, self._before[-1]
        read, reached = self._records_before(committed, _SOURCE), self._records_before(synced, _TARGET)
        read_rows = np.searchsorted(self._rows[:, _SOURCE], committed)
        rows_behind = np.searchsorted(self._images, synced)
        read_behind = self._count(read_rows, rows_behind)
        skipped = np.maximum(0, reached - read) + rows_behind - read_behind
        repeated = np.maximum(0, read - reached) + read_rows - read_behind
        return Judged(
            lowest=self._first(self._first_image[read_rows], read, _TARGET),
            back=np.where(is_synced, self._first(self._first_row[rows_behind], reached, _SOURCE), NONE),
            unread=total - read + len(self._rows) - read_rows + self._without_image(committed),
            skipped=np.where(is_synced, skipped, 0),
            repeated=np.where(is_synced, repeated, 0),
        )

    def _first(self, of_rows: Numbers, number: Numbers, side: int) -> Numbers:
        """The least offset of these rows and of the matched record with this number, else the one behind all."""
        first = np.array(of_rows)
        left = number < self._before[-1]
        first[left] = np.minimum(first[left], self._offset_of(number[left], side))
        lasts = [*self._rows[:, side].max(initial=NONE, keepdims=True), *self._lasts[side][-1:]]
        return np.where(first == _FAR, max(lasts) + 1 if max(lasts) != NONE else NONE, first)

    def _offset_of(self, number: Numbers, side: int) -> Numbers:
        """The offset of the matched record with this number."""
        at = np.searchsorted(self._before, number, side="right") - 1
        inside = number - self._before[at]
        found = self._firsts[side][at] + inside
        is_last = inside == self._records[at] - 1
        own = self._own_known[at] & ~is_last
        found[own] = self._own[side][(self._own_starts[side][at] + inside)[own]]
        return np.where(is_last, self._lasts[side][at], found)

    def _records_before(self, offsets: Numbers, side: int) -> Numbers:
        """How many of the matched records stand in front of an offset."""
        at = self._pair_of(offsets, side)
        found = self._before[at]
        within = at < len(self._matched)
        at, offsets = at[within], offsets[within]
        inside = np.clip(offsets - self._firsts[side][at], 0, self._records[at])
        own = self._own_known[at]
        inside[own] = np.maximum(0, np.searchsorted(self._own[side], offsets[own]) - self._own_starts[side][at[own]])
        found[within] += inside
        return found

    def _pair_of(self, offsets: Numbers, side: int) -> Numbers:
        """The first pair that ends at an offset or behind it."""
        return np.searchsorted(self._lasts[side], offsets).astype(np.int64)

    def _without_image(self, committed: Numbers) -> Numbers:
        """How many unread records are lost or on their way; in runs that were not read every offset counts as one."""
        found = len(self._without) - np.searchsorted(self._without, committed).astype(np.int64)
        for run in self._missing:
            found += np.clip(run.last - committed + 1, 0, run.records)
        return found

    def _count(self, rows: Numbers, images: Numbers) -> Numbers:
        """How many of the first `rows` rows have one of the first `images` images.

        The first rows are cut into blocks of powers of two, in each of which the images are sorted.
        """
        number = len(self._rows)
        ranks = np.empty(number, dtype=np.int64)
        ranks[np.argsort(self._rows[:, _TARGET], kind="stable")] = np.arange(number)
        found, size = np.zeros(len(rows), dtype=np.int64), 1
        while size <= number:
            blocks = number // size
            held = np.sort(ranks[: blocks * size].reshape(blocks, size), axis=1)
            held += np.arange(blocks)[:, None] * number  # so that all blocks together are sorted
            asked = np.flatnonzero(rows & size)
            block = (rows[asked] // (2 * size)) * 2
            found[asked] += np.searchsorted(held.ravel(), block * number + images[asked]) - block * size
            size *= 2
        return found


def _sorted(offsets: Sequence[int]) -> Numbers:
    return np.sort(np.array(offsets, dtype=np.int64))


def _least_from(numbers: Numbers) -> Numbers:
    """The least of the numbers from each place on, and behind the last one a number that is greater than all."""
    return np.minimum.accumulate(np.append(numbers, _FAR)[::-1])[::-1]
