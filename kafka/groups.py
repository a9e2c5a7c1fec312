"""The mirrored consumer groups on both clusters: positions, states, consumer group lag, and which do not exist."""

import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from contract import java_patterns
from contract.verification_request import Mirror, Request
from kafka import checkpoints, group_commits
from kafka.checkpoints import Checkpoint, CheckpointHistory, CheckpointKey, LastDownstream, OffsetTranslation
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.group_positions import FIELDS, NONE, GroupPosition, GroupPositions
from kafka.mirror_position import Deadline, Log
from kafka.topic_partition import TopicPartition

_BEGIN = re.compile(r"\A(?:[A-Za-z0-9_-]|\\[.-]|[.](?![*+?{]))+")
IDLE = ("EMPTY", "DEAD", "UNKNOWN")
GroupStates = tuple[Mapping[str, str], Mapping[str, str]]
"""The states of all groups by name: at the source, and on the target."""


@dataclass(frozen=True)
class LogRange:
    """Log start offset and log end offset of a partition when the groups' positions were read."""

    start: int
    end: int


@dataclass
class Groups:
    """What both sides know of the mirrored groups.

    States are Kafka's (`EMPTY`, `STABLE`, …) by group; one that is not in `target_states` does not exist there.
    `unknown` are groups that the request names in full and that do not exist at the source. `due` are the target
    offsets of the checkpoints that were there in the first reading: what had to be synced when the wait was over.
    """

    positions: Sequence[GroupPosition] = field(default_factory=GroupPositions)
    source_states: Mapping[str, str] = field(default_factory=dict)
    target_states: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[TopicPartition, LogRange] = field(default_factory=dict)
    translation: OffsetTranslation = field(default_factory=OffsetTranslation)
    due: Mapping[CheckpointKey, int] = field(default_factory=dict)

    def checkpoint_key(self, one: GroupPosition, mirror: Mirror) -> CheckpointKey:
        """Return the key of a position among the checkpoints."""
        return one.group, mirror.target_topic(one.topic), one.partition

    @property
    def by_column(self) -> GroupPositions:
        """The positions by column."""
        return GroupPositions.of(self.positions)

    def keys(self, mirror: Mirror) -> Iterator[tuple[CheckpointKey, TopicPartition]]:
        """Yield the key of each position among the checkpoints, and its partition of the source."""
        positions = self.by_column
        remote = [(mirror.target_topic(topic), number) for topic, number in positions.partitions]
        for group, partition in zip(positions.group_numbers, positions.partition_numbers, strict=True):
            yield (positions.groups[group], *remote[partition]), positions.partitions[partition]

    @property
    def missing(self) -> list[str]:
        """Groups with a position at the source that do not exist on the target."""
        return sorted(self.by_column.group_names - set(self.target_states))

    def lag(self, one: GroupPosition) -> int | None:
        """Offsets that a group has not read at the source; what the log no longer holds cannot be read any more."""
        log = self.logs.get(TopicPartition(one.topic, one.partition))
        return None if log is None else max(0, log.end - max(one.committed, log.start))

    def lost_at_source(self, one: GroupPosition) -> int:
        """Offsets between a group's position and the source's log start: removed before the group read them."""
        log = self.logs.get(TopicPartition(one.topic, one.partition))
        return 0 if log is None else max(0, log.start - one.committed)

    def checkpoint(self, one: GroupPosition, mirror: Mirror) -> Checkpoint | None:
        """MirrorMaker's last checkpoint of a position."""
        return self.translation.last_checkpoint(self.checkpoint_key(one, mirror))

    def row(self, one: GroupPosition, mirror: Mirror) -> dict[str, Any]:
        """Return everything about one position as JSON values."""
        checkpoint = self.checkpoint(one, mirror)
        return {
            **{name: getattr(one, name) for name in FIELDS},
            "source_state": self.source_states.get(one.group),
            "target_state": self.target_states.get(one.group),
            "missing_on_target": one.group not in self.target_states,
            "active_on_target": one.active,
            "lag": self.lag(one),
            "lost_at_source": self.lost_at_source(one),
            "checkpoint": None if checkpoint is None else [checkpoint.upstream, checkpoint.downstream],
        }


def read(
    source: Cluster,
    target: Cluster,
    request: Request,
    occupied: Iterable[TopicPartition],
    deadline: Deadline,
    log: Log,
    denied: dict[str, str],
) -> Groups:
    """Return source and synced positions of the mirrored groups.

    Waits until each position has been synced, at least up to the checkpoint that was there in the first reading: the
    mirror writes a group's offset some time after the checkpoint that it comes from. One that syncs no offsets is not
    waited for. The target is read first: a group that goes on meanwhile is then further at the source, never behind its
    synced offset. `occupied` are the partitions that hold records: MirrorMaker translates nothing in the others.
    `denied` gets the groups whose offsets cannot be read, each with the reason, as a rule the right that is missing.
    """
    held = set(occupied)
    first: Mapping[CheckpointKey, int] | None = None
    while True:
        found = collect(source, target, request, held, denied)
        if first is None:
            first = LastDownstream(found.translation.checkpoints) if request.mirror.sets_groups else {}
        waits = request.mirror.sets_groups and not deadline.over
        late = _first_late(found, request.mirror, first) if waits else None
        if late is None:
            translation = checkpoints.with_syncs(found.translation, source, target, request.mirror)
            return replace(found, logs=_logs(source, found.by_column, request), translation=translation, due=first)
        first = dict(first)  # else all that was read the first time would stay in memory
        log(f"waiting for the mirror to sync group {late[0]} on {late[1]}")
        deadline.pause()


