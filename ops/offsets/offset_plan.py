"""Setting groups' offsets on one side: everything is checked first, then all of it is set while they are inactive.

Owns the plan and its checks. Does not own how offsets are committed, see recovery/group_offsets.py, nor which ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from kafka import checkpoints
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.console import AdaptiveTable, Column, Text
from ops.errors import OpsError
from ops.offsets.current_offsets import Log, committed, logs, translate
from ops.offsets.entries import OffsetsByGroup, format_offset
from ops.recovery import group_offsets
from ops.recovery.mirror_context import MirrorContext
from settings.text import format_names

PROBLEMS_NAMED = 20
"""Positions that cannot be set of which each has a line."""
POSITIONS_SHOWN = 100
"""Rows of a plan on a screen, and lines of what is left as it is."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One position: the offset that the group has now (None: it has none), and the one to set."""

    group: str
    topic: str
    partition: int
    now: int | None
    wanted: int

    @property
    def done(self) -> bool:
        """Whether the group has that offset already."""
        return self.now == self.wanted

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        return {**vars(self), "done": self.done}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is set on one side. `left` are positions that are not set, with the reason; `notes` are warnings."""

    side: str
    cluster: str
    changes: tuple[Change, ...]
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> dict[str, dict[TopicPartition, int]]:
        """The offsets of each group."""
        found: dict[str, dict[TopicPartition, int]] = {}
        for one in self.changes:
            found.setdefault(one.group, {})[TopicPartition(one.topic, one.partition)] = one.wanted
        return found

    @property
    def pending(self) -> int:
        """How many positions are to be set."""
        return sum(not one.done for one in self.changes)

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        return {
            "side": self.side,
            "cluster": self.cluster,
            "changes": [one.as_json() for one in self.changes],
            "left": list(self.left),
            "notes": list(self.notes),
        }


def plan(
    pair: MirrorContext,
    cluster: Cluster,
    side: str,
    wanted: OffsetsByGroup,
    *,
    left: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    within_logs: bool = False,
) -> Plan:
    """Return what would be set on one side.

    Args:
        pair: the mirror.
        cluster: the connected cluster whose groups' offsets are set.
        side: `source` or `target`, which that cluster is.
        wanted: the offsets.
        left: positions that are not set, with the reason.
        notes: warnings.
        within_logs: moves an offset in front of its log to the log start offset; else it is an error. One beyond the
            log always is: where its topic was created again, the group has read nothing of what is there.

    Raises:
        OpsError: with everything that is wrong; nothing is set then.
    """
    alias = cluster.side.alias
    bounds = logs(cluster, {tp for offsets in wanted.values() for tp in offsets})
    problems = []
    if active := group_offsets.members(cluster, wanted):
        problems.append(
            f"cluster {alias}: groups must be inactive while their offsets are set (got members in "
            f"{format_names(active)}). Stop these applications there."
        )
    known = cluster.group_offsets(wanted)
    changes, more, outside = [], list(notes), list[str]()
    for group, offsets in sorted(wanted.items()):
        for (topic, partition), offset in sorted(offsets.items()):
            name = f"group {group} on {topic}-{partition}"
            if TopicPartition(topic, partition) not in bounds:
                outside.append(f"{name}: partition must exist on cluster {alias} (got none of that name).")
                continue
            start, end = bounds[TopicPartition(topic, partition)]
            near = max(offset, start)
            if near > end or (near != offset and not within_logs):
                outside.append(f"{name}: offset must be from {start} to {end}, where the log is (got {offset}).")
                continue
            if near != offset:
                more.append(f"{name}: {near} instead of {offset}, for the log is from {start} to {end}")
            now = known[group].get(TopicPartition(topic, partition))
            changes.append(Change(group=group, topic=topic, partition=partition, now=now, wanted=near))
    if problems or outside:
        raise _nothing_set(problems, outside)
    found = Plan(side=side, cluster=alias, changes=tuple(changes), left=left, notes=tuple(more))
    return found if side == "source" else _with_moved(pair, cluster, found)


def carry_out(cluster: Cluster, wanted: Plan) -> None:
    """Set the offsets of the plan; raises OpsError that names the groups that were set. It is safe to repeat.

    If a group has moved since the plan was made, nothing is set: what it has read since would be read again.
    """
    group_offsets.require_inactive(cluster, wanted.groups)
    _require_unmoved(cluster, wanted)
    done: list[str] = []
    try:
        for group, _ in group_offsets.commit_each(cluster, wanted.groups.items()):
            done.append(group)
    except OpsError as error:
        left = {group: offsets for group, offsets in wanted.groups.items() if group not in done}
        try:
            done += group_offsets.standing(cluster, left)
        except ClusterError as silent:
            raise OpsError(f"{error} Set by now: {_names(done)}, perhaps others: {silent}") from None
        raise OpsError(f"{error} Set by now: {_names(done)}.") from None
    except KeyboardInterrupt:
        raise OpsError(
            f"Interrupted. Set by now: {_names(done)}, perhaps others, for several are set at the same time. Run the "
            "same command again: it sets what is left."
        ) from None


def _require_unmoved(cluster: Cluster, wanted: Plan) -> None:
    known = cluster.group_offsets(wanted.groups)
    moved = []
    for one in wanted.changes:
        at = known[one.group].get(TopicPartition(one.topic, one.partition))
        if at not in (one.now, one.wanted):
            moved.append(
                f"group {one.group} on {one.topic}-{one.partition}: has moved since the plan (got "
                f"{format_offset(at)}, planned from {format_offset(one.now)} to {one.wanted})."
            )
    if moved:
        problem = f"cluster {cluster.side.alias}: groups must not move while their offsets are set. Run this again."
        raise _nothing_set([problem], moved)


def _nothing_set(problems: Sequence[str], positions: Sequence[str]) -> OpsError:
    more = len(positions) - PROBLEMS_NAMED
    rest = [f"and {more} more positions."] if more > 0 else []
    return OpsError("\n".join([*problems, *positions[:PROBLEMS_NAMED], *rest, "Nothing was set."]))


def _names(groups: Sequence[str]) -> str:
    return format_names(groups) if groups else "no group"


def synced_offsets(pair: MirrorContext, target: Cluster, groups: list[str]) -> OffsetsByGroup:
    """Return the target offsets of MirrorMaker's newest checkpoints; raises OpsError for a group that has none."""
    found = checkpoints.read_checkpoints(target, pair.request.mirror)
    wanted: OffsetsByGroup = {}
    for group, topic, partition in found.checkpoints:
        last = found.last_checkpoint((group, topic, partition))
        if group in groups and last is not None:
            wanted.setdefault(group, {})[TopicPartition(topic, partition)] = last.downstream
    problems = list(found.problems)
    if missing := [group for group in groups if group not in wanted]:
        problems.append(
            f"topic {pair.request.mirror.checkpoints_name}: must hold a checkpoint of each group (got none of "
            f"{format_names(missing)}). The mirror writes one after a group has committed at the source."
        )
    if problems:
        raise OpsError("\n".join(problems))
    return wanted


