"""What the archive of Spark's classes is made from: a comparison of made-up records."""

import pytest
from pyspark.sql import SparkSession

from spark import class_archive
from spark.comparison.record_rows import rows
from spark.comparison.spark_session import RECORDS, TOPIC, made_up


def test_the_archive_uses_what_a_comparison_uses(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[SparkSession] = []
    monkeypatch.setattr(class_archive, "load_clients", clients.append)
    class_archive.load_classes(spark)
    assert clients == [spark]


def test_made_up_records_are_those_that_a_comparison_reads(spark: SparkSession) -> None:
    found = rows(made_up(spark))
    assert [row.offset for row in found[TOPIC, 0]] == [*range(RECORDS)]
    assert len({row.digest for row in found[TOPIC, 0]}) == RECORDS
