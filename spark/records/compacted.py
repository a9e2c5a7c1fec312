"""Compares compacted partitions by the last record of each key, and records without a key one by one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.clusters.cluster import Partition
from spark.records import keyless, transforms
from spark.records.findings import SAMPLES_MAX, Finding, PartitionResult, Run, Sample
from spark.records.overlap import Overlaps, bounds, counts, expired, heads, overlaps, runs
from spark.records.spark_engine import SparkReader
from spark.records.tables import PLACES, table

COMPARED, ONE_SIDED = ("same", "later"), ("lost", "foreign")
EXPIRED = ("expired_at_source", "expired_at_target")
_EMPTY = "topic string, partition int, offset long, digest string, key long, value long"


def compare(reader: SparkReader, places: Sequence[Partition], results: Mapping[Partition, PartitionResult]) -> None:
    """Put the findings of these partitions into their results; `compared` then counts keys."""
    source, target = [
        table(reader.spark, [], _EMPTY) if records is None else transforms.parts(records)
        for records in (reader.source(places), reader.target(places))
    ]
    values = [(*place, reader.extents[place].cut) for place in places]
    cuts = table(reader.spark, values, "topic string, partition int, cut long")
    by_key = transforms.compacted_difference(transforms.last_by_key(source, target, cuts))
    by_key = by_key.persist(StorageLevel.MEMORY_AND_DISK)
    with ExitStack() as held:
        held.callback(by_key.unpersist)
        found = by_key.where(F.col("key").isNotNull())
        without_key = by_key.where(F.col("key").isNull()).select(*transforms.PLACE).distinct().collect()
        counted = found.groupBy(*transforms.PLACE, "kind").count()
        numbers = {(row.topic, row.partition, row.kind): row["count"] for row in counted.collect()}
        for place in places:
            results[place].compared = sum(numbers.get((*place, kind), 0) for kind in COMPARED)
        one_sided = {(topic, number) for topic, number, kind in numbers if kind in ONE_SIDED}
        bounded = sorted(one_sided | {(row.topic, row.partition) for row in without_key})
        begins = _overlaps(transforms.occurrences(source, target, cuts), bounded) if bounded else {}
        limits = bounds(reader, results, begins, bounded)
        offending = transforms.one_sided_keys(found.where(~F.col("kind").isin(*COMPARED)), limits)
        if without_key:
            single = keyless.read(source, target, cuts, {(row.topic, row.partition) for row in without_key})
            held.callback(single.release)
            offending = offending.unionByName(_without_key(reader, single, limits, results, held))
        if bounded:
            offending = expired(reader, offending, heads(reader, counts(offending)))
            named = F.when(F.col("kind") == "repeated", "doubled").otherwise(F.col("kind"))
            offending = offending.withColumn("kind", named)
        counted = offending.where(F.col("kind").isin(*ONE_SIDED, "doubled"))
        _report(offending, runs(reader, counted, begins, bounded) if bounded else {}, results)


def _without_key(
    reader: SparkReader,
    single: keyless.KeylessRecords,
    limits: DataFrame,
    results: Mapping[Partition, PartitionResult],
    held: ExitStack,
) -> DataFrame:
    """Return the records without a key that offend; what a log cleaner removed is counted in the results instead."""
    rows, compared = keyless.offending(reader, single, limits, held)
    for place, records in compared.items():
        results[place].compared += records
    for (place, side), records in keyless.counted(rows).items():
        if side == "source":
            results[place].cleaned_at_source = records
        else:
            results[place].cleaned_at_target = records
    return rows.where(~F.col("cleaned")).drop("cleaned")


def _overlaps(found: DataFrame, places: Sequence[Partition]) -> Overlaps:
    """Where the logs begin to overlap: by all records, not only by those that are the last of their keys."""
    wanted = table(found.sparkSession, places, PLACES)
    return overlaps(found.join(F.broadcast(wanted), transforms.PLACE, "left_semi"))


def _report(
    offending: DataFrame,
    stretches: Mapping[tuple[Partition, str], tuple[Run, ...]],
    results: Mapping[Partition, PartitionResult],
) -> None:
    group = Window.partitionBy(*transforms.PLACE, "kind")
    in_order = group.orderBy(F.coalesce("source_offset", "target_offset"))
    numbered = offending.select(
        "*", F.count("*").over(group).alias("records"), F.row_number().over(in_order).alias("number")
    )
    samples: dict[tuple[Partition, str, int], list[Sample]] = defaultdict(list)
    for row in numbered.where(F.col("number") <= SAMPLES_MAX).orderBy(*transforms.PLACE, "kind", "number").collect():
        sample = Sample(row.source_offset, row.target_offset, row.digest)
        samples[(row.topic, row.partition), row.kind, row.records].append(sample)
    for (place, kind, records), shown in samples.items():
        named = () if kind in EXPIRED else tuple(shown)
        results[place].findings.append(Finding(kind, *place, records, named, stretches.get((place, kind), ())))
