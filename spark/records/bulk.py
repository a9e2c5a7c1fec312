"""Compares whole partitions by counting digests in Spark: for those that differ in more records than a driver holds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.clusters.cluster import Partition
from spark.records import offsets, transforms
from spark.records.difference import Difference
from spark.records.findings import SAMPLES_MAX, Finding, PartitionResult, Run, Sample
from spark.records.group_position import GroupPosition
from spark.records.overlap import bounds, runs
from spark.records.pairing import Row
from spark.records.rows import rows
from spark.records.spark_engine import SparkReader

NAMED_MAX = 200_000  # offending records brought to the driver
TOO_MANY = f"more than {NAMED_MAX} records differ: what is altered or strayed counts as lost and foreign"


class Bulk:
    """Some partitions, counted. `differences` hold those with few enough offending records to say what they are."""

    def __init__(self, reader: SparkReader, results: Mapping[Partition, PartitionResult]) -> None:
        self.reader = reader
        self.spark = reader.spark
        self.results = results
        self.differences: dict[Partition, Difference] = {}

    def compare(
        self, places: Sequence[Partition], differing: set[Partition], groups: Sequence[GroupPosition]
    ) -> list[GroupPosition]:
        """Compare the differing ones of these partitions, and return the groups' positions in all of them."""
        found = transforms.occurrences(
            self._digests(self.reader.source(places)), self._digests(self.reader.target(places)), self._cuts(places)
        ).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            overlap = {(row.topic, row.partition): row for row in transforms.overlap(found).collect()}
            firsts = {place: (row.first_s, row.first_t) for place, row in overlap.items()}
            trimmed = transforms.trim(found, bounds(self.reader, self.results, firsts, places))
            if differing:
                self._differences(trimmed, differing, overlap)
            return self._groups(trimmed, groups)
        finally:
            found.unpersist()

    def _frame(self, values: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        return self.spark.createDataFrame(list(values), schema)

    def _digests(self, records: DataFrame | None) -> DataFrame:
        if records is None:
            return self._frame([], "topic string, partition int, offset long, digest string")
        return transforms.digests(records)

    def _cuts(self, places: Sequence[Partition]) -> DataFrame:
        values = [(*place, self.reader.extents[place].cut) for place in places]
        return self._frame(values, "topic string, partition int, cut long")

    def _differences(self, trimmed: DataFrame, places: set[Partition], overlap: Mapping[Partition, Any]) -> None:
        here = trimmed.join(self._places(places), transforms.PLACE, "left_semi")
        difference = transforms.difference(here)
        late = transforms.late(here)
        numbers = {
            (row.topic, row.partition): row["count"] for row in late.groupBy(*transforms.PLACE).count().collect()
        }
        counted: dict[Partition, Difference] = {}
        for row in transforms.summary(difference).collect():
            place = (row.topic, row.partition)
            first = overlap.get(place)
            self.results[place].compared = row.compared
            found = Difference(
                late=numbers.get(place, 0),
                expired_at_target=row.expired_s,
                expired_at_source=row.expired_t,
                first_source=first and first.first_s,
                first_target=first and first.first_t,
            )
            if found.late:
                self._late(found, _at(late, place))
            if row.lost + row.doubled + row.foreign > NAMED_MAX:
                counted[place] = found
            else:
                self._named(place, found, transforms.offending(_at(difference, place)))
        if counted:
            self._counted(difference.join(self._places(counted), transforms.PLACE, "left_semi"), counted)

    def _places(self, places: Iterable[Partition]) -> DataFrame:
        return self._frame(sorted(places), "topic string, partition int").hint("broadcast")

    def _late(self, found: Difference, late: DataFrame) -> None:
        for one in late.orderBy("source_offset").limit(SAMPLES_MAX).collect():
            found.late_samples.append(Sample(one.source_offset, one.target_offset, one.digest))
            found.late_runs.append(Run(one.source_offset, one.source_offset, 1))

    def _named(self, place: Partition, found: Difference, offending: DataFrame) -> None:
        lost: list[Any] = []
        extra: list[Any] = []
        for row in offending.collect():
            (lost if row.kind == "lost" else extra).append(row)
        found.lost = self._rows(place, self.reader.before_cut([place]), [row.source_offset for row in lost])
        found.extra = self._rows(place, self.reader.target([place]), [row.target_offset for row in extra])
        self.differences[place] = found

    def _rows(self, place: Partition, records: DataFrame | None, wanted: list[int]) -> list[Row]:
        if records is None or not wanted:
            return []
        sought = F.broadcast(self._frame([(offset,) for offset in wanted], "offset long"))
        return rows(records.join(sought, "offset", "left_semi")).get(place, [])

    def _counted(self, part: DataFrame, founds: Mapping[Partition, Difference]) -> None:
        """Report these partitions from their part of the differences, without the records themselves."""
        places = sorted(founds)
        if self.reader.request.limits.isolation == "read_committed":
            everything, committed = self.reader.everything(places), self.reader.source(places)
            part = transforms.aborted(part, self._digests(everything), self._digests(committed))
        part = part.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            summaries = transforms.summary(part).collect()
            offending = transforms.offending(part)
            firsts = {place: (found.first_source, found.first_target) for place, found in founds.items()}
            stretches = runs(self.reader, offending, firsts, places)
            samples = _samples(offending)
        finally:
            part.unpersist()
        for row in summaries:
            place = (row.topic, row.partition)
            found, result = founds[place], self.results[place]
            result.undecided = TOO_MANY if row.lost + row.doubled + row.foreign else None
            samples[place, "out_of_order"] = found.late_samples
            stretches[place, "out_of_order"] = tuple(found.late_runs)
            counts = {kind: row[kind] for kind in ("lost", "doubled", "foreign", "aborted")}
            counts |= {"out_of_order": found.late}
            counts |= {"expired_at_target": found.expired_at_target, "expired_at_source": found.expired_at_source}
            for kind, count in counts.items():
                if count:
                    shown = tuple(samples.get((place, kind), ()))
                    result.findings.append(Finding(kind, *place, count, shown, stretches.get((place, kind), ())))

    def _groups(self, trimmed: DataFrame, groups: Sequence[GroupPosition]) -> list[GroupPosition]:
        if not groups:
            return []
        schema = "group string, topic string, partition int, committed long, synced long"
        values = [(one.group, one.topic, one.partition, one.committed, one.synced) for one in groups]
        found = {
            (row.group, row.topic, row.partition): row
            for row in offsets.translate(trimmed, self._frame(values, schema)).collect()
        }
        names = ("unread", "skipped", "repeated", "lowest", "highest")
        judged = []
        for one in groups:
            row = found.get((one.group, one.topic, one.partition))
            judged.append(replace(one, judged=True, **{name: row[name] for name in names}) if row else one)
        return judged


def _at(frame: DataFrame, place: Partition) -> DataFrame:
    return frame.where((F.col("topic") == place[0]) & (F.col("partition") == place[1]))


def _samples(offending: DataFrame) -> dict[tuple[Partition, str], list[Sample]]:
    """The first SAMPLES_MAX records of each partition and kind."""
    in_order = Window.partitionBy(*transforms.PLACE, "kind").orderBy("source_offset", "target_offset")
    first = offending.withColumn("number", F.row_number().over(in_order)).where(F.col("number") <= SAMPLES_MAX)
    found: dict[tuple[Partition, str], list[Sample]] = defaultdict(list)
    for one in first.orderBy(*transforms.PLACE, "kind", "number").collect():
        found[(one.topic, one.partition), one.kind].append(Sample(one.source_offset, one.target_offset, one.digest))
    return found
