"""The made-up logs that the oracle judges, and what it finds: plain data, and nothing of `spark`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .oracle_alignment import Overlap


@dataclass(frozen=True)
class Record:
    """A record is what it carries; two with equal parts are identical."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0


Log = Sequence[tuple[int, Record]]


@dataclass(frozen=True, kw_only=True)
class Logs:
    """Both logs of one partition. `source` goes on after the cut; `aborted` are the source's aborted records.

    `pending` are records from the last stable offset on: those of a transaction that is still open, and what other
    producers wrote behind its first one. `position` is the last source offset that the mirror says it has copied.
    `never_cleaned` is the side of a compacted topic whose own `cleanup.policy` has no `compact`.
    """

    source: Log
    target: Log
    cut: int
    source_start: int = 0
    target_start: int = 0
    aborted: Log = ()
    pending: Log = ()
    position: int | None = None
    compacted: bool = False
    never_cleaned: str = ""


@dataclass(frozen=True, order=True)
class Place:
    """One offending record: -1 for a side that does not have it."""

    source: int = -1
    target: int = -1
    differs: tuple[str, ...] = ()
    target_partition: int = -1


@dataclass
class Truth:
    """What is true of one partition: offending records by kind, and the source's records that have an image.

    `overlap` is where the logs begin to hold the same, None without that.
    """

    compared: int = 0
    found: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    overlap: Overlap | None = None

    def counts(self) -> dict[str, int]:
        """Number of offending records of each kind that occurs."""
        return {kind: len(places) for kind, places in sorted(self.found.items()) if places}

    def take(self, kind: str, places: Sequence[Place]) -> None:
        """Remove these records of a kind."""
        self.found[kind] = [one for one in self.found[kind] if one not in places]
