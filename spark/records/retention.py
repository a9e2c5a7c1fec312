"""What retention deleted while the records were read: expired, not lost.

A run reads for minutes, and each side deletes on its own clock meanwhile. What had fallen below a log's start by the
end of the comparison could not be seen there, so its absence proves nothing.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter

from spark.clusters.cluster import Partition
from spark.records.findings import Finding, PartitionResult, Run

WHOLE = ("head", "whole")


@dataclass(frozen=True)
class Side:
    """The side whose log start moved: which findings that explains, as what they count then."""

    missing: tuple[str, ...]
    expired: str


SOURCE = Side(("foreign",), "expired_at_source")
TARGET = Side(("lost",), "expired_at_target")


def expired_meanwhile(
    results: Iterable[PartitionResult], source_now: Mapping[Partition, int], target_now: Mapping[Partition, int]
) -> list[PartitionResult]:
    """Return the results with what was deleted during the run counted as expired.

    Log starts after the comparison, both by the source's topic name and the partition. A record counts as expired if
    its image would lie between the log start at the cut and the one now: by the last pair of offsets in front of it
    that is known to correspond. Never more records than the start moved by; the rest stays what it was. A doubled
    record was read at the source, its absence is none.
    """
    found = []
    for result in results:
        place = (result.topic, result.partition)
        pairs = sorted([(result.source_start, result.target_start), *result.anchors])
        # What a log held in front of the overlap when it was read was older than all that is missing there.
        source_start = result.source_start + result.count("expired_at_target")
        target_start = result.target_start + result.count("expired_at_source")
        judged = _judge(result, TARGET, pairs, target_now.get(place, 0), target_start, result.target_end)
        turned = sorted((there, here) for here, there in pairs)
        found.append(_judge(judged, SOURCE, turned, source_now.get(place, 0), source_start, result.cut))
    return found


def _judge(
    result: PartitionResult, side: Side, pairs: list[tuple[int, int]], now: int, before: int, end: int
) -> PartitionResult:
    """Return the result for one side whose log start is `now`; `pairs` lead to its offsets.

    `before` is the first offset that retention can have taken away from the comparison.
    """
    if now <= before:
        return result
    kept: list[Finding] = []
    expired, budget = 0, now - before
    apart = 0
    for finding in result.findings:
        if finding.kind == "no_overlap" and now >= end:
            apart = finding.count  # of the source: the same records are lost too, where they are named
        elif finding.kind in side.missing:
            left, excused = _excuse(finding, side, pairs, now, before, budget)
            expired, budget = expired + excused, budget - excused
            kept += [left] if left is not None else []
        else:
            kept.append(finding)
    if side is TARGET:
        expired = max(expired, min(apart, now - before))
    if not expired and not apart:
        return result
    known = sum(finding.count for finding in kept if finding.kind == side.expired)
    kept = [finding for finding in kept if finding.kind != side.expired]
    total = Finding(side.expired, result.topic, result.partition, known + expired)
    return replace(result, findings=[*kept, total] if total.count else kept)


def _excuse(
    finding: Finding, side: Side, pairs: list[tuple[int, int]], now: int, before: int, budget: int
) -> tuple[Finding | None, int]:
    """Return what is left of a finding, and how many of its records have expired."""
    runs: list[Run] = []
    gone: list[Run] = []
    for run in finding.runs:
        here, there = pairs[max(bisect_right(pairs, run.first, key=itemgetter(0)) - 1, 0)]
        image = before if run.where in WHOLE else there + run.first - here
        excused = max(0, min(run.records, now - image, budget))
        budget -= excused
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
