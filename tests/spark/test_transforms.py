"""The comparison against a plain Python oracle, on made-up logs."""

import random
from collections import Counter
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.records import offsets, transforms

DIGESTS = "topic string, partition int, offset long, digest string"
RECORDS = (
    "topic string, partition int, offset long, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>, timestamp timestamp"
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def log(spark: SparkSession, letters: str, partition: int = 0, start: int = 0) -> DataFrame:
    rows = [("t", partition, start + n, letter) for n, letter in enumerate(letters) if letter != "."]
    return spark.createDataFrame(rows, DIGESTS)


def cuts(spark: SparkSession, cut: int) -> DataFrame:
    return spark.createDataFrame([("t", 0, cut)], "topic string, partition int, cut long")


def bounds(spark: SparkSession, from_s: int | None = None, from_t: int | None = None) -> DataFrame:
    schema = "topic string, partition int, from_s long, from_t long"
    return spark.createDataFrame([("t", 0, from_s, from_t)], schema)


def digest_of(spark: SparkSession, **changes: object) -> str:
    record = {"key": b"k", "value": b"v", "headers": [("h", b"1")], "timestamp": AT} | changes
    row = ("t", 0, 0, record["key"], record["value"], record["headers"], record["timestamp"])
    return str(transforms.digests(spark.createDataFrame([row], RECORDS)).collect()[0].digest)


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
    assert len({digest_of(spark, **variant) for variant in variants}) == len(variants)


def test_no_headers_and_an_empty_list_of_headers_are_the_same(spark: SparkSession) -> None:
    assert digest_of(spark, headers=None) == digest_of(spark, headers=[])


@pytest.mark.parametrize("seed", range(6))
def test_the_difference_agrees_with_counting(spark: SparkSession, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - test data, not a secret
    source = "".join(dice.choices("abcdef", k=dice.randint(1, 30)))
    target = "".join(dice.choices("abcdefxy", k=dice.randint(1, 30)))
    cut = dice.randint(0, len(source))
    found = transforms.trim(
        transforms.occurrences(log(spark, source), log(spark, target, start=7), cuts(spark, cut)), bounds(spark)
    )
    row = transforms.summary(transforms.difference(found)).collect()[0]
    before, whole, there = Counter(source[:cut]), Counter(source), Counter(target)
    extra = there - whole
    assert row.lost == sum((before - there).values())
    assert row.compared == sum((before & there).values())
    assert row.doubled == sum(number for letter, number in extra.items() if letter in whole)
    assert row.foreign == sum(number for letter, number in extra.items() if letter not in whole)


def test_offending_records_carry_both_offsets(spark: SparkSession) -> None:
    found = transforms.occurrences(log(spark, "abc"), log(spark, "aaxc", start=10), cuts(spark, 3))
    rows = transforms.offending(transforms.difference(transforms.trim(found, bounds(spark)))).collect()
    assert {(r.kind, r.digest, r.source_offset, r.target_offset) for r in rows} == {
        ("lost", "b", 1, None),
        ("doubled", "a", 0, 11),
        ("foreign", "x", None, 12),
    }


def test_an_expired_prefix_is_counted_and_not_lost(spark: SparkSession) -> None:
    found = transforms.occurrences(log(spark, "aabc"), log(spark, "abc", start=1), cuts(spark, 4))
    overlap = transforms.overlap(found).collect()[0]
    assert (overlap.first_s, overlap.first_t) == (1, 1)
    trimmed = transforms.trim(found, bounds(spark, from_s=1))
    row = transforms.summary(transforms.difference(trimmed)).collect()[0]
    assert (row.expired_s, row.lost, row.doubled, row.compared) == (1, 0, 0, 3)


def test_records_after_the_cut_are_not_foreign(spark: SparkSession) -> None:
    found = transforms.occurrences(log(spark, "abcd"), log(spark, "abc"), cuts(spark, 2))
    row = transforms.summary(transforms.difference(transforms.trim(found, bounds(spark)))).collect()[0]
    assert (row.compared, row.lost, row.doubled, row.foreign) == (2, 0, 0, 0)


def position(spark: SparkSession, source: str, target: str, committed: int, synced: int | None) -> dict[str, int]:
    found = transforms.occurrences(log(spark, source), log(spark, target), cuts(spark, len(source)))
    schema = "group string, topic string, partition int, committed long, synced long"
    groups = spark.createDataFrame([("g", "t", 0, committed, synced)], schema)
    row = offsets.translate(transforms.trim(found, bounds(spark)), groups).collect()[0]
    return dict(row.asDict())


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


@pytest.mark.parametrize("seed", range(6))
def test_skipped_and_repeated_agree_with_walking_the_logs(spark: SparkSession, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - test data, not a secret
    source = "".join(dice.choices("abcdefgh.", k=20))
    target = "".join(dice.choices("abcdefgh.", k=5)) + source
    committed, synced = dice.randint(0, 20), dice.randint(0, len(target))
    found = position(spark, source, target, committed, synced)
    wanted = naive(source, target, committed, synced)
    assert {name: found[name] for name in wanted} == wanted


def test_the_exact_position_crosses_holes_and_shifts(spark: SparkSession) -> None:
    found = position(spark, "ab..cd", "...abcd", committed=2, synced=5)
    assert (found["lowest"], found["highest"], found["skipped"], found["repeated"]) == (5, 5, 0, 0)


def test_doubled_records_make_the_position_a_range(spark: SparkSession) -> None:
    found = position(spark, "abc", "ababc", committed=1, synced=3)
    assert (found["lowest"], found["highest"], found["skipped"], found["repeated"]) == (1, 3, 0, 0)


def test_a_group_at_the_end_has_the_image_of_the_cut(spark: SparkSession) -> None:
    found = position(spark, "abc", "..abc", committed=3, synced=5)
    assert (found["lowest"], found["unread"], found["repeated"]) == (5, 0, 0)


def test_a_synced_offset_too_far_is_a_skip(spark: SparkSession) -> None:
    found = position(spark, "abcde", "abcde", committed=2, synced=4)
    assert (found["skipped"], found["repeated"]) == (2, 0)


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
