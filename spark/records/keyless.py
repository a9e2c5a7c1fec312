"""Compares records without a key in compacted partitions, one by one by digest, for Spark.

Kafka accepts no record without a key in a compacted topic: such records are older than the topic's `cleanup.policy`.
The log cleaner removes them, from the log's beginning on (`Cleaner.shouldRetainRecord`), and each leaves an offset
without a record. That offset is the only evidence. A record that one log lacks was removed by its cleaner only if

- the topic's `cleanup.policy` on that side contains `compact`;
- the log has an offset without a record between the images of the records in front of and behind the missing one;
- that offset is in front of the first record without a key that the log still holds.

Each such offset explains one record. Records with a key that the log lacks between the same neighbours use them first.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.clusters.cluster import Partition
from spark.records import transforms
from spark.records.extents import Extent
from spark.records.spark_engine import SparkReader
from spark.records.tables import PLACES, table
from spark.records.transforms import PLACE

FRONT = -1  # stands for the offset in front of all anchors
_LOG = "topic string, partition int, here long, there long, rank int, end long, removed long, cleaned boolean"


@dataclass(frozen=True)
class KeylessRecords:
    """What both sides hold of the records without a key: `found` as of `transforms.occurrences`.

    `every` is the same of all records of the partitions, `source` and `target` are the records: topic, partition,
    offset, digest, keyless. All of them are persisted until `release`.
    """

    found: DataFrame
    every: DataFrame
    source: DataFrame
    target: DataFrame

    def release(self) -> None:
        """Free what is held."""
        for frame in (self.found, self.every, self.source, self.target):
            frame.unpersist()


def read(source: DataFrame, target: DataFrame, cuts: DataFrame, places: Iterable[Partition]) -> KeylessRecords:
    """Return what these partitions hold. `source` and `target` have the columns of `transforms.parts`."""
    wanted = F.broadcast(table(cuts.sparkSession, sorted(places), PLACES))
    held = [
        records.join(wanted, PLACE, "left_semi")
        .select(*PLACE, "offset", "digest", F.col("key").isNull().alias("keyless"))
        .persist(StorageLevel.MEMORY_AND_DISK)
        for records in (source, target)
    ]
    keyless = transforms.occurrences(held[0].where("keyless"), held[1].where("keyless"), cuts)
    every = transforms.occurrences(held[0], held[1], cuts)
    found, every = (frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in (keyless, every))
    return KeylessRecords(found, every, held[0], held[1])


def offending(
    reader: SparkReader, single: KeylessRecords, limits: DataFrame, held: ExitStack
) -> tuple[DataFrame, dict[Partition, int]]:
    """Return the records that offend, as `transforms.offending` does, and how many have an image in each partition.

    What is returned is persisted until `held` ends.
    `limits` as in `transforms.difference`. Column `cleaned`: the log cleaner of the other side has removed the record.
    Identical records are aligned from the end, because the cleaner removes from the beginning.
    """
    found = transforms.difference(single.found, limits.withColumn("from_end", F.lit(True)))
    numbers = {(row.topic, row.partition): row for row in transforms.summary(found).collect()}
    extra = sorted(place for place, row in numbers.items() if row.doubled or row.foreign)
    if extra and reader.request.limits.isolation == "read_committed":
        both = (reader.everything(extra), reader.source(extra))
        known = [transforms.digests(records) for records in both if records is not None]
        found = transforms.aborted(found, *known) if len(known) == 2 else found
    rows = transforms.offending(found).persist(StorageLevel.MEMORY_AND_DISK)
    held.callback(rows.unpersist)
    lost = F.col("kind") == "lost"
    # The source lacks what is extra on the target. A copy of an aborted record has never been in front of a cleaner.
    extras = F.col("kind").isin("doubled", "repeated", "foreign")
    extents = [reader.extents[place] for place in numbers]
    judged = rows.where(~lost & ~extras).withColumn("cleaned", F.lit(False))
    if any(row.lost for row in numbers.values()):
        logs = _at_target(reader, extents)
        judged = judged.unionByName(_cleaned(rows.where(lost), _Sides("source_offset", "target_offset"), single, logs))
    if extra:
        logs = _at_source(reader, extents)
        judged = judged.unionByName(
            _cleaned(rows.where(extras), _Sides("target_offset", "source_offset"), single, logs)
        )
    judged = judged.persist(StorageLevel.MEMORY_AND_DISK)
    held.callback(judged.unpersist)
    return judged, {place: row.compared for place, row in numbers.items()}


def counted(rows: DataFrame) -> Mapping[tuple[Partition, str], int]:
    """Return how many records the cleaner of each side has removed, by partition and `source` or `target`."""
    side = F.when(F.col("kind") == "lost", "target").otherwise("source").alias("side")
    found = rows.where("cleaned").groupBy(*PLACE, side).count().collect()
    return {((row.topic, row.partition), row.side): row["count"] for row in found}


@dataclass(frozen=True)
class _Sides:
    """Columns of the side that holds a record, and of the side whose cleaner may have removed it."""

    here: str
    there: str


def _cleaned(rows: DataFrame, sides: _Sides, held: KeylessRecords, logs: DataFrame) -> DataFrame:
    """Return the rows with `cleaned`; as many of the first ones between two neighbours as offsets explain them."""
    s, later, t = F.size("s"), F.size("later"), F.size("t")
    image = F.coalesce(F.get("s", F.lit(0)), F.get("later", F.lit(0)))
    anchors = held.every.where((s + later == 1) & (t > 0)).select(
        *PLACE, image.alias("source_offset"), F.get("t", t - 1).alias("target_offset")
    )
    anchors = anchors.select(*PLACE, F.col(sides.here).alias("here"), F.col(sides.there).alias("there"))
    alone = held.every.join(held.found, [*PLACE, "digest"], "left_anti")
    if sides.here == "source_offset":
        others, records = alone.where(t == 0).select(*PLACE, F.explode("s").alias("at")), held.target
    else:
        others, records = alone.where(s + later == 0).select(*PLACE, F.explode("t").alias("at")), held.source
    none = F.lit(None).cast("long")
    marked = (
        rows.select(*PLACE, F.col(sides.here).alias("at"), none.alias("gap"), F.lit("row").alias("what"))
        .unionByName(others.select(*PLACE, "at", none.alias("gap"), F.lit("other").alias("what")))
        .unionByName(
            anchors.select(*PLACE, F.col("here").alias("at"), F.col("here").alias("gap"), F.lit("").alias("what"))
        )
    )
    before = Window.partitionBy(*PLACE).orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    marked = marked.withColumn("gap", F.coalesce(F.last("gap", ignorenulls=True).over(before), F.lit(FRONT)))
    gap = Window.partitionBy(*PLACE, "gap")
    explained = F.col("number") <= F.col("holes") - F.greatest(F.col("others") - F.col("in_front"), F.lit(0))
    placed = (
        marked.withColumn("others", F.sum(_flag(F.col("what") == "other")).over(gap))
        .withColumn("number", F.row_number().over(Window.partitionBy(*PLACE, "gap", "what").orderBy("at")))
        .where(F.col("what") == "row")
        .join(_holes(anchors, records, logs), [*PLACE, "gap"], "left")
        .select(*PLACE, F.col("at").alias(sides.here), explained.alias("cleaned"))
    )
    return rows.join(placed, [*PLACE, sides.here])


def _holes(anchors: DataFrame, records: DataFrame, logs: DataFrame) -> DataFrame:
    """Return topic, partition, gap (the anchor in front of it, on this side), holes and in_front.

    `holes` are offsets without a record there, `in_front` those in front of the log start there. `anchors` have the
    offsets of records that both sides hold, here and there; `records` are those of the log there, `logs` has its bounds
    as a first anchor.
    """
    order = Window.partitionBy(*PLACE).orderBy("offset")
    ranked = records.withColumn("rank", F.row_number().over(order))
    first = F.when(F.col("keyless"), F.col("offset"))
    totals = ranked.groupBy(*PLACE).agg(
        F.count("*").alias("total"),
        F.min(first).alias("stop"),
        F.min(F.when(F.col("keyless"), F.col("rank"))).alias("stop_rank"),
    )
    known = anchors.join(ranked.select(*PLACE, F.col("offset").alias("there"), "rank"), [*PLACE, "there"])
    known = known.select(*PLACE, "here", "there", "rank").unionByName(logs.select(*PLACE, "here", "there", "rank"))
    following = Window.partitionBy(*PLACE).orderBy("here")
    gaps = (
        known.withColumn("next", F.lead("there").over(following))
        .withColumn("next_rank", F.lead("rank").over(following))
        .join(F.broadcast(logs.select(*PLACE, "end", "removed", "cleaned")), PLACE)
        .join(F.broadcast(totals), PLACE, "left")
    )
    end = F.least(F.coalesce("next", "end"), "stop")
    end_rank = F.least(F.coalesce(F.col("next_rank"), F.coalesce("total", F.lit(0)) + 1), "stop_rank")
    holes = F.greatest(end - F.col("there") - (end_rank - F.col("rank")), F.lit(0))
    return gaps.select(
        *PLACE,
        F.col("here").alias("gap"),
        F.when(F.col("cleaned"), holes).otherwise(0).alias("holes"),
        F.when(F.col("here") == FRONT, F.col("removed")).otherwise(0).alias("in_front"),
    )


def _flag(condition: Column) -> Column:
    return F.when(condition, 1).otherwise(0)


def _at_target(reader: SparkReader, extents: Sequence[Extent]) -> DataFrame:
    values = [
        (*one.place, FRONT, one.target_start - 1, 0, one.target_end, one.removed_at_target, one.cleaned_at_target)
        for one in extents
    ]
    return table(reader.spark, values, _LOG)


def _at_source(reader: SparkReader, extents: Sequence[Extent]) -> DataFrame:
    values = [
        (*one.place, FRONT, one.source_start - 1, 0, one.source_last, one.removed_at_source, one.cleaned_at_source)
        for one in extents
    ]
    return table(reader.spark, values, _LOG)
