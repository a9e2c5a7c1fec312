"""Names the records that only one side has: lost, doubled, foreign, aborted, altered, in the wrong partition.

Pure Python on differences, and on where digests occur at the source.
"""

from collections import defaultdict, deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafka.topic_partition import TopicPartition
from spark.comparison import expiry
from spark.comparison.difference import Altered, Difference, Row, consecutive, lost_runs
from spark.comparison.findings import SAMPLES_MAX, Finding, PartitionResult, Run, Sample

Occurrences = Mapping[tuple[TopicPartition, str], expiry.Occurrence]


@dataclass(frozen=True)
class Sources:
    """Where the digests of extra records occur at the source: how often and first at which offset.

    `everything` has the records of aborted transactions too; it is empty where those are read as data.
    """

    committed: Occurrences = field(default_factory=dict)
    everything: Occurrences = field(default_factory=dict)


@dataclass
class _Extras:
    """Extra records of one partition by what they are.

    Doubled ones carry the source offset of their original, None if the source has removed it.
    """

    aborted: list[Row] = field(default_factory=list)
    doubled: list[tuple[Row, int | None]] = field(default_factory=list)
    foreign: list[Row] = field(default_factory=list)


def divide(tp: TopicPartition, found: Difference, sources: Sources) -> None:
    """Separate the records in front of the overlap from the rest. `sources` has all extra records of the partition."""
    digests = {row.digest for row in found.extra}
    known = {digest: sources.committed[tp, digest] for digest in digests if (tp, digest) in sources.committed}
    hidden = digests - known.keys()
    aborted = {digest: sources.everything[tp, digest] for digest in hidden if (tp, digest) in sources.everything}
    expiry.divide(found, known, aborted)


def classify(differences: Mapping[TopicPartition, Difference], sources: Sources) -> dict[TopicPartition, list[Finding]]:
    """Return the findings of each partition. Afterwards a difference holds only what is really lost of it.

    What stands in front of the overlap has been separated before, by `divide`.
    """
    extras = {tp: _split(tp, found, sources) for tp, found in differences.items()}
    strayed = _strayed(differences, extras)
    findings = {}
    for tp, found in differences.items():
        altered, foreign = expiry.altered(found, extras[tp].foreign)
        leftover = expiry.expire(found, foreign)
        extras[tp].doubled += [(row, None) for row in leftover.doubled]
        extras[tp].foreign = leftover.foreign
        findings[tp] = _findings(tp, found, extras[tp], altered, strayed[tp])
    return findings


def _split(tp: TopicPartition, found: Difference, sources: Sources) -> _Extras:
    extras = _Extras()
    left: dict[str, int] = {}
    for row in found.extra:
        held, first = sources.committed.get((tp, row.digest), (0, -1))
        if row.digest not in left:
            left[row.digest] = sources.everything.get((tp, row.digest), (held, -1))[0] - held
        # What only an aborted transaction holds stays aborted, however often a restarted mirror has copied it.
        if left[row.digest] > 0:
            left[row.digest] -= bool(held)
            extras.aborted.append(row)
        elif held:
            extras.doubled.append((row, first))
        else:
            extras.foreign.append(row)
    return extras


