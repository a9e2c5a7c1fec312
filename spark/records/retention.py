"""What retention deleted while the records were read: expired, not lost.

A run reads for minutes, and each side deletes on its own clock meanwhile. What had fallen below a log's start by the
end of the comparison could not be seen there, so its absence proves nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spark.clusters.cluster import Partition
from spark.records.findings import Finding, PartitionResult, Run

WHOLE = ("head", "whole")


@dataclass(frozen=True)
class Side:
    """The side whose log start moved: which findings that explains, as what they count then."""

    missing: tuple[str, ...]
    expired: str


SOURCE = Side(("foreign", "doubled"), "expired_at_source")
TARGET = Side(("lost",), "expired_at_target")


def expired_meanwhile(
    results: Iterable[PartitionResult], source_now: Mapping[Partition, int], target_now: Mapping[Partition, int]
) -> list[PartitionResult]:
    """Return the results with what was deleted during the run counted as expired.

    Log starts after the comparison, both by the source's topic name and the partition. A record counts as expired if
    its image would lie between the log start at the cut and the one now: by the last pair of offsets in front of it
    that is known to correspond. Never more records than the start moved by; the rest stays what it was.
    """
    found = []
    for result in results:
        place = (result.topic, result.partition)
        pairs = sorted([(result.source_start, result.target_start), *result.anchors])
        judged = _judge(result, TARGET, pairs, target_now.get(place, 0), result.target_start, result.target_end)
        turned = sorted((there, here) for here, there in pairs)
        found.append(_judge(judged, SOURCE, turned, source_now.get(place, 0), result.source_start, result.cut))
    return found


def _judge(
    result: PartitionResult, side: Side, pairs: list[tuple[int, int]], now: int, before: int, end: int
) -> PartitionResult:
    """Return the result for one side whose log start was `before` and is `now`; `pairs` lead to its offsets."""
    if now <= before:
        return result
    kept: list[Finding] = []
    expired, budget = 0, now - before
    for finding in result.findings:
        if finding.kind == "no_overlap" and now >= end:
            expired += finding.count
        elif finding.kind in side.missing:
            left, excused = _excuse(finding, side, pairs, now, before, budget)
            expired, budget = expired + excused, budget - excused
            kept += [left] if left is not None else []
        else:
            kept.append(finding)
    if not expired:
        return result
    known = sum(finding.count for finding in kept if finding.kind == side.expired)
    kept = [finding for finding in kept if finding.kind != side.expired]
    return replace(result, findings=[*kept, Finding(side.expired, result.topic, result.partition, known + expired)])


def _excuse(
    finding: Finding, side: Side, pairs: list[tuple[int, int]], now: int, before: int, budget: int
) -> tuple[Finding | None, int]:
    """Return what is left of a finding, and how many of its records have expired."""
    runs: list[Run] = []
    gone: list[Run] = []
    for run in finding.runs:
        here, there = max((pair for pair in pairs if pair[0] <= run.first), default=pairs[0])
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
