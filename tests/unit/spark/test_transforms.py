"""The comparison against a plain Python oracle, on made-up logs."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from spark.comparison import bulk as offsets
from spark.comparison import record_rows, transforms
from spark.comparison.record_rows import table

from ...support import oracle
from ...support.oracle import Record

DIGESTS = "topic string, partition int, offset long, digest string"
RECORDS = (
    "topic string, partition int, offset long, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>, timestamp timestamp"
)
BOUNDS = "topic string, partition int, from_s long, from_t long, known_t long, from_end boolean, trim_s long"
ALLOWED = "topic string, partition int, kind string, expired string, records long"
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def logs(spark: SparkSession, cases: Sequence[str], starts: Sequence[int] = ()) -> DataFrame:
    """One partition for each case; a letter is a record, a dot an offset without one. Without `starts` all are 0."""
    rows = [
        ("t", partition, start + n, letter)
        for partition, (letters, start) in enumerate(zip(cases, starts or [0] * len(cases), strict=True))
        for n, letter in enumerate(letters)
        if letter != "."
    ]
    return table(spark, rows, DIGESTS)


def log(spark: SparkSession, letters: str, start: int = 0) -> DataFrame:
    return logs(spark, [letters], [start])


def cuts(spark: SparkSession, *cut: int) -> DataFrame:
    return table(spark, [("t", *one) for one in enumerate(cut)], "topic string, partition int, cut long")


def bounds(spark: SparkSession, *trim_s: int | None) -> DataFrame:
    """Bounds of partitions whose logs have removed nothing, but for where positions begin to count at the source."""
    values = [("t", number, None, None, None, False, first) for number, first in enumerate(trim_s or [None])]
    return table(spark, values, BOUNDS)


def digests_of(spark: SparkSession, variants: Sequence[Mapping[str, object]]) -> list[str]:
    """The digests of one record with these changes."""
    rows = []
    for offset, changes in enumerate(variants):
        record = {"key": b"k", "value": b"v", "headers": [("h", b"1")], "timestamp": AT} | dict(changes)
        rows.append(("t", 0, offset, record["key"], record["value"], record["headers"], record["timestamp"]))
    found = transforms.digests(record_rows.hashed(table(spark, rows, RECORDS))).collect()
    return [str(row.digest) for row in sorted(found, key=lambda row: row.offset)]


def test_a_digest_reports_every_part_apart(spark: SparkSession) -> None:
    variants: list[dict[str, object]] = [
        {},
        {"key": None},
        {"key": b""},
        {"key": b"kv", "value": b""},
        {"value": None},
        {"value": b""},
        {"headers": None},
        {"headers": [("h", b"2")]},
        {"headers": [("h", None)]},
        {"headers": [("h", b"")]},
        {"headers": [("h", None), ("i", b"1")]},
        {"headers": [("h", b"i"), ("1", None)]},
        {"headers": [("h", b"1"), ("i", b"1")]},
        {"headers": [("i", b"1"), ("h", b"1")]},
        {"timestamp": datetime(2026, 1, 2, 3, 4, 5, 679000, tzinfo=UTC)},
    ]
    found = digests_of(spark, [*variants, {"headers": []}])
    assert len(set(found[:-1])) == len(variants)
    assert found[-1] == found[variants.index({"headers": None})], "no headers and an empty list of them are the same"


class Compared(NamedTuple):
    """Two logs, the offset at which the target's begins, and the cut."""

    source: str
    target: str
    target_start: int
    cut: int


def random_pairs() -> list[Compared]:
    dice = random.Random(1)  # noqa: S311 - test data, not a secret
    cases = []
    for _ in range(40):
        source = "".join(dice.choices("abcdef", k=dice.randint(1, 30)))
        target = "".join(dice.choices("abcdefxy", k=dice.randint(1, 30)))
        cases.append(Compared(source, target, 7, dice.randint(0, len(source))))
    return cases


RANDOM_PAIRS = random_pairs()
AFTER_THE_CUT = Compared("abcd", "abc", 0, 2)


@pytest.fixture(scope="module")
def summaries(spark: SparkSession) -> dict[Compared, Row]:
    """The summary of each pair, all compared at once: a Spark job costs more than what these pairs hold."""
    cases = [*RANDOM_PAIRS, AFTER_THE_CUT]
    sources, targets, starts, ends = zip(*cases, strict=True)
    both = logs(spark, sources), logs(spark, targets, starts)
    found = transforms.occurrences(*both, cuts(spark, *ends))
    rows = transforms.summary(transforms.difference(found, bounds(spark))).collect()
    return {cases[row.partition]: row for row in rows}


def test_the_difference_agrees_with_counting(summaries: Mapping[Compared, Row]) -> None:
    for case in RANDOM_PAIRS:
        row = summaries[case]
        before, whole, there = Counter(case.source[: case.cut]), Counter(case.source), Counter(case.target)
        extra = there - whole
        assert row.lost == sum((before - there).values())
        assert row.compared == sum((before & there).values())
        assert row.doubled == sum(count for letter, count in extra.items() if letter in whole)
        assert row.foreign == sum(count for letter, count in extra.items() if letter not in whole)


