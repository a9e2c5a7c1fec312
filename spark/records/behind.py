"""Records that the mirror has not copied yet: behind, not lost.

The evidence is the mirror's own committed position. Owns the division of lost records by it. Does not own the position,
or whether a record that is behind fails a check.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from spark.clusters.cluster import Partition
from spark.records.findings import Finding, PartitionResult, Run

NOT_BEGUN = -1
"""The position in a partition of which the mirror has committed none."""
_AT_THE_END = ("tail", "whole")


def records_behind(
    results: Iterable[PartitionResult], positions: Mapping[Partition, int] | None, compacted: Container[Partition]
) -> list[PartitionResult]:
    """Return the results in which what the mirror's position has not passed counts as behind instead of lost.

    Args:
        results: the comparison's, with what retention removed counted already.
        positions: the last source offset that the mirror has committed, per partition; None if it is not known.
        compacted: partitions that are compared by the last record of each key. A newer record of a key that is not
            copied yet is found as altered there, for the target holds the older one.
    """
    if positions is None:
        return list(results)
    return [
        _divide(result, positions.get(place, NOT_BEGUN), compacted=place in compacted)
        for result in results
        for place in [(result.topic, result.partition)]
    ]


def _divide(result: PartitionResult, position: int, *, compacted: bool) -> PartitionResult:
    by_key = ("lost", "altered") if compacted else ()
    kept: list[Finding] = []
    late: list[Finding] = []
    for finding in result.findings:
        if finding.kind in by_key and _first(finding) > position:
            late.append(finding)
        elif finding.kind == "lost":
            rest, behind = _parted(finding, position)
            kept += [rest] if rest is not None else []
            late += [behind] if behind is not None else []
        else:
            kept.append(finding)
    if not late:
        return result
    # Only what is lost can tell that the two logs have no record in common.
    lost = sum(finding.count for finding in kept if finding.kind == "lost")
    kept = [replace(one, count=lost) if one.kind == "no_overlap" else one for one in kept]
    return replace(result, findings=[*(one for one in kept if one.count), _joined(late)])


def _parted(finding: Finding, position: int) -> tuple[Finding | None, Finding | None]:
    """Return what is lost of a finding, and what stands at the end of the log behind the position."""
    lost: list[Run] = []
    behind: list[Run] = []
    for run in finding.runs:
        if run.where not in _AT_THE_END or run.last <= position:
            lost.append(run)
        elif run.first > position:
            behind.append(run)
        else:
            most, is_known = _lost(run, position, finding)
            lost.append(replace(run, last=position, records=most, is_about=not is_known))
            behind.append(replace(run, first=position + 1, records=run.records - most, is_about=not is_known))
    number = sum(run.records for run in behind)
    if not number:
        return finding, None
    named = [any(run.first <= (one.source_offset or 0) <= run.last for run in behind) for one in finding.samples]
    samples = list(zip(finding.samples, named, strict=True))
    rest = replace(
        finding,
        count=finding.count - number,
        samples=tuple(sample for sample, is_behind in samples if not is_behind),
        runs=tuple(lost),
    )
    late = replace(
        finding,
        kind="behind",
        count=number,
        samples=tuple(sample for sample, is_behind in samples if is_behind),
        runs=tuple(behind),
    )
    return (rest if rest.count else None), late


def _lost(run: Run, position: int, finding: Finding) -> tuple[int, bool]:
    """Return how many records of a run around the position are lost at most, and whether they are just so many.

    A record stands at either end of the run. Offsets between may hold none, as after a transaction, and only samples
    say where: what may be lost counts as lost, for waiting brings no lost record back.
    """
    named = {one.source_offset for one in finding.samples if one.source_offset is not None}
    passed = sum(run.first <= offset <= position for offset in named)
    coming = sum(position < offset <= run.last for offset in named)
    most = min(run.records - max(1, coming), position - run.first + 1)
    least = max(1, passed, run.records - (run.last - position))
    return most, most == least


def _first(finding: Finding) -> int:
    """The lowest source offset of a finding; samples are those with the lowest offsets. -1 if it names none."""
    named = [one.source_offset for one in finding.samples if one.source_offset is not None]
    return min([*named, *(run.first for run in finding.runs)], default=-1)


def _joined(findings: list[Finding]) -> Finding:
    first = replace(findings[0], kind="behind")
    for other in findings[1:]:
        first = replace(
            first,
            count=first.count + other.count,
            samples=first.samples + other.samples,
            runs=first.runs + other.runs,
        )
    return first
