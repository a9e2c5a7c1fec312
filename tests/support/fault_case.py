"""What a fault is written as and what must be found of it: a case of the fault matrix, and how most are written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .written_topics import SIDES, Bench, Record, record

COUNT = 500
Place = tuple[int | None, int | None]
Written = Callable[[Bench, str], None]


@dataclass(frozen=True)
class Expected:
    """All records of one kind in one partition: their source and target offsets, in order.

    `runs` are the stretches that are lost: first and last offset, and where. `count` stands for places that are not
    asked for.
    """

    kind: str
    places: Sequence[Place] = ()
    partition: int = 0
    differs: tuple[str, ...] = ()
    target_partition: int | None = None
    runs: tuple[tuple[int, int, str], ...] = ()
    number: int = 0

    @property
    def count(self) -> int:
        """The exact number of records."""
        return self.number or len(self.places)


@dataclass(frozen=True)
class Case:
    """One topic: how it is written on both sides, and all that must be found in it."""

    write: Written
    expected: tuple[Expected, ...] = ()
    partitions: int = 1
    config: dict[str, str] = field(default_factory=dict)


def ordinary(count: int = COUNT) -> list[Record]:
    """Records that differ from each other."""
    return [record(n) for n in range(count)]


def logs(source: list[Record], target: list[Record]) -> Written:
    """Write partition 0."""
    return partitions({0: source}, {0: target})


def partitions(source: dict[int, list[Record]], target: dict[int, list[Record]]) -> Written:
    """Write these partitions of either side."""

    def write(bench: Bench, topic: str) -> None:
        for side, held in zip(SIDES, (source, target), strict=True):
            for partition, records in held.items():
                bench.write(side, topic, records, partition)

    return write


def gone(first: int, last: int, where: str, partition: int = 0) -> Expected:
    """All records between two offsets of the source are lost, `where` they stand."""
    places = [(n, None) for n in range(first, last + 1)]
    return Expected("lost", places, partition, runs=((first, last, where),))
