"""Pairs lost with foreign records that are the same record altered, and says which part differs.

Pure Python on the few offending records; the caller bounds their number.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

PARTS = ("key", "value", "headers", "timestamp")
NEIGHBOURHOOD = 1000  # records
CANDIDATES = 20  # records with the same key looked at on either side


@dataclass(frozen=True, slots=True)
class Row:
    """One record: its offset, the digest of all of it, the hashes of its parts (None for null), its timestamp (ms)."""

    offset: int
    digest: str
    key: int | None
    value: int | None
    headers: int
    timestamp: int

    def part(self, name: str) -> Hashable:
        """Return one part by its name."""
        found: Hashable = getattr(self, name)
        return found


@dataclass(frozen=True)
class Altered:
    """A record of the source and what became of it on the target."""

    source: Row
    target: Row
    differs: tuple[str, ...]


def pair(lost: Iterable[Row], foreign: Iterable[Row], *, shift: int = 0) -> tuple[list[Altered], list[Row], list[Row]]:
    """Return the altered records, what is really lost, and what is really foreign.

    Records that agree in all parts but one are the same record. So are records with the same key (not null) whose
    places, after the shift between the two logs, are within NEIGHBOURHOOD records: the nearest first.
    """
    left = sorted(lost, key=lambda record: record.offset)
    right = sorted(foreign, key=lambda record: record.offset)
    found: list[Altered] = []
    for odd in PARTS:
        left, right = _match(left, right, [name for name in PARTS if name != odd], found)
    near = sorted(
        (abs(other.offset - one.offset - shift), one.offset, other.offset)
        for one, other in _same_key(left, right)
        if abs(other.offset - one.offset - shift) <= NEIGHBOURHOOD
    )
    here, there = {one.offset: one for one in left}, {one.offset: one for one in right}
    for _, source, target in near:
        if source in here and target in there:
            found.append(_altered(here.pop(source), there.pop(target)))
    return found, list(here.values()), list(there.values())


def pair_from_end(lost: Iterable[Row], foreign: Iterable[Row]) -> tuple[list[Altered], list[Row], list[Row]]:
    """Return the same for logs that have lost their beginning: only records that agree in all parts but one.

    The last ones that agree belong together. A timestamp alone is altered to a later one: the broker's own is that of
    the append. An older one is that of an older record, which the source may have removed.
    """
    left = sorted(lost, key=lambda record: -record.offset)
    right = sorted(foreign, key=lambda record: -record.offset)
    found: list[Altered] = []
    for odd in PARTS:
        left, right = _match(left, right, [name for name in PARTS if name != odd], found, later=odd == "timestamp")
    return found, left[::-1], right[::-1]


def _altered(source: Row, target: Row) -> Altered:
    return Altered(source, target, tuple(name for name in PARTS if source.part(name) != target.part(name)))


def _same_key(left: list[Row], right: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs with the same key, each with the few neighbours only: one hot key must not make it quadratic."""
    by_key: dict[int, list[Row]] = defaultdict(list)
    for record in right:
        if record.key is not None:
            by_key[record.key].append(record)
    for record in left:
        held = by_key.get(record.key, []) if record.key is not None else []
        at = bisect_left(held, record.offset, key=lambda other: other.offset)
        yield from ((record, other) for other in held[max(0, at - CANDIDATES) : at + CANDIDATES])


def _match(
    left: list[Row],
    right: list[Row],
    names: list[str],
    found: list[Altered],
    *,
    later: bool = False,
) -> tuple[list[Row], list[Row]]:
    """Pair what agrees in these parts; with `later` only if the target's timestamp is not the older one."""

    def identity(record: Row) -> Hashable:
        return tuple(record.part(name) for name in names)

    waiting: dict[Hashable, list[Row]] = defaultdict(list)
    for record in reversed(right):
        waiting[identity(record)].append(record)
    unmatched, used = [], set()
    for record in left:
        queue = waiting.get(identity(record), [])
        if queue and not (later and queue[-1].timestamp < record.timestamp):
            other = queue.pop()
            used.add(other.offset)
            found.append(_altered(record, other))
        else:
            unmatched.append(record)
    return unmatched, [record for record in right if record.offset not in used]
