"""Every fault that a mirror can make, written into real topics, and what must be found of it, to the record."""

from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.support.waiting import wait_until

from .fault_case import COUNT, Case, Expected, Written, gone, logs, ordinary, partitions
from .unusual_records import timestamps, undecodable
from .written_topics import SIDES, START_MS, Bench, Record, record

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
LARGE = 1_000_000  # bytes
LONG = 30_000  # records: several chunks of the comparison
_COMPACTED_WITHIN_S = 60


def cases() -> dict[str, Case]:
    """Return every case by its name; a clean one expects nothing."""
    retained = {**_expired(), **_copied_again(), **_stamped()}
    changed = {**_changed(), **undecodable(), **timestamps()}
    other = {**_transactions(), **_ordinary(), **_keys(), **_without_keys()}
    return {**_lost(), **_extra(), **changed, **_moved(), **retained, **other}


def _lost() -> dict[str, Case]:
    base, long = ordinary(), ordinary(LONG)
    halves = {0: base[:250], 1: base[250:]}
    same = record(9000)
    several = [*base[:200], *[same] * 10, *base[200:]]
    holes = [one for n, one in enumerate(base) if n % 100 != 50]
    return {
        "lost": Case(logs(base, base[:200] + base[201:]), (gone(200, 200, "gap"),)),
        "gap": Case(logs(base, base[:200] + base[250:]), (gone(200, 249, "gap"),)),
        "gaps": Case(
            logs(base, holes),
            (Expected("lost", [(n, None) for n in range(50, 500, 100)],
                      runs=tuple((n, n, "gap") for n in range(50, 500, 100))),),
        ),
        "truncated": Case(logs(base, base[:450]), (gone(450, 499, "tail"),)),
        "headless": Case(logs(base, base[50:]), (gone(0, 49, "head"),)),
        "partition-lost": Case(partitions(halves, {0: base[:250]}), (gone(0, 249, "whole", 1),), partitions=2),
        "identical-lost": Case(logs(several, several[:200] + several[201:]), (gone(209, 209, "gap"),)),
        "long-gap": Case(logs(long, long[:7_000] + long[16_000:]), (gone(7_000, 15_999, "gap"),)),
    }  # fmt: skip


def _extra() -> dict[str, Case]:
    base, long = ordinary(), ordinary(LONG)
    same = record(9000)
    several = [*base[:200], *[same] * 10, *base[200:]]
    strange = [record(10_000 + n) for n in range(30)]
    again = [(100 + n, 150 + n) for n in range(50)]
    far = [(4_000 + n, 10_000 + n) for n in range(6_000)]
    return {
        "doubled": Case(logs(base, base[:201] + base[200:]), (Expected("doubled", [(200, 201)]),)),
        "doubled-block": Case(logs(base, base[:150] + base[100:]), (Expected("doubled", again),)),
        "long-doubled": Case(logs(long, long[:10_000] + long[4_000:]), (Expected("doubled", far),)),
        "identical-doubled": Case(
            logs(several, [*several[:210], same, *several[210:]]), (Expected("doubled", number=1),)
        ),
        "foreign": Case(logs(base, [*base[:200], strange[0], *base[200:]]), (Expected("foreign", [(None, 200)]),)),
        "foreign-prefix": Case(logs(base, strange + base), (Expected("foreign", [(None, n) for n in range(30)]),)),
    }


def _changed() -> dict[str, Case]:
    base = ordinary()

    def altered(source: Record, target: Record, *differs: str) -> Case:
        write = logs([*base[:200], source, *base[201:]], [*base[:200], target, *base[201:]])
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
    base = ordinary()
    swapped = [*base[:200], base[201], base[200], *base[202:]]
    back = [*base[:100], *base[110:301], *base[100:110], *base[301:]]
    forth = [*base[:100], *base[300:310], *base[100:300], *base[310:]]
    strange = record(10_000)

    def strayed(bench: Bench, topic: str) -> None:
        bench.add_partitions("target", topic, 3)
        partitions({0: base}, {0: base[:200] + base[201:], 2: [strange, base[200]]})(bench, topic)

    mixed = [*base[:10], *base[11:101], *base[100:200], base[200] | {"value": b"other"}, *base[201:300],
             base[301], base[300], *base[302:400], record(9999), *base[400:]]  # fmt: skip
    return {
        "swapped": Case(logs(base, swapped), (Expected("out_of_order", [(200, 201)]),)),
        "block-back": Case(logs(base, back), (Expected("out_of_order", [(100 + n, 291 + n) for n in range(10)]),)),
        "block-forth": Case(logs(base, forth), (Expected("out_of_order", [(100 + n, 110 + n) for n in range(200)]),)),
        "wrong-partition": Case(
            partitions({0: base[:250], 1: base[250:]},
                        {0: base[:200] + base[201:250], 1: [*base[250:300], base[200], *base[300:]]}),
            (Expected("wrong_partition", [(200, 50)], target_partition=1),), partitions=2,
        ),
        "strayed-to-surplus": Case(
            strayed,
            (Expected("wrong_partition", [(200, 1)], target_partition=2), Expected("foreign", [(None, 0)], 2)),
        ),
        "several-faults": Case(
            logs(base, mixed),
            (gone(10, 10, "gap"), Expected("doubled", [(100, 100)]),
             Expected("altered", [(200, 200)], differs=("value",)), Expected("out_of_order", [(300, 301)]),
             Expected("foreign", [(None, 400)])),
        ),
    }  # fmt: skip


