"""Pairs of logs of which one has removed its beginning, and what must be found of each: by name, for both engines.

No record of them is an altered one of another unless it was made so.
"""

import random
from dataclasses import dataclass, replace

from .oracle import Log, Logs, Record


@dataclass(frozen=True)
class Case:
    """Both logs of one partition, and how many records of each kind must be found."""

    logs: Logs
    found: dict[str, int]


def log(*ranges: range, first: int = 0) -> Log:
    """Records by their numbers, at offsets that follow each other from `first` on."""
    return [(first + at, record(number)) for at, number in enumerate(number for one in ranges for number in one)]


def record(number: int) -> Record:
    """A record that shares no part with any other."""
    return Record(b"k%d" % number, b"v%d" % number, (("h", b"%d" % number),), number)


def kept(first: int, end: int) -> Log:
    """The source's own log from its log start on."""
    return log(range(first, end), first=first)


def stamped(records: Log) -> Log:
    """The same with the timestamps of a broker that has `message.timestamp.type=LogAppendTime`."""
    return [(at, replace(one, timestamp=one.timestamp + 1_000_000)) for at, one in records]


def alike(*records: tuple[int, int]) -> Log:
    """Offsets and timestamps of records that carry the same otherwise."""
    return [(at, Record(b"k", b"v", (), timestamp)) for at, timestamp in records]


SMALLEST = Logs(source=kept(1, 2), target=log(range(2), range(1, 2)), cut=2, source_start=1)
LATEST = Logs(source=kept(0, 600), target=log(range(301, 600), first=1), cut=600, target_start=1)

DOUBLED = {
    "smallest": Case(SMALLEST, {"doubled": 1, "expired_at_source": 1}),
    "one offset proves no second copy": Case(replace(SMALLEST, target=log(range(1, 2), range(1, 2))), {"doubled": 1}),
    "the whole topic again": Case(
        Logs(source=kept(100, 600), target=log(range(600), range(100, 600)), cut=600, source_start=100),
        {"doubled": 500, "expired_at_source": 100},
    ),
    "the whole topic twice after a late start": Case(
        Logs(source=kept(100, 600), target=log(range(100, 600), range(100, 600)), cut=600, source_start=100),
        {"doubled": 500},
    ),
    "the log start inside the repeated block": Case(
        Logs(source=kept(100, 200), target=log(range(126), range(80, 200)), cut=200, source_start=100),
        {"doubled": 46, "expired_at_source": 100},
    ),
    "the log start behind the repeated block": Case(
        Logs(source=kept(130, 200), target=log(range(126), range(80, 200)), cut=200, source_start=130),
        {"doubled": 46, "expired_at_source": 130},
    ),
    "the log start inside the block of a mirror that began late": Case(
        Logs(source=kept(100, 200), target=log(range(50, 126), range(80, 200)), cut=200, source_start=100),
        {"doubled": 46, "expired_at_source": 50},
    ),
    "from the beginning after it had begun at latest": Case(
        Logs(source=kept(100, 200), target=log(range(150, 200), range(200)), cut=200, source_start=100),
        {"doubled": 50, "expired_at_source": 100},
    ),
    "the target has removed its first copies": Case(
        Logs(
            source=kept(100, 200),
            target=log(range(90, 126), range(80, 200), first=90),
            cut=200,
            source_start=100,
            target_start=90,
        ),
        {"doubled": 36, "expired_at_source": 20},
    ),
    "identical records on both sides of the log start": Case(
        Logs(source=alike((2, 7), (3, 9)), target=alike((0, 1), (1, 7), (2, 7), (3, 9)), cut=4, source_start=2),
        {"doubled": 1, "expired_at_source": 1},
    ),
    "identical records in front of the log start": Case(
        Logs(source=alike((2, 9)), target=alike((0, 7), (1, 7), (2, 9)), cut=3, source_start=2),
        {"expired_at_source": 2},
    ),
}
BOUNDED = {
    "latest, and a log start of 1": Case(LATEST, {"expired_at_target": 1, "lost": 300}),
    "a target that was emptied": Case(
        Logs(source=kept(0, 3), target=[], cut=3, target_start=1), {"expired_at_target": 1, "lost": 2}
    ),
    "a target that was emptied in front of the mirror's position": Case(
        Logs(source=kept(0, 9), target=[], cut=9, target_start=2, position=5), {"expired_at_target": 2, "lost": 7}
    ),
    "a source that was emptied": Case(
        Logs(source=[], target=log(range(3)), cut=2, source_start=2), {"expired_at_source": 2, "foreign": 1}
    ),
    "records that were there before the mirror": Case(
        Logs(source=kept(2, 5), target=log(range(900, 903), range(5)), cut=5, source_start=2),
        {"expired_at_source": 2, "foreign": 3},
    ),
    "lost, while the target still holds what is older": Case(
        Logs(
            source=kept(100, 200),
            target=log(range(50, 100), range(110, 200), first=50),
            cut=200,
            source_start=100,
            target_start=50,
        ),
        {"expired_at_source": 50, "lost": 10},
    ),
    "aborted at the log start": Case(
        Logs(
            source=kept(3, 6),
            target=log(range(2), range(902, 903), range(3, 6)),
            cut=6,
            source_start=2,
            aborted=[(2, record(902))],
        ),
        {"expired_at_source": 2, "aborted": 1},
    ),
    "lost, while the target still holds an aborted record that is older": Case(
        Logs(
            source=[*kept(0, 50), *kept(51, 100)],
            target=log(range(950, 951), range(60, 100), first=60),
            cut=100,
            target_start=60,
            aborted=[(50, record(950))],
        ),
        {"expired_at_target": 50, "aborted": 1, "lost": 9},
    ),
    "retention on both sides": Case(
        Logs(source=kept(50, 200), target=log(range(120, 200), first=120), cut=200, source_start=50, target_start=120),
        {"expired_at_target": 70},
    ),
}
ALTERED = {
    "lost behind an aborted record that the target still holds, and all that both hold is altered": Case(
        Logs(
            source=[*kept(0, 50), *kept(51, 61)],
            target=[*log(range(950, 951), first=60), (61, replace(record(60), value=b"other"))],
            cut=61,
            target_start=60,
            aborted=[(50, record(950))],
        ),
        {"expired_at_target": 50, "aborted": 1, "altered": 1, "lost": 9, "no_overlap": 9},
    ),
    "all stamped by the target": Case(Logs(source=kept(0, 30), target=stamped(kept(0, 30)), cut=30), {"altered": 30}),
    "all stamped, the source has removed some": Case(
        Logs(source=kept(10, 30), target=stamped(log(range(30))), cut=30, source_start=10),
        {"altered": 20, "expired_at_source": 10},
    ),
    "all stamped, the target has removed some": Case(
        Logs(source=kept(0, 30), target=stamped(kept(10, 30)), cut=30, target_start=10),
        {"altered": 20, "expired_at_target": 10},
    ),
    "all stamped, more gone than the target can have removed": Case(
        Logs(source=kept(0, 30), target=stamped(log(range(10, 30), first=4)), cut=30, target_start=4),
        {"altered": 20, "expired_at_target": 4, "lost": 6},
    ),
    "stamped up to a change of the topic": Case(
        Logs(
            source=kept(100, 200),
            target=[*stamped(kept(90, 150)), *kept(150, 200)],
            cut=200,
            source_start=100,
            target_start=90,
        ),
        {"altered": 50, "expired_at_source": 10},
    ),
    "the first that the target holds": Case(
        Logs(source=kept(0, 9), target=[*stamped(kept(5, 6)), *kept(6, 9)], cut=9, target_start=5),
        {"altered": 1, "expired_at_target": 5},
    ),
    "lost behind the first one that the target holds": Case(
        Logs(
            source=kept(0, 100),
            target=[*stamped(log(range(50, 51), first=60)), *log(range(60, 100), first=61)],
            cut=100,
            target_start=60,
        ),
        {"altered": 1, "expired_at_target": 50, "lost": 9},
    ),
    "foreign behind the first one that the target holds": Case(
        Logs(
            source=kept(50, 100),
            target=[
                *log(range(10)),
                *stamped(log(range(50, 51), first=10)),
                *log(range(950, 953), range(51, 100), first=11),
            ],
            cut=100,
            source_start=50,
        ),
        {"altered": 1, "expired_at_source": 10, "foreign": 3},
    ),
    "a target that held other records, and has removed some": Case(
        Logs(
            source=alike(*((at, at) for at in range(9))),
            target=[(5, Record(b"k", b"other", (), 99)), *alike((6, 5), (7, 6), (8, 7), (9, 8))],
            cut=9,
            target_start=5,
        ),
        {"expired_at_target": 5, "foreign": 1},
    ),
    "an older record that resembles a lost one": Case(
        Logs(
            source=alike((2, 2), (3, 3), (4, 4)),
            target=alike((0, 0), (1, 1), (2, 3), (3, 4)),
            cut=5,
            source_start=2,
        ),
        {"expired_at_source": 2, "lost": 1},
    ),
    "older records that resemble those of a mirror that stands": Case(
        Logs(source=alike((3, 3), (4, 4)), target=alike((0, 0), (1, 1), (2, 2)), cut=5, source_start=3),
        {"foreign": 3, "lost": 2, "no_overlap": 2},
    ),
    "a mirror that stands": Case(
        Logs(source=kept(300, 500), target=kept(100, 300), cut=500, source_start=300, target_start=100),
        {"foreign": 200, "lost": 200, "no_overlap": 200},
    ),
}
CASES = {**DOUBLED, **BOUNDED, **ALTERED}