def _first_late(found: Groups, mirror: Mirror, first: Mapping[CheckpointKey, int]) -> tuple[str, TopicPartition] | None:
    """Return the first position that is not synced up to the checkpoint that was there first; None if there is none."""
    positions = found.by_column
    columns = zip(positions.flags["active"], positions.numbers["synced"], found.keys(mirror), strict=True)
    late = (
        at
        for at, (active, synced, (key, _)) in enumerate(columns)
        if not active and (synced == NONE or synced < first.get(key, 0))
    )
    return next(map(positions.named, late), None)


def collect(
    source: Cluster,
    target: Cluster,
    request: Request,
    held: set[TopicPartition],
    denied: dict[str, str],
    states: GroupStates | None = None,
) -> Groups:
    """Return source and synced positions of the mirrored groups as they are now; nothing is waited for.

    Args:
        source: the connected source.
        target: the connected target.
        request: which groups the mirror carries, and what it keeps where.
        held: the partitions that hold records.
        denied: gets the groups whose offsets cannot be read, each with the reason; under "" why there may be others.
        states: of all groups at the source and on the target, if they have been read already.
    """
    mirror = request.mirror
    denied.clear()
    all_states, target_states = states or (source.group_states(denied), target.group_states(denied))
    source_states = {name: state for name, state in all_states.items() if mirror.carries_group(name)}
    unread: dict[str, ClusterError] = {}
    synced = target.group_offsets([name for name in source_states if name in target_states], unread)
    committed_by = source.group_offsets(source_states, unread)
    unread |= group_commits.cut_names(source, [group for group, offsets in committed_by.items() if not offsets])
    denied |= {group: str(error) for group, error in unread.items()}
    translation = checkpoints.read_checkpoints(target, mirror)
    positions = GroupPositions()
    remote = {tp: TopicPartition(mirror.target_topic(tp.topic), tp.partition) for tp in held}
    for group in sorted(committed_by):
        at_source, at_target = committed_by.pop(group), synced.pop(group, {})  # a million offsets are held once
        if group in denied:
            continue
        partitions = sorted(tp for tp in at_source if tp in held)
        there = [remote[tp] for tp in partitions]
        reached = [at_target.get(tp, NONE) for tp in there]
        state = target_states.get(group)
        positions.add_group(
            group,
            partitions,
            [at_source[tp] for tp in partitions],
            reached,
            [
                at != NONE and _is_unclaimed(at, translation.checkpoints.get((group, *tp)))
                for at, tp in zip(reached, there, strict=True)
            ],
            active=state is not None and state not in IDLE,
        )
    return Groups(
        positions=positions,
        source_states=source_states,
        target_states={name: state for name, state in target_states.items() if name in source_states},
        translation=translation,
    )


def _is_unclaimed(synced: int, history: CheckpointHistory | None) -> bool:
    """Whether no checkpoint that is left has an offset as high as a synced one.

    Up to the highest checkpoint the mirror may have set it: the group went back at the source afterwards, and
    MirrorMaker never moves a target offset back. Above it members did, or a checkpoint that compaction has removed.
    """
    return history is not None and not history.is_empty and synced > history.highest


def _logs(source: Cluster, positions: GroupPositions, request: Request) -> dict[TopicPartition, LogRange]:
    topic_partitions = sorted(positions.topic_partitions)
    ends = source.ends(topic_partitions, request.limits.isolation)
    return {tp: LogRange(start, ends[tp]) for tp, start in source.starts(topic_partitions).items()}


def absent(source: Cluster, request: Request, denied: dict[str, str]) -> list[str]:
    """Return the groups that the mirror names and the source does not have; none if there may be some it did not list.

    A user that may not describe the cluster is shown those groups that it may describe, without a word of others:
    `denied` gets that under "".
    """
    found = source.group_states(denied)
    if "" not in denied and (hidden := hidden_patterns(source, request.mirror, found)):
        denied[""] = f"{source.unseen_groups} It may not see those of {', '.join(hidden)}."
    return [] if "" in denied else sorted(set(request.mirror.named_groups) - set(found))


def hidden_patterns(cluster: Cluster, mirror: Mirror, listed: Collection[str]) -> list[str]:
    """Return the patterns of the mirror of whose groups a cluster may not list some to its user.

    A group that nobody has is asked for, whose name begins as those of a pattern do; a name itself if it is not listed.
    """
    asked: dict[str, str] = {}
    for pattern in mirror.groups:
        name = _one_of(pattern)
        if name not in listed and not java_patterns.matches(mirror.groups_exclude, name):
            asked[name] = pattern
    return sorted(asked[name] for name in cluster.hidden_groups(asked)) if asked else []


def _one_of(pattern: str) -> str:
    r"""Return a group's name: `billing` for itself, and one that nobody has, with the same begin, for `orders\..*`."""
    rest = _BEGIN.sub("", pattern)
    plain = pattern.removesuffix(rest).replace("\\", "")
    if not rest:
        return plain
    if "|" in pattern:
        plain = ""
    elif rest[0] in "*+?{":  # belongs to the character in front of it
        plain = plain[:-1]
    return f"{plain}{secrets.token_hex(8)}"