def test_offending_records_carry_both_offsets(spark: SparkSession) -> None:
    found = transforms.occurrences(log(spark, "abc"), log(spark, "aaxc", start=10), cuts(spark, 3))
    rows = transforms.offending(transforms.difference(found, bounds(spark))).collect()
    assert {(r.kind, r.digest, r.source_offset, r.target_offset) for r in rows} == {
        ("lost", "b", 1, None),
        ("doubled", "a", 0, 11),
        ("foreign", "x", None, 12),
    }


def test_an_expired_prefix_is_counted_and_not_lost(spark: SparkSession) -> None:
    found = transforms.occurrences(log(spark, "aabc"), log(spark, "abc", 1), cuts(spark, 4))
    overlap = transforms.overlap(found).collect()[0]
    assert (overlap.first_s, overlap.first_t, overlap.known_t) == (1, 1, 1)
    limits = table(spark, [("t", 0, 1, 1, 1, True, 1)], BOUNDS)
    differences = transforms.difference(found, limits)
    offending = transforms.offending(differences)
    for allowed, wanted in ((1, ["expired_at_target"]), (0, ["lost"])):
        values = [("t", 0, "lost", "expired_at_target", allowed)]
        expired = transforms.expire(offending, table(spark, values, ALLOWED))
        assert [row.kind for row in expired.collect()] == wanted
    row = transforms.summary(differences).collect()[0]
    assert (row.doubled, row.compared) == (0, 3)


def test_of_more_records_in_front_of_the_overlap_than_allowed_the_nearest_have_expired(spark: SparkSession) -> None:
    found = transforms.occurrences(log(spark, "ab", 5), log(spark, "fxxgbxab"), cuts(spark, 7))
    limits = table(spark, [("t", 0, 5, 6, 4, True, None)], BOUNDS)
    offending = transforms.offending(transforms.difference(found, limits))
    values = [("t", 0, "foreign", "expired_at_source", 2)]
    rows = transforms.expire(offending, table(spark, values, ALLOWED)).collect()
    assert sorted((row.target_offset, row.digest, row.kind) for row in rows) == [
        (0, "f", "foreign"),
        (1, "x", "expired_at_source"),
        (2, "x", "repeated"),
        (3, "g", "expired_at_source"),
        (4, "b", "doubled"),
        (5, "x", "repeated"),
    ]


def test_records_after_the_cut_are_not_foreign(summaries: Mapping[Compared, Row]) -> None:
    row = summaries[AFTER_THE_CUT]
    assert (row.compared, row.lost, row.doubled, row.foreign) == (2, 0, 0, 0)


Case = tuple[str, str, int, int]
"""Both logs, the committed offset at the source and the synced one on the target."""


def naive(source: str, target: str, committed: int, synced: int) -> dict[str, int]:
    """Skipped and repeated records by walking the two logs one record at a time."""
    unread = Counter(letter for n, letter in enumerate(source) if n >= committed and letter != ".")
    ahead = Counter(letter for n, letter in enumerate(target) if n >= synced and letter != ".")
    there = Counter(target)
    known = set(source[:committed]) - {"."}
    return {
        "skipped": sum(max(0, min(number, there[letter]) - ahead[letter]) for letter, number in unread.items()),
        "repeated": sum(max(0, number - unread[letter]) for letter, number in ahead.items() if letter in known),
    }


def random_positions() -> list[Case]:
    dice = random.Random(2)  # noqa: S311 - test data, not a secret
    cases: list[Case] = []
    for _ in range(40):
        source = "a" + "".join(dice.choices("abcdefgh.", k=20))
        target = "".join(dice.choices("abcdefgh.", k=5)) + source
        cases.append((source, target, dice.randint(0, 20), dice.randint(0, len(target))))
    return cases


RANDOM_POSITIONS = random_positions()
PLACES: dict[str, tuple[Case, dict[str, int]]] = {
    "holes and shifts": (("ab..cd", "...abcd", 2, 5), {"lowest": 5, "highest": 5, "skipped": 0, "repeated": 0}),
    "doubled records make a range": (("abc", "ababc", 1, 3), {"lowest": 1, "highest": 3, "skipped": 0, "repeated": 0}),
    "the end has the image of the cut": (("abc", "..abc", 3, 5), {"lowest": 5, "unread": 0, "repeated": 0}),
    "too far is a skip": (("abcde", "abcde", 2, 4), {"skipped": 2, "repeated": 0}),
}


BEHIND_THE_CUT: dict[str, tuple[Case, dict[str, int]]] = {
    "too far is a skip": (("abcdef", "abcdef", 3, 5), {"lowest": 3, "unread": 3, "skipped": 2, "repeated": 0}),
    "not far enough repeats": (("abcdef", "abcdef", 5, 1), {"lowest": 5, "unread": 1, "skipped": 0, "repeated": 4}),
    "on its way is no skip": (("abcdef", "abc", 3, 3), {"lowest": 3, "unread": 3, "skipped": 0, "repeated": 0}),
    "of equal records the last are on their way": (("axaa", "axa", 3, 3), {"unread": 1, "skipped": 0, "repeated": 0}),
    "doubled records make a range": (("abcde", "abcdcde", 2, 4), {"lowest": 2, "highest": 4, "skipped": 0}),
}


