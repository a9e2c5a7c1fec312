"""Where two logs begin to overlap, for records that Spark counts: what stands in front of it may have expired.

Owns the bounds and the numbers that expiry.py allows. What is done with them is in transforms.py.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from kafka.topic_partition import TopicPartition
from spark.comparison import expiry, transforms
from spark.comparison.findings import PartitionResult, Run
from spark.comparison.offset_ranges import OffsetRange
from spark.comparison.record_rows import table
from spark.comparison.spark_engine import SparkReader
from spark.comparison.transforms import TP

STRETCHES = 100
AT_SOURCE = ("lost", "altered")
_BOUNDS = "topic string, partition int, from_s long, from_t long, known_t long, from_end boolean, trim_s long"


@dataclass(frozen=True)
class Overlap:
    """First offsets of one partition with an image on the other side, None without any.

    `known` is the first offset of the target whose record the source holds too, as an image or doubled.
    """

    source: int | None = None
    target: int | None = None
    known: int | None = None


Overlaps = Mapping[TopicPartition, Overlap]
Counts = Mapping[tuple[TopicPartition, str, bool], int]
NOWHERE = Overlap()


@dataclass(frozen=True)
class Heads:
    """Records of one partition in front of the overlap, and how many of them have expired on the other side."""

    lost: int
    foreign: int
    at_target: int
    at_source: int

    @property
    def certain(self) -> bool:
        """Whether a log start explains all of them, and there are some on one side only."""
        return not (self.lost and self.foreign) and (self.lost, self.foreign) == (self.at_target, self.at_source)


def overlaps(occurrences: DataFrame) -> dict[TopicPartition, Overlap]:
    """Return where the logs of each partition begin to overlap."""
    rows = transforms.overlap(occurrences).collect()
    return {TopicPartition(row.topic, row.partition): Overlap(row.first_s, row.first_t, row.known_t) for row in rows}


def bounds(
    reader: SparkReader,
    results: Mapping[TopicPartition, PartitionResult],
    found: Overlaps,
    partitions: Iterable[TopicPartition],
) -> DataFrame:
    """Return the bounds that `transforms` asks for, all null where neither log has removed anything."""
    values: list[tuple[Any, ...]] = []
    for tp in partitions:
        offset_range = reader.offset_ranges[tp]
        if not (offset_range.removed_at_source or offset_range.removed_at_target):
            values.append((*tp, None, None, None, False, None))
            continue
        at = found.get(tp, NOWHERE)
        from_source = expired_without_overlap(offset_range) if at.source is None else at.source
        from_target = offset_range.target_end if source_is_empty(at, results[tp]) else at.target
        known = at.known if offset_range.removed_at_source else None
        trimmed = from_source if offset_range.removed_at_target else None
        values.append((*tp, from_source, from_target, known, True, trimmed))
    return table(reader.spark, values, _BOUNDS)


def counts(offending: DataFrame) -> Counts:
    """Return how many records offend, by partition, kind and whether they stand in front of the overlap."""
    rows = offending.groupBy(*TP, "kind", "head").count().collect()
    return {(TopicPartition(row.topic, row.partition), row.kind, row["head"]): row["count"] for row in rows}


def heads(reader: SparkReader, offending: Counts) -> dict[TopicPartition, Heads]:
    """Return what stands in front of the overlap in each partition that has anything there."""
    found = {}
    for tp in {tp for tp, _, head in offending if head}:
        offset_range = reader.offset_ranges[tp]
        lost, foreign = (offending.get((tp, kind, True), 0) for kind in ("lost", "foreign"))
        at_source, at_target = expiry.allowed(
            lost,
            foreign,
            removed_at_source=offset_range.removed_at_source,
            removed_at_target=offset_range.removed_at_target,
        )
        found[tp] = Heads(lost, foreign, at_target, at_source)
    return found


def expired(reader: SparkReader, offending: DataFrame, found: Mapping[TopicPartition, Heads]) -> DataFrame:
    """Return the offending records, those that have expired with the kind of that."""
    if not found:
        return offending
    allowed = [
        value
        for tp, one in found.items()
        for value in (
            (*tp, "lost", "expired_at_target", one.at_target),
            (*tp, "foreign", "expired_at_source", one.at_source),
        )
    ]
    schema = "topic string, partition int, kind string, expired string, records long"
    return transforms.expire(offending, table(reader.spark, allowed, schema))


def source_is_empty(at: Overlap, result: PartitionResult) -> bool:
    """Whether the source holds nothing before the cut, and nothing later that the target holds."""
    return at.target is None and not result.source_records


def expired_without_overlap(offset_range: OffsetRange) -> int | None:
    """The source offset in front of which records are expired when the target's log is empty but was not always."""
    if not offset_range.removed_at_target or offset_range.target_end > offset_range.target_start:
        return None
    return offset_range.cut if offset_range.position is None else min(offset_range.cut, offset_range.position + 1)


def runs(
    reader: SparkReader, offending: DataFrame, found: Overlaps, partitions: Iterable[TopicPartition]
) -> dict[tuple[TopicPartition, str], tuple[Run, ...]]:
    """Return roughly where records stand that are too many to be named, per partition and kind.

    `offending` has topic, partition, kind, source_offset, target_offset. What stands in front of the first common
    record is one run, the head; what follows is put together in up to STRETCHES equal stretches of offsets.
    """
    values = []
    for tp in partitions:
        offset_range = reader.offset_ranges[tp]
        at = found.get(tp, NOWHERE)
        for side, first, end in ((True, at.source, offset_range.cut), (False, at.target, offset_range.target_end)):
            width = None if first is None else max(1, -(-(end - first) // STRETCHES))
            values.append((*tp, side, first, width))
    sides = table(reader.spark, values, "topic string, partition int, at_source boolean, first long, width long")
    at_source = F.col("kind").isin(*AT_SOURCE)
    offset = F.when(at_source, F.col("source_offset")).otherwise(F.col("target_offset"))
    stretch = F.floor((F.col("at") - F.col("first")) / F.col("width"))
    placed = (
        offending.select(*TP, "kind", at_source.alias("at_source"), offset.alias("at"))
        .join(F.broadcast(sides), [*TP, "at_source"])
        .groupBy(*TP, "kind", F.when(F.col("at") >= F.col("first"), stretch).alias("stretch"))
        .agg(F.min("at").alias("low"), F.max("at").alias("high"), F.count("*").alias("records"))
    )
    result: dict[tuple[TopicPartition, str], list[Run]] = defaultdict(list)
    for row in placed.orderBy(*TP, "kind", "low").collect():
        tp = TopicPartition(row.topic, row.partition)
        whole = found.get(tp, NOWHERE).source is None
        where = None if row.stretch is not None else "whole" if whole else "head"
        result[tp, row.kind].append(Run(row.low, row.high, row.records, where))
    return {key: tuple(held) for key, held in result.items()}
