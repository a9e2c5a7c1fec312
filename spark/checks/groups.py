"""Checks of the consumer groups' positions on the target, by the records themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from contract.verification_request import Limits, Mirror
from kafka.group_positions import NONE, GroupPosition, GroupPositions
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from spark.checks.registry import DOCTOR, EXACT, NAMED_MAX, NOTHING, Check, Remedy, check
from spark.comparison.position_columns import Places, PositionColumns
from spark.run_context import RunContext

Starts = Mapping[TopicPartition, int]
EVIDENCE_MAX = 1000
"""Positions that a check shows, those that keep it from holding first: `groups` of the report has all."""


def _position(one: GroupPosition) -> dict[str, Any]:
    names = ("group", "topic", "partition", "committed", "synced", "lowest", "highest", "unread", "skipped", "repeated")
    return {name: getattr(one, name) for name in names} | {
        "active_on_target": one.active,
        "unclaimed": one.unclaimed,
    }


def _named(positions: GroupPositions, places: Places, what: str) -> str:
    return _each(positions, places, lambda one: _amount(one, what))


def _each(positions: GroupPositions, places: Places, text: Callable[[GroupPosition], str]) -> str:
    """Return where the first of these positions are, each with a text behind it, and how many more there are."""
    shown = [f"{one.group} on {one.topic}-{one.partition}{text(one)}" for one in _shown_of(positions, places)]
    more = len(places) - NAMED_MAX
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _shown_of(positions: GroupPositions, places: Places, most: int = NAMED_MAX) -> list[GroupPosition]:
    return [positions[at] for at in places[:most].tolist()]


def _amount(one: GroupPosition, what: str) -> str:
    return f": {getattr(one, what)} {what}" if what else ""


def unknown_groups(absent: Sequence[str], denied: Mapping[str, str]) -> str:
    """Return which groups could not be judged and why, empty for none."""
    parts = [f"no group {', '.join(absent)} at the source"] if absent else []
    return "; ".join([*parts, *(denied[group] for group in sorted(denied))])


def _with_unknown(check: Check, unknown: str) -> Check:
    """Return the check with the groups that could not be read: they make it unknown, unless it fails already."""
    if not unknown:
        return check
    observed = unknown if check.observed == NOTHING else f"{check.observed}; {unknown}"
    return replace(check, ok=False if check.ok is False else None, observed=observed)


def groups_synced(groups: Groups, mirror: Mirror, unknown: str = "") -> Check:
    """Each committed position of a mirrored group has its copy on the target, unless the group is active there.

    `unknown` names the groups that could not be read; they make it unknown.
    """
    positions = groups.by_column
    columns = PositionColumns(positions)
    is_missing = (columns.synced == NONE) & ~columns.is_set("active")
    missing = np.flatnonzero(is_missing)
    ok: bool | None = True
    if len(missing):
        ok, parts = False, [f"not synced: {_named(positions, missing, '')}"]
    elif not positions:
        ok, parts = None, [NOTHING]
    else:
        parts = [f"{len(positions)} positions of {len(positions.group_names)} groups"]
    shown = np.concatenate([missing[:EVIDENCE_MAX], np.flatnonzero(~is_missing)[:EVIDENCE_MAX]])
    check = Check(
        name="groups_synced",
        ok=ok,
        expected="a synced offset for each committed offset",
        observed=", ".join([*parts, *_notes(groups)]),
        evidence=[groups.row(one, mirror) for one in _shown_of(positions, shown, EVIDENCE_MAX)],
    )
    return _with_unknown(check, unknown)


def _notes(groups: Groups) -> list[str]:
    """What is shown beside the result and fails nothing by itself."""
    positions = groups.by_column
    columns = PositionColumns(positions)
    active = _groups_with(positions, columns.is_set("active"))
    ahead = _groups_with(positions, columns.is_set("unclaimed")) - active
    starts, ends = _logs(groups, positions)
    number = columns.partition_numbers
    behind = int(np.maximum(0, ends[number] - np.maximum(columns.committed, starts[number])).sum())
    lost = np.flatnonzero(starts[number] > columns.committed)
    shown = _shown_of(positions, lost)
    named = [f"{one.group} on {one.topic}-{one.partition}: {groups.lost_at_source(one)}" for one in shown]
    return [
        *([f"missing on the target: {_listed(groups.missing)}"] if groups.missing else []),
        *([f"{len(active)} active on target"] if active else []),
        *([f"{len(ahead)} ahead of every checkpoint without a member on the target"] if ahead else []),
        *([f"{behind} offsets not read at the source"] if behind else []),
        *([f"removed at the source before they were read: {'; '.join(named)}"] if len(lost) else []),
    ]


def _groups_with(positions: GroupPositions, chosen: npt.NDArray[np.bool_]) -> set[str]:
    """The groups of the positions that are chosen."""
    numbers = PositionColumns(positions).group_numbers[chosen]
    return {positions.groups[number] for number in np.unique(numbers).tolist()}


def _logs(groups: Groups, positions: GroupPositions) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Log start and log end offset at the source by number of the partition, 0 where they are not known."""
    logs = (groups.logs.get(tp) for tp in positions.partitions)
    known = np.array([(0, 0) if log is None else (log.start, log.end) for log in logs], dtype=np.int64).reshape(-1, 2)
    return known[:, 0], known[:, 1]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def groups_no_loss(
    positions: Sequence[GroupPosition], unknown: str = "", ours: Starts | None = None, theirs: Starts | None = None
) -> Check:
    """A consumer that goes on at the target from its synced offset skips no record.

    Whether an offset above every checkpoint of a group without members was reached by reading is undecidable: unknown.
    So is where a client goes on whose offset lies in front of the target's log start: it is out of range there.

    Args:
        positions: of all groups and partitions.
        unknown: groups that could not be read, which make it unknown.
        ours: log starts at the source.
        theirs: log starts of the remote topics, by the names of the source. What is not known is taken for 0.
    """
    found = GroupPositions.of(positions)
    columns = PositionColumns(found)
    judged, active = _judged(columns), columns.is_set("active")
    skipping = judged & (columns.numbers["skipped"] > 0) & ~active
    bad = np.flatnonzero(skipping & ~columns.is_set("unclaimed"))
    open_ones = np.flatnonzero(skipping & columns.is_set("unclaimed"))
    outside = np.flatnonzero(judged & ~active & _is_out_of_range(found, columns, ours or {}, theirs or {}))
    number, at_work = int((judged & ~active).sum()), int((judged & active).sum())
    parts = [_named(found, bad, "skipped")] if len(bad) else []
    parts += [_unexplained(found, open_ones)] if len(open_ones) else []
    parts += [_out_of_range(found, outside)] if len(outside) else []
    shown = _shown_of(found, np.concatenate([bad, open_ones, outside]), EVIDENCE_MAX)
    good = f"{number} positions, 0 skipped" + (f", {at_work} more of groups active on the target" if at_work else "")
    check = Check(
        name="groups_no_loss",
        ok=False if len(bad) else None if len(open_ones) or len(outside) or not number else True,
        expected="0 records skipped",
        observed="; ".join(parts) or (good if number else _nothing_judged(at_work)),
        evidence=[_position(one) for one in shown],
    )
    return _with_unknown(check, unknown)


