"""A record has the same digest whether Spark or this process alone computes it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark.comparison import record_rows
from spark.comparison.reading import digest_of, hashes, hashes_of
from spark.comparison.record_rows import table

from ...support.spark_logs import EPOCH, SCHEMA

RECORDS = [
    (None, None, None, 0),
    (None, b"", [], 1),
    (b"", None, [("a", None)], 2),
    (b"key", b"value", [("a", b"1"), ("b", b"")], 3),
    (b"key", b"value", [("a", None), ("b", b"1")], 3),
    (b"key", b"value", [("a", b"1"), ("b", None)], 3),
    (b"k" * 3, b"v" * 1000, [("trace", b"\xff\xfe\x00")], 1_700_000_000_123),
    (b"\xff\x00\x80", bytes(range(256)), [("\u00e9\u4e16", b",")], -1),
    (b"k", b"v", [("a", b"1"), ("b", None), ("c", b""), ("d", b"1"), ("e", b"1"), ("f", b"1")], 5),
    (b"12345678", b"1234", [("x", b",,"), ("x", b",")], 4),
]


@pytest.fixture
def generated(spark: SparkSession) -> Iterator[None]:
    """Spark has each hash function twice: interpreted, and in generated code, which a real comparison runs."""
    generating = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"}
    before = {name: str(spark.conf.get(name)) for name in generating}
    for name, value in generating.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.usefixtures("generated")
def test_words_and_hashes_are_those_of_spark(spark: SparkSession) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    rows = [
        ("t", 0, number, key, value, headers, epoch + timedelta(milliseconds=at))
        for number, (key, value, headers, at) in enumerate(RECORDS)
    ]
    found = record_rows.hashed(table(spark, rows, SCHEMA)).withColumn("digest", record_rows.digest())
    for row in found.collect():
        alone = hashes(*RECORDS[row.offset])
        assert tuple(row)[3:-2] == alone
        assert row.inexact is False
        assert row.digest == digest_of(*alone[:2])


@pytest.mark.usefixtures("generated")
def test_timestamps_are_milliseconds(spark: SparkSession) -> None:
    (row,) = table(spark, [("t", 0, 0, b"k", b"v", None, EPOCH)], SCHEMA).select(*record_rows.hashes()).collect()
    assert row.timestamp == int(EPOCH.timestamp() * 1000)


def test_timestamps_that_spark_cannot_hold_have_digests_of_their_own() -> None:
    late = (2**63 - 1) // 1000
    stamps = [late, late + 1, late + 2, 2**63 - 1, -late, -late - 2, -(2**63), 0, -1]
    found = [hashes(b"k", b"v", None, stamp) for stamp in stamps]
    assert len({one[:2] for one in found}) == len(stamps)
    assert [one[5] for one in found] == stamps


PARTS = st.none() | st.binary(max_size=80)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=3) | st.binary(max_size=3), PARTS), max_size=3)


@given(st.lists(st.tuples(PARTS, PARTS, HEADERS, st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 2**41))))
def test_records_that_are_hashed_together_have_the_hashes_of_each_alone(records: list[Any]) -> None:
    columns = [list(column) for column in zip(*records, strict=True)] or [[], [], [], []]
    found = hashes_of(*columns).tolist()
    assert found == [[part or 0 for part in hashes(*record)] for record in records]
