"""Cases of the fault matrix with records that clients decode or convert: odd names of headers, odd timestamps."""

from .fault_case import COUNT, Case, Expected, gone, logs, ordinary
from .written_topics import SIDES, Bench, Record

# Java's calendar has a 29 February 1500, Spark's has none and takes it for the day after.
LEAP_DAY_1500_MS = -14_825_894_400_000
DAY_MS = 86_400_000


def undecodable() -> dict[str, Case]:
    """Names of headers that are not UTF-8, among ordinary records."""
    base = ordinary()

    def named(*names: bytes, value: bytes | None = b"1") -> list[Record]:
        headers = [(name, value) for name in names]
        return [one | {"headers": headers} if n % 50 == 20 else one for n, one in enumerate(base)]

    def case(source: list[Record], target: list[Record], *expected: Expected, **config: str) -> Case:
        def write(bench: Bench, topic: str) -> None:
            for side, records in zip(SIDES, (source, target), strict=True):
                bench.write_raw(side, topic, records)

        return Case(write, expected, config=config)

    latin, other, several = named(b"gr\xf6\xdfe"), named(b"gr\xf6\xdee"), named(b"\xff", b"ok", b"\xc3", value=None)
    decoded = named("gr\ufffd\ufffde".encode())
    one_other = [*latin[:220], other[220], *latin[221:]]
    all_of_them = [(n, n) for n in range(20, COUNT, 50)]
    return {
        "undecodable-equal": case(several, several),
        "undecodable-altered": case(latin, one_other, Expected("altered", [(220, 220)], differs=("headers",))),
        # What Kafka's Java client, and with it MirrorMaker, makes of them.
        "undecodable-decoded": case(latin, decoded, Expected("altered", all_of_them, differs=("headers",))),
        "undecodable-lost": case(latin, [*latin[:220], *latin[221:]], gone(220, 220, "gap")),
        "undecodable-compacted": case(
            latin, one_other, Expected("altered", [(220, 220)]), **{"cleanup.policy": "compact"}
        ),
    }


def timestamps() -> dict[str, Case]:
    """Timestamps that Spark's Kafka source does not hold, or not apart: nanoseconds, and days of two calendars."""
    base = ordinary()
    any_time = {"message.timestamp.after.max.ms": str(2**63 - 1), "message.timestamp.before.max.ms": str(2**63 - 1)}
    nanoseconds = [one | {"timestamp": one["timestamp"] * 1_000_000} for one in base]
    other = [
        *nanoseconds[:200],
        nanoseconds[200] | {"timestamp": nanoseconds[200]["timestamp"] + 1},
        *nanoseconds[201:],
    ]
    one_late = [*base[:200], nanoseconds[200], *base[201:]]
    leap_day = [*base[:200], base[200] | {"timestamp": LEAP_DAY_1500_MS}, *base[201:]]
    day_after = [*base[:200], base[200] | {"timestamp": LEAP_DAY_1500_MS + DAY_MS}, *base[201:]]
    altered = Expected("altered", [(200, 200)], differs=("timestamp",))
    return {
        "nanoseconds": Case(logs(nanoseconds, nanoseconds), config=any_time),
        "nanoseconds-altered": Case(logs(nanoseconds, other), (altered,), config=any_time),
        "nanoseconds-once": Case(logs(one_late, base), (altered,), config=any_time),
        "nanoseconds-on-target": Case(logs(base, one_late), (altered,), config=any_time),
        "nanoseconds-lost": Case(
            logs(nanoseconds, nanoseconds[:200] + nanoseconds[201:]), (gone(200, 200, "gap"),), config=any_time
        ),
        "before-1582": Case(logs(leap_day, leap_day), config=any_time),
        "before-1582-altered": Case(logs(leap_day, day_after), (altered,), config=any_time),
    }
