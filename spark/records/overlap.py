"""From where on two logs can be compared: what retention removed from the beginning of either is no fault."""

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame

from spark.clusters.cluster import Partition
from spark.records.extents import Extent, Reader
from spark.records.findings import PartitionResult

Firsts = Mapping[Partition, tuple[int | None, int | None]]


def bounds(
    reader: Reader, results: Mapping[Partition, PartitionResult], firsts: Firsts, places: Iterable[Partition]
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
