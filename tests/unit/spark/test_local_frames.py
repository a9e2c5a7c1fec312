"""Partitions that Spark's Kafka source does not read as they are: how they are found, and read by this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from contract.verification_request import ClusterConfig, Request
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.comparison import compare, record_rows, spark_engine
from spark.comparison.chunks import mask_bits
from spark.comparison.offset_ranges import OffsetRange
from spark.comparison.reading import Log, ReadRange, hashes
from spark.comparison.record_rows import scan, table
from spark.comparison.spark_engine import (
    SMALL_PARTITIONS,
    SMALL_RECORDS,
    SMALL_RECORDS_TOGETHER,
    TIMESTAMP_MAX_MS,
    LocalFrames,
    SparkReader,
)
from spark.comparison.without_spark import LogCache, Part, WithoutSpark
from spark.progress import Progress

from ...support.compared_logs import MadeUpSide, request
from ...support.spark_logs import SCHEMA
from ...support.undecodable_headers import ALTERED, AT, AT_ALTERED, COUNT, RECORDS, side

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLACE = TopicPartition("named", 0)
EXTENT = OffsetRange(
    topic="named", partition=0, source_start=0, cut=COUNT, source_end=COUNT, target_topic="altered", target_start=0,
    target_end=COUNT,
)  # fmt: skip


@pytest.fixture
def both(broker: str) -> list[Cluster]:
    return [Cluster(side(role, broker)) for role in ("source", "target")]


def frame(spark: SparkSession, partition: int, *records: tuple[Any, int]) -> DataFrame:
    """Records of headers and timestamp as the Kafka source gives them."""
    rows = [
        ("t", partition, at, b"k", b"v", headers, EPOCH + timedelta(milliseconds=stamp))
        for at, (headers, stamp) in enumerate(records)
    ]
    return table(spark, rows, SCHEMA)


def test_what_spark_may_not_hold_as_it_is_is_known_by_the_character_of_replacement_or_its_age(
    spark: SparkSession,
) -> None:
    of_1900 = int(datetime(1900, 1, 1, tzinfo=UTC).timestamp() * 1000)
    exact = [(None, AT), ([], -1), ([("ü", b"\xff"), ("", None)], 0), ([("a", "\ufffd".encode())], of_1900)]
    many = [("a", b"")] * 3
    exact += [(many, AT), (many * 3, AT)]
    inexact = [([("a", b"1"), ("b\ufffd", None)], AT), ([("\ufffd", b"")], AT), (None, of_1900 - 1)]
    inexact += [([*many, ("\ufffd", b"")], AT), ([*many, *many, ("\ufffd", b"")], AT)]
    rows = record_rows.hashed(frame(spark, 0, *exact, *inexact)).orderBy("offset").collect()
    assert [row.inexact for row in rows] == [False] * len(exact) + [True] * len(inexact)


def test_a_scan_names_the_partitions_with_such_a_record_and_gives_no_pieces_of_them(spark: SparkSession) -> None:
    clean, odd = [(None, AT + n) for n in range(5)], ([("\ufffd", b"")], AT)
    records = frame(spark, 0, *clean).union(frame(spark, 1, *clean[:2], odd, *clean[2:]))
    found, inexact = scan({"before": record_rows.hashed(records)}, [("t", 0), ("t", 1)], mask_bits(5))
    assert inexact == {("t", 1)}
    assert [sum(one.records for one in pieces) for pieces in found["before"].values()] == [5]
    assert list(found["before"]) == [("t", 0)]


def decoded(spark: SparkSession, *asked: Any) -> DataFrame:
    """What Kafka's Java client makes of the records on the broker, in place of Spark's reading."""
    asked_side, ranges, _, names = asked
    records = RECORDS if asked_side.role == "source" else ALTERED
    rows = [
        (names.get(one.topic, one.topic), 0, at, held["key"], held["value"],
         [(name.decode(errors="replace"), value) for name, value in held["headers"]],
         EPOCH + timedelta(milliseconds=held["timestamp"]))
        for one in ranges for at, held in enumerate(records) if one.start <= at < one.end
    ]  # fmt: skip
    return table(spark, rows, SCHEMA)


@pytest.mark.parametrize("compacted", [False, True])
def test_an_altered_byte_in_a_name_is_found_on_spark(
    spark: SparkSession, both: list[Cluster], monkeypatch: pytest.MonkeyPatch, *, compacted: bool
) -> None:
    monkeypatch.setattr(spark_engine, "read", decoded)
    asked = replace(request(), source=both[0].side, target=both[1].side)
    offset_ranges = [replace(EXTENT, cleaned_at_source=compacted, cleaned_at_target=compacted)]
    reader = SparkReader(spark, cast("Request", asked), offset_ranges, LocalFrames(both))
    (result,) = compare.Comparison(reader, lambda: reader).run([], Progress()).partitions
    (finding,) = result.findings
    assert (finding.kind, finding.count) == ("altered", 1)
    assert [(one.source_offset, one.target_offset) for one in finding.samples] == [(AT_ALTERED, AT_ALTERED)]


@pytest.mark.parametrize(("source", "target"), [(True, True), (True, False), (False, True)])
def test_what_came_behind_the_ends_is_read_of_logs_that_are_cleaned(
    spark: SparkSession, both: list[Cluster], monkeypatch: pytest.MonkeyPatch, *, source: bool, target: bool
) -> None:
    monkeypatch.setattr(spark_engine, "read", decoded)
    asked = replace(request(), source=both[0].side, target=both[1].side)
    for cluster in both:
        cluster.connect()
    ends = {"source_end": COUNT - 3, "target_end": COUNT - 1}
    one = replace(EXTENT, cut=COUNT - 4, cleaned_at_source=source, cleaned_at_target=target, **ends)
    reader = SparkReader(spark, cast("Request", asked), [one], LocalFrames(both))
    found = [None if part is None else sorted(row.offset for row in part.collect()) for part in reader.added([PLACE])]
    assert found == [[COUNT - 3, COUNT - 2, COUNT - 1] if source else None, [COUNT - 1] if target else None]
    unchanged = SparkReader(spark, cast("Request", asked), [replace(EXTENT, cleaned_at_target=True)], LocalFrames(both))
    assert unchanged.added([PLACE]) == (None, None)


def test_frames_of_this_process_hold_what_spark_would_make_of_the_records(
    spark: SparkSession, both: list[Cluster]
) -> None:
    ranges = [ReadRange("altered", 0, 3, COUNT - 2)]
    found = LocalFrames(both).frame(spark, both[1].side, ranges, "read_committed", {"altered": "named"})
    assert found.dtypes == record_rows.hashed(decoded(spark, both[1].side, ranges, "", {})).dtypes
    rows = found.orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(3, COUNT - 2))
    for row in rows:
        held = ALTERED[row.offset]
        wanted = hashes(held["key"], held["value"], held["headers"], held["timestamp"])
        assert tuple(row) == ("named", 0, row.offset, *wanted, False)


def test_no_records_are_an_empty_frame(spark: SparkSession, both: list[Cluster]) -> None:
    found = LocalFrames(both).frame(spark, both[0].side, [], "read_committed", {})
    assert found.collect() == []


@dataclass
class Brokers:
    """One side that knows where the first late timestamp of a partition stands, -1 for none."""

    side: MadeUpSide
    late: Mapping[TopicPartition, int]
    asked: list[TopicPartition] = field(default_factory=list)

    def offsets(
        self, topic_partitions: Sequence[TopicPartition], spec: Any, isolation: str
    ) -> dict[TopicPartition, int]:
        assert (spec._value, isolation) == (TIMESTAMP_MAX_MS + 1, "read_uncommitted")
        self.asked += topic_partitions
        return {tp: self.late.get(tp, -1) for tp in topic_partitions}


def test_partitions_with_a_timestamp_that_spark_cannot_hold_are_those_that_the_brokers_name() -> None:
    source = Brokers(MadeUpSide("source"), {("named", 1): 0, ("named", 2): COUNT, ("named", 3): COUNT - 1})
    target = Brokers(MadeUpSide("target"), {("altered", 4): 5})
    offset_ranges = [replace(EXTENT, partition=number) for number in range(5)]
    offset_ranges.append(replace(EXTENT, partition=5, cut=0, source_end=0, target_end=0))
    local = LocalFrames(cast("list[Cluster]", [source, target]))
    assert local.take_late(offset_ranges) == {("named", 1), ("named", 3), ("named", 4)}
    assert [local.holds(("named", number)) for number in range(6)] == [False, True, False, True, True, False]
    assert ("named", 5) not in source.asked
    assert ("altered", 5) not in target.asked


def small(count: int, offsets: int = 2) -> list[OffsetRange]:
    """Partitions from 0 on with so many offsets each, on both sides together."""
    held = offsets // 2
    return [
        replace(EXTENT, partition=number, cut=held, source_end=held, target_end=offsets - held)
        for number in range(count)
    ]


def test_partitions_with_few_records_are_read_here_if_there_are_many() -> None:
    large = replace(EXTENT, partition=5000, cut=9, source_end=9, target_end=SMALL_RECORDS - 8)
    empty = replace(EXTENT, partition=5001, cut=0, source_end=0, target_end=0)
    at_most = small(SMALL_PARTITIONS, SMALL_RECORDS)
    local = LocalFrames(())
    assert local.take_small([*at_most, large, empty]) == {one.topic_partition for one in at_most}
    assert not local.holds(large.topic_partition)
    assert LocalFrames(()).take_small([*at_most[1:], large, empty]) == set()
    assert LocalFrames((), LogCache(())).take_small(at_most) == set()


def test_no_more_of_them_are_read_here_than_a_process_holds_and_the_smallest_first() -> None:
    of_two = small(SMALL_PARTITIONS)
    room = (SMALL_RECORDS_TOGETHER - 2 * SMALL_PARTITIONS) // SMALL_RECORDS
    larger = [replace(one, topic="larger") for one in small(room + 1, SMALL_RECORDS)]
    taken = LocalFrames(()).take_small([*larger, *of_two])
    assert taken == {one.topic_partition for one in (*of_two, *larger[:room])}


def test_the_frame_of_many_small_partitions_is_no_task_of_spark_for_each(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = np.array([[0, 1, 2, 3, 4, 5, AT, 0]], dtype=np.int64)

    class Cache:
        def __init__(self, _: object) -> None:
            pass

        def logs(self, wanted: Sequence[Part]) -> dict[TopicPartition, Log]:
            return {part.topic_partition: log for part in wanted}

    monkeypatch.setattr(spark_engine, "LogCache", Cache)
    ranges = [ReadRange("named", number, 0, 1) for number in range(2000)]
    found = LocalFrames(()).frame(spark, cast("ClusterConfig", MadeUpSide("source")), ranges, "read_committed", {})
    assert found.rdd.getNumPartitions() < 20
    assert sorted(row.partition for row in found.select("partition").collect()) == [*range(2000)]


def test_what_is_read_here_already_is_not_taken_again() -> None:
    local = LocalFrames(())
    assert local.take([PLACE]) == {PLACE}
    assert local.take([PLACE, ("named", 1)]) == {("named", 1)}
    assert LocalFrames((), LogCache(())).take([PLACE]) == set()


def test_what_a_comparison_without_spark_has_read_is_not_read_again_for_spark(
    spark: SparkSession, both: list[Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = WithoutSpark(*both)
    ranges = [ReadRange("altered", 0, 0, COUNT)]
    read = without.offsets(without.read(both[1].side, ranges, "read_committed", {"altered": "named"}))
    monkeypatch.setattr(Cluster, "consumer", None)
    part = [ReadRange("altered", 0, 3, COUNT - 2)]
    found = LocalFrames(both, without.cache).frame(spark, both[1].side, part, "read_committed", {"altered": "named"})
    assert [row.offset for row in found.orderBy("offset").collect()] == read[PLACE][3:-2] == [*range(3, COUNT - 2)]


def test_many_rows_of_this_process_stay_bytes_in_the_driver(spark: SparkSession) -> None:
    """Half a million of them as objects filled its heap, and the run never ended."""
    schema = "topic string, partition int, cut long"
    few, many = (table(spark, [("items", n, n) for n in range(size)], schema) for size in (100, 60_000))

    plans = [frame._jdf.queryExecution().optimizedPlan().toString() for frame in (few, many)]

    assert "LocalRelation" in plans[0]
    assert "LocalRelation" not in plans[1]
    assert many.count() == 60_000
