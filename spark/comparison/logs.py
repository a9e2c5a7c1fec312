"""One partition as both sides hold it: its chunks, which of them correspond, and what to compare record by record.

Pure Python on chunks. Offsets of records are read off them where a chunk has no holes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from spark.comparison.chunks import Chunk, Stretch, align, joined, stretches
from spark.comparison.difference import Matched
from spark.comparison.findings import Run

LARGE_RECORDS = 20_000  # a stretch above it is first compared from its ends


@dataclass(frozen=True)
class Window:
    """Offsets [low, high) of one log whose records must be read."""

    low: int
    high: int


@dataclass(frozen=True)
class DetailWindow:
    """What to read of each side, and runs of the source that were left out because the target has nothing for them."""

    source: tuple[Window, ...]
    target: tuple[Window, ...]
    missing: tuple[Run, ...] = ()
    records: int = 0


class Logs:
    """Both logs of one partition. `before` and `later` are pieces of the source up to the cut and from it on."""

    def __init__(self, cut: int, before: Sequence[Chunk], later: Sequence[Chunk], target: Sequence[Chunk]) -> None:
        self.cut = cut
        self.source_records = sum(piece.records for piece in before)
        self.target_records = sum(piece.records for piece in target)
        # The first record from the cut on may repeat the last one before it: then it begins no chunk.
        self.source = joined(
            [*before, *(replace(piece, begins=False) for piece in later[:1] if before), *later[bool(before) :]]
        )
        self.target = joined(target)
        self._straddling = len(joined(before)) - 1  # the last chunk with a record before the cut

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Indices of chunks that correspond."""
        return align([chunk.signature for chunk in self.source], [chunk.signature for chunk in self.target])

    @cached_property
    def matched(self) -> list[Matched]:
        """The chunks that correspond, in their order."""
        found = []
        for here, there in self.pairs:
            one, other = self.source[here], self.target[there]
            found.append(Matched(one.first, one.last, other.first, other.last, one.records))
        return found

    @cached_property
    def stretches(self) -> list[Stretch]:
        """What does not correspond, up to the image of the cut: the first image of a record written later."""
        return [part for part in self._different if not self._after(part)]

    @property
    def beyond(self) -> bool:
        """Whether something does not correspond behind the image of the cut too: a lost record may stand there."""
        return any(self._after(part) and part.target_to > part.target_from for part in self._different)

    @cached_property
    def _different(self) -> list[Stretch]:
        return stretches(self.pairs, len(self.source), len(self.target))

    def _after(self, part: Stretch) -> bool:
        nothing = part.target_to == part.target_from
        return part.source_from > self._straddling + (not nothing)

    @property
    def compared(self) -> int:
        """Records before the cut in chunks that correspond."""
        whole = sum(self.source[here].records for here, _ in self.pairs if here < self._straddling)
        straddles = any(here == self._straddling for here, _ in self.pairs)
        ahead = sum(chunk.records for chunk in self.source[: max(self._straddling, 0)])
        return whole + (self.source_records - ahead if straddles else 0)

    def detail(self, *, whole: bool) -> DetailWindow:
        """Return what to read of the stretches; unless `whole`, of large ones that the target has little for the ends.

        What is behind the image of the cut is read only if `whole`.
        """
        source: list[Window] = []
        target: list[Window] = []
        missing: list[Run] = []
        records = 0
        for part in self._different if whole else self.stretches:
            ours = self.source[part.source_from : part.source_to]
            theirs = self.target[part.target_from : part.target_to]
            there = sum(chunk.records for chunk in theirs)
            records += there
            if theirs:
                target.append(Window(theirs[0].first, theirs[-1].last + 1))
            if not ours:
                continue
            here = sum(chunk.records for chunk in ours)
            if not whole and here > LARGE_RECORDS and here > 4 * there:
                head, tail = _ends(ours, there)
                middle = [chunk for chunk in ours[head:tail] if chunk.last < self.cut]
                if middle:
                    missing.append(Run(middle[0].first, middle[-1].last, sum(chunk.records for chunk in middle)))
                    ends = [ours[:head], ours[head + len(middle) :]]
                    source += [Window(end[0].first, end[-1].last + 1) for end in ends if end]
                    records += here - missing[-1].records
                    continue
            source.append(Window(ours[0].first, ours[-1].last + 1))
            records += here
        return DetailWindow(tuple(source), tuple(target), tuple(missing), records)

    def later(self) -> DetailWindow:
        """Return what to read of the stretches behind the image of the cut; runs that are on their way are left out."""
        source: list[Window] = []
        target: list[Window] = []
        missing: list[Run] = []
        records = 0
        for part in filter(self._after, self._different):
            ours = self.source[part.source_from : part.source_to]
            theirs = self.target[part.target_from : part.target_to]
            here = sum(chunk.records for chunk in ours)
            if not theirs:
                missing.append(Run(ours[0].first, ours[-1].last, here))
                continue
            records += here + sum(chunk.records for chunk in theirs)
            source += [Window(ours[0].first, ours[-1].last + 1)] if ours else []
            target.append(Window(theirs[0].first, theirs[-1].last + 1))
        return DetailWindow(tuple(source), tuple(target), tuple(missing), records)

    @cached_property
    def anchors(self) -> list[tuple[int, int]]:
        """Offsets on both sides that correspond; all in front of each is verified if nothing is wrong."""
        found: set[tuple[int, int]] = set()
        for pair in self.matched:
            if pair.source_first < self.cut:
                found.add((pair.source_first, pair.target_first))
            if pair.source_last < self.cut:
                found.add((pair.source_last + 1, pair.target_last + 1))
        return sorted(found)


def _ends(chunks: Sequence[Chunk], records: int) -> tuple[int, int]:
    """Indices between which lies what may be left out: on either side stay `records` and two chunks more."""
    head, held = 0, 0
    while head < len(chunks) and held <= records:
        held, head = held + chunks[head].records, head + 1
    tail, held = len(chunks), 0
    while tail > head and held <= records:
        held, tail = held + chunks[tail - 1].records, tail - 1
    return min(head + 1, len(chunks)), max(tail - 1, 0)
