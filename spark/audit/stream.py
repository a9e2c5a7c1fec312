"""Reads one side with Structured Streaming up to where its logs end now, and adds it up.

Each reading is a query with the trigger `availableNow`: it goes on from its checkpoint, reads all that is there when it
starts, and ends. So it is known up to which time a side was read, also when nothing was written to it, which a query
that never ends does not tell. The sums of a micro-batch are made in Spark; only they reach this process.

No watermark drops a record: what is late belongs to its bucket all the same. Sums are kept in `store.py`, by bucket.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses
from pyspark.sql.streaming.query import StreamingQuery

from contract.fields import VerificationError
from contract.verification_request import ClusterConfig
from kafka.topic_partition import TopicPartition
from spark.audit.buckets import WORD, Place, Sums
from spark.audit.store import AuditStore, Role
from spark.comparison.record_rows import inexact, words
from spark.comparison.spark_engine import kafka_options, offsets_by_topic

APPENDED = 1  # of the Kafka source: org.apache.kafka.common.record.TimestampType.LOG_APPEND_TIME
_LOWER = 2**32 - 1
_BUCKET = ("topic", "partition", "start_ms")


class AuditError(VerificationError):
    """A side cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is read of a side, in buckets of `bucket_ms` from `from_ms` on. `prefix` is what the source's names lack.

    `starts` is where each partition begins, for a side that was never read (`has_begun`): later ones begin at 0.
    """

    role: Role
    side: ClusterConfig
    topics: tuple[str, ...]
    prefix: str
    isolation: str
    bucket_ms: int
    from_ms: int
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)


def has_begun(store: AuditStore, role: Role) -> bool:
    """Whether Spark has noted where it has begun to read a side."""
    return (_checkpoint(store, role) / "sources" / "0" / "0").exists()


def _checkpoint(store: AuditStore, role: Role) -> Path:
    return store.folder / "checkpoints" / role


def read(spark: SparkSession, reading: Reading, store: AuditStore, deadline_s: float) -> None:
    """Add up everything that the side's logs hold now and that was not added yet.

    Raises AuditError if it fails, or does not end within `deadline_s`.
    """
    if not reading.topics:
        return
    name = f"{reading.role} {reading.side.alias}"
    failures: list[Exception] = []
    try:
        query = (
            _records(spark, reading)
            .writeStream.foreachBatch(_adding(reading, store, failures))
            .option("checkpointLocation", _checkpoint(store, reading.role).as_uri())
            .trigger(availableNow=True)
            .start()
        )
        try:
            ended = query.awaitTermination(int(deadline_s))
        finally:
            query.stop()
            let_go(query)
    except PySparkException as error:
        if failures:
            raise failures[0] from None
        plan_anew(_checkpoint(store, reading.role), store.last_batch(reading.role))
        line = next((one for one in str(error).splitlines() if one.strip()), type(error).__name__)
        raise AuditError(f"{name}: must be readable (got {line}). Check its brokers; the audit goes on.") from None
    if not ended:
        raise AuditError(f"{name}: must be read within {deadline_s:.0f} s (it was not). The audit goes on.")


def plan_anew(checkpoint: Path, stored: int) -> None:
    """Let Spark plan its last batch again, if it has not noted its end; `stored` is the last one that was added up.

    With `availableNow` it refuses a batch for ever that it planned before partitions were added, or before a topic was
    created again, which has fewer records then. Nothing is read twice: a batch that was added up counts as ended.
    """
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    planned = max((int(one.name) for one in offsets.glob("[0-9]*")), default=0)
    if (commits / f"{planned}").exists():
        return
    for pattern in ("{}", ".{}.crc"):
        if planned > stored:
            (offsets / pattern.format(planned)).unlink(missing_ok=True)
        elif (before := commits / pattern.format(planned - 1)).exists():
            shutil.copyfile(before, commits / pattern.format(planned))


def let_go(query: StreamingQuery) -> None:
    """Let the JVM collect the session that Spark has cloned for a query, which is a megabyte in some readings.

    Spark 4.0's cleaner of artifacts refers to each of them until their artifacts are closed, which nothing does.
    """
    with suppress(Py4JError):  # another version of Spark may have other names
        query._jsq.streamingQuery().sparkSessionForStream().artifactManager().close()


def _records(spark: SparkSession, reading: Reading) -> DataFrame:
    return spark.readStream.format("kafka").options(**_options(reading)).load()


def _options(reading: Reading) -> dict[str, str]:
    starts = [(*tp, offset) for tp, offset in reading.starts.items()]
    return {
        **kafka_options(reading.side, reading.isolation),
        "subscribe": ",".join(sorted(reading.topics)),
        **({"startingOffsets": json.dumps(offsets_by_topic(starts))} if starts else {}),
        # Spark keeps consumers by their group and partition: those of the last reading go on. Both sides may have
        # topics of one name. Nothing joins the group or commits to it.
        "kafka.group.id": f"rt-inventory-audit-{reading.role}",
    }


def added_up(records: DataFrame, reading: Reading) -> DataFrame:
    """Return a row for each bucket of rows of the Kafka source: _BUCKET, count, appended, inexact, and its offsets.

    The sum of a word is that of its upper and that of its lower 32 bits (`a_upper`, `a_lower`, and so for `b`).
    Records from before the audit began have no bucket; their offsets count as read.
    """
    topic = F.substr("topic", F.lit(len(reading.prefix) + 1))
    stamp = F.unix_millis(F.col("timestamp").cast("timestamp"))
    start = stamp - F.pmod(stamp, F.lit(reading.bucket_ms))
    rows = records.select(
        topic.alias("topic"),
        "partition",
        F.when(start >= reading.from_ms, start).alias("start_ms"),
        "offset",
        *words(),
        (F.col("timestampType") == APPENDED).cast("int").alias("appended"),
        inexact().cast("int").alias("inexact"),
    )
    return rows.groupBy(*_BUCKET).agg(
        F.count("*").alias("count"),
        *(half for word in ("a", "b") for half in _halves(word)),
        F.sum("appended").alias("appended"),
        F.sum("inexact").alias("inexact"),
        F.min("offset").alias("first_offset"),
        (F.max("offset") + 1).alias("next_offset"),
    )


def _halves(word: str) -> tuple[Column, Column]:
    """The sums of both halves of a word, which 64 bits hold; a decimal would be an object for each record."""
    upper, lower = F.shiftright(word, 32), F.col(word).bitwiseAND(F.lit(_LOWER))
    return F.sum(upper).alias(f"{word}_upper"), F.sum(lower).alias(f"{word}_lower")


def _adding(reading: Reading, store: AuditStore, failures: list[Exception]) -> Callable[[DataFrame, int], None]:
    """Return what adds up a micro-batch; why it fails is in `failures` too, since Spark passes on no exception."""
    after_ms = store.read_through(reading.role) or 0

    def add(batch: DataFrame, number: int) -> None:
        try:
            take(batch, number)
        except VerificationError as error:
            failures.append(error)
            raise

    def take(batch: DataFrame, number: int) -> None:
        rows, read_ms = added_up(batch, reading).collect(), int(time.time() * 1000)
        sums: dict[Place, Sums] = {}
        next_offsets: dict[TopicPartition, int] = {}
        for row in rows:
            tp = TopicPartition(row.topic, row.partition)
            next_offsets[tp] = max(next_offsets.get(tp, 0), row.next_offset)
            if row.start_ms is not None:
                parts = (((row.a_upper << 32) + row.a_lower) % WORD, ((row.b_upper << 32) + row.b_lower) % WORD)
                kinds, offsets = (row.appended, row.inexact), (row.first_offset, row.next_offset)
                sums[Place(*tp, row.start_ms)] = Sums(row["count"], *parts, read_ms, *kinds, after_ms, *offsets)
        store.add(reading.role, number, sums, next_offsets)

    return add