CUT = 2
"""The cut of the cases behind it; the others are cut at the end of the source's log."""
Positions = Mapping[tuple[Case, int], Mapping[str, int]]


@pytest.fixture(scope="module")
def positions(spark: SparkSession) -> Positions:
    """What is found of each case with its cut, all translated at once."""
    whole = [*RANDOM_POSITIONS, *(case for case, _ in PLACES.values())]
    cases = [*((case, len(case[0])) for case in whole), *((case, CUT) for case, _ in BEHIND_THE_CUT.values())]
    both = logs(spark, [case[0] for case, _ in cases]), logs(spark, [case[1] for case, _ in cases])
    found = transforms.occurrences(*both, cuts(spark, *(cut for _, cut in cases)))
    schema = "group string, topic string, partition int, committed long, synced long"
    rows = [("g", "t", number, committed, synced) for number, ((_, _, committed, synced), _) in enumerate(cases)]
    placed = offsets.translate(transforms.trim(found, bounds(spark)), table(spark, rows, schema)).collect()
    return {cases[row.partition]: row.asDict() for row in placed}


def test_skipped_and_repeated_agree_with_walking_the_logs(positions: Positions) -> None:
    for case in RANDOM_POSITIONS:
        found, wanted = positions[case, len(case[0])], naive(*case)
        assert {name: found[name] for name in wanted} == wanted, case


def test_the_exact_position_crosses_whatever_lies_between(positions: Positions) -> None:
    for name, (case, wanted) in PLACES.items():
        found = positions[case, len(case[0])]
        assert {key: found[key] for key in wanted} == wanted, name


def test_positions_behind_the_cut_are_judged_by_all_that_is_known(positions: Positions) -> None:
    for name, (case, wanted) in BEHIND_THE_CUT.items():
        found, (source, target, committed, synced) = positions[case, CUT], case
        assert {key: found[key] for key in wanted} == wanted, name
        ours = [(n, Record(None, letter.encode())) for n, letter in enumerate(source)]
        theirs = [(n, Record(None, letter.encode())) for n, letter in enumerate(target)]
        truth = oracle.position(oracle.Logs(source=ours, target=theirs, cut=CUT), committed, synced)
        assert {key: found[key] for key in vars(truth)} == vars(truth), name


def test_a_compacted_log_is_compared_by_the_last_record_of_each_key(spark: SparkSession) -> None:
    schema = DIGESTS + ", key string, value string"
    source = [("t", 0, 0, "1", "a", "x"), ("t", 0, 1, "2", "a", "y"), ("t", 0, 2, "3", "b", None)]
    source += [("t", 0, 3, "4", "c", "z"), ("t", 0, 4, "5", "d", "w"), ("t", 0, 5, "8", "f", "new")]
    target = [("t", 0, 9, "2", "a", "y"), ("t", 0, 10, "6", "c", "other"), ("t", 0, 11, "7", "e", "strange")]
    target += [("t", 0, 12, "9", "f", "compacted away at the source")]
    frames = (table(spark, source, schema), table(spark, target, schema))
    found = transforms.compacted_difference(transforms.last_by_key(*frames, cuts(spark, 5))).collect()
    assert {row.key: row.kind for row in found} == {
        "a": "same",
        "b": "same",
        "c": "altered",
        "d": "lost",
        "e": "foreign",
        "f": "superseded",
    }


def test_what_a_log_has_newer_records_of_may_have_been_dropped_there_and_nothing_else(spark: SparkSession) -> None:
    """A key that the source has written again is lost all the same while the target has no newer record of it."""
    schema = DIGESTS + ", key string, value string"
    source = [("t", 0, number, key, key, "x") for number, key in enumerate("abc")]
    source += [("t", 0, 5, "a2", "a", "y"), ("t", 0, 6, "c2", "c", "y")]
    target = [("t", 0, 9, "d", "d", "x"), ("t", 0, 10, "e", "e", "x")]
    frames = (table(spark, source, schema), table(spark, target, schema))
    found = transforms.compacted_difference(transforms.last_by_key(*frames, cuts(spark, 5)))
    assert kinds(found) == {"a": "lost", "b": "lost", "c": "lost", "d": "foreign", "e": "foreign"}
    assert kinds(transforms.superseded(found, None, None)) == kinds(found)
    newer = [("t", 0, 20, "a3", "a", "z"), ("t", 0, 21, "a4", "a", "z"), ("t", 0, 22, "d2", "d", "z")]
    there, here = (table(spark, newer, schema), table(spark, [("t", 0, 30, "e2", "e", "z")], schema))
    assert kinds(transforms.superseded(found, None, there)) == {**kinds(found), "a": "superseded"}
    assert kinds(transforms.superseded(found, here, there)) == {**kinds(found), "a": "superseded", "e": "superseded"}


def kinds(found: DataFrame) -> dict[str, str]:
    rows = found.collect()
    assert len(rows) == len({row.key for row in rows})
    return {row.key: row.kind for row in rows}
