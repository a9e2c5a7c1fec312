"""The checks of groups one position after the other: what the checks by column must find."""

from collections.abc import Mapping, Sequence
from typing import Any

from contract.verification_request import Limits, Mirror
from kafka import checkpoints
from kafka.checkpoints import SourceOffset
from kafka.group_positions import GroupPosition
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from spark.checks.registry import NAMED_MAX, NOTHING, Check, named

Truth = Mapping[SourceOffset, tuple[int | None, int | None]]
EVIDENCE_MAX = 1000


def _position(one: GroupPosition) -> dict[str, Any]:
    names = ("group", "topic", "partition", "committed", "synced", "lowest", "highest", "unread", "skipped", "repeated")
    return {name: getattr(one, name) for name in names} | {
        "active_on_target": one.active,
        "unclaimed": one.unclaimed,
    }


def _named(positions: Sequence[GroupPosition], what: str) -> str:
    shown = [f"{one.group} on {one.topic}-{one.partition}{_amount(one, what)}" for one in positions[:NAMED_MAX]]
    more = len(positions) - NAMED_MAX
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _amount(one: GroupPosition, what: str) -> str:
    return f": {getattr(one, what)} {what}" if what else ""


def groups_synced(groups: Groups, mirror: Mirror) -> Check:
    """Each committed position of a mirrored group has its copy on the target, unless the group is active there.

    `unknown` names the groups that could not be read; they make it unknown.
    """
    positions = groups.positions
    missing = [one for one in positions if one.synced is None and not one.active]
    ok: bool | None = True
    if missing:
        ok, parts = False, [f"not synced: {_named(missing, '')}"]
    elif not positions:
        ok, parts = None, [NOTHING]
    else:
        parts = [f"{len(positions)} positions of {len({one.group for one in positions})} groups"]
    return Check(
        name="groups_synced",
        ok=ok,
        expected="a synced offset for each committed offset",
        observed=", ".join([*parts, *_notes(groups)]),
        evidence=[groups.row(one, mirror) for one in [*missing, *_others(positions)][:EVIDENCE_MAX]],
    )


def _others(positions: Sequence[GroupPosition]) -> list[GroupPosition]:
    return [one for one in positions if one.synced is not None or one.active]


def _notes(groups: Groups) -> list[str]:
    """What is shown beside the result and fails nothing by itself."""
    positions = groups.positions
    active = {one.group for one in positions if one.active}
    ahead = {one.group for one in positions if one.unclaimed} - active
    behind = sum(groups.lag(one) or 0 for one in positions)
    lost = [one for one in positions if groups.lost_at_source(one)]
    named = [f"{one.group} on {one.topic}-{one.partition}: {groups.lost_at_source(one)}" for one in lost[:NAMED_MAX]]
    return [
        *([f"missing on the target: {_listed(groups.missing)}"] if groups.missing else []),
        *([f"{len(active)} active on target"] if active else []),
        *([f"{len(ahead)} ahead of every checkpoint without a member on the target"] if ahead else []),
        *([f"{behind} offsets not read at the source"] if behind else []),
        *([f"removed at the source before they were read: {'; '.join(named)}"] if lost else []),
    ]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def groups_no_loss(positions: Sequence[GroupPosition]) -> Check:
    """A consumer that goes on at the target from its synced offset skips no record.

    Whether an offset above every checkpoint of a group without members was reached by reading is undecidable: unknown.
    """
    judged = [one for one in positions if one.judged and one.synced is not None]
    skipping = [one for one in judged if one.skipped and not one.active]
    bad, open_ones = [one for one in skipping if not one.unclaimed], [one for one in skipping if one.unclaimed]
    parts = [_named(bad, "skipped")] if bad else []
    parts += [_unexplained(open_ones)] if open_ones else []
    at_work = sum(one.active for one in judged)
    good = f"{len(judged) - at_work} positions, 0 skipped"
    good += f", {at_work} more of groups active on the target" if at_work else ""
    return Check(
        name="groups_no_loss",
        ok=False if bad else None if open_ones or len(judged) == at_work else True,
        expected="0 records skipped",
        observed="; ".join(parts) or (good if len(judged) > at_work else _nothing_judged(at_work)),
        evidence=[_position(one) for one in [*bad, *open_ones][:EVIDENCE_MAX]],
    )


def _nothing_judged(at_work: int) -> str:
    why = (
        f": {at_work} positions, all of groups active on the target. Their members go on from where they are; stop "
        "them there to have them judged"
    )
    return NOTHING + (why if at_work else "")


def _unexplained(positions: Sequence[GroupPosition]) -> str:
    texts = [
        f"{one.group} on {one.topic}-{one.partition}: {one.skipped} skipped at {one.synced}, which no checkpoint "
        "states and no member explains"
        for one in positions
    ]
    return (
        f"{named(texts)}. Its members have read them on the target and left, or the group went back at the source and "
        "the checkpoint that set the offset is gone. Let the group catch up at the source, or delete it on the target: "
        "the mirror then sets it again"
    )


