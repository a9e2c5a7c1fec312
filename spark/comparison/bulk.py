"""Compares whole partitions by counting digests in Spark: for those that differ in more records than a driver holds."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from kafka.group_positions import GroupPosition
from kafka.topic_partition import TopicPartition
from spark.comparison import overlap, transforms
from spark.comparison.difference import Difference, Row
from spark.comparison.findings import SAMPLES_MAX, Finding, PartitionResult, Run, Sample
from spark.comparison.overlap import (
    NOWHERE,
    Counts,
    Heads,
    Overlaps,
    bounds,
    expired,
    expired_without_overlap,
    heads,
    overlaps,
    runs,
    source_is_empty,
)
from spark.comparison.record_rows import TP_SCHEMA, rows, table
from spark.comparison.spark_engine import SparkReader
from spark.comparison.transforms import TP

NAMED_MAX = 200_000  # offending records brought to the driver
TOO_MANY = f"more than {NAMED_MAX} records differ: what is altered or strayed counts as lost and foreign"
OFFENDING = ("lost", "doubled", "repeated", "foreign")
EXPIRED = ("expired_at_target", "expired_at_source")
COUNTED = ("lost", "doubled", "foreign", "aborted", *EXPIRED)


class Bulk:
    """Some partitions, counted. `differences` hold those with few enough offending records to say what they are.

    `with_holes` are the partitions whose source may hide records of aborted transactions, None for all.
    """

    def __init__(
        self,
        reader: SparkReader,
        results: Mapping[TopicPartition, PartitionResult],
        with_holes: Collection[TopicPartition] | None = None,
    ) -> None:
        self.reader = reader
        self.spark = reader.spark
        self.results = results
        self.with_holes = results if with_holes is None else with_holes
        self.differences: dict[TopicPartition, Difference] = {}

    def compare(
        self,
        topic_partitions: Sequence[TopicPartition],
        differing: set[TopicPartition],
        groups: Sequence[GroupPosition],
    ) -> list[GroupPosition]:
        """Compare the differing ones of these partitions, and return the groups' positions in all of them."""
        found = transforms.occurrences(
            self._digests(self.reader.source(topic_partitions)),
            self._digests(self.reader.target(topic_partitions)),
            self._cuts(topic_partitions),
        ).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            begins = overlaps(found)
            limits = bounds(self.reader, self.results, begins, topic_partitions)
            if differing:
                here = found.join(self._topic_partitions(differing), transforms.TP, "left_semi")
                self._differences(transforms.difference(here, limits), differing, begins)
            return self._groups(transforms.trim(found, limits), groups)
        finally:
            found.unpersist()

    def _digests(self, records: DataFrame | None) -> DataFrame:
        if records is None:
            return table(self.spark, [], "topic string, partition int, offset long, digest string")
        return transforms.digests(records)

    def _cuts(self, topic_partitions: Sequence[TopicPartition]) -> DataFrame:
        values = [(*tp, self.reader.offset_ranges[tp].cut) for tp in topic_partitions]
        return table(self.spark, values, "topic string, partition int, cut long")

    def _differences(self, difference: DataFrame, topic_partitions: set[TopicPartition], begins: Overlaps) -> None:
        with ExitStack() as held:
            difference, offending = self._without_aborted(difference, held)
            late = _persisted(transforms.late(difference), held)
            self._judge(difference, offending, late, topic_partitions, begins)

    def _judge(
        self,
        difference: DataFrame,
        offending: "_Offending",
        late: DataFrame,
        topic_partitions: set[TopicPartition],
        begins: Overlaps,
    ) -> None:
        delays = {
            TopicPartition(row.topic, row.partition): row["count"]
            for row in late.groupBy(*transforms.TP).count().collect()
        }
        samples = _samples(late.withColumn("kind", F.lit("late"))) if delays else {}
        summaries = {TopicPartition(row.topic, row.partition): row for row in transforms.summary(difference).collect()}
        counted: dict[TopicPartition, Difference] = {}
        named: dict[TopicPartition, Difference] = {}
        for tp in sorted(topic_partitions & summaries.keys()):
            self.results[tp].compared = summaries[tp].compared
            found = self._difference(tp, begins, delays.get(tp, 0))
            if offending.is_certain(tp):
                at = offending.heads[tp]
                found.expired_at_target, found.expired_at_source = at.at_target, at.at_source
            found.late_samples = samples.get((tp, "late"), [])
            at_source = [one.source_offset for one in found.late_samples]
            found.late_runs = [Run(offset, offset, 1) for offset in at_source if offset is not None]
            (counted if offending.records(tp, found) > NAMED_MAX else named)[tp] = found
        for batch in _batches({tp: offending.records(tp, found) for tp, found in named.items()}):
            self._named({tp: named[tp] for tp in batch}, offending, summaries)
        if counted:
            self._counted(offending, counted, begins)

    def _difference(self, tp: TopicPartition, begins: Overlaps, late: int) -> Difference:
        offset_range, at = self.reader.offset_ranges[tp], begins.get(tp, NOWHERE)
        return Difference(
            late=late,
            removed_at_source=offset_range.removed_at_source,
            removed_at_target=offset_range.removed_at_target,
            expired_up_to=expired_without_overlap(offset_range),
            source_is_empty=source_is_empty(at, self.results[tp]),
            first_source=at.source,
            first_target=at.target,
            first_known=at.known,
        )

    def _without_aborted(self, difference: DataFrame, held: ExitStack) -> tuple[DataFrame, "_Offending"]:
        """Return the differences, and which of their records offend.

        Copies of aborted records are kept apart from others only where they may be taken for expired ones, or are too
        many to be named: elsewhere that is found out when they are.
        """
        offending = self._offending(difference, held)
        hidden = {
            tp
            for tp in offending.topic_partitions
            if (tp in offending.heads and offending.heads[tp].foreign) or offending.records(tp) > NAMED_MAX
        } & set(self.with_holes)
        if not hidden or self.reader.request.limits.isolation != "read_committed":
            return difference, offending
        both = [self._digests(read(sorted(hidden))) for read in (self.reader.everything, self.reader.source)]
        difference = _persisted(transforms.aborted(difference, *both), held)
        return difference, self._offending(difference, held)

    def _offending(self, difference: DataFrame, held: ExitStack) -> "_Offending":
        rows = _persisted(transforms.offending(difference), held)
        counts = overlap.counts(rows)
        return _Offending(rows, counts, heads(self.reader, counts))

    def _topic_partitions(self, topic_partitions: Iterable[TopicPartition]) -> DataFrame:
        return table(self.spark, sorted(topic_partitions), TP_SCHEMA).hint("broadcast")

    def _named(
        self,
        founds: Mapping[TopicPartition, Difference],
        offending: "_Offending",
        summaries: Mapping[TopicPartition, Any],
    ) -> None:
        """Bring the offending records of these partitions to the driver."""
        spared = [(*tp, offending.is_certain(tp)) for tp in founds]
        wanted = table(self.spark, spared, "topic string, partition int, spared boolean").hint("broadcast")
        rows = offending.rows.join(wanted, transforms.TP).where(~(F.col("head") & F.col("spared")))
        lost: dict[TopicPartition, list[int]] = defaultdict(list)
        extra: dict[TopicPartition, list[int]] = defaultdict(list)
        for row in rows.select(*transforms.TP, "kind", "source_offset", "target_offset").collect():
            tp = TopicPartition(row.topic, row.partition)
            if row.kind == "lost":
                lost[tp].append(row.source_offset)
            else:
                extra[tp].append(row.target_offset)
        ours, theirs = self._rows(self.reader.before_cut, lost), self._rows(self.reader.target, extra)
        for tp, found in founds.items():
            found.survivors = _survivors(lost[tp], found.first_source, summaries[tp].last_s)
            found.lost, found.extra = ours.get(tp, []), theirs.get(tp, [])
        self.differences |= founds

    def _rows(
        self,
        read: Callable[[Sequence[TopicPartition]], DataFrame | None],
        wanted: Mapping[TopicPartition, Sequence[int]],
    ) -> dict[TopicPartition, list[Row]]:
        """Read the records at these offsets."""
        records = read(sorted(wanted)) if wanted else None
        if records is None:
            return {}
        values = [(*tp, offset) for tp, held in wanted.items() for offset in held]
        sought = F.broadcast(table(self.spark, values, "topic string, partition int, offset long"))
        return rows(records.join(sought, [*transforms.TP, "offset"], "left_semi"))

    def _counted(self, offending: "_Offending", founds: Mapping[TopicPartition, Difference], begins: Overlaps) -> None:
        """Report these partitions from their offending records, without the records themselves."""
        part = offending.rows.join(self._topic_partitions(founds), transforms.TP, "left_semi")
        part = expired(self.reader, part, {tp: one for tp, one in offending.heads.items() if tp in founds})
        named = F.when(F.col("kind") == "repeated", "doubled").otherwise(F.col("kind"))
        part = part.withColumn("kind", named).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            rows = part.groupBy(*transforms.TP, "kind").count().collect()
            judged = part.where(~F.col("kind").isin(*EXPIRED))
            stretches = runs(self.reader, judged, begins, sorted(founds))
            samples = _samples(judged)
        finally:
            part.unpersist()
        numbers = {(TopicPartition(row.topic, row.partition), row.kind): row["count"] for row in rows}
        for tp, found in founds.items():
            result = self.results[tp]
            result.undecided = TOO_MANY if any(numbers.get((tp, kind)) for kind in OFFENDING) else None
            samples[tp, "out_of_order"] = found.late_samples
            stretches[tp, "out_of_order"] = tuple(found.late_runs)
            counts = {kind: numbers.get((tp, kind), 0) for kind in COUNTED} | {"out_of_order": found.late}
            for kind, count in counts.items():
                if count:
                    shown = tuple(samples.get((tp, kind), ()))
                    result.findings.append(Finding(kind, *tp, count, shown, stretches.get((tp, kind), ())))

    def _groups(self, trimmed: DataFrame, groups: Sequence[GroupPosition]) -> list[GroupPosition]:
        if not groups:
            return []
        schema = "group string, topic string, partition int, committed long, synced long"
        values = [(str(at), one.topic, one.partition, one.committed, one.synced) for at, one in enumerate(groups)]
        found = {int(row.group): row for row in translate(trimmed, table(self.spark, values, schema)).collect()}
        names = ("unread", "skipped", "repeated", "lowest", "highest")
        return [
            replace(one, judged=True, **{name: found[at][name] for name in names}) if at in found else one
            for at, one in enumerate(groups)
        ]


