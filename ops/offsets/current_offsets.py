"""The offsets of groups on both clusters of a mirror, and the table of them. Joins no group and commits nothing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group, RenderableType

from kafka import groups as consumer_groups
from kafka.cluster import Cluster
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from ops.console import AdaptiveTable, Column
from ops.errors import OpsError
from ops.offsets.entries import Entry, format_offset
from ops.offsets.translation import name_at_source
from ops.recovery.mirror_context import MirrorContext
from settings.text import format_count


@dataclass(frozen=True, kw_only=True)
class CurrentOffset:
    """One group in one partition. What is None is not known, or there is none.

    `again` is what it would read again on the target: about, by offsets alone, unless `exact` is known. `exact` and
    `skipped` come from the records and are None without them.
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
    pair: MirrorContext, source: Cluster, target: Cluster, groups: Sequence[str]
) -> tuple[list[CurrentOffset], list[str]]:
    """Return the offsets of the mirrored groups, or of those named, in partitions that hold records; and why some lack.

    Raises OpsError that names every group which the mirror does not carry or the source does not have.
    """
    mirror, isolation = pair.request.mirror, pair.request.limits.isolation
    require_carried(pair, groups)
    request = pair.request
    if groups:
        groups_only = mirror.model_copy(update={"groups": tuple(map(re.escape, groups))})
        request = request.model_copy(update={"mirror": groups_only})
    topics = source.topics(mirror.carries_topic, mirror.named_topics)
    topic_partitions = [TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas]
    starts, ends = source.starts(topic_partitions), source.ends(topic_partitions, isolation)
    denied: dict[str, str] = {}
    held = {tp for tp in topic_partitions if ends[tp] > starts[tp]}
    found = consumer_groups.collect(source, target, request, held, denied)
    missing = [group for group in groups if group not in found.source_states]
    if missing:
        raise OpsError(
            f"cluster {source.side.alias}: groups must exist at the source (got none of {', '.join(missing)}). "
            "Leave --group out to see which there are."
        )
    logs = {tp: (starts[tp], ends[tp]) for tp in held}
    return _rows(pair, target, found, logs), [denied[group] for group in sorted(denied)]


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


def _rows(
    pair: MirrorContext, target: Cluster, found: Groups, held: Mapping[TopicPartition, tuple[int, int]]
) -> list[CurrentOffset]:
    mirror = pair.request.mirror
    copies = {tp: TopicPartition(mirror.target_topic(tp.topic), tp.partition) for tp in held}
    there = logs(target, copies.values())
    rows = []
    for one in found.positions:
        tp = TopicPartition(one.topic, one.partition)
        start, end = held[tp]
        lag, target_lag = max(0, end - max(one.committed, start)), None
        if one.synced is not None and copies[tp] in there:
            first, last = there[copies[tp]]
            target_lag = max(0, last - max(one.synced, first))
        rows.append(
            CurrentOffset(
                group=one.group,
                topic=one.topic,
                target_topic=copies[tp][0],
                partition=one.partition,
                source_state=found.source_states.get(one.group),
                target_state=found.target_states.get(one.group),
                source=one.committed,
                source_lag=lag,
                target=one.synced,
                target_lag=target_lag,
                again=None if target_lag is None else max(0, target_lag - lag),
            )
        )
    return rows


def current_offsets_table(mirror: str, rows: Sequence[CurrentOffset], *, exact: bool) -> RenderableType:
    """Return a line per group and partition. Without the records what is read again is about right, by offsets."""
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
