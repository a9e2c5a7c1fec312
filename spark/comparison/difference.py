"""Compares the records of one partition where the two logs differ. Pure Python on few rows; knows nothing of Spark.

Rows are those of the stretches between corresponding chunks. Identical records are counted: the n-th at the source is
the n-th on the target.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from spark.comparison.chunks import align
from spark.comparison.findings import Run, Sample

PARTS = ("key", "value", "headers", "timestamp")


NEIGHBOURHOOD = 1000  # records


CANDIDATES = 20  # records with the same key looked at on either side


@dataclass(frozen=True, slots=True)
class Row:
    """One record: its offset, the digest of all of it, the hashes of its parts (None for null), its timestamp (ms)."""

    offset: int
    digest: str
    key: int | None
    value: int | None
    headers: int
    timestamp: int

    def part(self, name: str) -> Hashable:
        """Return one part by its name."""
        found: Hashable = getattr(self, name)
        return found


@dataclass(frozen=True)
class Altered:
    """A record of the source and what became of it on the target."""

    source: Row
    target: Row
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """Records that correspond one by one, in the same order: offsets of the first and last one on both sides."""

    source_first: int
    source_last: int
    target_first: int
    target_last: int
    records: int


@dataclass(frozen=True, kw_only=True)
class MismatchedWindow:
    """What differs in one partition, and what corresponds around it.

    `source` and `target` are sorted by offset; rows of the source from `cut` on came later. `missing` are runs of the
    source that were not read because nothing of the target is left for them. `removed_at_source` and
    `removed_at_target` are how many records each log has removed in front of its log start, at most; `expired_up_to` is
    the source offset in front of which records can have expired when the target holds nothing at all.
    """

    cut: int
    source: Sequence[Row]
    target: Sequence[Row]
    matched: Sequence[Matched]
    missing: Sequence[Run] = ()
    removed_at_source: int = 0
    removed_at_target: int = 0
    expired_up_to: int | None = None


@dataclass(kw_only=True)
class Difference:
    """What became of the rows. `images` are source and target offset of rows that correspond, `matched` the rest.

    `lost` and `missing` are records before the cut without an image, `survivors` offsets of others between which they
    stand; `waiting` are those from the cut on. `extra` are rows of the target that are no image, `beyond` those of them
    behind the image of the cut; `late` are images that stand behind a record that followed them at the source.

    `first_source` and `first_target` are where the overlap begins, None without any; `first_known` is the first record
    of the target that the source holds too. What is in front of the overlap is in `source_head`, `source_head_runs`
    and `target_head` once it has been divided from the rest (see expiry.py): it may have expired. `undone` are rows of
    the target that only an aborted transaction of the source holds: target offset, first offset at the source.
    `read_at_source` and `read_at_target` are all records of either side that were read, None if it is not known.
    """

    images: list[tuple[int, int]] = field(default_factory=list)
    matched: Sequence[Matched] = ()
    lost: list[Row] = field(default_factory=list)
    missing: list[Run] = field(default_factory=list)
    waiting: list[Row] = field(default_factory=list)
    survivors: list[int] = field(default_factory=list)
    extra: list[Row] = field(default_factory=list)
    beyond: list[Row] = field(default_factory=list)
    late: int = 0
    late_samples: list[Sample] = field(default_factory=list)
    late_runs: list[Run] = field(default_factory=list)
    removed_at_source: int = 0
    removed_at_target: int = 0
    expired_up_to: int | None = None
    source_is_empty: bool = False
    first_source: int | None = None
    first_target: int | None = None
    first_known: int | None = None
    source_head: list[Row] = field(default_factory=list)
    source_head_runs: list[Run] = field(default_factory=list)
    target_head: list[Row] = field(default_factory=list)
    undone: list[tuple[int, int]] = field(default_factory=list)
    expired_at_target: int = 0
    expired_at_source: int = 0
    read_at_source: list[Run] | None = None
    read_at_target: list[Run] | None = None

    @property
    def lost_records(self) -> int:
        """How many records before the cut have no image."""
        return len(self.lost) + sum(run.records for run in self.missing)

    def take(self, offsets: Iterable[int]) -> None:
        """Of the records at these source offsets it is known what became of them: they are not lost."""
        taken = set(offsets)
        self.lost = [row for row in self.lost if row.offset not in taken]
        self.source_head = [row for row in self.source_head if row.offset not in taken]
        self.survivors += taken

    @property
    def source_head_records(self) -> int:
        """How many records of the source stand in front of the overlap."""
        return len(self.source_head) + sum(run.records for run in self.source_head_runs)

    @property
    def may_have_expired(self) -> bool:
        """Whether a log has removed anything in front of its log start."""
        return self.removed_at_source > 0 or self.removed_at_target > 0


def difference(found: MismatchedWindow) -> Difference:
    """Return what became of each row. Nothing has expired yet: expiry.py decides that."""
    images = _images(found)
    first_source, first_target = _overlap(found, images)
    result = Difference(
        images=images,
        matched=found.matched,
        missing=list(found.missing),
        removed_at_source=found.removed_at_source,
        removed_at_target=found.removed_at_target,
        expired_up_to=found.expired_up_to,
        first_source=first_source,
        first_target=first_target,
        first_known=first_target,
    )
    result.source_is_empty = not found.missing and all(row.offset >= found.cut for row in found.source)
    end = _end(found, images)
    here, there = {one for one, _ in images}, {other for _, other in images}
    result.lost = [row for row in found.source if row.offset < found.cut and row.offset not in here]
    result.waiting = [row for row in found.source if row.offset >= found.cut and row.offset not in here]
    extra = [row for row in found.target if row.offset not in there]
    result.extra = [row for row in extra if end is None or row.offset < end]
    result.beyond = extra[len(result.extra) :]
    result.survivors = [one for one, _ in images if one < found.cut]
    result.survivors += [one.source_first for one in found.matched if one.source_first < found.cut]
    _judge_order(found, result)
    ours = [Run(one.source_first, one.source_last, one.records) for one in found.matched]
    theirs = [Run(one.target_first, one.target_last, one.records) for one in found.matched]
    result.read_at_source = [*ours, *found.missing, *consecutive(row.offset for row in found.source)]
    result.read_at_target = [*theirs, *consecutive(row.offset for row in found.target)]
    return result


def consecutive(offsets: Iterable[int]) -> list[Run]:
    """Return offsets as runs without a hole."""
    found: list[Run] = []
    first = last = -1
    for offset in sorted(offsets):
        if offset != last + 1 or first < 0:
            found += [Run(first, last, last - first + 1)] if first >= 0 else []
            first = offset
        last = offset
    return [*found, Run(first, last, last - first + 1)] if first >= 0 else found


def _images(found: MismatchedWindow) -> list[tuple[int, int]]:
    """Source and target offsets of rows that correspond, by target offset: what keeps its order first, then the rest.

    Identical records left over are the n-th and the n-th; counted from the end where a log lost its beginning.
    """
    turn = -1 if found.removed_at_source or found.removed_at_target else 1
    source, target = list(found.source)[::turn], list(found.target)[::turn]
    pairs = align([row.digest for row in source], [row.digest for row in target])
    here, there = {one for one, _ in pairs}, {other for _, other in pairs}
    images = [(source[one].offset, target[other].offset) for one, other in pairs]
    rest = _by_digest(row for at, row in enumerate(source) if at not in here)
    left = _by_digest(row for at, row in enumerate(target) if at not in there)
    for digest in rest.keys() & left.keys():
        images += [(one.offset, other.offset) for one, other in zip(rest[digest], left[digest], strict=False)]
    return sorted(images, key=lambda image: image[1])


def _by_digest(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.digest].append(row)
    return found


def _overlap(found: MismatchedWindow, images: Sequence[tuple[int, int]]) -> tuple[int | None, int | None]:
    """The first offset on each side with an image."""
    firsts = [(one.source_first, one.target_first) for one in found.matched] + list(images)
    if not firsts:
        return None, None
    return min(first for first, _ in firsts), min(first for _, first in firsts)


def _end(found: MismatchedWindow, images: Iterable[tuple[int, int]]) -> int | None:
    """The image of the cut: behind this target offset is what was written later. None without such an image."""
    before = {row.digest for row in found.source if row.offset < found.cut}
    later = {row.digest for row in found.source if row.offset >= found.cut} - before
    ends = [there for here, there in images if here >= found.cut]
    ends += [row.offset for row in found.target if row.digest in later]  # the first of several copies
    ends += [one.target_last for one in found.matched if one.source_last >= found.cut]
    return min(ends, default=None)


def lost_runs(result: Difference) -> list[Run]:
    """Return the lost records as runs of those that follow each other at the source, no surviving one between them."""
    lost = [(row.offset, row.offset, 1) for row in result.lost]
    lost += [(run.first, run.last, run.records) for run in result.missing]
    survivors = sorted(result.survivors)
    runs: list[tuple[Run, int]] = []
    for first, last, records in sorted(lost):
        before = bisect_left(survivors, first)
        if runs and runs[-1][1] == before:
            run = runs[-1][0]
            runs[-1] = (replace(run, last=last, records=run.records + records), before)
        else:
            runs.append((Run(first, last, records), before))
    return [replace(run, where=_where(before, len(survivors))) for run, before in runs]


def _where(before: int, survivors: int) -> str:
    if not survivors:
        return "whole"
    return "head" if not before else "tail" if before == survivors else "gap"


def _judge_order(found: MismatchedWindow, result: Difference) -> None:
    """Count images that stand, on the target, behind a record that followed them at the source.

    Which image is that of which of several identical records cannot be decided: the order of those is not judged.
    """
    digests = {row.offset: row.digest for row in found.source}
    times = Counter(digests.values())
    units = [(one.target_first, one.source_first, one.source_last, one.records) for one in found.matched]
    units += [(there, here, here, 1) for here, there in result.images if times[digests[here]] == 1]
    newest, following = -1, False
    for there, first, last, records in sorted(units):
        if first >= newest:
            newest, following = last, False
            continue
        if first >= found.cut:
            continue
        result.late += records
        run = result.late_runs[-1] if following else None
        if run is not None and run.last < first:
            result.late_runs[-1] = replace(run, last=last, records=run.records + records)
        else:
            result.late_runs.append(Run(first, last, records))
        result.late_samples.append(Sample(first, there, digests.get(first, "")))
        following = True


def pair(lost: Iterable[Row], foreign: Iterable[Row], *, shift: int = 0) -> tuple[list[Altered], list[Row], list[Row]]:
    """Return the altered records, what is really lost, and what is really foreign.

    Records that agree in all parts but one are the same record. So are records with the same key (not null) whose
    places, after the shift between the two logs, are within NEIGHBOURHOOD records: the nearest first.
    """
    left = sorted(lost, key=lambda record: record.offset)
    right = sorted(foreign, key=lambda record: record.offset)
    found: list[Altered] = []
    for odd in PARTS:
        left, right = _match(left, right, [name for name in PARTS if name != odd], found)
    near = sorted(
        (abs(other.offset - one.offset - shift), one.offset, other.offset)
        for one, other in _same_key(left, right)
        if abs(other.offset - one.offset - shift) <= NEIGHBOURHOOD
    )
    here, there = {one.offset: one for one in left}, {one.offset: one for one in right}
    for _, source, target in near:
        if source in here and target in there:
            found.append(_altered(here.pop(source), there.pop(target)))
    return found, list(here.values()), list(there.values())


def pair_from_end(lost: Iterable[Row], foreign: Iterable[Row]) -> tuple[list[Altered], list[Row], list[Row]]:
    """Return the same for logs that have lost their beginning: only records that agree in all parts but one.

    The last ones that agree belong together. A timestamp alone is altered to a later one: the broker's own is that of
    the append. An older one is that of an older record, which the source may have removed.
    """
    left = sorted(lost, key=lambda record: -record.offset)
    right = sorted(foreign, key=lambda record: -record.offset)
    found: list[Altered] = []
    for odd in PARTS:
        left, right = _match(left, right, [name for name in PARTS if name != odd], found, later=odd == "timestamp")
    return found, left[::-1], right[::-1]


def _altered(source: Row, target: Row) -> Altered:
    return Altered(source, target, tuple(name for name in PARTS if source.part(name) != target.part(name)))


def _same_key(left: list[Row], right: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs with the same key, each with the few neighbours only: one hot key must not make it quadratic."""
    by_key: dict[int, list[Row]] = defaultdict(list)
    for record in right:
        if record.key is not None:
            by_key[record.key].append(record)
    for record in left:
        held = by_key.get(record.key, []) if record.key is not None else []
        at = bisect_left(held, record.offset, key=lambda other: other.offset)
        yield from ((record, other) for other in held[max(0, at - CANDIDATES) : at + CANDIDATES])


def _match(
    left: list[Row],
    right: list[Row],
    names: list[str],
    found: list[Altered],
    *,
    later: bool = False,
) -> tuple[list[Row], list[Row]]:
    """Pair what agrees in these parts; with `later` only if the target's timestamp is not the older one."""

    def identity(record: Row) -> Hashable:
        return tuple(record.part(name) for name in names)

    waiting: dict[Hashable, list[Row]] = defaultdict(list)
    for record in reversed(right):
        waiting[identity(record)].append(record)
    unmatched, used = [], set()
    for record in left:
        queue = waiting.get(identity(record), [])
        if queue and not (later and queue[-1].timestamp < record.timestamp):
            other = queue.pop()
            used.add(other.offset)
            found.append(_altered(record, other))
        else:
            unmatched.append(record)
    return unmatched, [record for record in right if record.offset not in used]
