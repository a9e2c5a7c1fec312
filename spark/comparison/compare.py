"""Compares the records of all partitions: chunks first, then only where they differ, record by record.

Owns the order of what is read. What is computed is in logs.py, difference.py, classification.py and, on Spark alone,
in compacted.py and, for partitions that differ in very many records, bulk.py.

Words of this package: the cut is the source's log end offset up to which a run judges. The digest of a record is a
hash of all of it; a chunk is a series of records with a signature. The image of a source record is the record of the
remote topic that was copied from it. The overlap begins at the first record of either log with an image; what stands in
front of it, the head, may have expired.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka.group_positions import NONE, GroupPosition, GroupPositions
from kafka.topic_partition import TopicPartition
from spark.comparison import compacted, expiry
from spark.comparison.bulk import Bulk
from spark.comparison.chunks import Chunk, mask_bits
from spark.comparison.classification import Sources, classify, divide
from spark.comparison.difference import Difference, Matched, MismatchedWindow, Row, difference
from spark.comparison.findings import Finding, PartitionResult
from spark.comparison.logs import DetailWindow, Logs, Window
from spark.comparison.offset_ranges import Digest, Occurrences, OffsetRange, Reader, by_shift, pieces_of_windows
from spark.comparison.overlap import expired_without_overlap
from spark.comparison.placing import Placing
from spark.comparison.position_columns import PositionColumns, by_partition
from spark.comparison.spark_engine import SparkReader
from spark.progress import Progress

ROWS_MAX = 300_000  # records of both sides that the driver compares at a time


@dataclass(frozen=True)
class Compared:
    """What the comparison found: the results of partitions, and the judged positions."""

    partitions: list[PartitionResult]
    groups: GroupPositions

    def replaced(self, again: "Compared", places: Sequence[int]) -> "Compared":
        """Return the results with those of partitions that were compared again; `places` are those of its positions."""
        results = {TopicPartition(one.topic, one.partition): one for one in (*self.partitions, *again.partitions)}
        self.groups.judge_again(places, again.groups)
        return Compared([results[tp] for tp in sorted(results)], self.groups)


class Comparison:
    """The records of both sides, for one set of offset ranges. `on_spark` reads the same with Spark, if need be."""

    def __init__(self, reader: Reader[Any], on_spark: Callable[[], SparkReader]) -> None:
        self.reader = reader
        self.engine = reader.engine
        self.on_spark = on_spark
        self.offset_ranges = reader.offset_ranges
        self.results = {tp: _result(offset_range) for tp, offset_range in self.offset_ranges.items()}
        self.logs: dict[TopicPartition, Logs] = {}
        self.differences: dict[TopicPartition, Difference] = {}
        self.later: dict[TopicPartition, Difference] = {}
        self.committed: Occurrences = {}
        self.everything: Occurrences = {}
        self.sought: dict[TopicPartition, set[Digest]] = {}

    def run(self, groups: Sequence[GroupPosition], progress: Progress) -> Compared:
        """Return the result of each partition and the judged position of each group.

        Positions by column are judged in their place.
        """
        positions = GroupPositions.of(groups)
        self._scan(progress)
        differing = {tp for tp, logs in self.logs.items() if logs.stretches}
        progress(f"{len(self.logs) - len(differing)} of {len(self.logs)} partitions are equal, chunk by chunk")
        by_key = sorted(tp for tp in differing if self.offset_ranges[tp].compacted)
        counted = self._record_by_record(sorted(differing - set(by_key)), progress)
        placed = positions.topic_partitions & set(self.logs)
        # A digest that occurs twice on the target stands for a range of positions: those are counted, not aligned.
        unclear = self._behind_cut(sorted(placed - counted - set(by_key))) | counted | set(by_key)
        unclear |= {tp for tp, found in self.differences.items() if _holds_more(found) or found.beyond}
        bulk_compared = counted | (unclear & placed)
        if whole := sorted(bulk_compared):
            progress(f"counting the records of {len(whole)} partitions")
            at = [place for tp, places in by_partition(positions) if tp in bulk_compared for place in places.tolist()]
            at.sort()
            bulk = Bulk(self.on_spark(), self.results, self._with_gaps(whole))
            judged = bulk.compare(whole, counted, [positions[place] for place in at])
            for place, one in zip(at, judged, strict=True):
                positions.replace(place, one)
            self.differences |= bulk.differences
            self._divide(bulk.differences)
        self._classify()
        if by_key:
            progress(f"comparing {len(by_key)} compacted partitions key by key")
            compacted.compare(self.on_spark(), by_key, self.results)
        self._translate(positions, bulk_compared)
        return Compared([self.results[tp] for tp in sorted(self.results)], positions)

    def _scan(self, progress: Progress) -> None:
        bits = mask_bits(sum(one.source_last - one.source_start for one in self.offset_ranges.values()))
        found = self._equal_windows(bits, progress)
        rest = [tp for tp in self.offset_ranges if tp not in found]
        found |= self._pieces(rest, bits, progress) if rest else {}
        if again := sorted(self.engine.inexact()):
            progress(f"reading {len(again)} partitions again, which hold records that Spark does not read as they are")
            found |= self._pieces(again, bits, progress)
        for tp, offset_range in self.offset_ranges.items():
            pieces = found[tp]
            logs = self.logs[tp] = Logs(offset_range.cut, *pieces)
            result = self.results[tp]
            result.source_records, result.target_records = logs.source_records, logs.target_records
            result.compared, result.anchors = logs.compared, logs.anchors

    def _equal_windows(self, bits: int, progress: Progress) -> dict[TopicPartition, list[list[Chunk]]]:
        """Return the pieces of the partitions whose windows are equal on both sides, or almost all of them."""
        shifts = by_shift(self.offset_ranges.values())
        partitions = [tp for held in shifts.values() for tp in held]
        targets = {f"target {shift}": (self.reader.target(held), shift) for shift, held in shifts.items()}
        named = {
            "before": (self.reader.before_cut(partitions), 0),
            "later": (self.reader.after_cut(partitions), 0),
            **targets,
        }
        logs = {name: (records, shift) for name, (records, shift) in named.items() if records is not None}
        if not logs:
            return {}
        total = 2 * sum(self.offset_ranges[tp].source_last - self.offset_ranges[tp].source_start for tp in partitions)
        with self.engine.watched(progress, "reading both sides", len(partitions), total):
            sums = self.engine.windows(logs, partitions, bits)
        found = {}
        for shift, held in shifts.items():
            for tp in held:
                sides = [sums.get(name, {}).get(tp, {}) for name in ("before", "later", f"target {shift}")]
                if any(sides) and (pieces := pieces_of_windows(*sides)) is not None:
                    found[tp] = pieces
        return found

    def _pieces(
        self, topic_partitions: Sequence[TopicPartition], bits: int, progress: Progress
    ) -> dict[TopicPartition, list[list[Chunk]]]:
        """Return the pieces of each partition: of the source before the cut and from it on, and of the target."""
        named = {
            "before": self.reader.before_cut(topic_partitions),
            "later": self.reader.after_cut(topic_partitions),
            "target": self.reader.target(topic_partitions),
        }
        held = {name: records for name, records in named.items() if records is not None}
        offset_ranges = [self.offset_ranges[tp] for tp in topic_partitions]
        total = sum(one.offsets for one in offset_ranges)
        with self.engine.watched(progress, "reading both sides", len(topic_partitions), total):
            found = self.engine.scan(held, topic_partitions, bits)
        return {tp: [found.get(name, {}).get(tp, []) for name in named] for tp in topic_partitions}

    def _record_by_record(self, topic_partitions: Sequence[TopicPartition], progress: Progress) -> set[TopicPartition]:
        """Compare stretches that differ record by record; return the partitions that hold too many of them."""
        counted: set[TopicPartition] = set()
        batch: dict[TopicPartition, DetailWindow] = {}
        held = 0
        for tp in topic_partitions:
            detail = self.logs[tp].detail(whole=False)
            if detail.records > ROWS_MAX:
                counted.add(tp)
                continue
            if held + detail.records > ROWS_MAX:
                self._differences(batch)
                batch, held = {}, 0
            batch[tp] = detail
            held += detail.records
        if topic_partitions:
            progress(f"comparing {len(topic_partitions) - len(counted)} partitions record by record where they differ")
        self._differences(batch)
        self._divide(self.differences)
        return counted | self._left_out()

    def _left_out(self) -> set[TopicPartition]:
        """Compare what was left out, where a record may be in it; return the partitions with too many of them."""
        strayed = {tp[0] for tp, found in self.differences.items() if _holds_more(found)}
        again = {
            tp: self.logs[tp].detail(whole=True)
            for tp, found in self.differences.items()
            if ((found.missing or found.source_head_runs) and tp[0] in strayed)
            or (found.source_head_runs and found.target_head)
            or (found.lost and self.logs[tp].beyond)
        }
        counted = {tp for tp, detail in again.items() if detail.records > ROWS_MAX}
        for tp in sorted(again.keys() - counted):
            self._differences({tp: again[tp]})
            self._divide([tp])
            self.later[tp] = Difference()  # it is in the difference already
        for tp in counted:
            del self.differences[tp]
        return counted

    def _differences(self, batch: Mapping[TopicPartition, DetailWindow]) -> None:
        source, target = self._rows(batch)
        for tp, detail in batch.items():
            logs, offset_range, result = self.logs[tp], self.offset_ranges[tp], self.results[tp]
            stretches = MismatchedWindow(
                cut=offset_range.cut,
                source=_inside(source.get(tp, []), detail.source),
                target=_inside(target.get(tp, []), detail.target),
                matched=logs.matched,
                missing=detail.missing,
                removed_at_source=offset_range.removed_at_source,
                removed_at_target=offset_range.removed_at_target,
                expired_up_to=expired_without_overlap(offset_range),
            )
            found = self.differences[tp] = difference(stretches)
            result.compared = logs.compared + sum(here < offset_range.cut for here, _ in found.images)

    def _behind_cut(self, topic_partitions: Sequence[TopicPartition]) -> set[TopicPartition]:
        """Compare what is behind the image of the cut; return where positions must be counted.

        Nothing of it is judged. The position of a group that works lies there.
        """
        unclear: set[TopicPartition] = set()
        batch: dict[TopicPartition, DetailWindow] = {}
        for tp in topic_partitions:
            detail = self.logs[tp].later()
            if tp in self.later:
                continue
            if sum(one.records for one in batch.values()) + detail.records > ROWS_MAX:
                unclear.add(tp)
            elif detail.target or detail.missing:
                batch[tp] = detail
        source, target = self._rows(batch)
        for tp, detail in batch.items():
            found = self.later[tp] = difference(
                MismatchedWindow(
                    cut=self.offset_ranges[tp].cut,
                    source=_inside(source.get(tp, []), detail.source),
                    target=_inside(target.get(tp, []), detail.target),
                    matched=self.logs[tp].matched,
                    missing=detail.missing,
                )
            )
            if found.extra or found.beyond:
                unclear.add(tp)
        return unclear

    def _rows(
        self, batch: Mapping[TopicPartition, DetailWindow]
    ) -> tuple[dict[TopicPartition, list[Row]], dict[TopicPartition, list[Row]]]:
        source = {tp: detail.source for tp, detail in batch.items() if detail.source}
        target = {tp: detail.target for tp, detail in batch.items() if detail.target}
        ours, theirs = self.reader.source_windows(source), self.reader.target_windows(target)
        return self.engine.rows(ours), self.engine.rows(theirs)

    def _divide(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Separate what is in front of the overlap, where retention may have removed it on one side."""
        heads = [tp for tp in topic_partitions if self.differences[tp].may_have_expired]
        self._look_up([tp for tp in heads if self.differences[tp].extra])
        for tp in heads:
            divide(tp, self.differences[tp], Sources(self.committed, self.everything))

    def _look_up(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Find where the digests of extra records of these partitions occur at the source, each log read once."""
        new = {tp: {row.digest for row in self.differences[tp].extra} for tp in topic_partitions}
        new = {tp: digests - self.sought.get(tp, set()) for tp, digests in new.items()}
        wanted = {digest for digests in new.values() for digest in digests}
        read = sorted(tp for tp, digests in new.items() if digests)
        logs = {"committed": self.reader.source(read)} if read else {}
        if self.reader.request.limits.isolation == "read_committed":
            holes = self._with_gaps(read)
            logs |= {"everything": self.reader.everything(sorted(holes))} if holes else {}
        found = self.engine.occurrences({name: held for name, held in logs.items() if held is not None}, wanted)
        self.committed |= found.get("committed", {})
        self.everything |= found.get("everything", {})
        for tp in read:
            self.sought[tp] = self.sought.get(tp, set()) | wanted

    def _with_gaps(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those of the partitions whose source has offsets without a record: only there a transaction was aborted."""
        offset_ranges = {tp: self.offset_ranges[tp] for tp in topic_partitions}
        return {
            tp
            for tp, offset_range in offset_ranges.items()
            if sum(chunk.records for chunk in self.logs[tp].source)
            < offset_range.source_last - offset_range.source_start
        }

    def _classify(self) -> None:
        self._look_up(tp for tp, found in self.differences.items() if found.extra)
        apart = {tp for tp, found in self.differences.items() if found.first_source is None}
        for tp, findings in classify(self.differences, Sources(self.committed, self.everything)).items():
            result, found = self.results[tp], self.differences[tp]
            result.findings += findings
            result.read_at_source, result.read_at_target = found.read_at_source, found.read_at_target
            if found.beyond:  # left to the next run, so nothing behind it is verified
                result.anchors = [one for one in result.anchors if one[1] <= found.beyond[0].offset]
            lost = result.count("lost")
            if tp in apart and lost and any(result.count(kind) for kind in ("foreign", "doubled", "aborted")):
                result.findings.append(Finding("no_overlap", *tp, lost))

    def _translate(self, positions: GroupPositions, counted: Collection[TopicPartition]) -> None:
        """Judge the positions in all partitions but those that were counted."""
        columns = PositionColumns(positions)
        at = {tp: places for tp, places in by_partition(positions) if tp in self.logs and tp not in counted}
        placings: dict[TopicPartition, Placing] = {}
        holed: dict[TopicPartition, list[Matched]] = {}
        for tp, places in at.items():
            found = [held[tp] for held in (self.differences, self.later) if tp in held]
            placings[tp] = Placing(self.logs[tp].matched, found)
            synced = columns.synced[places]
            holed[tp] = placings[tp].holed(columns.committed[places], synced[synced != NONE])
        source, target = self._offsets(holed)
        for tp, places in at.items():
            ours, theirs = (np.array(held.get(tp, []), dtype=np.int64) for held in (source, target))
            placings[tp].know(holed[tp], ours, theirs)
            judged = placings.pop(tp).judge(columns.committed[places], columns.synced[places])
            for name, values in vars(judged).items():
                columns.numbers[name][places] = values
            columns.numbers["highest"][places] = judged.lowest
            columns.flags["judged"][places] = 1

    def _offsets(
        self, holed: Mapping[TopicPartition, Sequence[Matched]]
    ) -> tuple[dict[TopicPartition, list[int]], dict[TopicPartition, list[int]]]:
        pairs = {tp: held for tp, held in holed.items() if held}
        source = {tp: [Window(one.source_first, one.source_last + 1) for one in held] for tp, held in pairs.items()}
        target = {tp: [Window(one.target_first, one.target_last + 1) for one in held] for tp, held in pairs.items()}
        ours, theirs = self.reader.source_windows(source), self.reader.target_windows(target)
        return self.engine.offsets(ours), self.engine.offsets(theirs)


def _result(offset_range: OffsetRange) -> PartitionResult:
    return PartitionResult(
        offset_range.topic,
        offset_range.partition,
        offset_range.source_start,
        offset_range.cut,
        offset_range.target_start,
        offset_range.target_end,
        verified_from=offset_range.source_start if offset_range.resumed else None,
    )


def _holds_more(found: Difference) -> bool:
    """Whether the target holds records that neither are an image nor can have expired at the source."""
    return bool(found.extra) or expiry.is_overfull(found)


def _inside(found: Iterable[Row], windows: Sequence[Window]) -> list[Row]:
    """The rows in the windows; more may have been read, where windows lie near to each other."""
    return [row for row in found if any(window.low <= row.offset < window.high for window in windows)]
