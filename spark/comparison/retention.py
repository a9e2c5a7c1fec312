"""Which records expired while a run read them: their log start moved past the place where they would have stood.

The evidence is an offset that the run read no record at. A log that was read in full up to its new start had removed
nothing before: what it lacked then was lost, and what the other side lacked then was foreign.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter, itemgetter

from kafka.retention import deleted_offsets
from kafka.topic_partition import TopicPartition
from spark.comparison.findings import Finding, PartitionResult, Run

WHOLE = ("head", "whole")


@dataclass(frozen=True)
class LogStart:
    """The side whose log start moved: which findings that explains, as what they count then."""

    missing: tuple[str, ...]
    expired: str


SOURCE = LogStart(("foreign",), "expired_at_source")
TARGET = LogStart(("lost",), "expired_at_target")


class _Deleted:
    """What a log can have deleted before it was read, of the offsets from `before` to its log start `now`.

    `pairs` are offsets of the other log and of this one that correspond, `read` what was read of this one (see
    PartitionResult). `left` is how many more records can have been deleted.
    """

    def __init__(self, now: int, before: int, pairs: Sequence[tuple[int, int]], read: Sequence[Run] | None) -> None:
        self.now, self.before = now, before
        self._pairs = pairs
        self._read = sorted(read or (), key=lambda run: run.first)
        self._ahead = [0, *accumulate(run.records for run in self._read)]
        self._taken: dict[int, int] = defaultdict(int)
        self.left = self._unread(before, now)

    def take(self, run: Run) -> int:
        """Return how many records of a run of the other log have been deleted here, and count them."""
        number = max(bisect_right(self._pairs, run.first, key=itemgetter(0)) - 1, 0)
        here, there = self._pairs[number]
        following = bisect_left(self._pairs, run.last + 1, lo=number + 1, key=itemgetter(0))
        end = self._pairs[following][1] if following < len(self._pairs) else self.now
        image = self.before if run.where in WHOLE else there + run.first - here
        unread = self._unread(max(there, self.before), min(end, self.now)) - self._taken[number]
        taken = max(0, min(run.records, self.now - image, unread, self.left))
        self._taken[number] += taken
        self.left -= taken
        return taken

    def _unread(self, low: int, high: int) -> int:
        """How many offsets from `low` to `high` no record was read at; all of them if it is not known."""
        return max(0, high - low - (self._read_before(high) - self._read_before(low)))

    def _read_before(self, offset: int) -> int:
        """How many records were read in front of an offset, at most."""
        at = bisect_left(self._read, offset, key=attrgetter("first"))
        if not at:
            return 0
        run = self._read[at - 1]
        return self._ahead[at - 1] + min(run.records, offset - run.first)


def expired_meanwhile(
    results: Iterable[PartitionResult],
    source_now: Mapping[TopicPartition, int],
    target_now: Mapping[TopicPartition, int],
) -> list[PartitionResult]:
    """Return the results with what was deleted during the run counted as expired.

    Log starts after the comparison, both by the source's topic name and the partition. A record counts as expired if
    its image would lie between the log start at the cut and the one now: by the last pair of offsets in front of it
    that is known to correspond. Never more records than there are offsets there at which none was read; the rest stays
    what it was. A doubled record was read at the source, its absence is none.
    """
    found = []
    for result in results:
        tp = TopicPartition(result.topic, result.partition)
        pairs = sorted([(result.source_start, result.target_start), *result.anchors])
        turned = sorted((there, here) for here, there in pairs)
        # What a log held in front of the overlap when it was read was older than all that is missing there.
        source_start = result.source_start + result.count("expired_at_target")
        target_start = result.target_start + result.count("expired_at_source")
        end = min(target_now.get(tp, 0), result.target_end)  # what came later was not to be read
        there = _Deleted(end, target_start, pairs, result.read_at_target)
        here = _Deleted(source_now.get(tp, 0), source_start, turned, result.read_at_source)
        found.append(_judge(_judge(result, TARGET, there, result.target_end), SOURCE, here, result.cut))
    return found


def overtaken(
    before: Sequence[PartitionResult],
    judged: Sequence[PartitionResult],
    positions: Mapping[TopicPartition, int],
    source_now: Mapping[TopicPartition, int],
) -> list[PartitionResult]:
    """Return judged results, undecided where retention at the source may have overtaken the mirror during the run.

    Offsets that lay behind the mirror's position at the cut and were deleted before the run read them may have held
    records that nobody has any more: those of the target that have expired there account for as many.

    Args:
        before: the results as they were compared.
        judged: the same after `expired_meanwhile`.
        positions: the last source offset that was copied at the cut; a partition without one had not begun.
        source_now: the source's log starts after the comparison.
    """
    found = []
    for compared, result in zip(before, judged, strict=True):
        tp, start = TopicPartition(result.topic, result.partition), result.source_start
        now = min(source_now.get(tp, 0), result.cut)
        accounted = result.count("expired_at_source") - compared.count("expired_at_source")
        unread = _Deleted(now, start, [(start, start)], result.read_at_source).left
        unread = min(unread, result.cut - start - result.source_records) - accounted
        if result.undecided is None and unread > 0 and deleted_offsets(positions.get(tp, start - 1), now):
            why = (
                f"{unread} source offsets up to {now - 1} were deleted before this run read them, and lay behind the "
                "mirror's position at the cut"
            )
            result = replace(result, undecided=why)
        found.append(result)
    return found


def _judge(result: PartitionResult, side: LogStart, deleted: _Deleted, end: int) -> PartitionResult:
    """Return the result for one side whose log ended at `end` when the run began."""
    if deleted.now <= deleted.before:
        return result
    kept: list[Finding] = []
    expired, apart, possible = 0, 0, deleted.left
    for finding in result.findings:
        if finding.kind == "no_overlap" and deleted.now >= end and possible:
            apart = finding.count  # of the source: the same records are lost too, where they are named
        elif finding.kind in side.missing:
            left, excused = _without_expired(finding, side, deleted)
            expired += excused
            kept += [left] if left is not None else []
        else:
            kept.append(finding)
    if side is TARGET:
        expired += max(0, min(apart - expired, deleted.left))
    if not expired and not apart:
        return result
    known = sum(finding.count for finding in kept if finding.kind == side.expired)
    kept = [finding for finding in kept if finding.kind != side.expired]
    total = Finding(side.expired, result.topic, result.partition, known + expired)
    return replace(result, findings=[*kept, total] if total.count else kept)


def _without_expired(finding: Finding, side: LogStart, deleted: _Deleted) -> tuple[Finding | None, int]:
    """Return what is left of a finding, and how many of its records have expired."""
    runs: list[Run] = []
    gone: list[Run] = []
    for run in finding.runs:
        excused = deleted.take(run)
        left = run.records - excused
        if excused:
            gone.append(replace(run, last=run.last if not left else run.last - left, records=excused))
        if left:
            runs.append(replace(run, first=run.first if not excused else run.last - left + 1, records=left))
    number = sum(run.records for run in gone)
    if number == finding.count:
        return None, number
    offset = "source_offset" if side is TARGET else "target_offset"
    samples = tuple(
        sample
        for sample in finding.samples
        if not any(run.first <= (getattr(sample, offset) or 0) <= run.last for run in gone)
    )
    return replace(finding, count=finding.count - number, samples=samples, runs=tuple(runs)), number
