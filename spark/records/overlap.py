"""From where on two logs can be compared: what retention removed from the beginning of either is no fault."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.clusters.cluster import Partition
from spark.records.extents import Extent
from spark.records.findings import PartitionResult, Run
from spark.records.spark_engine import SparkReader
from spark.records.transforms import PLACE

STRETCHES = 100
AT_SOURCE = ("lost", "altered")
Firsts = Mapping[Partition, tuple[int | None, int | None]]


def bounds(
    reader: SparkReader, results: Mapping[Partition, PartitionResult], firsts: Firsts, places: Iterable[Partition]
) -> DataFrame:
    """Return per partition the offsets on both sides from which records count: topic, partition, from_s, from_t.

    `firsts` are the first source and target offset with an image. Null stands for no bound: a prefix is expired only
    where the other log lost its own beginning.
    """
    values = []
    for place in places:
        extent = reader.extents[place]
        first_source, first_target = firsts.get(place, (None, None))
        from_source = first_source if extent.target_lost_head else None
        if from_source is None:
            from_source = expired_without_overlap(extent)
        from_target = None
        if extent.source_lost_head:
            emptied = first_target is None and not results[place].source_records
            from_target = extent.target_end if emptied else first_target
        values.append((*place, from_source, from_target))
    return reader.spark.createDataFrame(values, "topic string, partition int, from_s long, from_t long")


def expired_without_overlap(extent: Extent) -> int | None:
    """The source offset in front of which records are expired when the target's log is empty but was not always."""
    if not extent.target_lost_head or extent.target_end > extent.target_start:
        return None
    return extent.cut if extent.position is None else min(extent.cut, extent.position + 1)


def runs(
    reader: SparkReader, offending: DataFrame, firsts: Firsts, places: Iterable[Partition]
) -> dict[tuple[Partition, str], tuple[Run, ...]]:
    """Return roughly where records stand that are too many to be named, per partition and kind.

    `offending` has topic, partition, kind, source_offset, target_offset. What stands in front of the first common
    record is one run, the head; what follows is put together in up to STRETCHES equal stretches of offsets.
    """
    values = []
    for place in places:
        extent = reader.extents[place]
        for side, first, end in zip(
            (True, False), firsts.get(place, (None, None)), (extent.cut, extent.target_end), strict=True
        ):
            width = None if first is None else max(1, -(-(end - first) // STRETCHES))
            values.append((*place, side, first, width))
    sides = reader.spark.createDataFrame(
        values, "topic string, partition int, at_source boolean, first long, width long"
    )
    at_source = F.col("kind").isin(*AT_SOURCE)
    at = F.when(at_source, F.col("source_offset")).otherwise(F.col("target_offset"))
    stretch = F.floor((F.col("at") - F.col("first")) / F.col("width"))
    placed = (
        offending.select(*PLACE, "kind", at_source.alias("at_source"), at.alias("at"))
        .join(F.broadcast(sides), [*PLACE, "at_source"])
        .groupBy(*PLACE, "kind", F.when(F.col("at") >= F.col("first"), stretch).alias("stretch"))
        .agg(F.min("at").alias("low"), F.max("at").alias("high"), F.count("*").alias("records"))
    )
    found: dict[tuple[Partition, str], list[Run]] = defaultdict(list)
    for row in placed.orderBy(*PLACE, "kind", "low").collect():
        place = (row.topic, row.partition)
        whole = firsts.get(place, (None, None))[0] is None
        where = None if row.stretch is not None else "whole" if whole else "head"
        found[place, row.kind].append(Run(row.low, row.high, row.records, where))
    return {key: tuple(held) for key, held in found.items()}
