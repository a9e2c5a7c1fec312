"""Compares the records of all partitions: signatures first, then only where they differ, record by record.

Owns the order of the Spark jobs. What a job computes is in transforms.py and offsets.py.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from spark.clusters.cluster import Partition
from spark.records import offsets, transforms
from spark.records.findings import SAMPLES_MAX, Finding, PartitionResult, Sample
from spark.records.offsets import GroupPosition
from spark.records.pairing import Offender, pair
from spark.records.sources import Range, read
from spark.request.model import Request

OFFENDERS_MAX = 200_000  # rows brought to the driver for naming and pairing; the counts are exact without them


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Offsets to read of one mirrored partition. `source_end` is a later end than the cut: what came after it.

    `resumed`: an earlier run has verified what lies before both starts, so a prefix that misses is never expired.
    """

    topic: str
    partition: int
    source_start: int
    cut: int
    source_end: int
    target_topic: str
    target_start: int
    target_end: int
    position: int | None = None
    compacted: bool = False
    resumed: bool = False

    @property
    def place(self) -> Partition:
        """Topic of the source, and partition."""
        return self.topic, self.partition


@dataclass(frozen=True)
class Offence:
    """One row of `transforms.offending`."""

    kind: str
    digest: str
    source_offset: int | None
    target_offset: int | None