def groups_reread_bounded(positions: Sequence[GroupPosition], limits: Limits) -> Check:
    """No group reads more records again on the target than the limit allows, all its partitions together."""
    judged = [one for one in positions if one.judged and one.synced is not None]
    totals: dict[str, int] = {}
    for one in judged:
        if not one.active:
            totals[one.group] = totals.get(one.group, 0) + one.repeated
    over = sorted(group for group, total in totals.items() if total > limits.reread_records_max)
    shown = "; ".join(f"{group} would read {totals[group]} again" for group in over[:NAMED_MAX])
    most = f"at most {max(totals.values(), default=0)} read again"
    return Check(
        name="groups_reread_bounded",
        ok=not over if totals else None,
        expected=f"at most {limits.reread_records_max} records read again per group",
        observed=(shown or most) if totals else _nothing_judged(len(judged)),
        evidence=[{"group": group, "repeated": total} for group, total in sorted(totals.items())],
    )


def checkpoints_consistent(groups: Groups, mirror: Mirror, cut: Mapping[TopicPartition, int], truth: Truth) -> Check:
    """No checkpoint and no offset sync points past its record, and each checkpoint was synced to its group.

    `truth` holds the lowest and the highest target offset of each (topic, partition, source offset) that could be
    translated from the records; an offset mapping that is not in it is not judged.
    """
    judged_checkpoints, bad = _checkpoints(groups, mirror, cut, truth)
    judged_syncs, wrong = _syncs(groups, cut, truth)
    bad += wrong + _late(groups, mirror)
    problems = groups.translation.problems
    good = f"{judged_checkpoints} checkpoints and {judged_syncs} offset syncs are true to the records"
    if bad:
        ok, observed = False, _shown(bad)
    elif problems:
        ok, observed = None, "; ".join(problems)
    elif not judged_checkpoints:
        ok, observed = None, NOTHING
    else:
        ok, observed = True, good
    return Check(
        name="checkpoints_consistent",
        ok=ok,
        expected="no checkpoint or offset sync points past its record, and each checkpoint was synced",
        observed=observed,
        evidence=bad,
    )


def _checkpoints(
    groups: Groups, mirror: Mirror, cut: Mapping[TopicPartition, int], truth: Truth
) -> tuple[int, list[dict[str, Any]]]:
    judged, bad = 0, []
    for one in groups.positions:
        tp = TopicPartition(one.topic, one.partition)
        mapping = checkpoints.judged_checkpoint(groups.translation, groups.checkpoint_key(one, mirror), cut.get(tp, 0))
        _, highest = truth.get((*tp, mapping.upstream), (None, None)) if mapping else (None, None)
        if mapping is None or highest is None:
            continue
        judged += 1
        if mapping.downstream > highest:
            found = _pair("checkpoint skips records", *tp, mapping.upstream, mapping.downstream)
            bad.append(found | {"group": one.group, "highest": highest})
    return judged, bad


def _syncs(groups: Groups, cut: Mapping[TopicPartition, int], truth: Truth) -> tuple[int, list[dict[str, Any]]]:
    judged, bad = 0, []
    for tp in dict.fromkeys(TopicPartition(one.topic, one.partition) for one in groups.positions):
        for sync in checkpoints.judged_syncs(groups.translation, tp, cut.get(tp, 0)):
            _, highest = truth.get((*tp, sync.upstream), (None, None))
            if highest is None:
                continue
            judged += 1
            # One that points before its record only repeats some: groups_reread_bounded judges how many.
            if sync.downstream > highest:
                found = _pair("offset sync points past its record", *tp, sync.upstream, sync.downstream)
                bad.append(found | {"highest": highest})
        history = (groups.translation.syncs or {}).get(tp)
        for before, after in history.contradictions if history else []:
            found = _pair("offset sync goes back", *tp, after.upstream, after.downstream)
            bad.append(found | {"before": [before.upstream, before.downstream]})
    return judged, bad


def _late(groups: Groups, mirror: Mirror) -> list[dict[str, Any]]:
    """Positions that were not set to the checkpoint that was there when the wait began."""
    bad = []
    for one in groups.positions:
        due = groups.due.get(groups.checkpoint_key(one, mirror))
        if one.active or due is None or one.synced is None or one.synced >= due:
            continue
        last = groups.checkpoint(one, mirror)
        upstream = last.upstream if last else one.committed
        found = _pair("synced offset is behind its checkpoint", one.topic, one.partition, upstream, due)
        bad.append(found | {"group": one.group, "synced": one.synced})
    return bad


def _pair(problem: str, topic: str, partition: int, upstream: int, downstream: int) -> dict[str, Any]:
    return {
        "problem": problem,
        "topic": topic,
        "partition": partition,
        "upstream": upstream,
        "downstream": downstream,
    }


def _shown(bad: list[dict[str, Any]]) -> str:
    named = []
    for one in bad[:NAMED_MAX]:
        group = f" of group {one['group']}" if "group" in one else ""
        other = next((f", {name} {one[name]}" for name in ("highest", "synced", "before") if name in one), "")
        pair = f"{one['upstream']} to {one['downstream']}{other}"
        named.append(f"{one['problem']}: {one['topic']}-{one['partition']}{group} ({pair})")
    more = len(bad) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more > 0 else "")
