"""Finds which chunks of two logs correspond, and which stretches between them must be compared record by record.

Corresponding chunks stand in the same order on both sides. Pure Python on signatures; knows no record.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

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
    """Return what stands between corresponding elements, where at least one side has something."""
    found = []
    low = there = 0
    for one, other in [*pairs, (sources, targets)]:
        if one > low or other > there:
            found.append(Stretch(low, one, there, other))
        low, there = one + 1, other + 1
    return found
