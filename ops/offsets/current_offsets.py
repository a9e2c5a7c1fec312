"""The offsets of groups on both clusters of a mirror, their exact positions on the other side, and the table of them.

The verification job finds an exact position by the records' content. Owns the request to the job for that, and what is
read from its report. Does not own how it translates. Joins no group and commits nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from contract.report_rows import KeyedRows
from contract.verification_request import Mirror
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops import verify
from ops.console import AdaptiveTable, Column
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.inspection.group_status import GroupOffset, GroupStatus
from ops.offsets.entries import Entry, format_offset
from ops.recovery.mirror_context import MirrorContext
from settings.text import format_count

Log = Callable[[str], None]
WAIT_S = 30
# Parts of a request that translate nothing, or make the job wait or write.
_LEFT_OUT = ("canary", "internal_topics", "resource", "replication_factor", "positions")


@dataclass(frozen=True, kw_only=True)
class Translated:
    """An entry and its counterpart on the other side; if that is None, `problem` is the reason.

    `removed` are the offsets in front of the entry that its own log has deleted.
    """

    entry: Entry
    topic: str
    exact: int | None
    removed: int
    problem: str | None

    def as_json(self, side: str) -> dict[str, Any]:
        """Return what `--json` shows; `side` is that of the entry."""
        entry = self.entry
        there = "target" if side == "source" else "source"
        return {
            **({"group": entry.group} if entry.group is not None else {}),
            "partition": entry.partition,
            side: {"topic": entry.topic, "offset": entry.offset},
            there: {"topic": self.topic, "offset": self.exact},
            "removed": self.removed,
            "problem": self.problem,
        }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The translations in the order of the entries, what the job found wrong with the records, and its report."""

    rows: list[Translated]
    faults: list[str]
    report: Path


def source_name(mirror: Mirror, topic: str) -> str | None:
    """Return the source's name of a topic of the target; None if it is no remote topic of the mirror."""
    prefix = mirror.target_topic("")
    name = topic.removeprefix(prefix) if topic.startswith(prefix) else None
    return name if name and mirror.carries_topic(name) else None


def name_at_source(mirror: Mirror, side: str, topic: str) -> str | None:
    """Return the source's name of a topic of either side; None if the mirror does not carry it."""
    if side == "target":
        return source_name(mirror, topic)
    return topic if mirror.carries_topic(topic) else None


def translate(
    pair: MirrorContext, side: str, entries: Sequence[Entry], report_dir: Path, environment: Mapping[str, str], log: Log
) -> Outcome:
    """Return the exact counterpart of each position of one side.

    It takes as long as the job needs to compare the topics of the entries.

    Args:
        pair: the mirror.
        side: `source` or `target`, which the entries are of.
        entries: the positions.
        report_dir: folder for the job's report.
        environment: environment of the job.
        log: gets each line of its progress.

    Raises:
        OpsError: the mirror does not carry some topics, each of which it names, or the job could not judge.
    """
    mirror = pair.request.mirror
    names = {one.topic: name_at_source(mirror, side, one.topic) for one in entries}
    if problems := [topic for topic, name in names.items() if name is None]:
        raise OpsError(
            "\n".join(
                f"topic {topic}: must be one that mirror {pair.mirror} carries, by its name on the {side} (topics "
                f"{', '.join(mirror.topics)}; copies are named {mirror.target_topic('NAME')})."
                for topic in problems
            )
        )
    asked = [
        {"side": side, "topic": names[one.topic], "partition": one.partition, "offset": one.offset} for one in entries
    ]
    counted = pair.plan.request["mirror"].get("counts_from") or {}
    changes = {
        "topics": _named(names.values()),
        "counts_from": {topic: where for topic, where in counted.items() if topic in names.values()},
        "groups_exclude": [".*"],
        "positions": asked,
    }
    verdict = verify.run(_request_with(pair, changes), report_dir, environment, log)
    rows = verdict.report.get("positions") or []
    if len(rows) != len(asked):
        raise OpsError(f"mirror {pair.mirror}: the report must hold {len(asked)} positions (got {len(rows)}).")
    return Outcome(
        rows=[
            Translated(
                entry=entry,
                topic=str(row["target_topic"] if side == "source" else row["topic"]),
                exact=row["exact"],
                removed=row["removed"],
                problem=row["problem"],
            )
            for entry, row in zip(entries, rows, strict=True)
        ],
        faults=_faults(verdict),
        report=verdict.html,
    )


