"""The mirrored consumer groups on both clusters: positions, states, consumer group lag, and which do not exist."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from contract.verification_request import Mirror, Request
from kafka import checkpoints
from kafka.checkpoints import Checkpoint, CheckpointKey, OffsetTranslation
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.mirror_position import Deadline, Log
from kafka.topic_partition import TopicPartition


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupPosition:
    """The offsets of one group in one partition: each is that of the next record to read.

    `lowest` to `highest` are the target offsets that skip nothing and repeat only doubled records; `lowest` is the
    exact one. They are None while nothing of the partition lies on the target. `back` is the exact one at the source
    for a consumer that has read on the target up to `synced`; None if it is unknown. `active`: the group has
    members on the target. `unclaimed`: no checkpoint that is left has an offset as high as the synced one.
    """

    group: str
    topic: str
    partition: int
    committed: int
    synced: int | None
    lowest: int | None = None
    highest: int | None = None
    back: int | None = None
    unread: int = 0
    skipped: int = 0
    repeated: int = 0
    active: bool = False
    unclaimed: bool = False
    judged: bool = False


_FIELDS = tuple(one.name for one in fields(GroupPosition))
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

    positions: list[GroupPosition] = field(default_factory=list)
    source_states: Mapping[str, str] = field(default_factory=dict)
    target_states: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[TopicPartition, LogRange] = field(default_factory=dict)
    translation: OffsetTranslation = field(default_factory=OffsetTranslation)
    due: Mapping[CheckpointKey, int] = field(default_factory=dict)

    def checkpoint_key(self, one: GroupPosition, mirror: Mirror) -> CheckpointKey:
        """Return the key of a position among the checkpoints."""
        return one.group, mirror.target_topic(one.topic), one.partition

    @property
    def missing(self) -> list[str]:
        """Groups with a position at the source that do not exist on the target."""
        return sorted({one.group for one in self.positions} - set(self.target_states))

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
            **{name: getattr(one, name) for name in _FIELDS},
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
    first: dict[CheckpointKey, int] | None = None
    while True:
        found = collect(source, target, request, held, denied)
        last = {key: last.downstream for key, known in found.translation.checkpoints.items() if (last := known.last)}
        first = (last if request.mirror.sync_group_offsets else {}) if first is None else first
        late = [one for one in found.positions if not one.active and _late(one, request.mirror, first)]
        if not late or deadline.over or not request.mirror.sync_group_offsets:
            translation = checkpoints.with_syncs(found.translation, source, target, request.mirror)
            return replace(found, logs=_logs(source, found.positions, request), translation=translation, due=first)
        log(f"waiting for the mirror to sync group {late[0].group} on {late[0].topic}-{late[0].partition}")
        deadline.pause()


def _late(one: GroupPosition, mirror: Mirror, first: Mapping[CheckpointKey, int]) -> bool:
    due = first.get((one.group, mirror.target_topic(one.topic), one.partition))
    return one.synced is None or (due is not None and one.synced < due)


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
        denied: gets the groups whose offsets cannot be read, each with the reason.
        states: of all groups at the source and on the target, if they have been read already.
    """
    mirror = request.mirror
    all_states, target_states = states or (source.group_states(), target.group_states())
    source_states = {name: state for name, state in all_states.items() if mirror.carries_group(name)}
    denied.clear()
    unread: dict[str, ClusterError] = {}
    synced = target.group_offsets([name for name in source_states if name in target_states], unread)
    committed_by = source.group_offsets(source_states, unread)
    denied |= {group: str(error) for group, error in unread.items()}
    translation = checkpoints.read_checkpoints(target, mirror)
    positions: list[GroupPosition] = []
    for group in sorted(committed_by):
        at_source, at_target = committed_by.pop(group), synced.pop(group, {})  # a million offsets are held once
        if group not in denied:
            positions += [
                _position(group, tp, committed, at_target, target_states.get(group), translation, mirror)
                for tp, committed in sorted(at_source.items())
                if tp in held
            ]
    return Groups(
        positions=positions,
        source_states=source_states,
        target_states={name: state for name, state in target_states.items() if name in source_states},
        translation=translation,
    )


def _position(
    group: str,
    tp: TopicPartition,
    committed: int,
    synced: Mapping[TopicPartition, int],
    state: str | None,
    translation: OffsetTranslation,
    mirror: Mirror,
) -> GroupPosition:
    there = TopicPartition(mirror.target_topic(tp.topic), tp.partition)
    at = synced.get(there)
    # Up to the highest checkpoint the mirror may have set it: the group went back at the source afterwards, and
    # MirrorMaker never moves a target offset back. Above it members did, or a checkpoint that compaction has removed.
    history = translation.checkpoints.get((group, *there))
    return GroupPosition(
        group=group,
        topic=tp[0],
        partition=tp[1],
        committed=committed,
        synced=at,
        active=state is not None and state not in IDLE,
        unclaimed=at is not None and history is not None and not history.is_empty and at > history.highest,
    )


def _logs(source: Cluster, positions: Iterable[GroupPosition], request: Request) -> dict[TopicPartition, LogRange]:
    topic_partitions = sorted({TopicPartition(one.topic, one.partition) for one in positions})
    ends = source.ends(topic_partitions, request.limits.isolation)
    return {tp: LogRange(start, ends[tp]) for tp, start in source.starts(topic_partitions).items()}


def absent(source: Cluster, request: Request, denied: dict[str, str]) -> list[str]:
    """Return the groups that the mirror names and the source does not have.

    A user that may describe neither the cluster nor groups is shown no group at all: `denied` gets that under "".
    """
    found = source.group_states()
    if not any(map(request.mirror.carries_group, found)) and not source.sees_groups():
        denied[""] = source.unseen_groups
        return []
    return sorted(set(request.mirror.named_groups) - set(found))
