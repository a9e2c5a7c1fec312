"""The comparison against a plain Python oracle, on made-up logs."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from spark.records import offsets, transforms

from . import oracle
from .oracle import Record

DIGESTS = "topic string, partition int, offset long, digest string"
RECORDS = (
    "topic string, partition int, offset long, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>, timestamp timestamp"
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def logs(spark: SparkSession, cases: Sequence[str], starts: Sequence[int] = ()) -> DataFrame:
    """One partition for each case; a letter is a record, a dot an offset without one. Without `starts` all are 0."""
    rows = [
        ("t", partition, start + n, letter)
        for partition, (letters, start) in enumerate(zip(cases, starts or [0] * len(cases), strict=True))
        for n, letter in enumerate(letters)
        if letter != "."
    ]
    return spark.createDataFrame(rows, DIGESTS)


def log(spark: SparkSession, letters: str, start: int = 0) -> DataFrame:
    return logs(spark, [letters], [start])


def cuts(spark: SparkSession, *cut: int) -> DataFrame:
    return spark.createDataFrame([("t", *one) for one in enumerate(cut)], "topic string, partition int, cut long")


def bounds(spark: SparkSession, *from_s: int | None) -> DataFrame:
    """Where the comparison begins in the source's log of each partition; None, as without a value, for all of it."""
    schema = "topic string, partition int, from_s long, from_t long"
    return spark.createDataFrame([("t", number, first, None) for number, first in enumerate(from_s or [None])], schema)


def digests_of(spark: SparkSession, variants: Sequence[Mapping[str, object]]) -> list[str]:
    """The digests of one record with these changes."""
    rows = []
    for offset, changes in enumerate(variants):
        record = {"key": b"k", "value": b"v", "headers": [("h", b"1")], "timestamp": AT} | dict(changes)
        rows.append(("t", 0, offset, record["key"], record["value"], record["headers"], record["timestamp"]))
    found = transforms.digests(spark.createDataFrame(rows, RECORDS)).collect()
    return [str(row.digest) for row in sorted(found, key=lambda row: row.offset)]


def test_a_digest_tells_every_part_apart(spark: SparkSession) -> None:
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
    """Two logs, the offset at which the target's begins, the cut, and where the comparison begins at the source."""

    source: str
    target: str
    target_start: int
    cut: int
    from_s: int | None = None


def random_pairs() -> list[Compared]:
    dice = random.Random(1)  # noqa: S311 - test data, not a secret
    cases = []
    for _ in range(40):
        source = "".join(dice.choices("abcdef", k=dice.randint(1, 30)))
        target = "".join(dice.choices("abcdefxy", k=dice.randint(1, 30)))
        cases.append(Compared(source, target, 7, dice.randint(0, len(source))))
    return cases


RANDOM_PAIRS = random_pairs()
EXPIRED_PREFIX = Compared("aabc", "abc", 1, 4, from_s=1)
AFTER_THE_CUT = Compared("abcd", "abc", 0, 2)


@pytest.fixture(scope="module")
def summaries(spark: SparkSession) -> dict[Compared, Row]:
    """The summary of each pair, all compared at once: a Spark job costs more than what these pairs hold."""
    cases = [*RANDOM_PAIRS, EXPIRED_PREFIX, AFTER_THE_CUT]
    sources, targets, starts, ends, firsts = zip(*cases, strict=True)
    both = logs(spark, sources), logs(spark, targets, starts)
    found = transforms.trim(transforms.occurrences(*both, cuts(spark, *ends)), bounds(spark, *firsts))
    rows = transforms.summary(transforms.difference(found)).collect()
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
    rows = transforms.offending(transforms.difference(transforms.trim(found, bounds(spark)))).collect()
    assert {(r.kind, r.digest, r.source_offset, r.target_offset) for r in rows} == {
        ("lost", "b", 1, None),
        ("doubled", "a", 0, 11),
        ("foreign", "x", None, 12),
    }


def test_an_expired_prefix_is_counted_and_not_lost(spark: SparkSession, summaries: Mapping[Compared, Row]) -> None:
    source, target, start, cut, _ = EXPIRED_PREFIX
    found = transforms.occurrences(log(spark, source), log(spark, target, start), cuts(spark, cut))
    overlap = transforms.overlap(found).collect()[0]
    assert (overlap.first_s, overlap.first_t) == (1, 1)
    row = summaries[EXPIRED_PREFIX]
    assert (row.expired_s, row.lost, row.doubled, row.compared) == (1, 0, 0, 3)


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
    placed = offsets.translate(transforms.trim(found, bounds(spark)), spark.createDataFrame(rows, schema)).collect()
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
    frames = (spark.createDataFrame(source, schema), spark.createDataFrame(target, schema))
    found = transforms.compacted_difference(transforms.last_by_key(*frames, cuts(spark, 5))).collect()
    assert {row.key: row.kind for row in found} == {
        "a": "same",
        "b": "same",
        "c": "altered",
        "d": "lost",
        "e": "foreign",
        "f": "later",
    }
