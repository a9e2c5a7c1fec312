"""Pairs lost with foreign records that are the same record altered, and says which part differs.

Pure Python on the few offending records; the caller bounds their number.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

PARTS = ("key", "value", "headers", "timestamp")
NEIGHBOURHOOD = 1000  # records


@dataclass(frozen=True)
class Offender:
    """One record that only one side has: its offset and the digests of its parts (None for null)."""

    offset: int
    digest: str
    key: str | None
    value: str | None
    headers: str | None
    timestamp: int

    def part(self, name: str) -> Hashable:
        """Return one part by its name."""
        found: Hashable = getattr(self, name)
        return found


@dataclass(frozen=True)
class Altered:
    """A record of the source and what became of it on the target."""

    source: Offender
    target: Offender
    differs: tuple[str, ...]


def pair(
    lost: Iterable[Offender], foreign: Iterable[Offender], *, shift: int = 0
) -> tuple[list[Altered], list[Offender], list[Offender]]:
    """Return the altered records, what is really lost, and what is really foreign.

    Records that agree in all parts but one are the same record. So are records with the same key (not null) whose
    places, after the shift between the two logs, are within NEIGHBOURHOOD records.
    """
    left = sorted(lost, key=lambda record: record.offset)
    right = sorted(foreign, key=lambda record: record.offset)
    found: list[Altered] = []

    def near(one: Offender, other: Offender) -> bool:
        return abs(other.offset - one.offset - shift) <= NEIGHBOURHOOD

    for odd in PARTS:
        same = [name for name in PARTS if name != odd]
        left, right = _match(left, right, lambda record, same=same: tuple(map(record.part, same)), None, found)
    keyed = [record for record in left if record.key is not None]
    rest = [record for record in left if record.key is None]
    keyed, right = _match(keyed, right, lambda record: record.key, near, found)
    return found, sorted(keyed + rest, key=lambda record: record.offset), right


def _match(
    left: list[Offender],
    right: list[Offender],
    identity: Callable[[Offender], Hashable],
    near: Callable[[Offender, Offender], bool] | None,
    found: list[Altered],
) -> tuple[list[Offender], list[Offender]]:
    waiting: dict[Hashable, list[Offender]] = defaultdict(list)
    for record in reversed(right):
        waiting[identity(record)].append(record)
    unmatched, used = [], set()
    for record in left:
        queue = waiting.get(identity(record), [])
        if queue and (near is None or near(record, queue[-1])):
            other = queue.pop()
            used.add(other.offset)
            differs = tuple(name for name in PARTS if record.part(name) != other.part(name))
            found.append(Altered(record, other, differs))
        else:
            unmatched.append(record)
    return unmatched, [record for record in right if record.offset not in used]
