"""Compares compacted partitions by the last record of each key, and records without a key one by one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from kafka.topic_partition import TopicPartition
from spark.comparison import transforms
from spark.comparison.findings import SAMPLES_MAX, Finding, PartitionResult, Run, Sample
from spark.comparison.offset_ranges import OffsetRange
from spark.comparison.overlap import Overlaps, bounds, counts, expired, heads, overlaps, runs
from spark.comparison.record_rows import TP_SCHEMA, table
from spark.comparison.spark_engine import SparkReader
from spark.comparison.transforms import TP

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


COMPARED, ONE_SIDED, NOT_JUDGED = ("same", "later"), ("lost", "foreign"), ("superseded",)
EXPIRED = ("expired_at_source", "expired_at_target")
_EMPTY = "topic string, partition int, offset long, digest string, key long, value long"


def compare(
    reader: SparkReader, topic_partitions: Sequence[TopicPartition], results: Mapping[TopicPartition, PartitionResult]
) -> None:
    """Put the findings of these partitions into their results; `compared` then counts keys."""
    source, target = [
        table(reader.spark, [], _EMPTY) if records is None else transforms.parts(records)
        for records in (reader.source(topic_partitions), reader.target(topic_partitions))
    ]
    values = [(*tp, reader.offset_ranges[tp].cut) for tp in topic_partitions]
    cuts = table(reader.spark, values, "topic string, partition int, cut long")
    by_key = transforms.compacted_difference(transforms.last_by_key(source, target, cuts))
    ranges = {tp: reader.offset_ranges[tp] for tp in topic_partitions}
    whole_source = [tp for tp, one in ranges.items() if not one.cleaned_at_source]
    whole_target = [tp for tp, one in ranges.items() if not one.cleaned_at_target]
    for whole, side in ((whole_source, "s"), (whole_target, "t")):
        if whole:
            by_key = transforms.never_dropped(by_key, table(reader.spark, whole, TP_SCHEMA), side)
    by_key = by_key.persist(StorageLevel.MEMORY_AND_DISK)
    with ExitStack() as held:
        held.callback(by_key.unpersist)
        found = by_key.where(F.col("key").isNotNull())
        without_key = by_key.where(F.col("key").isNull()).select(*transforms.TP).distinct().collect()
        numbers = _numbers(found)
        if one_sided := _one_sided(numbers):
            found = transforms.superseded(found, *map(_parts, reader.added(one_sided)))
            found = found.persist(StorageLevel.MEMORY_AND_DISK)
            held.callback(found.unpersist)
            numbers = _numbers(found)
        for tp in topic_partitions:
            results[tp].compared = sum(numbers.get((*tp, kind), 0) for kind in COMPARED)
        bounded = sorted({*_one_sided(numbers), *(TopicPartition(row.topic, row.partition) for row in without_key)})
        begins = _overlaps(transforms.occurrences(source, target, cuts), bounded) if bounded else {}
        limits = bounds(reader, results, begins, bounded)
        offending = transforms.one_sided_keys(found.where(~F.col("kind").isin(*COMPARED, *NOT_JUDGED)), limits)
        if without_key:
            single = read(source, target, cuts, {TopicPartition(row.topic, row.partition) for row in without_key})
            held.callback(single.release)
            offending = offending.unionByName(_without_key(reader, single, limits, results, held))
        if bounded:
            offending = expired(reader, offending, heads(reader, counts(offending)))
            named = F.when(F.col("kind") == "repeated", "doubled").otherwise(F.col("kind"))
            offending = offending.withColumn("kind", named)
        counted = offending.where(F.col("kind").isin(*ONE_SIDED, "doubled"))
        _report(offending, runs(reader, counted, begins, bounded) if bounded else {}, results)


def _numbers(found: DataFrame) -> dict[tuple[str, int, str], int]:
    counted = found.groupBy(*transforms.TP, "kind").count()
    return {(row.topic, row.partition, row.kind): row["count"] for row in counted.collect()}


def _one_sided(numbers: Iterable[tuple[str, int, str]]) -> list[TopicPartition]:
    return sorted({TopicPartition(topic, number) for topic, number, kind in numbers if kind in ONE_SIDED})


def _parts(records: DataFrame | None) -> DataFrame | None:
    return None if records is None else transforms.parts(records)


def _without_key(
    reader: SparkReader,
    single: KeylessRecords,
    limits: DataFrame,
    results: Mapping[TopicPartition, PartitionResult],
    held: ExitStack,
) -> DataFrame:
    """Return the records without a key that offend; what a log cleaner removed is counted in the results instead."""
    rows, compared = offending(reader, single, limits, held)
    for tp, records in compared.items():
        results[tp].compared += records
    for (tp, side), records in counted(rows).items():
        if side == "source":
            results[tp].cleaned_at_source = records
        else:
            results[tp].cleaned_at_target = records
    return rows.where(~F.col("cleaned")).drop("cleaned")


def _overlaps(found: DataFrame, topic_partitions: Sequence[TopicPartition]) -> Overlaps:
    """Where the logs begin to overlap: by all records, not only by those that are the last of their keys."""
    wanted = table(found.sparkSession, topic_partitions, TP_SCHEMA)
    return overlaps(found.join(F.broadcast(wanted), transforms.TP, "left_semi"))


def _report(
    offending: DataFrame,
    stretches: Mapping[tuple[TopicPartition, str], tuple[Run, ...]],
    results: Mapping[TopicPartition, PartitionResult],
) -> None:
    group = Window.partitionBy(*transforms.TP, "kind")
    in_order = group.orderBy(F.coalesce("source_offset", "target_offset"))
    numbered = offending.select(
        "*", F.count("*").over(group).alias("records"), F.row_number().over(in_order).alias("number")
    )
    samples: dict[tuple[TopicPartition, str, int], list[Sample]] = defaultdict(list)
    for row in numbered.where(F.col("number") <= SAMPLES_MAX).orderBy(*transforms.TP, "kind", "number").collect():
        sample = Sample(row.source_offset, row.target_offset, row.digest)
        samples[TopicPartition(row.topic, row.partition), row.kind, row.records].append(sample)
    for (tp, kind, records), shown in samples.items():
        named = () if kind in EXPIRED else tuple(shown)
        results[tp].findings.append(Finding(kind, *tp, records, named, stretches.get((tp, kind), ())))


def read(
    source: DataFrame, target: DataFrame, cuts: DataFrame, topic_partitions: Iterable[TopicPartition]
) -> KeylessRecords:
    """Return what these partitions hold. `source` and `target` have the columns of `transforms.parts`."""
    wanted = F.broadcast(table(cuts.sparkSession, sorted(topic_partitions), TP_SCHEMA))
    held = [
        records.join(wanted, TP, "left_semi")
        .select(*TP, "offset", "digest", F.col("key").isNull().alias("keyless"))
        .persist(StorageLevel.MEMORY_AND_DISK)
        for records in (source, target)
    ]
    keyless = transforms.occurrences(held[0].where("keyless"), held[1].where("keyless"), cuts)
    every = transforms.occurrences(held[0], held[1], cuts)
    found, every = (frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in (keyless, every))
    return KeylessRecords(found, every, held[0], held[1])


def offending(
    reader: SparkReader, single: KeylessRecords, limits: DataFrame, held: ExitStack
) -> tuple[DataFrame, dict[TopicPartition, int]]:
    """Return the records that offend, as `transforms.offending` does, and how many have an image in each partition.

    What is returned is persisted until `held` ends.
    `limits` as in `transforms.difference`. Column `cleaned`: the log cleaner of the other side has removed the record.
    Identical records are aligned from the end, because the cleaner removes from the beginning.
    """
    found = transforms.difference(single.found, limits.withColumn("from_end", F.lit(True)))
    numbers = {TopicPartition(row.topic, row.partition): row for row in transforms.summary(found).collect()}
    extra = sorted(tp for tp, row in numbers.items() if row.doubled or row.foreign)
    if extra and reader.request.limits.isolation == "read_committed":
        both = (reader.everything(extra), reader.source(extra))
        known = [transforms.digests(records) for records in both if records is not None]
        found = transforms.aborted(found, *known) if len(known) == 2 else found
    rows = transforms.offending(found).persist(StorageLevel.MEMORY_AND_DISK)
    held.callback(rows.unpersist)
    lost = F.col("kind") == "lost"
    # The source lacks what is extra on the target. A copy of an aborted record has never been in front of a cleaner.
    extras = F.col("kind").isin("doubled", "repeated", "foreign")
    offset_ranges = [reader.offset_ranges[tp] for tp in numbers]
    judged = rows.where(~lost & ~extras).withColumn("cleaned", F.lit(False))
    if any(row.lost for row in numbers.values()):
        logs = _at_target(reader, offset_ranges)
        judged = judged.unionByName(_cleaned(rows.where(lost), _Sides("source_offset", "target_offset"), single, logs))
    if extra:
        logs = _at_source(reader, offset_ranges)
        judged = judged.unionByName(
            _cleaned(rows.where(extras), _Sides("target_offset", "source_offset"), single, logs)
        )
    judged = judged.persist(StorageLevel.MEMORY_AND_DISK)
    held.callback(judged.unpersist)
    return judged, {tp: row.compared for tp, row in numbers.items()}


def counted(rows: DataFrame) -> Mapping[tuple[TopicPartition, str], int]:
    """Return how many records the cleaner of each side has removed, by partition and `source` or `target`."""
    side = F.when(F.col("kind") == "lost", "target").otherwise("source").alias("side")
    found = rows.where("cleaned").groupBy(*TP, side).count().collect()
    return {(TopicPartition(row.topic, row.partition), row.side): row["count"] for row in found}


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
        *TP, image.alias("source_offset"), F.get("t", t - 1).alias("target_offset")
    )
    anchors = anchors.select(*TP, F.col(sides.here).alias("here"), F.col(sides.there).alias("there"))
    alone = held.every.join(held.found, [*TP, "digest"], "left_anti")
    if sides.here == "source_offset":
        others, records = alone.where(t == 0).select(*TP, F.explode("s").alias("at")), held.target
    else:
        others, records = alone.where(s + later == 0).select(*TP, F.explode("t").alias("at")), held.source
    none = F.lit(None).cast("long")
    marked = (
        rows.select(*TP, F.col(sides.here).alias("at"), none.alias("gap"), F.lit("row").alias("what"))
        .unionByName(others.select(*TP, "at", none.alias("gap"), F.lit("other").alias("what")))
        .unionByName(
            anchors.select(*TP, F.col("here").alias("at"), F.col("here").alias("gap"), F.lit("").alias("what"))
        )
    )
    before = Window.partitionBy(*TP).orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    marked = marked.withColumn("gap", F.coalesce(F.last("gap", ignorenulls=True).over(before), F.lit(FRONT)))
    gap = Window.partitionBy(*TP, "gap")
    explained = F.col("number") <= F.col("holes") - F.greatest(F.col("others") - F.col("in_front"), F.lit(0))
    placed = (
        marked.withColumn("others", F.sum(_flag(F.col("what") == "other")).over(gap))
        .withColumn("number", F.row_number().over(Window.partitionBy(*TP, "gap", "what").orderBy("at")))
        .where(F.col("what") == "row")
        .join(_holes(anchors, records, logs), [*TP, "gap"], "left")
        .select(*TP, F.col("at").alias(sides.here), explained.alias("cleaned"))
    )
    return rows.join(placed, [*TP, sides.here])


def _holes(anchors: DataFrame, records: DataFrame, logs: DataFrame) -> DataFrame:
    """Return topic, partition, gap (the anchor in front of it, on this side), holes and in_front.

    `holes` are offsets without a record there, `in_front` those in front of the log start there. `anchors` have the
    offsets of records that both sides hold, here and there; `records` are those of the log there, `logs` has its bounds
    as a first anchor.
    """
    order = Window.partitionBy(*TP).orderBy("offset")
    ranked = records.withColumn("rank", F.row_number().over(order))
    first = F.when(F.col("keyless"), F.col("offset"))
    totals = ranked.groupBy(*TP).agg(
        F.count("*").alias("total"),
        F.min(first).alias("stop"),
        F.min(F.when(F.col("keyless"), F.col("rank"))).alias("stop_rank"),
    )
    known = anchors.join(ranked.select(*TP, F.col("offset").alias("there"), "rank"), [*TP, "there"])
    known = known.select(*TP, "here", "there", "rank").unionByName(logs.select(*TP, "here", "there", "rank"))
    following = Window.partitionBy(*TP).orderBy("here")
    gaps = (
        known.withColumn("next", F.lead("there").over(following))
        .withColumn("next_rank", F.lead("rank").over(following))
        .join(F.broadcast(logs.select(*TP, "end", "removed", "cleaned")), TP)
        .join(F.broadcast(totals), TP, "left")
    )
    end = F.least(F.coalesce("next", "end"), "stop")
    end_rank = F.least(F.coalesce(F.col("next_rank"), F.coalesce("total", F.lit(0)) + 1), "stop_rank")
    holes = F.greatest(end - F.col("there") - (end_rank - F.col("rank")), F.lit(0))
    return gaps.select(
        *TP,
        F.col("here").alias("gap"),
        F.when(F.col("cleaned"), holes).otherwise(0).alias("holes"),
        F.when(F.col("here") == FRONT, F.col("removed")).otherwise(0).alias("in_front"),
    )


def _flag(condition: Column) -> Column:
    return F.when(condition, 1).otherwise(0)


def _at_target(reader: SparkReader, offset_ranges: Sequence[OffsetRange]) -> DataFrame:
    values = [
        (
            *one.topic_partition,
            FRONT,
            one.target_start - 1,
            0,
            one.target_end,
            one.removed_at_target,
            one.cleaned_at_target,
        )
        for one in offset_ranges
    ]
    return table(reader.spark, values, _LOG)


def _at_source(reader: SparkReader, offset_ranges: Sequence[OffsetRange]) -> DataFrame:
    values = [
        (
            *one.topic_partition,
            FRONT,
            one.source_start - 1,
            0,
            one.source_last,
            one.removed_at_source,
            one.cleaned_at_source,
        )
        for one in offset_ranges
    ]
    return table(reader.spark, values, _LOG)
