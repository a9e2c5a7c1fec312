"""Compares compacted partitions by the last record of each key."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.clusters.cluster import Partition
from spark.records import transforms
from spark.records.findings import SAMPLES_MAX, Finding, PartitionResult, Run, Sample
from spark.records.overlap import Firsts, bounds, runs
from spark.records.spark_engine import SparkReader

COMPARED, ONE_SIDED = ("same", "later"), ("lost", "foreign")
EXPIRED = ("expired_at_source", "expired_at_target")
_EMPTY = "topic string, partition int, offset long, digest string, key long, value long"


def compare(reader: SparkReader, places: Sequence[Partition], results: Mapping[Partition, PartitionResult]) -> None:
    """Put the findings of these partitions into their results; `compared` then counts keys."""
    source, target = [
        reader.spark.createDataFrame([], _EMPTY) if records is None else transforms.parts(records)
        for records in (reader.source(places), reader.target(places))
    ]
    values = [(*place, reader.extents[place].cut) for place in places]
    cuts = reader.spark.createDataFrame(values, "topic string, partition int, cut long")
    found = transforms.compacted_difference(transforms.last_by_key(source, target, cuts))
    found = found.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counted = found.groupBy(*transforms.PLACE, "kind").count()
        numbers = {(row.topic, row.partition, row.kind): row["count"] for row in counted.collect()}
        for place in places:
            results[place].compared = sum(numbers.get((*place, kind), 0) for kind in COMPARED)
        judged = found
        firsts: Firsts = {}
        if one_sided := sorted({(topic, number) for topic, number, kind in numbers if kind in ONE_SIDED}):
            firsts = _firsts(transforms.occurrences(source, target, cuts), one_sided)
            judged = transforms.expired_keys(found, bounds(reader, results, firsts, one_sided))
        offending = _offending(judged.where(~F.col("kind").isin(*COMPARED)))
        counted = offending.where(F.col("kind").isin(*ONE_SIDED))
        _report(offending, runs(reader, counted, firsts, one_sided) if one_sided else {}, results)
    finally:
        found.unpersist()


def _firsts(found: DataFrame, places: Sequence[Partition]) -> Firsts:
    """The first offsets with an image: of all records, not only of those that are the last of their keys."""
    wanted = found.sparkSession.createDataFrame(list(places), "topic string, partition int")
    here = found.join(F.broadcast(wanted), transforms.PLACE, "left_semi")
    return {(row.topic, row.partition): (row.first_s, row.first_t) for row in transforms.overlap(here).collect()}


def _offending(found: DataFrame) -> DataFrame:
    sides = [F.col("s.offset").alias("source_offset"), F.col("t.offset").alias("target_offset")]
    return found.select(*transforms.PLACE, "kind", *sides, F.coalesce("t.digest", "s.digest").alias("digest"))


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