def judged_groups(
    pair: MirrorContext, groups: Sequence[str], report_dir: Path, environment: Mapping[str, str], log: Log
) -> tuple[KeyedRows, list[str], Path]:
    """Return the job's row of each position, what is wrong with the records, and the path of the report.

    Args:
        pair: the mirror.
        groups: names of groups; none for all that the mirror carries.
        report_dir: folder for the job's report.
        environment: environment of the job.
        log: gets each line of its progress.

    Raises:
        OpsError: the job could not judge.
    """
    changes = {"groups": _named(groups)} if groups else {}
    verdict = verify.run(_request_with(pair, changes), report_dir, environment, log)
    rows = KeyedRows(verdict.report.get("groups") or [], "group", "topic", "partition")
    return rows, _faults(verdict), verdict.html


def _request_with(pair: MirrorContext, changes: Mapping[str, Any]) -> verify.Plan:
    """Return the mirror's own request with these changes. The job waits for nothing longer than WAIT_S."""
    request = pair.plan.request
    mirror = {key: value for key, value in request["mirror"].items() if key not in _LEFT_OUT}
    mirror |= {"topic_configs": {"sync": False}, "sync_topic_acls": False, **changes}
    limits = dict(request.get("limits") or {})
    limits["mirror_wait_seconds"] = min(WAIT_S, int(pair.request.limits.mirror_wait_seconds))
    return replace(pair.plan, request={**request, "mirror": mirror, "limits": limits})


def _named(names: Any) -> list[str]:
    return sorted({re.escape(str(name)) for name in names})


def _faults(verdict: verify.Verdict) -> list[str]:
    return [
        f"{check['name']}: {check['observed']}"
        for check in verdict.report.get("checks") or []
        if check["ok"] is False and str(check["name"]).startswith("records_")
    ]


def translations_table(side: str, rows: Sequence[Translated]) -> RenderableType:
    """Return a line per position, with why one has no counterpart."""
    there = "target" if side == "source" else "source"
    grouped = any(one.entry.group is not None for one in rows)
    names_of = [*(["group"] if grouped else []), f"topic on the {side}", f"topic on the {there}"]
    table = AdaptiveTable(
        f"from the {side} to the {there}",
        (
            *(Column(name, name=True) for name in names_of),
            Column("partition", name=True, number=True),
            *(Column(name, number=True) for name in (side, there)),
            Column("to know"),
        ),
    )
    for one in rows:
        said = one.problem or (f"{one.removed} in front are deleted" if one.removed else "")
        names = [one.entry.group or ""] if grouped else []
        names += [one.entry.topic, one.topic]
        table.add_row(*names, str(one.entry.partition), str(one.entry.offset), format_offset(one.exact), said)
    return table


SNAPSHOT_PARTS = (snapshot.SOURCE, snapshot.TARGET, snapshot.LAG_AND_GROUPS)


@dataclass(frozen=True, kw_only=True, slots=True)
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
    known = {one.name: getattr(offset, one.name) for one in fields(offset)} | {"skipped": None}
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
    rows: Iterable[CurrentOffset], found: Mapping[tuple[Any, ...], Mapping[str, Any]]
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

    `held_only`: only in partitions that hold records. Raises OpsError that names each group without a position, and
    where none is named and some may not be listed.
    """
    mirror = pair.request.mirror
    unlisted: dict[str, str] = {}
    names = list(groups) or sorted(filter(mirror.carries_group, cluster.group_states(unlisted)))
    if unlisted:
        raise OpsError(f"{'; '.join(unlisted.values())} Or name the groups that are meant: --group.")
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
