"""Which records of two logs correspond, and what a log start proves, for the oracle: it counts and walks, no more.

A log is a sequence of offsets and records. Nothing of `spark` is imported here either.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Content = TypeVar("Content", bound=Hashable)
Log = Sequence[tuple[int, Content]]
Images = list[tuple[int, int]]


@dataclass(frozen=True)
class Overlap:
    """Offsets from which both logs hold the same: of the source, of the target, and the target's first known record."""

    source: int
    target: int
    known: int


def images(source: Log[Content], target: Log[Content], *, from_end: bool) -> Images:
    """Return source and target offsets of records that correspond.

    As many as possible keep their order (the longest common subsequence); which of several identical ones is chosen
    is unknown. Records left over correspond to identical ones left over, the n-th to the n-th. Where a log lost
    its beginning, identical records are aligned from the end, because retention removes from the beginning.
    """
    source, target = list(source), list(target)
    pairs = in_order(source[::-1], target[::-1]) if from_end else in_order(source, target)
    here, there = {one for one, _ in pairs}, {other for _, other in pairs}
    rest = [(n, record) for n, record in source if n not in here]
    left = [(n, record) for n, record in target if n not in there]
    at_source, at_target = _offsets(rest), _offsets(left)
    for record in at_source.keys() & at_target.keys():
        pairs += zip(at_source[record], at_target[record], strict=False)
    return sorted(pairs)


def _offsets(log: Log[Content]) -> dict[Content, list[int]]:
    """Where each record stands."""
    found: dict[Content, list[int]] = defaultdict(list)
    for offset, record in log:
        found[record].append(offset)
    return found


def in_order(source: Log[Content], target: Log[Content]) -> Images:
    """A longest common subsequence, as early as possible. Equal records get equal numbers: those compare quickly."""
    numbers: dict[Content, int] = {}
    ours, theirs = ([numbers.setdefault(record, len(numbers)) for _, record in log] for log in (source, target))
    longest = [[0] * (len(target) + 1) for _ in range(len(source) + 1)]
    for i in range(len(source) - 1, -1, -1):
        row, below = longest[i], longest[i + 1]
        for j in range(len(target) - 1, -1, -1):
            if ours[i] == theirs[j]:
                row[j] = below[j + 1] + 1
            else:
                row[j] = below[j] if below[j] > row[j + 1] else row[j + 1]
    found, i, j = [], 0, 0
    while i < len(source) and j < len(target):
        if ours[i] == theirs[j]:
            found.append((source[i][0], target[j][0]))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def offsets(log: Log[Content], record: Content) -> list[int]:
    """Where a record stands."""
    return [offset for offset, other in log if other == record]


def overlap(source: Log[Content], target: Log[Content]) -> Overlap | None:
    """Return where the logs begin to hold the same records, counted from their ends; None if they share none."""
    ours, theirs = _counted(source, target), _counted(target, source)
    if not ours:
        return None
    at_source = {record for _, record in source}
    return Overlap(min(ours), min(theirs), min(offset for offset, record in target if record in at_source))


def _counted(log: Log[Content], other: Log[Content]) -> list[int]:
    """The offsets of a log whose record the other one has often enough for it and for all equal ones behind it."""
    left = Counter(record for _, record in other)
    found = []
    for offset, record in reversed(log):
        if left[record]:
            left[record] -= 1
            found.append(offset)
    return found


def proven(head: Log[Content], log_start: int, known: float) -> list[int]:
    """Return the offsets of the target's head that have expired, if the source's log begins at this offset.

    Nobody can have removed more records than there are offsets. What stands a second time behind a record that the
    source still holds was copied twice. The nearest have expired; of equal ones those that are no repetition first.
    """
    seen: set[Content] = set()
    early = {record for offset, record in head if offset < known}
    first, again = [], []
    for offset, record in head:
        if offset >= known and record in early:
            continue
        (again if record in seen else first).append(offset)
        seen.add(record)
    return [*again, *first][-log_start:] if log_start else []


@dataclass(frozen=True)
class Bounded:
    """The offsets of a log's records, where the log starts and ends, and its first record without a key."""

    offsets: tuple[int, ...]
    start: int
    end: int
    first_keyless: int


def cleaned(lone: Sequence[int], others: Sequence[int], anchors: Images, log: Bounded) -> set[int]:
    """Return those of the lone offsets of one log whose record the cleaner of the other `log` has removed.

    Between two neighbours that both hold, each offset without a record stands for one record that was there, unless it
    is behind a record without a key. `others` are records with a key that only the one log holds: they come first, in
    front of all anchors only those that do not fit in front of the log start.
    """
    ordered = sorted(anchors)
    found: set[int] = set()
    for number in range(len(ordered) + 1):
        here, low = ordered[number - 1] if number else (-1, log.start - 1)
        following, high = ordered[number] if number < len(ordered) else (10**9, log.end)
        holes = [n for n in range(low + 1, min(high, log.first_keyless)) if n not in log.offsets]
        used = sum(here < n < following for n in others) - (0 if number else log.start)
        left = max(0, len(holes) - max(0, used))
        found |= set(sorted(n for n in lone if here < n < following)[:left])
    return found
