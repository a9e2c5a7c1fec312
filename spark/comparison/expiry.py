"""Which records have expired: no more than a log start accounts for.

A log whose start is L has removed at most L records, all of them older than what it still holds. So records that only
one side holds have expired only in front of the overlap, at most as many of them as the other log has offsets in front
of its log start, and never one whose image the other side still holds. The rest is lost, doubled or foreign.

Owns the rule. Python applies it to records in hand, Spark to records that are only counted (transforms.expire), both
with the numbers of `allowed`. Does not own where the overlap begins for Spark, see transforms.overlap, nor what
retention deletes during a run, see retention.py.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark.comparison.difference import Altered, Difference, Row, pair, pair_from_end
from spark.comparison.findings import Run

Occurrence = tuple[int, int]
"""How often the source holds a digest, and the first offset."""


@dataclass(frozen=True)
class Leftover:
    """Records of the target that have not expired: `doubled` are further copies of some that have."""

    doubled: list[Row]
    foreign: list[Row]


def allowed(source_head: int, target_head: int, *, removed_at_source: int, removed_at_target: int) -> tuple[int, int]:
    """Return how many records have expired at the source and at the target.

    Args:
        source_head: records in front of the overlap that only the source holds.
        target_head: records in front of the overlap that only the target holds.
        removed_at_source: offsets in front of the log start of the source.
        removed_at_target: offsets in front of the log start of the target.

    While the target holds a record that is older than all of the source, its log has removed none of the source's.
    """
    at_source = min(target_head, removed_at_source)
    return at_source, 0 if at_source else min(source_head, removed_at_target)


def divide(found: Difference, known: Mapping[str, Occurrence], aborted: Mapping[str, Occurrence]) -> None:
    """Move the records in front of the overlap out of the lost and extra ones: they may have expired.

    Args:
        found: what became of the rows; changed in place.
        known: digests of extra records that the source holds.
        aborted: digests of extra records that an aborted transaction of the source holds.
    """
    if not found.may_have_expired:
        return
    found.undone = [(row.offset, aborted[row.digest][1]) for row in found.extra if row.digest in aborted]
    if found.matched or found.images:
        found.first_target, found.first_known = _begin(found, known)
    from_source, from_target = found.first_source, found.first_target
    if from_source is None:
        from_source = found.expired_up_to
        if found.source_is_empty and found.extra:
            from_target = found.extra[-1].offset + 1
    if from_target is not None:
        held = {row.offset for row in found.extra if row.digest in known or row.digest in aborted}
        head = [row for row in found.extra if row.offset < from_target]
        _to_target_head(found, [row for row in head if row.offset not in held])
        if from_source is not None:
            from_source = _behind_what_is_held(found, from_source, from_target)
    if from_source is not None:
        _to_source_head(found, from_source)


def _behind_what_is_held(found: Difference, from_source: int, from_target: int) -> int:
    """Where the overlap begins at the source, no later than the aborted records the target holds in front of it.

    A target has removed nothing that is newer than what it still holds.
    """
    return min([from_source, *(here for there, here in found.undone if there < from_target)])


def _begin(found: Difference, known: Mapping[str, Occurrence]) -> tuple[int, int]:
    """The target offsets of the first image that no later copy can replace, and of the first record that is known.

    A mirror that lost its position copies again what it has copied: of several copies the last is the image here, for
    in front of an earlier one may stand what the source has removed since.
    """
    last: dict[int, int] = {}
    for row in found.extra:
        times, first = known.get(row.digest, (0, -1))
        if times == 1:
            last[first] = max(row.offset, last.get(first, -1))
    again = sorted(last)
    units = [(one.target_first, one.source_first, one.source_last, one.records) for one in found.matched]
    units += [(there, here, here, 1) for here, there in found.images]
    begins = []
    for there, first, end, records in units:
        copies = [last[at] for at in again[bisect_left(again, first) : bisect_right(again, end)] if last[at] > there]
        begins += copies if len(copies) == records else [there]
    seen = [unit[0] for unit in units] + [row.offset for row in found.extra if row.digest in known]
    return min(begins), min(seen)


def _to_target_head(found: Difference, rows: Sequence[Row]) -> None:
    taken = {row.offset for row in rows}
    found.target_head += rows
    found.extra = [row for row in found.extra if row.offset not in taken]


def _to_source_head(found: Difference, end: int) -> None:
    """Of what has no image only the records in front of a source offset are in front of the overlap.

    Of a run around the offset at least what does not fit behind it.
    """
    lost, runs = [*found.source_head, *found.lost], [*found.source_head_runs, *found.missing]
    found.source_head = [row for row in lost if row.offset < end]
    found.lost = [row for row in lost if row.offset >= end]
    found.source_head_runs, found.missing = [], []
    for run in runs:
        front, back = _split(run, max(0, run.records - max(0, run.last - end + 1)))
        found.source_head_runs += [front] if front else []
        found.missing += [back] if back else []


def _split(run: Run, records: int) -> tuple[Run | None, Run | None]:
    """The first so many records of a run that was not read, and the rest; every offset counts as a record."""
    left = run.records - records
    if not records or not left:
        return (run, None) if records else (None, run)
    return replace(run, last=run.last - left, records=records), replace(run, first=run.last - left + 1, records=left)


def is_overfull(found: Difference) -> bool:
    """Whether more stands in front of the overlap on the target than the source can have removed."""
    return len(found.target_head) > found.removed_at_source


def is_certain(found: Difference) -> bool:
    """Whether a log start explains all that stands in front of the overlap, on one side only."""
    if found.target_head:
        return not found.source_head_records and not is_overfull(found)
    return found.source_head_records <= found.removed_at_target


def altered(found: Difference, foreign: Sequence[Row]) -> tuple[list[Altered], list[Row]]:
    """Pair lost with foreign records that are the same record altered; return them and what is really foreign.

    Where a log has removed something, records in front of the overlap are paired with each other only: one that has
    expired resembles others. Those that surely are altered belong to the overlap, or make it.
    """
    left = list(foreign)
    sure: list[Altered] = []
    if found.may_have_expired and found.first_source is None:
        if found.expired_up_to is None and not found.source_is_empty:
            sure, _, left = pair_from_end(found.lost, left)
            if not sure:
                return [], left  # how far apart the two logs are is not known either
    elif found.may_have_expired:
        sure, _, found.target_head = pair_from_end(found.source_head, found.target_head)
    found.take(one.source.offset for one in sure)
    left = _extend(found, sure, left)
    shift = (found.first_target or 0) - (found.first_source or 0)
    heads: list[Altered] = []
    at_source, at_target = _allowed(found, len(found.target_head))
    if len(found.target_head) > at_source and found.source_head_records > at_target:
        heads, _, found.target_head = pair(found.source_head, found.target_head, shift=shift)
        found.take(one.source.offset for one in heads)
    pairs, _, left = pair(found.lost, left, shift=shift)
    found.take(one.source.offset for one in pairs)
    return [*sure, *heads, *pairs], left


def _extend(found: Difference, sure: Sequence[Altered], foreign: Sequence[Row]) -> list[Row]:
    """Let the overlap begin no later than with these records; return what is foreign behind its beginning."""
    if not sure:
        return list(foreign)
    sources, targets = [one.source.offset for one in sure], [one.target.offset for one in sure]
    found.first_source = min(sources if found.first_source is None else [found.first_source, *sources])
    found.first_target = min(targets if found.first_target is None else [found.first_target, *targets])
    found.first_known = min(targets if found.first_known is None else [found.first_known, *targets])
    rows = sorted([*found.target_head, *foreign], key=lambda row: row.offset)
    found.target_head = [row for row in rows if row.offset < found.first_target]
    _to_source_head(found, _behind_what_is_held(found, found.first_source, found.first_target))
    return [row for row in rows if row.offset >= found.first_target]


def _allowed(found: Difference, target_head: int) -> tuple[int, int]:
    return allowed(
        found.source_head_records,
        target_head,
        removed_at_source=found.removed_at_source,
        removed_at_target=found.removed_at_target,
    )


def expire(found: Difference, foreign: Iterable[Row]) -> Leftover:
    """Count what has expired, the nearest to the overlap. What has not is lost, or returned with `foreign`."""
    known = found.first_known
    front = {row.digest for row in found.target_head if known is None or row.offset < known}
    head: list[Row] = []
    copies: list[Row] = []
    for row in found.target_head:
        (copies if known is not None and row.offset >= known and row.digest in front else head).append(row)
    ordered = _nearest(head)
    at_source, at_target = _allowed(found, len(ordered))
    found.expired_at_source += at_source
    found.expired_at_target += at_target
    found.target_head = []
    _lose(found, found.source_head_records - at_target)
    expired = {row.digest for row in ordered[:at_source]}
    left = sorted([*ordered[at_source:], *copies, *foreign], key=lambda row: row.offset)
    return Leftover([row for row in left if row.digest in expired], [row for row in left if row.digest not in expired])


def _nearest(rows: Sequence[Row]) -> list[Row]:
    """The rows from the last to the first, those that repeat an earlier one behind all others."""
    seen: set[str] = set()
    single: list[Row] = []
    repeated: list[Row] = []
    for row in rows:
        (repeated if row.digest in seen else single).append(row)
        seen.add(row.digest)
    return [*reversed(single), *reversed(repeated)]


def _lose(found: Difference, records: int) -> None:
    """Of what stands in front of the overlap at the source the first so many records are lost, the rest has expired."""
    runs = [Run(row.offset, row.offset, 1) for row in found.source_head] + found.source_head_runs
    rows = {row.offset: row for row in found.source_head}
    for run in sorted(runs, key=lambda one: one.first):
        lost, expired = _split(run, min(records, run.records))
        if lost is not None:
            records -= lost.records
            found.lost += [rows[lost.first]] if lost.first in rows else []
            found.missing += [lost] if lost.first not in rows else []
        if expired is not None:
            found.survivors.append(expired.first)  # what is lost on either side of it does not follow each other
            break
    found.source_head, found.source_head_runs = [], []