def _retained(source: list[Record], target: list[Record], source_from: int, target_from: int = 0) -> Written:
    """Write partition 0, then let the logs lose what is in front of these offsets."""

    def write(bench: Bench, topic: str) -> None:
        logs(source, target)(bench, topic)
        for side, offset in zip(SIDES, (source_from, target_from), strict=True):
            if offset:
                bench.delete_before(side, topic, offset)

    return write


def _expired() -> dict[str, Case]:
    base = ordinary()
    older = [*base[:100], *base[110:]]
    return {
        "expired-target": Case(_retained(base, base, 0, 100), (Expected("expired_at_target", number=100),)),
        "expired-source": Case(_retained(base, base, 100), (Expected("expired_at_source", number=100),)),
        "expired-both-and-lost": Case(
            _retained(base, base[:300] + base[301:], 50, 120),
            (Expected("expired_at_target", number=70), gone(300, 300, "gap")),
        ),
        "expired-whole-target": Case(_retained(base, base, 0, 500), (Expected("expired_at_target", number=500),)),
        "expired-whole-source": Case(_retained(base, base, 500), (Expected("expired_at_source", number=500),)),
        "no-overlap": Case(
            _retained(base, base[:300], 300, 100),
            (Expected("no_overlap", number=200), gone(300, 499, "whole"), Expected("foreign", number=200)),
        ),
        # A mirror that began at `latest`, and a target that has removed one record.
        "expired-after-latest": Case(
            _retained(base, base[199:], 0, 1), (Expected("expired_at_target", number=1), gone(0, 198, "head"))
        ),
        "lost-behind-expired": Case(
            _retained(base, older, 100, 50), (Expected("expired_at_source", number=50), gone(100, 109, "head"))
        ),
    }


def _copied_again() -> dict[str, Case]:
    """A mirror that copied records again, and a source that has removed some of them since."""
    base = ordinary()
    block = [*base[:126], *base[80:]]

    def case(source: list[Record], target: list[Record], source_from: int, doubled: int, expired: int) -> Case:
        found = [Expected("doubled", number=doubled), *[Expected("expired_at_source", number=expired)][: bool(expired)]]
        return Case(_retained(source, target, source_from), tuple(found))

    return {
        "doubled-last": case(base[:2], [*base[:2], base[1]], 1, doubled=1, expired=1),
        "doubled-whole": case(base, [*base, *base[100:]], 100, doubled=400, expired=100),
        "doubled-late-start": case(base, base[100:] * 2, 100, doubled=400, expired=0),
        "doubled-around-log-start": case(base, block, 100, doubled=46, expired=100),
        "doubled-before-log-start": case(base, block, 130, doubled=46, expired=130),
    }


def _stamped() -> dict[str, Case]:
    """A target with timestamps of its own, and records that are all in another partition: nothing of it is lost."""
    base = ordinary()
    halves = {0: base[:250], 1: base[250:]}

    def stamped(source_from: int, target_from: int) -> Written:
        def write(bench: Bench, topic: str) -> None:
            bench.configure("target", topic, {"message.timestamp.type": "LogAppendTime"})
            _retained(base, base, source_from, target_from)(bench, topic)

        return write

    def altered(first: int) -> Expected:
        return Expected("altered", [(n, n) for n in range(first, COUNT)], differs=("timestamp",))

    return {
        "append-time": Case(stamped(0, 0), (altered(0),)),
        "append-time-expired-source": Case(stamped(100, 0), (altered(100), Expected("expired_at_source", number=100))),
        "append-time-expired-target": Case(stamped(0, 100), (altered(100), Expected("expired_at_target", number=100))),
        "partitions-exchanged": Case(
            partitions(halves, {0: base[250:], 1: base[:250]}),
            tuple(
                Expected("wrong_partition", [(n, n) for n in range(250)], here, target_partition=1 - here)
                for here in halves
            ),
            partitions=2,
        ),
    }