class Comparison:
    """The records of both sides as data frames, for one set of extents."""

    def __init__(self, spark: SparkSession, request: Request, extents: Sequence[Extent]) -> None:
        self.spark = spark
        self.request = request
        self.extents = {extent.place: extent for extent in extents}
        self.results = {
            extent.place: PartitionResult(
                extent.topic,
                extent.partition,
                extent.source_start,
                extent.cut,
                extent.target_start,
                extent.target_end,
                verified_from=extent.source_start if extent.resumed else None,
            )
            for extent in extents
        }
        self.names = {extent.target_topic: extent.topic for extent in extents}

    def run(
        self, groups: Sequence[GroupPosition], say: Callable[[str], None]
    ) -> tuple[list[PartitionResult], list[GroupPosition]]:
        """Return the result of each partition and the judged position of each group."""
        self._sign()
        for result in self.results.values():
            result.compared = result.source_records
        placed = {(position.topic, position.partition) for position in groups}
        differing = self.differing
        for place in self.extents.keys() - differing:
            self.results[place].anchors = [(self.extents[place].cut, self.extents[place].target_end)]
        say(f"{len(self.extents) - len(differing)} of {len(self.extents)} partitions have equal signatures")
        compacted = {place for place in differing if self.extents[place].compacted}
        deep = sorted((differing - compacted) | (placed & set(self.extents)))
        judged = list(groups)
        if deep:
            say(f"comparing {len(deep)} partitions record by record (differing, or with group positions)")
            judged = self._deep(deep, differing - compacted, groups)
        if compacted:
            self._compacted(sorted(compacted))
        return [self.results[place] for place in sorted(self.results)], judged

    def _source(self, places: Iterable[Partition], *, later: bool, isolation: str | None = None) -> DataFrame | None:
        ranges = []
        for place in places:
            extent = self.extents[place]
            end = extent.source_end if later else extent.cut
            if end > extent.source_start:
                ranges.append(Range(extent.topic, extent.partition, extent.source_start, end))
        used = isolation or self.request.limits.isolation
        return read(self.spark, self.request.source, ranges, used, {}) if ranges else None

    def _target(self, places: Iterable[Partition]) -> DataFrame | None:
        found = [self.extents[place] for place in places]
        ranges = [
            Range(extent.target_topic, extent.partition, extent.target_start, extent.target_end)
            for extent in found
            if extent.target_end > extent.target_start
        ]
        isolation = self.request.limits.isolation
        return read(self.spark, self.request.target, ranges, isolation, self.names) if ranges else None

    def _sign(self) -> None:
        sides = {"s": self._source(self.extents, later=False), "t": self._target(self.extents)}
        frames = [
            transforms.signatures(transforms.digests(records)).selectExpr("*", f"'{side}' as side")
            for side, records in sides.items()
            if records is not None
        ]
        self.signatures: dict[str, dict[Partition, tuple[Any, ...]]] = {"s": {}, "t": {}}
        if not frames:
            return
        rows = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
        for row in rows.collect():
            sums = tuple(row[f"sum_{n}"] for n in range(transforms.SLICES))
            self.signatures[row.side][row.topic, row.partition] = (row.records, *sums)
        for place, result in self.results.items():
            result.source_records = self.signatures["s"].get(place, (0,))[0]
            result.target_records = self.signatures["t"].get(place, (0,))[0]

    @property
    def differing(self) -> set[Partition]:
        """Partitions whose signatures differ between the sides."""
        return {place for place in self.extents if self.signatures["s"].get(place) != self.signatures["t"].get(place)}

    def _frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        return self.spark.createDataFrame(list(rows), schema)

    def _digests(self, records: DataFrame | None) -> DataFrame:
        if records is None:
            return self._frame([], "topic string, partition int, offset long, digest string")
        return transforms.digests(records)

    def _cuts(self, places: Iterable[Partition]) -> DataFrame:
        return self._frame(
            [(*place, self.extents[place].cut) for place in places], "topic string, partition int, cut long"
        )

    def _deep(
        self, places: list[Partition], differing: set[Partition], groups: Sequence[GroupPosition]
    ) -> list[GroupPosition]:
        found = transforms.occurrences(
            self._digests(self._source(places, later=True)), self._digests(self._target(places)), self._cuts(places)
        ).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            bounds = {row[:2]: (row.first_s, row.first_t) for row in transforms.overlap(found).collect()}
            trimmed = transforms.trim(found, self._bounds(bounds, places))
            if differing:
                self._differences(trimmed, differing, bounds)
            return self._groups(trimmed, groups)
        finally:
            found.unpersist()

    def _bounds(self, overlap: dict[Any, Any], places: list[Partition]) -> DataFrame:
        """Offsets from which records count. A prefix is expired only where the other log lost its own beginning."""
        rows: list[tuple[Any, ...]] = []
        for place in places:
            extent = self.extents[place]
            first_s, first_t = overlap.get(place, (None, None))
            if extent.resumed:
                rows.append((*place, None, None))
                continue
            from_s = first_s if extent.target_start > 0 else None
            if extent.target_start > 0 and first_s is None and extent.target_end == extent.target_start:
                passed = extent.cut if extent.position is None else min(extent.cut, extent.position + 1)
                from_s = passed
            rows.append((*place, from_s, first_t if extent.source_start > 0 else None))
        return self._frame(rows, "topic string, partition int, from_s long, from_t long")

    def _differences(self, trimmed: DataFrame, places: set[Partition], bounds: dict[Any, Any]) -> None:
        wanted = self._frame(sorted(places), "topic string, partition int")
        difference = transforms.difference(trimmed.join(wanted.hint("broadcast"), transforms.PLACE, "left_semi"))
        totals = {(row.topic, row.partition): row for row in transforms.summary(difference).collect()}
        for row in totals.values():
            result = self.results[row.topic, row.partition]
            result.compared = row.compared
            for kind, side in (("expired_at_target", row.expired_s), ("expired_at_source", row.expired_t)):
                if side:
                    result.findings.append(Finding(kind, row.topic, row.partition, side))
            if (
                result.source_records
                and result.target_records
                and bounds.get((row.topic, row.partition), (None,))[0] is None
            ):
                result.findings.append(Finding("no_overlap", row.topic, row.partition, result.source_records))
        offences: dict[Partition, list[Offence]] = defaultdict(list)
        for row in transforms.offending(difference).orderBy("source_offset").limit(OFFENDERS_MAX).collect():
            offence = Offence(row.kind, row.digest, row.source_offset, row.target_offset)
            offences[row.topic, row.partition].append(offence)
        for place in sorted(places):
            self._name(place, offences.get(place, []), totals.get(place), bounds.get(place, (None, None)))

    def _name(self, place: Partition, offences: list[Offence], totals: Any, bounds: tuple[Any, Any]) -> None:
        """Turn offending rows into findings: aborted ones first, then altered ones, then the rest by kind."""
        counts = {kind: (totals[kind] if totals else 0) for kind in ("lost", "doubled", "foreign")}
        offences, aborted = self._aborted(place, offences)
        for offence in aborted:
            counts[offence.kind] -= 1
        altered: list[Sample] = []
        if counts["lost"] and counts["foreign"]:
            lost, foreign = self._offenders(place, offences)
            shift = (bounds[1] or 0) - (bounds[0] or 0)
            pairs, _, _ = pair(lost, foreign, shift=shift)
            altered = [Sample(one.source.offset, one.target.offset, one.target.digest, one.differs) for one in pairs]
            gone = {one.source.offset for one in pairs}
            came = {one.target.offset for one in pairs}
            offences = [
                item
                for item in offences
                if not (item.kind == "lost" and item.source_offset in gone)
                and not (item.kind == "foreign" and item.target_offset in came)
            ]
            counts["lost"] -= len(pairs)
            counts["foreign"] -= len(pairs)
        result = self.results[place]
        if altered:
            result.findings.append(Finding("altered", *place, len(altered), tuple(altered[:SAMPLES_MAX])))
        if aborted:
            samples = tuple(Sample(None, item.target_offset, item.digest) for item in aborted[:SAMPLES_MAX])
            result.findings.append(Finding("aborted", *place, len(aborted), samples))
        for kind, number in counts.items():
            if number:
                named = sorted(
                    (item for item in offences if item.kind == kind),
                    key=lambda item: (item.source_offset or 0, item.target_offset or 0),
                )
                samples = tuple(Sample(i.source_offset, i.target_offset, i.digest) for i in named[:SAMPLES_MAX])
                result.findings.append(Finding(kind, *place, number, samples))

    def _aborted(self, place: Partition, offences: list[Offence]) -> tuple[list[Offence], list[Offence]]:
        """Split off the extra records that the source holds too, but in aborted transactions."""
        extra = {item.digest for item in offences if item.kind != "lost"}
        if not extra or self.request.limits.isolation != "read_committed":
            return offences, []
        both = []
        for isolation in ("read_uncommitted", "read_committed"):
            rows = self._digests(self._source([place], later=True, isolation=isolation))
            wanted = self._frame([(digest,) for digest in sorted(extra)], "digest string")
            held = rows.join(wanted.hint("broadcast"), "digest", "left_semi").groupBy("digest").count().collect()
            both.append({row.digest: row["count"] for row in held})
        left = {digest: number - both[1].get(digest, 0) for digest, number in both[0].items()}
        kept, aborted = [], []
        for item in offences:
            if item.kind != "lost" and left.get(item.digest, 0) > 0:
                left[item.digest] -= 1
                aborted.append(item)
            else:
                kept.append(item)
        return kept, aborted

    def _offenders(self, place: Partition, offences: list[Offence]) -> tuple[list[Offender], list[Offender]]:
        lost = {item.source_offset: item.digest for item in offences if item.kind == "lost"}
        foreign = {item.target_offset: item.digest for item in offences if item.kind == "foreign"}
        pairs = ((self._source([place], later=False), lost), (self._target([place]), foreign))
        found: list[list[Offender]] = []
        for records, wanted in pairs:
            if records is None or not wanted:
                found.append([])
                continue
            offsets_wanted = self._frame([(offset,) for offset in wanted], "offset long")
            rows = transforms.parts(records.join(offsets_wanted.hint("broadcast"), "offset", "left_semi")).collect()
            found.append([Offender(r.offset, r.digest, r.key, r.value, r.headers, r.timestamp) for r in rows])
        return found[0], found[1]

    def _compacted(self, places: list[Partition]) -> None:
        source, target = self._source(places, later=True), self._target(places)
        sides = []
        for records in (source, target):
            if records is None:
                schema = "topic string, partition int, offset long, digest string, key string, value string"
                sides.append(self._frame([], schema))
            else:
                sides.append(transforms.parts(records))
        found = transforms.compacted_difference(transforms.last_by_key(sides[0], sides[1], self._cuts(places)))
        found = found.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            for place in places:
                self.results[place].compared = 0
            for row in found.groupBy(*transforms.PLACE, "kind").count().collect():
                place, number = (row.topic, row.partition), row["count"]
                result = self.results[place]
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

    def _groups(self, trimmed: DataFrame, groups: Sequence[GroupPosition]) -> list[GroupPosition]:
        if not groups:
            return []
        schema = "group string, topic string, partition int, committed long, synced long"
        rows = [(one.group, one.topic, one.partition, one.committed, one.synced) for one in groups]
        found = {
            (row.group, row.topic, row.partition): row
            for row in offsets.translate(trimmed, self._frame(rows, schema)).collect()
        }
        judged = []
        for one in groups:
            row = found.get((one.group, one.topic, one.partition))
            if row is None:
                judged.append(one)
                continue
            names = ("unread", "skipped", "repeated", "lowest", "highest")
            judged.append(replace(one, judged=True, **{name: row[name] for name in names}))
        return judged
