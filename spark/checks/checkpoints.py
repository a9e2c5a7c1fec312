"""The check of MirrorMaker's offset translation, its checkpoints and offset syncs, against the records themselves."""

from collections.abc import Mapping
from typing import Any

from contract.verification_request import Mirror
from kafka import checkpoints
from kafka.checkpoints import SourceOffset
from kafka.group_positions import NONE
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from spark.checks.registry import NAMED_MAX, NOTHING, Check, Remedy, check
from spark.run_context import RunContext

Truth = Mapping[SourceOffset, tuple[int | None, int | None]]


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
    for at, (key, tp) in enumerate(groups.keys(mirror)):
        mapping = checkpoints.judged_checkpoint(groups.translation, key, cut.get(tp, 0))
        _, highest = truth.get((*tp, mapping.upstream), (None, None)) if mapping else (None, None)
        if mapping is None or highest is None:
            continue
        judged += 1
        if mapping.downstream > highest:
            found = _pair("checkpoint skips records", *tp, mapping.upstream, mapping.downstream)
            bad.append(found | {"group": groups.by_column.named(at)[0], "highest": highest})
    return judged, bad


def _syncs(groups: Groups, cut: Mapping[TopicPartition, int], truth: Truth) -> tuple[int, list[dict[str, Any]]]:
    judged, bad = 0, []
    positions = groups.by_column
    for tp in map(positions.partitions.__getitem__, dict.fromkeys(positions.partition_numbers)):
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
    positions = groups.by_column
    columns = zip(positions.flags["active"], positions.numbers["synced"], groups.keys(mirror), strict=True)
    for at, (active, synced, (key, _)) in enumerate(columns):
        if active or synced == NONE or synced >= (due := groups.due.get(key, 0)):
            continue
        one = positions[at]
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


@check(
    "checkpoints_consistent",
    after="groups_reread_bounded",
    left_out=lambda mirror: None if mirror.keeps(mirror.checkpoints_name) else "the mirror emits no checkpoints",
    remedy=Remedy(
        text="Restart the checkpoint connector. If it stays so, its offset-syncs topic has lost entries: trust the "
        "true range below, not MirrorMaker's translation.",
        commands=("python -m ops offsets show {mirror} --exact",),
        page="docs/offsets.md",
    ),
)
def _checkpoints_consistent(context: RunContext) -> Check:
    return checkpoints_consistent(context.groups, context.request.mirror, context.cut.cut, context.truth)