def _with_moved(pair: MirrorContext, target: Cluster, found: Plan) -> Plan:
    """Add a note for each group that the mirror, which never moves a group back, would move forward again."""
    if not pair.request.mirror.sync_group_offsets or pair.state != "running":
        return found
    histories: Mapping[tuple[str, str, int], Any] = checkpoints.read_checkpoints(
        target, pair.request.mirror
    ).checkpoints
    ahead = []
    for one in found.changes:
        history = histories.get((one.group, one.topic, one.partition))
        last = history.last if history is not None else None
        if last is not None and last.downstream > one.wanted:
            ahead.append(f"{one.group} on {one.topic}-{one.partition} to {last.downstream}")
    if not ahead:
        return found
    note = (
        f"the mirror syncs offsets and will move {'; '.join(ahead[:10])} forward again unless members are there by "
        "then: stop the mirror, or set syncGroupOffsets to false, first"
    )
    return replace(found, notes=(*found.notes, note))


@dataclass(frozen=True, kw_only=True)
class OffsetSelection:
    """Offsets to set, positions without one with the reason, and warnings."""

    wanted: OffsetsByGroup
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """The connected side whose positions are translated."""

    cluster: Cluster
    side: str


def exact_offsets(
    pair: MirrorContext,
    origin: Origin,
    groups: Sequence[str],
    report_dir: Path,
    environment: Mapping[str, str],
    log: Log,
) -> OffsetSelection:
    """Return the offsets at which these groups neither skip nor repeat a record on the other side.

    Args:
        pair: the mirror.
        origin: the side whose positions are translated; partitions without records there are left out.
        groups: names of the groups.
        report_dir: folder for the report of the verification job.
        environment: environment of the job.
        log: gets each line of its progress.

    Raises:
        OpsError: a group has no position at the origin, or the job could not judge.
    """
    entries = committed(pair, origin.cluster, origin.side, groups, held_only=True)
    active = group_offsets.members(origin.cluster, dict.fromkeys(groups))
    outcome = translate(pair, origin.side, entries, report_dir, environment, log)
    wanted: OffsetsByGroup = {group: {} for group in groups}
    left, notes = [], [*outcome.faults]
    for row in outcome.rows:
        entry = row.entry
        name = f"group {entry.group} on {entry.topic}-{entry.partition}"
        if row.exact is None:
            left.append(f"{name} at {entry.offset}: {row.problem}")
            continue
        wanted[str(entry.group)][TopicPartition(row.topic, entry.partition)] = row.exact
        if row.removed:
            notes.append(f"{name}: {row.removed} offsets in front of it are deleted on the {origin.side}")
    if active:
        notes.append(
            f"{format_names(active)} have members on the {origin.side}: what they read from now on is read again. "
            "Stop them first"
        )
    return OffsetSelection(wanted=wanted, left=tuple(left), notes=tuple(notes))


def plan_table(wanted: Plan) -> RenderableType:
    """Return a table of what would be set, with what is left as it is, and the warnings: some, if there are many."""
    names = Column("group", name=True), Column("topic", name=True), Column("partition", name=True, number=True)
    table = AdaptiveTable(
        f"offsets on the {wanted.side}, cluster {wanted.cluster}",
        (*names, Column("now", number=True), Column("to be set", number=True)),
        caption=_more(len(wanted.changes)),
    )
    for one in wanted.changes[:POSITIONS_SHOWN]:
        shown = "already there" if one.done else str(one.wanted)
        table.add_row(one.group, one.topic, str(one.partition), format_offset(one.now), shown)
    parts: list[RenderableType] = [table]
    for what, lines in (("left as it is", wanted.left), ("note", wanted.notes)):
        more = _more(len(lines))
        named = [*lines[:POSITIONS_SHOWN], *([more] if more else [])]
        # A string with markup would take a minute for a name of 64 KiB.
        parts += [Text().append(f"{what}:", "yellow").append(f" {line}") for line in named]
    return Group(*parts)


def _more(number: int) -> str:
    return f"and {number - POSITIONS_SHOWN} more: --json shows all" if number > POSITIONS_SHOWN else ""
