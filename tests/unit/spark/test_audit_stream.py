"""What Spark adds up of a micro-batch is what each record adds, by the digest that this process computes too."""

import gc
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from contract.verification_request import ClusterConfig
from kafka.topic_partition import TopicPartition
from spark.audit import stream
from spark.audit.buckets import WORD, Place, Sums
from spark.audit.store import AuditStore
from spark.audit.stream import Reading
from spark.comparison import reading
from spark.comparison.record_rows import table

from ...support.spark_logs import SCHEMA
from ...support.waiting import wait_until

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
READ_THROUGH = 12_345
FROM_MS = 1_800_000_000_000 - 1_800_000_000_000 % 60_000
Record = tuple[str, int, int, int, bytes | None, bytes | None, int]
"""Topic, partition, offset, timestamp in ms, key, value, type of timestamp."""


def asked(prefix: str = "") -> Reading:
    return Reading(
        role="source",
        side=cast("ClusterConfig", None),
        topics=("items",),
        prefix=prefix,
        isolation="read_committed",
        bucket_ms=60_000,
        from_ms=FROM_MS,
    )


def batch(spark: SparkSession, records: Sequence[Record]) -> Any:
    rows = [
        (topic, partition, offset, key, value, [("name", b"x")], EPOCH + timedelta(milliseconds=at), kind)
        for topic, partition, offset, at, key, value, kind in records
    ]
    return table(spark, rows, f"{SCHEMA}, timestampType int")


def expected(records: Sequence[Record]) -> Sums:
    whole = Sums()
    for _, _, _, at, key, value, kind in records:
        a, b, *_ = reading.hashes(key, value, [("name", b"x")], at)
        whole += Sums(1, a % WORD, b % WORD, 0, kind)
    return whole


class Kept:
    """A store that remembers what it was given."""

    def __init__(self) -> None:
        self.added: list[tuple[Any, ...]] = []

    def add(self, *given: Any) -> None:
        self.added.append(given)

    def read_through(self, side: str) -> int:
        return READ_THROUGH


def test_a_batch_is_added_up_by_partition_and_time(spark: SparkSession) -> None:
    first = [("items", 0, number, FROM_MS + number, b"%d" % number, b"value", 0) for number in range(100)]
    doubled = [("items", 0, 100, FROM_MS + 3, b"3", b"value", 0)]
    second = [("items", 0, 101 + number, FROM_MS + 60_000 + number, None, None, 0) for number in range(5)]
    other = [("items", 1, 8, FROM_MS + 59_999, None, b"", 1)]
    early = [("items", 2, 40, FROM_MS - 1, b"", b"from before", 0)]
    kept = Kept()

    stream._adding(asked(), cast("AuditStore", kept), [])(batch(spark, [*first, *doubled, *second, *other, *early]), 7)

    ((role, number, sums, next_offsets),) = kept.added
    assert (role, number) == ("source", 7)
    assert {place: Sums(one.count, one.a, one.b, 0, one.appended, one.inexact) for place, one in sums.items()} == {
        Place("items", 0, FROM_MS): expected([*first, *doubled]),
        Place("items", 0, FROM_MS + 60_000): expected(second),
        Place("items", 1, FROM_MS): expected(other),
    }
    assert [(one.start, one.end) for _, one in sorted(sums.items())] == [(0, 101), (101, 106), (8, 9)]
    assert all(one.read_ms > FROM_MS - 10**12 and one.after_ms == READ_THROUGH for one in sums.values())
    assert next_offsets == {("items", 0): 106, ("items", 1): 9, ("items", 2): 41}


def test_remote_topics_have_the_names_of_the_source(spark: SparkSession) -> None:
    record = ("here.items", 0, 0, FROM_MS, b"k", b"v", 0)
    kept = Kept()
    stream._adding(asked("here."), cast("AuditStore", kept), [])(batch(spark, [record]), 0)
    assert list(kept.added[0][2]) == [Place("items", 0, FROM_MS)]


def test_a_side_begins_where_it_is_said_and_a_partition_that_comes_later_at_its_first_record(tmp_path: Path) -> None:
    store, starts = (
        AuditStore(tmp_path, "audit", FROM_MS),
        {TopicPartition("items", 0): 17, TopicPartition("items", 2): 0},
    )
    assert not stream.has_begun(store, "source")
    side = ClusterConfig(role="source", alias="src", client_config={"bootstrap.servers": "127.0.0.1:1"})
    options = stream._options(replace(asked(), side=side, starts=starts))
    assert json.loads(options["startingOffsets"]) == {"items": {"0": 17, "2": 0}}
    assert not [name for name in options if "imestamp" in name], "it asks for the ends last"
    assert "startingOffsets" not in stream._options(replace(asked(), side=side))
    noted = tmp_path / "checkpoints" / "source" / "sources" / "0" / "0"
    noted.parent.mkdir(parents=True)
    noted.touch()
    assert stream.has_begun(store, "source")
    assert not stream.has_begun(store, "target")


def test_the_jvm_can_collect_the_sessions_of_queries_that_have_ended(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    jvm: Any = spark._jvm

    def read(batch: DataFrame, _: int) -> None:
        batch.collect()

    def ended(number: int) -> Any:
        """Run a query to its end; return a weak reference to the session that Spark has cloned for it."""
        (tmp_path / "in" / f"{number}.txt").write_text("record", encoding="utf-8")
        records = spark.readStream.text(str(tmp_path / "in"))
        query = (
            records.writeStream.foreachBatch(read)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        stream.let_go(query)
        return jvm.java.lang.ref.WeakReference(query._jsq.streamingQuery().sparkSessionForStream())

    left = [ended(number) for number in range(8)]

    def collected() -> bool:
        gc.collect()
        jvm.System.gc()
        return sum(one.get() is None for one in left) >= 3  # Spark itself remembers the last few

    wait_until("the sessions of the first queries are collected", collected, 30)