def _is_out_of_range(
    positions: GroupPositions, columns: PositionColumns, ours: Starts, theirs: Starts
) -> npt.NDArray[np.bool_]:
    """Which positions are in front of the target's log start, with something to read and in the log of the source."""
    number = columns.partition_numbers
    source, target = (
        np.array([starts.get(tp, 0) for tp in positions.partitions], dtype=np.int64)[number]
        for starts in (ours, theirs)
    )
    found: npt.NDArray[np.bool_] = columns.synced < target
    return found & (columns.committed >= source) & (columns.numbers["unread"] > 0)


def _out_of_range(positions: GroupPositions, places: Places) -> str:
    where = _each(positions, places, lambda one: f": {one.synced}")
    return (
        f"in front of the target's log start: {where}. Retention has deleted there what these groups have not read "
        "yet, and a client whose offset is out of range goes on where its auto.offset.reset says, by default behind "
        "all records. Set them to the exact offsets before they start there"
    )


def _judged(columns: PositionColumns) -> npt.NDArray[np.bool_]:
    """Which positions can be judged: the records were compared, and the group stands somewhere on the target."""
    is_placed: npt.NDArray[np.bool_] = columns.synced != NONE
    return columns.is_set("judged") & is_placed


def _nothing_judged(at_work: int) -> str:
    """Return why no position is judged, with the number of those of groups active on the target."""
    if not at_work:
        return NOTHING
    return (
        f"{NOTHING}: {at_work} positions, all of groups active on the target. Their members go on from where they are; "
        "stop them there to have them judged"
    )