def _transactions() -> dict[str, Case]:
    base = ordinary()
    aborted = [record(10_000 + n) for n in range(50)]

    def with_transactions(target: list[Record], source_from: int = 0) -> Written:
        def write(bench: Bench, topic: str) -> None:
            bench.write("source", topic, base[:100])
            bench.write_transaction("source", topic, base[100:150], commit=True)
            bench.write_transaction("source", topic, aborted, commit=False)
            bench.write("source", topic, base[150:])
            bench.write("target", topic, target)
            if source_from:
                bench.delete_before("source", topic, source_from)

        return write

    after = 300 + 1 + 50 + 1  # the markers and the aborted records take offsets
    return {
        "transactions": Case(with_transactions(base)),
        "aborted": Case(
            with_transactions([*base[:150], *aborted, *base[150:]]),
            (Expected("aborted", [(None, 150 + n) for n in range(50)]),),
        ),
        # The log start is that of the aborted transaction: 150 records and a marker have gone.
        "aborted-at-log-start": Case(
            with_transactions([*base[:150], *aborted, *base[150:]], 151),
            (Expected("expired_at_source", number=150), Expected("aborted", [(None, 150 + n) for n in range(50)])),
        ),
        "lost-after-transactions": Case(with_transactions(base[:300] + base[301:]), (gone(after, after, "gap"),)),
    }


def _ordinary() -> dict[str, Case]:
    """What is no fault, and what hides none."""
    base = ordinary()
    sizes = [record(n, value=b"x" * LARGE) if n % 100 == 0 else record(n, value=b"", key=b"") for n in range(300)]
    nulls = [record(n, value=None, headers=[]) if n % 2 else record(n, key=None) for n in range(300)]

    def shifted(bench: Bench, topic: str) -> None:
        bench.write("target", topic, [record(10_000 + n) for n in range(40)])
        bench.delete_before("target", topic, 40)
        logs(base, base)(bench, topic)

    def added_later(bench: Bench, topic: str) -> None:
        logs(base[:100], base[:100])(bench, topic)
        for side in SIDES:
            bench.add_partitions(side, topic, 3)
        partitions({1: base[100:200], 2: base[200:]}, {1: base[100:200], 2: [*base[200:300], *base[301:]]})(
            bench, topic
        )

    def only_at_the_source(bench: Bench, topic: str) -> None:
        logs(base[:100], base[:100])(bench, topic)
        bench.add_partitions("source", topic, 2)
        bench.write("source", topic, base[100:200], 1)

    return {
        "equal": Case(logs(base, base)),
        "shifted": Case(shifted),
        "empty": Case(logs([], [])),
        "empty-partitions": Case(partitions({1: base}, {1: base}), partitions=3),
        "identical": Case(logs([record(1)] * COUNT, [record(1)] * COUNT)),
        "sizes": Case(logs(sizes, sizes), config={"max.message.bytes": "2000000"}),
        "tombstones": Case(logs(nulls, nulls)),
        "partitions-added": Case(added_later, (gone(100, 100, "gap", 2),)),
        "partition-missing": Case(only_at_the_source, (gone(0, 99, "whole", 1),)),
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
            logs(source[:-1], target[:-1])(bench, topic)
            # A segment is closed between batches only.
            logs(source[-1:], target[-1:])(bench, topic)
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


def _without_keys() -> dict[str, Case]:
    """Topics that held records without a key before `cleanup.policy` became `compact`.

    The target's log has two segments, the source's log one: a segment ends between batches only. The cleaner of the
    target removes those of the first segment. No cleaner touches the last one.
    """
    old = [record(n, key=None) if n % 2 else record(n) for n in range(20)]
    new = [record(1000 + n, key=None) if n % 2 else record(1000 + n) for n in range(20)]
    segments = {name: value for name, value in COMPACTED.items() if name != "cleanup.policy"}

    def cleaned(target: list[Record]) -> Written:
        def write(bench: Bench, topic: str) -> None:
            logs([*old, *new], old)(bench, topic)
            logs([], target)(bench, topic)
            bench.configure("target", topic, {"cleanup.policy": "compact"})
            wait_until_compacted(bench, "target", topic, at_most=len(target) + 10)
            bench.configure("source", topic, {"cleanup.policy": "compact"})

        return write

    def changed(bench: Bench, topic: str) -> None:
        logs(old, [one for n, one in enumerate(old) if n not in (3, 7)])(bench, topic)
        for side in SIDES:
            bench.configure(side, topic, {"cleanup.policy": "compact"})

    lost = [one for n, one in enumerate(new) if n not in (5, 11)]
    return {
        "keyless-cleaned": Case(cleaned(new), config=segments),
        "keyless-lost": Case(cleaned(lost), (Expected("lost", [(25, None), (31, None)]),), config=segments),
        "keyless-lost-uncleaned": Case(changed, (Expected("lost", [(3, None), (7, None)]),)),
    }


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