def salted(logs: Logs, salt: int) -> Logs:
    """The same logs with records that no other salt makes; what was equal stays so."""

    def other(records: Log) -> Log:
        return [(at, replace(one, headers=(*one.headers, ("salt", b"%d" % salt)))) for at, one in records]

    return replace(
        logs,
        source=other(logs.source),
        target=other(logs.target),
        aborted=other(logs.aborted),
        pending=other(logs.pending),
    )


def drawn(dice: random.Random, *, stamps: bool = True) -> Logs:
    """Both logs of a mirror that began late, lost records, was restarted, and of which each side removes its oldest."""
    end = dice.randint(1, 40)
    mirrored = list(log(range(dice.choice([0, dice.randrange(end)]), end)))
    if dice.random() < 0.4:
        at = dice.randrange(len(mirrored))
        del mirrored[at : at + dice.randint(1, 6)]
    if stamps and dice.random() < 0.4:
        until = dice.choice([len(mirrored), dice.randint(0, len(mirrored))])
        mirrored[:until] = stamped(mirrored[:until])
    if dice.random() < 0.3:
        mirrored.insert(dice.randint(0, len(mirrored)), (0, record(900 + dice.randrange(9))))
    if dice.random() < 0.5:
        low = dice.randint(0, len(mirrored))
        mirrored = [*mirrored[: low + dice.randint(0, 9)], *mirrored[low:]]
    target = [(at, one) for at, (_, one) in enumerate(mirrored)]
    starts = [dice.choice([0, dice.randint(0, size)]) for size in (end, len(target))]
    return Logs(
        source=kept(starts[0], end),
        target=target[starts[1] :],
        cut=end,
        source_start=starts[0],
        target_start=starts[1],
        position=dice.choice([None, end - 1, dice.randrange(end)]),
    )