def _unexplained(positions: GroupPositions, places: Places) -> str:
    def text(one: GroupPosition) -> str:
        return f": {one.skipped} skipped at {one.synced}, which no checkpoint states and no member explains"

    return (
        f"{_each(positions, places, text)}. Its members have read them on the target and left, or the group went back "
        "at the source and the checkpoint that set the offset is gone. Let the group catch up at the source, or delete "
        "it on the target: the mirror then sets it again"
    )


def groups_reread_bounded(positions: Sequence[GroupPosition], limits: Limits, unknown: str = "") -> Check:
    """No group reads more records again on the target than the limit allows, all its partitions together."""
    found = GroupPositions.of(positions)
    columns = PositionColumns(found)
    placed, active = _judged(columns), columns.is_set("active")
    judged = placed & ~active
    numbers = columns.group_numbers[judged]
    sums = np.zeros(len(found.groups), dtype=np.int64)
    np.add.at(sums, numbers, columns.numbers["repeated"][judged])
    totals = {found.groups[number]: int(sums[number]) for number in np.unique(numbers).tolist()}
    over = sorted(group for group, total in totals.items() if total > limits.reread_records_max)
    shown = "; ".join(f"{group} would read {totals[group]} again" for group in over[:NAMED_MAX])
    most = f"at most {max(totals.values(), default=0)} read again"
    check = Check(
        name="groups_reread_bounded",
        ok=not over if judged.any() else None,
        expected=f"at most {limits.reread_records_max} records read again per group",
        observed=(shown or most) if judged.any() else _nothing_judged(int(placed.sum())),
        evidence=[{"group": group, "repeated": total} for group, total in sorted(totals.items())],
    )
    return _with_unknown(check, unknown)


def _groups_left_out(mirror: Mirror) -> str | None:
    return None if mirror.sets_groups else "the mirror syncs no group offsets (sync.group.offsets)"


def _unknown_in(context: RunContext) -> str:
    return unknown_groups(context.absent_groups, context.denied_groups)


@check(
    "groups_synced",
    after="records_foreign",
    left_out=_groups_left_out,
    remedy=Remedy(
        text="Check sync.group.offsets.enabled, or with exactOffsets the follower; the mirror's group pattern and "
        "the checkpoint connector. Offsets of a group that is active on the target are never synced.",
        commands=("python -m ops offsets show {mirror} {groups}", DOCTOR),
        page="docs/offsets.md",
    ),
)
def _groups_synced(context: RunContext) -> Check:
    return groups_synced(context.groups, context.request.mirror, _unknown_in(context))


@check(
    "groups_no_loss",
    after="groups_synced",
    left_out=_groups_left_out,
    remedy=Remedy(
        text="Do not start these groups on the target: they would skip records. While they are stopped there, set "
        "them to the exact offsets. The command shows its plan and asks.",
        commands=(EXACT,),
        page="docs/offsets.md",
    ),
)
def _groups_no_loss(context: RunContext) -> Check:
    starts = context.source_starts_after, context.target_starts_after
    return groups_no_loss(context.groups.positions, _unknown_in(context), *starts)


@check(
    "groups_reread_bounded",
    after="groups_no_loss",
    left_out=_groups_left_out,
    remedy=Remedy(
        text="Lower offset.lag.max and sync.group.offsets.interval.seconds. Or set the exact offsets before the groups "
        "start on the target; the command shows its plan and asks.",
        commands=(EXACT,),
        page="docs/offsets.md",
    ),
)
def _groups_reread_bounded(context: RunContext) -> Check:
    return groups_reread_bounded(context.groups.positions, context.request.limits, _unknown_in(context))