def _strayed(
    differences: Mapping[TopicPartition, Difference], extras: Mapping[TopicPartition, _Extras]
) -> dict[TopicPartition, list[tuple[Row, Row, int]]]:
    """Lost records that lie in another partition of their topic: the record, its image, and the partition of that.

    What a log start explains is not taken for the image of anything; a lost record comes before one that it explains.
    """
    certain = {tp for tp, found in differences.items() if expiry.is_certain(found)}
    waiting: dict[tuple[str, str], deque[tuple[int, Row]]] = defaultdict(deque)
    for tp in sorted(extras):
        for row in [*extras[tp].foreign, *([] if tp in certain else differences[tp].target_head)]:
            waiting[tp[0], row.digest].append((tp[1], row))
    lost = [(tp, row) for tp in sorted(differences) for row in differences[tp].lost]
    for topic_partitions in (differences.keys() - certain, certain):
        lost += [(tp, row) for tp in sorted(topic_partitions) for row in differences[tp].source_head]
    found: dict[TopicPartition, list[tuple[Row, Row, int]]] = {tp: [] for tp in differences}
    images: dict[TopicPartition, set[int]] = defaultdict(set)
    for tp, row in lost:
        if held := waiting.get((tp[0], row.digest)):
            partition, image = held.popleft()
            found[tp].append((row, image, partition))
            images[TopicPartition(tp.topic, partition)].add(image.offset)
    for tp, matches in found.items():
        if matches:
            differences[tp].take(row.offset for row, _, _ in matches)
    for tp, offsets in images.items():
        extras[tp].foreign = [row for row in extras[tp].foreign if row.offset not in offsets]
        head = differences[tp].target_head
        differences[tp].target_head = [row for row in head if row.offset not in offsets]
    return found


def _findings(
    tp: TopicPartition,
    found: Difference,
    extras: _Extras,
    altered: list[Altered],
    strayed: list[tuple[Row, Row, int]],
) -> list[Finding]:
    samples: dict[str, list[Sample]] = {
        "lost": [Sample(row.offset, None, row.digest) for row in found.lost],
        "doubled": [Sample(first, row.offset, row.digest) for row, first in extras.doubled],
        "altered": [Sample(one.source.offset, one.target.offset, one.target.digest, one.differs) for one in altered],
        "out_of_order": found.late_samples,
        "foreign": [Sample(None, row.offset, row.digest) for row in extras.foreign],
        "wrong_partition": [
            Sample(row.offset, image.offset, row.digest, (), tp[1], partition) for row, image, partition in strayed
        ],
        "aborted": [Sample(None, row.offset, row.digest) for row in extras.aborted],
    }
    counts = {kind: len(held) for kind, held in samples.items()}
    counts |= {"lost": found.lost_records, "out_of_order": found.late}
    counts |= {"expired_at_source": found.expired_at_source, "expired_at_target": found.expired_at_target}
    runs: dict[str, list[Run]] = {
        "lost": lost_runs(found),
        "out_of_order": found.late_runs,
        "doubled": consecutive(row.offset for row, _ in extras.doubled),
        "foreign": consecutive(row.offset for row in extras.foreign),
        "aborted": consecutive(row.offset for row in extras.aborted),
        "altered": consecutive(one.source.offset for one in altered),
        "wrong_partition": consecutive(row.offset for row, _, _ in strayed),
    }
    return [
        Finding(
            kind,
            *tp,
            count,
            tuple(sorted(samples.get(kind, ()), key=_order)[:SAMPLES_MAX]),
            tuple(runs.get(kind, ())),
        )
        for kind, count in counts.items()
        if count
    ]


def _order(sample: Sample) -> tuple[int, int]:
    return (sample.source_offset or 0, sample.target_offset or 0)


NOT_BEGUN = -1
"""The position in a partition of which the mirror has committed none."""
_AT_THE_END = ("tail", "whole")


def records_behind(
    results: Iterable[PartitionResult],
    positions: Mapping[TopicPartition, int] | None,
    compacted: Container[TopicPartition],
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
        _divide(result, positions.get(tp, NOT_BEGUN), compacted=tp in compacted)
        for result in results
        for tp in [TopicPartition(result.topic, result.partition)]
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
    # Only what is lost can show that the two logs have no record in common.
    lost = sum(finding.count for finding in kept if finding.kind == "lost")
    kept = [replace(one, count=lost) if one.kind == "no_overlap" else one for one in kept]
    return replace(result, findings=[*(one for one in kept if one.count), _joined(late)])


def _parted(finding: Finding, position: int) -> tuple[Finding | None, Finding | None]:
    """Return what is lost of a finding, and what is at the end of the log behind the position."""
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
    """Return how many records of a run around the position are lost at most, and whether exactly so many are.

    There is a record at either end of the run. Offsets between may hold none, as after a transaction, and only samples
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
