"""Compares compacted partitions by the last record of each key."""

from collections.abc import Mapping, Sequence

from pyspark import StorageLevel

from spark.clusters.cluster import Partition
from spark.records import transforms
from spark.records.extents import Reader
from spark.records.findings import SAMPLES_MAX, Finding, PartitionResult, Sample

_EMPTY = "topic string, partition int, offset long, digest string, key long, value long"


def compare(reader: Reader, places: Sequence[Partition], results: Mapping[Partition, PartitionResult]) -> None:
    """Put the findings of these partitions into their results; `compared` then counts keys."""
    sides = [
        reader.spark.createDataFrame([], _EMPTY) if records is None else transforms.parts(records)
        for records in (reader.source(places), reader.target(places))
    ]
    values = [(*place, reader.extents[place].cut) for place in places]
    cuts = reader.spark.createDataFrame(values, "topic string, partition int, cut long")
    found = transforms.compacted_difference(transforms.last_by_key(sides[0], sides[1], cuts))
    found = found.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        for place in places:
            results[place].compared = 0
        for row in found.groupBy(*transforms.PLACE, "kind").count().collect():
            place, number = (row.topic, row.partition), row["count"]
            result = results[place]
            if row.kind in ("same", "later"):
                result.compared += number
                continue
            part = found.where((found.topic == place[0]) & (found.partition == place[1]) & (found.kind == row.kind))
            samples = tuple(
                Sample(one.s and one.s.offset, one.t and one.t.offset, (one.t or one.s).digest)
                for one in part.limit(SAMPLES_MAX).collect()
            )
            result.findings.append(Finding(row.kind, *place, number, samples))
    finally:
        found.unpersist()
