"""Partitions that differ in very many records: what is only counted is counted right."""

import pytest
from pyspark.sql import SparkSession

from spark.records import bulk
from spark.records.bulk import Bulk
from spark.records.findings import PartitionResult, Run
from spark.records.retention import expired_meanwhile

from . import oracle
from .on_spark import reader
from .oracle import Log, Logs, Record


def log(letters: str, start: int = 0) -> Log:
    """Two different letters make records that are no altered one of each other."""
    return [(start + n, Record(None, one.encode(), (), ord(one))) for n, one in enumerate(letters) if one != "."]


CASES = [
    Logs(source=log("ab..c"), aborted=log("xy", 2), target=log("abxyc"), cut=5),
    Logs(source=log("a.bc"), aborted=log("a", 1), target=log("aaabcz"), cut=4),
    Logs(source=log("abcdefgh"), target=log("cdeh"), cut=8),
    Logs(source=log("cdefgh", 2), target=log("abcdefgh"), cut=8, source_start=1),
    Logs(source=[], target=log("abc"), cut=3, source_start=3),
    Logs(source=log("ab"), pending=log("cd", 2), target=log("abbcd"), cut=2),
]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> dict[int, PartitionResult]:
    """What is found in CASES if no record is brought to the driver."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "NAMED_MAX", -1)
        held, found = reader(spark, patch, dict(enumerate(CASES)))
        Bulk(held, found).compare(list(found), set(found), [])
    return {result.partition: result for result in found.values()}


def test_what_is_counted_agrees_with_the_oracle(results: dict[int, PartitionResult]) -> None:
    for number, truth in oracle.judge(dict(enumerate(CASES))).items():
        found = {one.kind: one.count for one in results[number].findings}
        assert dict(sorted(found.items())) == truth.counts(), CASES[number]
        assert results[number].compared == truth.compared


def test_only_what_may_be_something_else_is_undecided(results: dict[int, PartitionResult]) -> None:
    assert [bool(results[number].undecided) for number in results] == [False, True, True, False, False, True]


def test_counted_records_carry_where_they_stand(results: dict[int, PartitionResult]) -> None:
    (lost,) = results[2].findings
    assert lost.runs == (Run(0, 1, 2, "head"), Run(5, 5, 1), Run(6, 6, 1))
    assert [one.source_offset for one in lost.samples] == [0, 1, 5, 6]
    (aborted,) = results[0].findings
    assert aborted.runs == (Run(2, 2, 1), Run(3, 3, 1))


def test_what_retention_deleted_meanwhile_is_excused_where_it_was_counted(results: dict[int, PartitionResult]) -> None:
    place = ("t", 2)
    (found,) = expired_meanwhile([results[2]], {place: 0}, {place: 2})
    assert {one.kind: one.count for one in found.findings} == {"lost": 2, "expired_at_target": 2}
