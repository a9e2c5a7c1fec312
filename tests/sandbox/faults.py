"""Every fault that a mirror can make, written into real topics, and what must be found of it, to the record."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.waiting import wait_until

from .hand_written import SIDES, START_MS, Bench, Record, record

COUNT = 500
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
LARGE = 1_000_000  # bytes
LONG = 30_000  # records: several chunks of the comparison
_COMPACTED_WITHIN_S = 60
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


def cases() -> dict[str, Case]:
    """Return every case by its name; a clean one expects nothing."""
    return {**_lost(), **_extra(), **_changed(), **_moved(), **_expired(), **_transactions(), **_ordinary(), **_keys()}


def _base(count: int = COUNT) -> list[Record]:
    return [record(n) for n in range(count)]


def _logs(source: list[Record], target: list[Record]) -> Written:
    """Write partition 0."""
    return _partitions({0: source}, {0: target})


def _partitions(source: dict[int, list[Record]], target: dict[int, list[Record]]) -> Written:
    def write(bench: Bench, topic: str) -> None:
        for side, logs in zip(SIDES, (source, target), strict=True):
            for partition, records in logs.items():
                bench.write(side, topic, records, partition)

    return write


def _gone(first: int, last: int, where: str, partition: int = 0) -> Expected:
    places = [(n, None) for n in range(first, last + 1)]
    return Expected("lost", places, partition, runs=((first, last, where),))


def _lost() -> dict[str, Case]:
    base, long = _base(), _base(LONG)
    halves = {0: base[:250], 1: base[250:]}
    same = record(9000)
    several = [*base[:200], *[same] * 10, *base[200:]]
    holes = [one for n, one in enumerate(base) if n % 100 != 50]
    return {
        "lost": Case(_logs(base, base[:200] + base[201:]), (_gone(200, 200, "gap"),)),
        "gap": Case(_logs(base, base[:200] + base[250:]), (_gone(200, 249, "gap"),)),
        "gaps": Case(
            _logs(base, holes),
            (Expected("lost", [(n, None) for n in range(50, 500, 100)],
                      runs=tuple((n, n, "gap") for n in range(50, 500, 100))),),
        ),
        "truncated": Case(_logs(base, base[:450]), (_gone(450, 499, "tail"),)),
        "headless": Case(_logs(base, base[50:]), (_gone(0, 49, "head"),)),
        "partition-lost": Case(_partitions(halves, {0: base[:250]}), (_gone(0, 249, "whole", 1),), partitions=2),
        "identical-lost": Case(_logs(several, several[:200] + several[201:]), (_gone(209, 209, "gap"),)),
        "long-gap": Case(_logs(long, long[:7_000] + long[16_000:]), (_gone(7_000, 15_999, "gap"),)),
    }  # fmt: skip


def _extra() -> dict[str, Case]:
    base, long = _base(), _base(LONG)
    same = record(9000)
    several = [*base[:200], *[same] * 10, *base[200:]]
    strange = [record(10_000 + n) for n in range(30)]
    again = [(100 + n, 150 + n) for n in range(50)]
    far = [(4_000 + n, 10_000 + n) for n in range(6_000)]
    return {
        "doubled": Case(_logs(base, base[:201] + base[200:]), (Expected("doubled", [(200, 201)]),)),
        "doubled-block": Case(_logs(base, base[:150] + base[100:]), (Expected("doubled", again),)),
        "long-doubled": Case(_logs(long, long[:10_000] + long[4_000:]), (Expected("doubled", far),)),
        "identical-doubled": Case(
            _logs(several, [*several[:210], same, *several[210:]]), (Expected("doubled", number=1),)
        ),
        "foreign": Case(_logs(base, [*base[:200], strange[0], *base[200:]]), (Expected("foreign", [(None, 200)]),)),
        "foreign-prefix": Case(_logs(base, strange + base), (Expected("foreign", [(None, n) for n in range(30)]),)),
    }


def _changed() -> dict[str, Case]:
    base = _base()

    def altered(source: Record, target: Record, *differs: str) -> Case:
        write = _logs([*base[:200], source, *base[201:]], [*base[:200], target, *base[201:]])
        return Case(write, (Expected("altered", [(200, 200)], differs=differs),))

    old = base[200]
    large = record(200, value=b"x" * LARGE)
    return {
        "altered-key": altered(old, old | {"key": b"other"}, "key"),
        "altered-value": altered(old, old | {"value": b"other"}, "value"),
        "altered-headers": altered(old, old | {"headers": [("h", b"other")]}, "headers"),
        "altered-header-name": altered(old, old | {"headers": [("i", b"200")]}, "headers"),
        "altered-timestamp": altered(old, old | {"timestamp": START_MS}, "timestamp"),
        "value-to-null": altered(old, old | {"value": None}, "value"),
        "null-value-to-empty": altered(old | {"value": None}, old | {"value": b""}, "value"),
        "empty-value-to-null": altered(old | {"value": b""}, old | {"value": None}, "value"),
        "null-key-to-empty": altered(old | {"key": None}, old | {"key": b""}, "key"),
        "null-header-to-empty": altered(old | {"headers": [("h", None)]}, old | {"headers": [("h", b"")]}, "headers"),
        "headers-swapped": altered(
            old | {"headers": [("a", b"1"), ("b", b"2")]}, old | {"headers": [("b", b"2"), ("a", b"1")]}, "headers"
        ),
        "last-byte-of-large": altered(large, large | {"value": b"x" * (LARGE - 1) + b"y"}, "value"),
        "value-and-timestamp": altered(old, old | {"value": b"other", "timestamp": START_MS}, "value", "timestamp"),
    }


def _moved() -> dict[str, Case]:
    base = _base()
    swapped = [*base[:200], base[201], base[200], *base[202:]]
    back = [*base[:100], *base[110:301], *base[100:110], *base[301:]]
    forth = [*base[:100], *base[300:310], *base[100:300], *base[310:]]
    mixed = [*base[:10], *base[11:101], *base[100:200], base[200] | {"value": b"other"}, *base[201:300],
             base[301], base[300], *base[302:400], record(9999), *base[400:]]  # fmt: skip
    return {
        "swapped": Case(_logs(base, swapped), (Expected("out_of_order", [(200, 201)]),)),
        "block-back": Case(_logs(base, back), (Expected("out_of_order", [(100 + n, 291 + n) for n in range(10)]),)),
        "block-forth": Case(_logs(base, forth), (Expected("out_of_order", [(100 + n, 110 + n) for n in range(200)]),)),
        "wrong-partition": Case(
            _partitions({0: base[:250], 1: base[250:]},
                        {0: base[:200] + base[201:250], 1: [*base[250:300], base[200], *base[300:]]}),
            (Expected("wrong_partition", [(200, 50)], target_partition=1),), partitions=2,
        ),
        "several-faults": Case(
            _logs(base, mixed),
            (_gone(10, 10, "gap"), Expected("doubled", [(100, 100)]),
             Expected("altered", [(200, 200)], differs=("value",)), Expected("out_of_order", [(300, 301)]),
             Expected("foreign", [(None, 400)])),
        ),
    }  # fmt: skip


def _expired() -> dict[str, Case]:
    base = _base()

    def with_retention(target: list[Record], source_from: int, target_from: int) -> Written:
        def write(bench: Bench, topic: str) -> None:
            _logs(base, target)(bench, topic)
            for side, offset in zip(SIDES, (source_from, target_from), strict=True):
                if offset:
                    bench.delete_before(side, topic, offset)

        return write

    return {
        "expired-target": Case(with_retention(base, 0, 100), (Expected("expired_at_target", number=100),)),
        "expired-source": Case(with_retention(base, 100, 0), (Expected("expired_at_source", number=100),)),
        "expired-both-and-lost": Case(
            with_retention(base[:300] + base[301:], 50, 120),
            (Expected("expired_at_target", number=70), _gone(300, 300, "gap")),
        ),
        "expired-whole-target": Case(with_retention(base, 0, 500), (Expected("expired_at_target", number=500),)),
        "expired-whole-source": Case(with_retention(base, 500, 0), (Expected("expired_at_source", number=500),)),
        "no-overlap": Case(
            with_retention(base[:300], 300, 100),
            (Expected("no_overlap", number=200), _gone(300, 499, "whole"), Expected("foreign", number=200)),
        ),
    }


def _transactions() -> dict[str, Case]:
    base = _base()
    aborted = [record(10_000 + n) for n in range(50)]

    def with_transactions(target: list[Record]) -> Written:
        def write(bench: Bench, topic: str) -> None:
            bench.write("source", topic, base[:100])
            bench.write_transaction("source", topic, base[100:150], commit=True)
            bench.write_transaction("source", topic, aborted, commit=False)
            bench.write("source", topic, base[150:])
            bench.write("target", topic, target)

        return write

    after = 300 + 1 + 50 + 1  # the markers and the aborted records take offsets
    return {
        "transactions": Case(with_transactions(base)),
        "aborted": Case(
            with_transactions([*base[:150], *aborted, *base[150:]]),
            (Expected("aborted", [(None, 150 + n) for n in range(50)]),),
        ),
        "lost-after-transactions": Case(with_transactions(base[:300] + base[301:]), (_gone(after, after, "gap"),)),
    }


def _ordinary() -> dict[str, Case]:
    """What is no fault, and what hides none."""
    base = _base()
    sizes = [record(n, value=b"x" * LARGE) if n % 100 == 0 else record(n, value=b"", key=b"") for n in range(300)]
    nulls = [record(n, value=None, headers=[]) if n % 2 else record(n, key=None) for n in range(300)]

    def shifted(bench: Bench, topic: str) -> None:
        bench.write("target", topic, [record(10_000 + n) for n in range(40)])
        bench.delete_before("target", topic, 40)
        _logs(base, base)(bench, topic)

    def added_later(bench: Bench, topic: str) -> None:
        _logs(base[:100], base[:100])(bench, topic)
        for side in SIDES:
            bench.add_partitions(side, topic, 3)
        _partitions({1: base[100:200], 2: base[200:]}, {1: base[100:200], 2: [*base[200:300], *base[301:]]})(
            bench, topic
        )

    def only_at_the_source(bench: Bench, topic: str) -> None:
        _logs(base[:100], base[:100])(bench, topic)
        bench.add_partitions("source", topic, 2)
        bench.write("source", topic, base[100:200], 1)

    return {
        "equal": Case(_logs(base, base)),
        "shifted": Case(shifted),
        "empty": Case(_logs([], [])),
        "empty-partitions": Case(_partitions({1: base}, {1: base}), partitions=3),
        "identical": Case(_logs([record(1)] * COUNT, [record(1)] * COUNT)),
        "sizes": Case(_logs(sizes, sizes), config={"max.message.bytes": "2000000"}),
        "tombstones": Case(_logs(nulls, nulls)),
        "partitions-added": Case(added_later, (_gone(100, 100, "gap", 2),)),
        "partition-missing": Case(only_at_the_source, (_gone(0, 99, "whole", 1),)),
    }


def _keys() -> dict[str, Case]:
    """Compacted topics: keys 0 to 9 in three rounds, then one record that closes the last segment of the rounds."""

    def at(turn: int, key: int, **changes: Any) -> Record:
        return record(key, value=b"%d" % turn, timestamp=START_MS + 10_000 * turn + key) | changes

    source = [at(turn, key) for turn in range(3) for key in range(10)]
    source[25] |= {"value": None}
    source[26] |= {"value": None}
    source.append(at(4, 10))
    target = [one for n, one in enumerate(source) if n % 10 not in (4, 5) and n != 26]
    altered, live = target.index(source[23]), target.index(source[16])
    target[altered] = source[23] | {"value": b"other"}
    target.append(at(5, 11))

    def compacted(target: list[Record]) -> Written:
        def write(bench: Bench, topic: str) -> None:
            _logs(source[:-1], target[:-1])(bench, topic)
            # A segment is closed between batches only.
            _logs(source[-1:], target[-1:])(bench, topic)
            # Keys 0 to 9 once each, the tombstones until they are removed, and the open segment.
            wait_until_compacted(bench, "source", topic, at_most=11)

        return write

    return {
        "compacted": Case(compacted(source), config=COMPACTED),
        "compacted-faults": Case(
            compacted(target),
            (Expected("lost", [(24, None)]), Expected("foreign", [(None, len(target) - 1)]),
             Expected("altered", [(23, altered), (26, live)])),
            config=COMPACTED,
        ),
    }  # fmt: skip


def wait_until_compacted(bench: Bench, side: str, topic: str, at_most: int) -> None:
    """Wait until the broker has removed what was superseded in partition 0."""
    wait_until(
        f"the compaction of {topic} to {at_most} records",
        lambda: _held(bench, side, topic) <= at_most,
        _COMPACTED_WITHIN_S,
        otherwise=lambda: f"It holds {_held(bench, side, topic)}.",
    )


def _held(bench: Bench, side: str, topic: str) -> int:
    consumer = Consumer(
        {**bench.client(side), "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        held = 0
        while (message := consumer.poll(10)) is not None and message.error() is None:
            held += 1
        return held
    finally:
        consumer.close()
