"""The offsets of groups on both clusters of a mirror, and the table of them. Joins no group and commits nothing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group, RenderableType

from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.console import AdaptiveTable, Column
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.inspection.group_status import GroupOffset, GroupStatus
from ops.inspection.snapshot import Log
from ops.offsets.entries import Entry, format_offset
from ops.offsets.translation import name_at_source
from ops.recovery.mirror_context import MirrorContext
from settings.text import format_count

SNAPSHOT_PARTS = (snapshot.SOURCE, snapshot.TARGET, snapshot.LAG_AND_GROUPS)


@dataclass(frozen=True, kw_only=True)
class CurrentOffset:
    """One group in one partition. What is None is not known, or there is none.

    `again` is what it would read again on the target: that of a snapshot, by offsets and so approximate, unless `exact`
    is known. `exact` and `skipped` come from the records and are None without them.
    """

    group: str
    topic: str
    target_topic: str
    partition: int
    source_state: str | None
    target_state: str | None
    source: int
    source_lag: int | None
    target: int | None
    target_lag: int | None
    again: int | None
    skipped: int | None = None
    exact: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "source": {"state": self.source_state, "offset": self.source, "lag": self.source_lag},
            "target": {
                "topic": self.target_topic,
                "state": self.target_state,
                "offset": self.target,
                "lag": self.target_lag,
                "exact": self.exact,
            },
            "repeated": self.again,
            "skipped": self.skipped,
        }


def collect(
    pair: MirrorContext, groups: Sequence[str], environment: Mapping[str, str], log: Log
) -> tuple[list[CurrentOffset], list[str]]:
    """Return the offsets of the mirrored groups, or of those named, and why some are not known.

    Args:
        pair: the mirror.
        groups: names of groups; none for all that the mirror carries.
        environment: for the programs that are started.
        log: gets a line for what is read in another way than usual.

    Raises:
        OpsError: a cluster is unreachable, or groups are not carried by the mirror or do not exist at the source; it
            names each of them.
    """
    require_carried(pair, groups)
    if groups:
        mirror = pair.request.mirror.model_copy(update={"groups": tuple(map(re.escape, groups))})
        pair = replace(pair, request=pair.request.model_copy(update={"mirror": mirror}))
    seen = snapshot.collect(pair, environment, log, parts=SNAPSHOT_PARTS)
    if problems := [one.problem for one in (seen.source, seen.target) if one.problem]:
        raise OpsError("\n".join(problems))
    if seen.groups is None:
        raise OpsError(f"mirror {pair.mirror}: groups must be readable ({seen.unknown['groups']}).")
    missing = [group for group in groups if group not in {one.group for one in seen.groups}]
    if missing:
        raise OpsError(
            f"cluster {seen.source.alias}: groups must exist at the source (got none of {', '.join(missing)}). "
            "Leave --group out to see which there are."
        )
    rows = [_row(group, offset) for group in seen.groups for offset in group.offsets]
    unmeasured = [f"what is read again is not known: {seen.unknown['lag']}"] if "lag" in seen.unknown else []
    return rows, [*(group.problem for group in seen.groups if group.problem), *unmeasured]


def _row(group: GroupStatus, offset: GroupOffset) -> CurrentOffset:
    known = {**vars(offset), "skipped": None}
    return CurrentOffset(group=group.group, source_state=group.source_state, target_state=group.target_state, **known)


def require_carried(pair: MirrorContext, groups: Iterable[str]) -> None:
    """Raise OpsError that names every group whose offsets the mirror does not carry."""
    mirror = pair.request.mirror
    if others := [group for group in groups if not mirror.carries_group(group)]:
        raise OpsError(
            f"mirror {pair.mirror}: groups must be such as it carries (got {', '.join(others)}, groups "
            f"{', '.join(mirror.groups)} without {', '.join(mirror.groups_exclude)})."
        )


def with_exact_offsets(
    rows: Iterable[CurrentOffset], found: Mapping[tuple[str, str, int], Mapping[str, Any]]
) -> list[CurrentOffset]:
    """Return the rows with the offsets that the records prove; a row that was not judged keeps what is known of it."""
    known = []
    for one in rows:
        row = found.get((one.group, one.topic, one.partition))
        if row is not None and row["judged"]:
            placed = row["synced"] is not None
            one = replace(
                one,
                source=row["committed"],
                target=row["synced"],
                exact=row["lowest"],
                again=row["repeated"] if placed else None,
                skipped=row["skipped"] if placed else None,
            )
        known.append(one)
    return known


def committed(
    pair: MirrorContext, cluster: Cluster, side: str, groups: Sequence[str], *, held_only: bool = False
) -> list[Entry]:
    """Return the positions of groups on one side in topics of the mirror: of those named, else of all it carries.

    `held_only`: only in partitions that hold records. Raises OpsError that names each group without a position.
    """
    mirror = pair.request.mirror
    names = list(groups) or sorted(group for group in cluster.group_states() if mirror.carries_group(group))
    entries = [
        Entry(group=group, topic=topic, partition=partition, offset=offset)
        for group, offsets in cluster.group_offsets(names).items()
        for (topic, partition), offset in sorted(offsets.items())
        if name_at_source(mirror, side, topic) is not None
    ]
    without = [group for group in groups if group not in {one.group for one in entries}]
    if without or not entries:
        raise OpsError(
            f"cluster {cluster.side.alias}: groups must have a position in a topic of mirror {pair.mirror} "
            f"(got none of {', '.join(without) or 'any group'})."
        )
    if not held_only:
        return entries
    bounds = logs(cluster, {one.topic_partition for one in entries})
    return [
        one
        for one in entries
        if one.topic_partition in bounds and bounds[one.topic_partition][1] > bounds[one.topic_partition][0]
    ]


def logs(cluster: Cluster, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    """Return start and end of those of the logs that exist."""
    wanted = set(topic_partitions)
    names = {topic for topic, _ in wanted}
    topics = cluster.topics(names.__contains__, names) if names else {}
    there = sorted(tp for tp in wanted if tp[0] in topics and tp[1] in topics[tp[0]].replicas)
    if not there:
        return {}
    ends = cluster.ends(there, "read_uncommitted")
    return {tp: (start, ends[tp]) for tp, start in cluster.starts(there).items()}


def current_offsets_table(mirror: str, rows: Sequence[CurrentOffset], *, exact: bool) -> RenderableType:
    """Return a line per group and partition; without `exact` what is read again is approximate."""
    groups = format_count(len({one.group for one in rows}), "group")
    title = f"mirror {mirror}: {format_count(len(rows), 'position')} of {groups}"
    numbers_of = ["source", "source lag", "target", "target lag", *(["exact"] if exact else [])]
    numbers_of += ["read again", "skipped"] if exact else ["about read again"]
    table = AdaptiveTable(
        title,
        (
            Column("group", name=True),
            Column("topic", name=True),
            Column("partition", name=True, number=True),
            *(Column(name, number=True) for name in numbers_of),
            Column("members"),
        ),
    )
    for one in rows:
        numbers = [one.source, one.source_lag, one.target, one.target_lag, *([one.exact] if exact else []), one.again]
        numbers += [one.skipped] if exact else []
        names = one.group, one.target_topic, str(one.partition)
        table.add_row(*names, *map(format_offset, numbers), _states(one))
    hint = "" if exact else "How many exactly, and from which offset nothing is read again: --exact."
    return Group(table, hint) if hint else table


def _states(one: CurrentOffset) -> str:
    states = {"source": one.source_state, "target": one.target_state}
    return ", ".join(f"{side} {(state or 'none').lower()}" for side, state in states.items())