def _persisted(rows: DataFrame, held: ExitStack) -> DataFrame:
    """Rows that several jobs read, kept until `held` ends."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    held.callback(kept.unpersist)
    return kept


@dataclass(frozen=True)
class _Offending:
    """The records of `transforms.offending`: how many there are, and which of them stand in front of the overlap."""

    rows: DataFrame
    counts: Counts
    heads: Mapping[TopicPartition, Heads]

    @property
    def topic_partitions(self) -> set[TopicPartition]:
        """Partitions with a record that offends."""
        return {tp for tp, _, _ in self.counts}

    def is_certain(self, tp: TopicPartition) -> bool:
        """Whether a log start explains all that is in front of the overlap."""
        at = self.heads.get(tp)
        repeated = any(self.counts.get((tp, "repeated", head)) for head in (True, False))
        return at is not None and at.certain and not repeated

    def records(self, tp: TopicPartition, found: Difference | None = None) -> int:
        """How many records offend in a partition, without those that have expired."""
        offending = sum(self.counts.get((tp, kind, head), 0) for kind in OFFENDING for head in (True, False))
        return offending - (found.expired_at_target + found.expired_at_source if found else 0)


def _batches(records: Mapping[TopicPartition, int]) -> Iterator[list[TopicPartition]]:
    """The partitions in lists that hold at most NAMED_MAX records together, or a single partition."""
    batch: list[TopicPartition] = []
    held = 0
    for tp, number in records.items():
        if batch and held + number > NAMED_MAX:
            yield batch
            batch, held = [], 0
        batch.append(tp)
        held += number
    if batch:
        yield batch


def _survivors(lost: Sequence[int], first: int | None, last: int | None) -> list[int]:
    """Return source offsets that stand for the records with an image: enough of them to part the lost ones into runs.

    Where two lost records do not follow each other, one behind the first record with an image (`first`) is taken to
    stand between them. Otherwise all would be one run, and retention that went on would explain any of them.
    """
    if first is None or last is None:
        return []
    ordered = sorted(lost)
    apart = {one + 1 for one, other in pairwise(ordered) if one > first and other > one + 1}
    return sorted(apart | {first, last})


def _samples(offending: DataFrame) -> dict[tuple[TopicPartition, str], list[Sample]]:
    """The first SAMPLES_MAX records of each partition and kind."""
    in_order = Window.partitionBy(*transforms.TP, "kind").orderBy("source_offset", "target_offset")
    first = offending.withColumn("number", F.row_number().over(in_order)).where(F.col("number") <= SAMPLES_MAX)
    found: dict[tuple[TopicPartition, str], list[Sample]] = defaultdict(list)
    for one in first.orderBy(*transforms.TP, "kind", "number").collect():
        found[TopicPartition(one.topic, one.partition), one.kind].append(
            Sample(one.source_offset, one.target_offset, one.digest)
        )
    return found


def translate(found: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the position of each group in each partition, judged against the data.

    `found`: result of `trim`. `groups`: group, topic, partition, committed (source), synced (target, may be null).
    Columns: group, topic, partition, unread, skipped, repeated, lowest, highest. A record is skipped when no image of
    it is left at or after the synced offset, and repeated when it is read already and an image of it is.
    """
    joined = found.join(F.broadcast(groups), TP)
    none = F.lit(0)
    t = F.size("t")
    # Of records from the cut on those without an image are on their way: nothing of them can be skipped yet.
    arrived = F.greatest(F.least(F.size("later"), t - F.size("s")), none)
    every = F.concat("s", F.slice("later", F.lit(1), arrived))
    s = F.size(every)
    unread = F.size(F.filter(every, lambda offset: offset >= F.col("committed")))
    ahead = F.size(F.filter("t", lambda offset: offset >= F.col("synced")))
    known = F.col("synced").isNotNull() & (s > 0)
    lowest = F.get(F.col("t"), s - unread)
    highest = F.get(F.col("t"), F.greatest(t - unread, none))
    last_image = F.get(F.col("t"), F.least(s, t) - 1)
    last_copy = F.get(F.col("t"), t - 1)

    def total(value: Column, when: Column) -> Column:
        return F.sum(F.when(when, value).otherwise(none))

    rows = joined.groupBy("group", *TP).agg(
        F.sum(F.size(F.filter(F.concat("s", "later"), lambda offset: offset >= F.col("committed")))).alias("unread"),
        total(F.greatest(F.least(unread, t) - ahead, none), known).alias("skipped"),
        total(F.greatest(ahead - unread, none), known & (s > unread)).alias("repeated"),
        F.min(F.when(unread > 0, lowest)).alias("first_unread"),
        F.min(F.when((unread > 0) & (t > 0), highest)).alias("last_unread"),
        (F.max(F.when((s > 0) & (t > 0), last_image)) + 1).alias("after_images"),
        (F.max(F.when((s > 0) & (t > 0), last_copy)) + 1).alias("after_copies"),
    )
    return rows.select(
        "group",
        *TP,
        "unread",
        "skipped",
        "repeated",
        F.coalesce("first_unread", "after_images").alias("lowest"),
        F.coalesce("last_unread", "after_copies").alias("highest"),
    )
