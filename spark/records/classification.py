"""Says what the records are that only one side has: lost, doubled, foreign, aborted, altered, in the wrong partition.

Pure Python on differences, and on where digests occur at the source.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spark.clusters.cluster import Partition
from spark.records.difference import Difference, lost_runs
from spark.records.findings import SAMPLES_MAX, Finding, Run, Sample
from spark.records.pairing import Altered, Row, pair

Occurrences = Mapping[tuple[Partition, str], tuple[int, int]]


@dataclass(frozen=True)
class Sources:
    """Where the digests of extra records occur at the source: how often and first at which offset.

    `everything` has the records of aborted transactions too; it is empty where those are read as data.
    """

    committed: Occurrences = field(default_factory=dict)
    everything: Occurrences = field(default_factory=dict)


@dataclass
class _Extras:
    """Extra records of one partition by what they are; doubled ones with the source offset of their original."""

    aborted: list[Row] = field(default_factory=list)
    doubled: list[tuple[Row, int]] = field(default_factory=list)
    foreign: list[Row] = field(default_factory=list)


def classify(differences: Mapping[Partition, Difference], sources: Sources) -> dict[Partition, list[Finding]]:
    """Return the findings of each partition. Records found elsewhere leave the lost ones of their difference."""
    extras = {place: _split(place, found, sources) for place, found in differences.items()}
    strayed = _strayed(differences, extras)
    findings = {}
    for place, found in differences.items():
        altered, _, foreign = pair(found.lost, extras[place].foreign, shift=_shift(found))
        extras[place].foreign = foreign
        _take(found, [one.source for one in altered])
        findings[place] = _findings(place, found, extras[place], altered, strayed[place])
    return findings


def _split(place: Partition, found: Difference, sources: Sources) -> _Extras:
    extras = _Extras()
    left: dict[str, int] = {}
    for row in found.extra:
        held, first = sources.committed.get((place, row.digest), (0, -1))
        if row.digest not in left:
            left[row.digest] = sources.everything.get((place, row.digest), (held, -1))[0] - held
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
    differences: Mapping[Partition, Difference], extras: Mapping[Partition, _Extras]
) -> dict[Partition, list[tuple[Row, Row, int]]]:
    """Lost records that lie in another partition of their topic: the record, its image, and the partition of that."""
    waiting: dict[tuple[str, str], deque[tuple[int, Row]]] = defaultdict(deque)
    for place in sorted(extras):
        for row in extras[place].foreign:
            waiting[place[0], row.digest].append((place[1], row))
    found: dict[Partition, list[tuple[Row, Row, int]]] = {place: [] for place in differences}
    images: dict[Partition, set[int]] = defaultdict(set)
    for place in sorted(differences):
        for row in differences[place].lost:
            if held := waiting.get((place[0], row.digest)):
                partition, image = held.popleft()
                found[place].append((row, image, partition))
                images[place[0], partition].add(image.offset)
        _take(differences[place], [row for row, _, _ in found[place]])
    for place, offsets in images.items():
        extras[place].foreign = [row for row in extras[place].foreign if row.offset not in offsets]
    return found


def _take(found: Difference, rows: Iterable[Row]) -> None:
    """These records are not lost."""
    taken = {row.offset for row in rows}
    found.lost = [row for row in found.lost if row.offset not in taken]
    found.survivors += taken


def _shift(found: Difference) -> int:
    return (found.first_target or 0) - (found.first_source or 0)


def _findings(
    place: Partition,
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
            Sample(row.offset, image.offset, row.digest, (), place[1], partition) for row, image, partition in strayed
        ],
        "aborted": [Sample(None, row.offset, row.digest) for row in extras.aborted],
    }
    counts = {kind: len(held) for kind, held in samples.items()}
    counts |= {"lost": found.lost_records, "out_of_order": found.late}
    counts |= {"expired_at_source": found.expired_at_source, "expired_at_target": found.expired_at_target}
    runs: dict[str, list[Run]] = {
        "lost": lost_runs(found),
        "out_of_order": found.late_runs,
        "doubled": _runs(row.offset for row, _ in extras.doubled),
        "foreign": _runs(row.offset for row in extras.foreign),
        "aborted": _runs(row.offset for row in extras.aborted),
        "altered": _runs(one.source.offset for one in altered),
        "wrong_partition": _runs(row.offset for row, _, _ in strayed),
    }
    return [
        Finding(
            kind,
            *place,
            count,
            tuple(sorted(samples.get(kind, ()), key=_order)[:SAMPLES_MAX]),
            tuple(runs.get(kind, ())),
        )
        for kind, count in counts.items()
        if count
    ]


def _order(sample: Sample) -> tuple[int, int]:
    return (sample.source_offset or 0, sample.target_offset or 0)


def _runs(offsets: Iterable[int]) -> list[Run]:
    """Offsets that follow each other without a hole."""
    found: list[Run] = []
    for offset in sorted(offsets):
        if found and found[-1].last + 1 == offset:
            found[-1] = Run(found[-1].first, offset, found[-1].records + 1)
        else:
            found.append(Run(offset, offset, 1))
    return found
