"""Spark as the engine of a comparison: it reads exact offset ranges by its Kafka source, and its jobs show progress."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import reduce
from itertools import accumulate, count
from threading import Event, Thread

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from contract.verification_request import ClusterConfig, Request
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.comparison import record_rows as rows
from spark.comparison.difference import Row
from spark.comparison.java_client import java_properties
from spark.comparison.offset_ranges import UNCOMMITTED, Digest, Occurrences, OffsetRange, Pieces, Reader, Windows
from spark.comparison.reading import (
    FETCH_S,
    HEADERS,
    KEY,
    NULL_KEY,
    NULL_VALUE,
    NULLS,
    OFFSET,
    TIMESTAMP,
    VALUE,
    A,
    B,
    Log,
    ReadRange,
)
from spark.comparison.record_rows import HASHED, scan, window_sums
from spark.comparison.without_spark import LogCache, parts
from spark.progress import Progress

ANSWER_S = 20  # for metadata and positions
RECORDS_PER_SPLIT = 1_000_000  # a split costs as much as the reading of 50,000 records
# A task that reads one partition has a consumer of its own, which connects and takes 25 ms of a processor, however few
# records there are. One consumer of this process reads many such partitions at once.
SMALL_PARTITIONS = 500  # of fewer there is little to gain
SMALL_RECORDS = 2_000  # of both sides of a partition
SMALL_RECORDS_TOGETHER = 1_000_000
TIMESTAMP_MAX_MS = (2**63 - 1) // 1000


class LocalFrames:
    """Knows which partitions (by the source's names) this process reads, and reads them.

    With a `cache` it reads all of them, and each range once. Without one, what a frame was made of is not kept: there
    may be more of it than of what is compared without Spark.
    """

    def __init__(self, clusters: Sequence[Cluster], cache: LogCache | None = None) -> None:
        self._clusters = {cluster.side.role: cluster for cluster in clusters}
        self._cache = cache
        self._topic_partitions: set[TopicPartition] = set()

    def holds(self, tp: TopicPartition) -> bool:
        """Return whether this process reads the partition."""
        return self._cache is not None or tp in self._topic_partitions

    def take(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Read these partitions from now on; return those that were not read here before."""
        new = {tp for tp in topic_partitions if not self.holds(tp)}
        self._topic_partitions |= new
        return new

    def take_late(self, offset_ranges: Sequence[OffsetRange]) -> set[TopicPartition]:
        """Take the partitions with a timestamp that Spark cannot hold, on either side: their brokers know them."""
        ends = {
            "source": {one.topic_partition: (one.topic_partition, one.source_last) for one in offset_ranges},
            "target": {
                TopicPartition(one.target_topic, one.partition): (one.topic_partition, one.target_end)
                for one in offset_ranges
            },
        }
        late = OffsetSpec.for_timestamp(TIMESTAMP_MAX_MS + 1)
        found: set[TopicPartition] = set()
        for role, logs in ends.items():
            held = [tp for tp, (_, end) in logs.items() if end > 0]
            first = self._clusters[role].offsets(held, late, UNCOMMITTED) if held else {}
            found |= {logs[tp][0] for tp, offset in first.items() if 0 <= offset < logs[tp][1]}
        return self.take(found)

    def since(self, role: str, ends: Mapping[TopicPartition, int], isolation: str) -> list[ReadRange]:
        """Return what the logs of a side have behind these ends by now; one that was empty is left out."""
        cluster, held = self._clusters.get(role), [tp for tp, end in ends.items() if end]
        now = cluster.ends(held, isolation) if cluster is not None and held else {}
        return [ReadRange(*tp, ends[tp], end) for tp, end in now.items() if end > ends[tp]]

    def take_small(self, offset_ranges: Iterable[OffsetRange]) -> set[TopicPartition]:
        """Take the partitions with the fewest records, if there are many of them."""
        small = sorted((one.offsets, one.topic_partition) for one in offset_ranges if 0 < one.offsets <= SMALL_RECORDS)
        together = accumulate(offsets for offsets, _ in small)
        found = [tp for (_, tp), held in zip(small, together, strict=True) if held <= SMALL_RECORDS_TOGETHER]
        return self.take(found) if len(found) >= SMALL_PARTITIONS else set()

    def frame(
        self,
        spark: SparkSession,
        side: ClusterConfig,
        ranges: Sequence[ReadRange],
        isolation: str,
        names: Mapping[str, str],
    ) -> DataFrame:
        """Return these ranges as `record_rows.hashed` does; `names` maps topics to the source's names."""
        cache = self._cache or LogCache(self._clusters.values())
        logs = cache.logs(parts(side, ranges, isolation, names))
        batches = [batch for tp, log in logs.items() for batch in _batches(tp, log)]
        # Spark makes a task of each batch: one of a partition with few records is not worth it.
        table = pa.Table.from_batches(batches, schema=_SCHEMA).combine_chunks()
        return spark.createDataFrame(table, HASHED)


_NUMBERS = ("offset", "a", "b", "key", "value", "headers", "timestamp")
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in _NUMBERS),
        ("inexact", pa.bool_()),
    ]
)


