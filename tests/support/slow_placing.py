"""The position of a consumer by the records of a partition, one at a time: what `Placing` must find for all at once."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from spark.comparison.difference import Difference, Matched

Pairs = Mapping[Matched, tuple[Sequence[int], Sequence[int]]]


@dataclass(frozen=True)
class Position:
    """The position of a consumer that has read up to a source offset. `lowest` is None while nothing has an image.

    `back`: where at the source a consumer goes on that has read on the target up to the synced offset.
    """

    lowest: int | None
    back: int | None
    unread: int
    skipped: int
    repeated: int


class SlowPlacing:
    """The records of one partition that have an image, in order; `offsets` holds those of pairs that have holes.

    `found` are the differences of the stretches between matched records: none of their records is in two of them.
    """

    def __init__(self, matched: Sequence[Matched], found: Sequence[Difference]) -> None:
        self.matched = matched
        self.before = [0, *accumulate(pair.records for pair in matched)]
        images = [image for one in found for image in one.images]
        self.rows = np.array([here for here, _ in images], dtype=np.int64)
        self.images = np.array([there for _, there in images], dtype=np.int64)
        without = [row.offset for one in found for row in (*one.lost, *one.waiting)]
        self.without = np.array(without, dtype=np.int64)
        self.missing = [run for one in found for run in one.missing]
        self.offsets: Pairs = {}

    def holed(self, source: Iterable[int], target: Iterable[int]) -> set[Matched]:
        """Return the pairs whose own offsets must be known to place these offsets."""
        found = {self._at_source(offset) for offset in source}
        found |= {self._at_target(offset) for offset in target}
        return {self.matched[at] for at in found if at < len(self.matched) and not _dense(self.matched[at])}

    def position(self, committed: int, synced: int | None) -> Position:
        """Return the position of a consumer that has read up to `committed`, if it goes on at `synced`."""
        read, known = self._up_to(committed), self.before[-1]
        unread_rows = self.rows >= committed
        unread = known - read + int(unread_rows.sum()) + self._without_image(committed)
        skipped = repeated = 0
        if synced is not None:
            reached = self._reached(synced)
            behind = self.images < synced
            skipped = max(0, reached - read) + int((unread_rows & behind).sum())
            repeated = max(0, read - reached) + int((~unread_rows & ~behind).sum())
        back = None if synced is None else self._back(synced)
        return Position(self._lowest(read, unread_rows), back, unread, skipped, repeated)

    def _lowest(self, read: int, unread_rows: npt.NDArray[np.bool_]) -> int | None:
        firsts = [int(self.images[unread_rows].min())] if unread_rows.any() else []
        if read < self.before[-1]:
            firsts.append(self._image(read))
        if firsts:
            return min(firsts)
        lasts = [int(self.images.max())] if len(self.images) else []
        if self.matched:
            lasts.append(self.matched[-1].target_last)
        return max(lasts) + 1 if lasts else None

    def _back(self, synced: int) -> int | None:
        """The source offset of the first record whose image is at `synced` or behind, else behind all with one."""
        reached = self._reached(synced)
        firsts = [int(offset) for offset in self.rows[self.images >= synced]]
        if reached < self.before[-1]:
            firsts.append(self._image(reached, at_source=True))
        if firsts:
            return min(firsts)
        lasts = [int(self.rows.max())] if len(self.rows) else []
        if self.matched:
            lasts.append(self.matched[-1].source_last)
        return max(lasts) + 1 if lasts else None

    def _without_image(self, committed: int) -> int:
        """How many unread records are lost or on their way; in runs that were not read every offset counts as one."""
        rows = int((self.without >= committed).sum())
        return rows + sum(min(run.records, max(0, run.last - committed + 1)) for run in self.missing)

    def _up_to(self, offset: int) -> int:
        """How many records of the matched ones stand in front of a source offset."""
        at = self._at_source(offset)
        return self.before[at] + (self._inside(at, offset, 0) if at < len(self.matched) else 0)

    def _reached(self, offset: int) -> int:
        """How many records of the matched ones have their image in front of a target offset."""
        at = self._at_target(offset)
        return self.before[at] + (self._inside(at, offset, 1) if at < len(self.matched) else 0)

    def _inside(self, at: int, offset: int, side: int) -> int:
        pair = self.matched[at]
        if pair in self.offsets:
            return bisect_left(self.offsets[pair][side], offset)
        return min(max(0, offset - (pair.target_first if side else pair.source_first)), pair.records)

    def _image(self, number: int, *, at_source: bool = False) -> int:
        """The target offset of the matched record with this number, or its own at the source."""
        at = bisect_right(self.before, number) - 1
        pair, inside = self.matched[at], number - self.before[at]
        if inside == pair.records - 1:
            return pair.source_last if at_source else pair.target_last
        if pair in self.offsets:
            return self.offsets[pair][not at_source][inside]
        return (pair.source_first if at_source else pair.target_first) + inside

    def _at_source(self, offset: int) -> int:
        return bisect_left(self.matched, offset, key=lambda pair: pair.source_last)

    def _at_target(self, offset: int) -> int:
        return bisect_left(self.matched, offset, key=lambda pair: pair.target_last)


def _dense(pair: Matched) -> bool:
    return pair.source_last - pair.source_first == pair.target_last - pair.target_first == pair.records - 1