def _batches(tp: TopicPartition, log: Log) -> Iterator[pa.RecordBatch]:
    if len(log):
        absent = {KEY: NULL_KEY, VALUE: NULL_VALUE}
        numbers = [
            pa.array(np.ascontiguousarray(log[:, at]), mask=(log[:, NULLS] & absent[at]) != 0 if at in absent else None)
            for at in (OFFSET, A, B, KEY, VALUE, HEADERS, TIMESTAMP)
        ]
        topic, partition = pa.repeat(tp[0], len(log)), pa.repeat(pa.scalar(tp[1], pa.int32()), len(log))
        flags = pa.repeat(pa.scalar(False), len(log))
        yield pa.RecordBatch.from_arrays([topic, partition, *numbers, flags], schema=_SCHEMA)


LOOK_S = 0.5


@contextmanager
def watched(spark: SparkSession, progress: Progress, stage: str, partitions: int, records: int) -> Iterator[None]:
    """Advance the progress while the jobs of this block run; they read this many partitions and records."""
    group = f"rt-inventory-{next(_numbers)}"
    context = spark.sparkContext
    context.setJobGroup(group, stage)
    progress.stage(stage)
    ended = Event()
    watcher = Thread(target=_watch, args=(context, group, progress, partitions, records, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


class SparkEngine:
    """An `Engine` whose frames are Spark's: what they stand for is read when a job needs it.

    `local` reads at once what Spark's Kafka source does not read as it is.
    """

    def __init__(self, spark: SparkSession, local: LocalFrames) -> None:
        self.spark = spark
        self._local = local
        self._inexact: set[TopicPartition] = set()

    def read(
        self, side: ClusterConfig, ranges: Sequence[ReadRange], isolation: str, names: Mapping[str, str]
    ) -> DataFrame:
        """Return the hashed records of these ranges."""
        here: list[ReadRange] = []
        there: list[ReadRange] = []
        for one in ranges:
            local = self._local.holds(TopicPartition(names.get(one.topic, one.topic), one.partition))
            (here if local else there).append(one)
        frames = [rows.hashed(read(self.spark, side, there, isolation, names))] if there else []
        frames += [self._local.frame(self.spark, side, here, isolation, names)] if here else []
        return reduce(DataFrame.unionByName, frames)

    def union(self, frames: Iterable[DataFrame | None]) -> DataFrame | None:
        """Return the records of all of these, None if there are none."""
        held = [frame for frame in frames if frame is not None]
        return reduce(DataFrame.unionByName, held) if held else None

    def watched(self, progress: Progress, stage: str, partitions: int, records: int) -> AbstractContextManager[None]:
        """Advance the progress while the block reads."""
        return watched(self.spark, progress, stage, partitions, records)

    def windows(
        self, logs: Mapping[str, tuple[DataFrame, int]], topic_partitions: Sequence[TopicPartition], bits: int
    ) -> dict[str, Windows]:
        """Return the sums of the windows of each named log and partition; partitions that are inexact are left out."""
        found, inexact = window_sums(logs, topic_partitions, bits)
        self._local.take(inexact)
        return found

    def scan(
        self, logs: Mapping[str, DataFrame], topic_partitions: Sequence[TopicPartition], bits: int
    ) -> dict[str, Pieces]:
        """Return the pieces of chunks of each named log and partition."""
        found, inexact = scan(logs, topic_partitions, bits)
        self._inexact = self._local.take(inexact)
        return found

    def inexact(self) -> set[TopicPartition]:
        """Return the partitions with a record that the last scan may have held otherwise than Kafka does."""
        return self._inexact

    def rows(self, records: DataFrame | None) -> dict[TopicPartition, list[Row]]:
        """Return the records of each partition."""
        return rows.rows(records)

    def offsets(self, records: DataFrame | None) -> dict[TopicPartition, list[int]]:
        """Return the offsets of the records of each partition."""
        return rows.offsets(records)

    def occurrences(self, logs: Mapping[str, DataFrame], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
        """Return where digests occur in whole logs."""
        return rows.occurrences(self.spark, logs, wanted)


class SparkReader(Reader[DataFrame]):
    """Rows of both sides as Spark reads them."""

    def __init__(
        self, spark: SparkSession, request: Request, offset_ranges: Iterable[OffsetRange], local: LocalFrames
    ) -> None:
        super().__init__(SparkEngine(spark, local), request, offset_ranges)
        self.spark = spark
        self._local = local

    def added(self, topic_partitions: Iterable[TopicPartition]) -> tuple[DataFrame | None, DataFrame | None]:
        """What each log has got since its end was taken, if a cleaner drops records of it; None for none."""
        found = [self.offset_ranges[tp] for tp in topic_partitions]
        ours = {one.topic_partition: one.source_last for one in found if one.cleaned_at_source}
        theirs = {
            TopicPartition(one.target_topic, one.partition): one.target_end for one in found if one.cleaned_at_target
        }
        isolation = self.request.limits.isolation
        return (
            self._source(self._local.since("source", ours, isolation)),
            self._target(self._local.since("target", theirs, isolation)),
        )


_numbers = count(1)


def _watch(context: SparkContext, group: str, progress: Progress, partitions: int, records: int, ended: Event) -> None:
    while not ended.wait(LOOK_S):
        try:
            done = share(context, group)
        except (Py4JError, OSError):  # who runs the jobs gets the error too, and reports it
            return
        progress.advance(int(done * partitions), partitions, int(done * records), records)


def share(context: SparkContext, group: str) -> float:
    """Return which part of the tasks of a job group has finished, 0 while none is known."""
    tracker = context.statusTracker()
    tasks = finished = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            one = tracker.getStageInfo(stage)
            if one is not None:
                tasks, finished = tasks + one.numTasks, finished + one.numCompletedTasks
    return finished / tasks if tasks else 0.0


def kafka_options(side: ClusterConfig, isolation: str) -> dict[str, str]:
    """Return the options of Spark's Kafka source for a cluster, but for what is read of it."""
    return {
        "includeHeaders": "true",
        "failOnDataLoss": "false",
        "fetchOffset.numRetries": "2",
        "kafkaConsumer.pollTimeoutMs": str(FETCH_S * 1000),
        "kafka.default.api.timeout.ms": str(ANSWER_S * 1000),
        "kafka.request.timeout.ms": str(ANSWER_S * 1000),
        "kafka.isolation.level": isolation,
        "kafka.max.poll.records": "20000",
        "kafka.max.partition.fetch.bytes": str(2 * 2**20),
        "kafka.auto.include.jmx.reporter": "false",
        "kafka.receive.buffer.bytes": "1048576",
        # Behind each reading Spark asks the broker for both ends of the log, on the connection on which its consumer
        # waits for the next records already: half a second for each partition, by Kafka's default.
        "kafka.fetch.max.wait.ms": "10",
        **{f"kafka.{name}": value for name, value in java_properties(side).items()},
    }


def offsets_by_topic(offsets: Iterable[tuple[str, int, int]]) -> dict[str, dict[str, int]]:
    """Return topics, partitions and offsets as Spark's options name them: offsets by partition, by topic."""
    found: dict[str, dict[str, int]] = {}
    for topic, partition, offset in offsets:
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def read(
    spark: SparkSession, side: ClusterConfig, ranges: Sequence[ReadRange], isolation: str, names: Mapping[str, str]
) -> DataFrame:
    """Return the data records of exactly these ranges; `names` maps a topic of this cluster to the source's name."""
    total = sum(part.end - part.start for part in ranges)
    starts = offsets_by_topic((part.topic, part.partition, part.start) for part in ranges)
    ends = offsets_by_topic((part.topic, part.partition, part.end) for part in ranges)
    options = {
        **kafka_options(side, isolation),
        "assign": json.dumps({topic: [int(number) for number in numbers] for topic, numbers in starts.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "minPartitions": str(max(len(ranges), total // RECORDS_PER_SPLIT)),
        "groupIdPrefix": "rt-inventory-verification",
    }
    records = spark.read.format("kafka").options(**options).load()
    renamed = [(old, new) for old, new in names.items() if old != new]
    topic = F.col("topic")
    for old, new in renamed:
        topic = F.when(F.col("topic") == old, new).otherwise(topic)
    return records.withColumn("topic", topic) if renamed else records
