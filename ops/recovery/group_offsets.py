"""Offsets of consumer groups: set while a group is inactive, and read back; and what is left to read from there.

Owns the one way in which a command changes a group's position. Does not own what MirrorMaker has translated of a group
(`translated_offsets.py`), nor the exact offsets, which are found by the records.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from kafka import group_commits, in_flight
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.groups import IDLE, LogRange
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining, translated_offsets
from ops.recovery.followed_mark import is_marked, marked_upstream
from ops.recovery.mirror_context import MirrorContext
from settings.text import format_names

Offsets = Mapping[TopicPartition, int]
GROUPS_AT_ONCE = 200
"""Groups that are read, set and read back before the next ones: what is held in memory of a million offsets."""
_HAS_MEMBERS = (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS)
_DENIED = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)
LEAVE_WITHIN_S, LOOK_EVERY_S, REPORTED_EVERY_S = 60.0, 1.0, 10.0
"""Longer than the 45 s after which brokers give up a member that no longer answers (`session.timeout.ms`)."""
RECORDS = "what is behind it was not read"
"""Why a group is set back to its exact offset."""
PLACES_NAMED = 5
"""Partitions of a group of which each gets a line of progress."""
Facts = dict[str, Any]


def members(cluster: Cluster, groups: Mapping[str, object]) -> list[str]:
    """Return those of the groups that have members on the cluster now."""
    states = cluster.group_states()
    return sorted(group for group in groups if states.get(group, IDLE[0]) not in IDLE)


def require_inactive(cluster: Cluster, groups: Mapping[str, object]) -> None:
    """Raise OpsError that names every group with members: their commits would undo what is set."""
    if active := members(cluster, groups):
        raise OpsError(
            f"cluster {cluster.side.alias}: groups must be inactive while their offsets are set (got members in "
            f"{format_names(active)}). Stop these applications there and run the command again."
        )


def wait_until_inactive(cluster: Cluster, groups: Mapping[str, object], say: Callable[[str], None]) -> None:
    """Return once no group has members; raises OpsError as `require_inactive` if some have after `LEAVE_WITHIN_S`.

    Members that ended with a site are known to its brokers until their session ends, also when the brokers return.
    """
    began = reported = time.monotonic()
    while active := members(cluster, groups):
        now = time.monotonic()
        if now - began > LEAVE_WITHIN_S:
            require_inactive(cluster, groups)
            return
        if now - reported >= REPORTED_EVERY_S:
            reported = now
            left = f"for {LEAVE_WITHIN_S - (now - began):.0f} s at most"
            say(f"  waiting until {cluster.side.alias} has no members of {format_names(active)}, {left}")
        time.sleep(LOOK_EVERY_S)


def commit_each(
    cluster: Cluster,
    wanted: Iterable[tuple[str, Offsets]],
    require_permission: Callable[[], None] = lambda: None,
    set_back: Callable[[str, Offsets, Offsets], None] = lambda *_: None,
) -> Iterator[tuple[str, Offsets]]:
    """Set groups' offsets of the next records to read, and yield each group with its offsets once it stands there.

    Offsets are set where they differ only: what is right already is not touched, so that it is safe to do again. Their
    metadata stays if the group goes forward.
    `require_permission` is called right before they are set, and raises if they must not be. `set_back` gets each group
    that stands further than an offset that is to be set: where it stands in these partitions, and where it goes.
    Several groups are set at the same time. If one is refused, no more requests are sent, those that are in flight are
    waited for, and OpsError is raised for the first one that was refused.
    """
    left = iter(wanted)
    while part := dict(islice(left, GROUPS_AT_ONCE)):
        before = group_commits.read(cluster, part)
        known = {group: {tp: one.offset for tp, one in commits.items()} for group, commits in before.items()}
        wrong = {group: _differing(known[group], offsets) for group, offsets in part.items()}
        changed = [group for group in part if wrong[group]]
        for group in changed:
            if back := {tp: known[group][tp] for tp, to in wrong[group].items() if known[group].get(tp, to) > to}:
                set_back(group, back, {tp: wrong[group][tp] for tp in back})
        _set(cluster, {group: wrong[group] for group in changed}, before, require_permission)
        now = cluster.group_offsets(changed)
        for group, offsets in part.items():
            _require_set(cluster, group, offsets, now.get(group, offsets))
            yield group, offsets


def report_set_back(say: Callable[[str], None], group: str, before: Offsets, to: Offsets, why: str = RECORDS) -> None:
    """Report some of the partitions in which a group is set back, each with the offset before."""
    for tp, offset in islice(to.items(), PLACES_NAMED):
        say(f"  group {group}: set back from {before[tp]} to {offset} on {tp}: {why}")
    if len(to) > PLACES_NAMED:
        say(f"  group {group}: set back in {len(to) - PLACES_NAMED} more partitions")


def standing(cluster: Cluster, wanted: Mapping[str, Offsets]) -> list[str]:
    """Return the groups that stand at all of these offsets; raises ClusterError if they cannot be read."""
    known = cluster.group_offsets(wanted)
    return [group for group, offsets in wanted.items() if not _differing(known[group], offsets)]


def _differing(known: Offsets, wanted: Offsets) -> Offsets:
    return {tp: offset for tp, offset in wanted.items() if known.get(tp) != offset}


def _set(
    cluster: Cluster,
    wrong: Mapping[str, Offsets],
    before: Mapping[str, group_commits.Commits],
    require_permission: Callable[[], None],
) -> None:
    """Set offsets, of groups that were at `before`; raises the first problem once nothing is in flight any more.

    A group whose coordinator still loads, because another broker has become it, is waited for.
    """
    problems: list[Exception] = []

    def allowed(groups: Iterable[str]) -> Iterator[str]:
        for group in groups:
            if problems:
                return
            try:
                require_permission()
            except OpsError as error:
                problems.append(error)
                return
            yield group

    def send(group: str) -> Any:
        known = {tp: one for tp, one in before[group].items() if not is_marked(one.metadata)}
        parts = [group_commits.moved(tp, offset, known.get(tp)) for tp, offset in sorted(wrong[group].items())]
        request = [ConsumerGroupTopicPartitions(group, parts)]
        return cluster.admin.alter_consumer_group_offsets(request, request_timeout=CALL_DEADLINE_S)[group]

    left, end = list(wrong), time.monotonic() + CALL_DEADLINE_S
    while left:
        loading: list[str] = []
        for group, answer, error in in_flight.answers(allowed(left), send):
            why, where = _failed(answer, error)
            if why is not None and why.code() == in_flight.LOADS and time.monotonic() < end:
                loading.append(group)
            elif why is not None:
                problems.append(_refusal(cluster, group, why, where))
        if problems:
            raise problems[0]
        if left := loading:
            time.sleep(in_flight.AGAIN_S)


def _failed(answer: Any, error: KafkaException | None) -> tuple[KafkaError | None, str]:
    """Return why a group was not set, None if it was, and the partition that this is about."""
    if error is not None:
        return error.args[0], ""
    refused = [part for part in answer.topic_partitions if part.error is not None]
    return (refused[0].error, f" on {refused[0].topic}-{refused[0].partition}") if refused else (None, "")


def _require_set(cluster: Cluster, group: str, offsets: Offsets, now: Offsets) -> None:
    missed = _differing(now, offsets)
    if missed:
        (topic, partition), offset = min(missed.items())
        raise OpsError(
            f"cluster {cluster.side.alias}: group {group} must stand at {offset} on {topic}-{partition} after it was "
            f"set (got {now.get(TopicPartition(topic, partition))}). Somebody else commits for it: stop that and run "
            "this again."
        )


def require_reached(cluster: Cluster, wanted: Iterable[tuple[str, Offsets]]) -> None:
    """Raise OpsError unless each group stands where it was set, or further: its application may work already."""
    left = iter(wanted)
    while part := dict(islice(left, GROUPS_AT_ONCE)):
        known = cluster.group_offsets(part)
        for group, partitions in part.items():
            at = known[group]
            for (topic, partition), offset in partitions.items():
                if at.get(TopicPartition(topic, partition), -1) < offset:
                    raise OpsError(
                        f"cluster {cluster.side.alias}: group {group} must stand at {offset} or further on "
                        f"{topic}-{partition} (got {at.get(TopicPartition(topic, partition), 'nothing')}). Somebody "
                        "has reset it: stop that, set it with `python -m ops offsets set`, and run this again."
                    )


def _refusal(cluster: Cluster, group: str, error: KafkaError, where: str = "") -> OpsError:
    if error.code() in _HAS_MEMBERS:
        fix = "It has members: stop that application there and run the command again."
    elif error.code() in _DENIED:
        fix = f"Give user {cluster.side.user} Read on the group and on the topic."
    else:
        fix = "Run the command again: it sets what is not set yet."
    return OpsError(
        f"cluster {cluster.side.alias}: offsets of group {group}{where} must be set (got {error.str()}). {fix}"
    )


@dataclass(frozen=True)
class _Change:
    """A group on the target: where it stood, where it is set as nothing was known there, and where it is set back.

    `unexplained` are the records in front of offsets of which nothing is translated, by partition.
    """

    group: str
    at: Mapping[TopicPartition, int]
    missing: Mapping[TopicPartition, int]
    back: dict[TopicPartition, int] = field(default_factory=dict)
    unexplained: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_one(self) -> bool:
        """Whether anything is to be set."""
        return bool(self.missing or self.back)


class TargetGroups:
    """The mirrored groups on the target, and the remote topics that they read there.

    `require_permission` is called before offsets are set, and raises if they must not be.
    """

    def __init__(
        self,
        pair: MirrorContext,
        target: Cluster,
        say: Callable[[str], None],
        require_permission: Callable[[], None] = lambda: None,
    ) -> None:
        self._require_permission = require_permission
        self._pair = pair
        self._mirror = pair.request.mirror
        self._target = target
        self._say = say

    def ends(self) -> dict[TopicPartition, int]:
        """Return where the remote topics end now, open transactions included."""
        wanted = {topic for topic in self._target.names(lambda _: True) if self._is_remote(topic)}
        topics = self._target.topics(lambda name: name in wanted)
        places = [TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas]
        return self._target.ends(places, "read_uncommitted")

    def left(self, offsets: Mapping[TopicPartition, int]) -> int:
        """Return the records from these offsets on: what a group reads first, and at most what it reads again."""
        logs = self._logs
        return sum(max(0, logs[tp].end - max(at, logs[tp].start)) for tp, at in offsets.items() if tp in logs)

    def set_synced(self, only: Iterable[str]) -> dict[str, Facts]:
        """Leave what MirrorMaker has synced and set what it has translated only, of these groups; raises OpsError.

        The verification has judged where they stand, by the records.
        """
        translated = translated_offsets.read(self._pair, self._target)
        if translated.problem is not None:
            raise OpsError(translated.problem)
        return {change.group: self._facts(change) for change in self._changes(translated, set(only).__contains__)}

    def set_proven(self, exclude: Iterable[str]) -> Facts:
        """Set groups by what MirrorMaker has translated, nothing else being known of them; raises OpsError.

        One that stands further than is proven is set back, so that it skips nothing. `mayBeSkipped` of a group are the
        records, by partition, in front of an offset that somebody else has set: nothing of it is translated.
        `translationUnknown` says why nothing is known of any.
        """
        translated = translated_offsets.read(self._pair, self._target)
        if translated.problem is not None:
            self._say(f"  groups are left where they stand: {translated.problem}")
        left_alone = set(exclude)
        groups = {
            change.group: {
                **self._facts(change),
                "setBack": draining.format_places({tp: change.at[tp] - to for tp, to in change.back.items()}),
                "mayBeSkipped": draining.format_places(change.unexplained),
                "translated": change.group in translated.offsets,
            }
            for change in self._changes(translated, lambda group: group not in left_alone, set_back=True)
        }
        return {"groups": groups, "translationUnknown": translated.problem}

    def _changes(
        self, translated: translated_offsets.TranslatedOffsets, wanted: Callable[[str], bool], *, set_back: bool = False
    ) -> Iterator[_Change]:
        """Set the mirrored groups that are wanted, and yield what was changed of each, in their order."""
        states = self._target.group_states()
        carried = {group for group in {*translated.offsets, *states} if self._mirror.carries_group(group)}
        left = iter(sorted(filter(wanted, carried)))
        while names := list(islice(left, GROUPS_AT_ONCE)):
            # Of all: a broker whose coordinator still loads does not list its groups, and they have offsets.
            at = self._target.group_offsets(names)
            changes = [self._change(group, at.get(group, {}), translated, set_back) for group in names]
            self._keep_followed(changes, translated)
            to_set = [(change.group, {**change.missing, **change.back}) for change in changes if change.is_one]
            for _ in commit_each(self._target, to_set, self._require_permission):
                pass
            yield from changes

    def _change(
        self,
        group: str,
        at: Mapping[TopicPartition, int],
        translated: translated_offsets.TranslatedOffsets,
        set_back: bool,
    ) -> _Change:
        """Return what is to be changed of a group that stands at these offsets."""
        of_group = translated.offsets.get(group, {})
        change = _Change(group, at, {tp: offset for tp, offset in of_group.items() if tp not in at})
        for tp in sorted(tp for tp in at if tp in self._logs) if set_back else ():
            proven, start = translated.proven(group, tp, at[tp]), self._logs[tp].start
            if proven is None and at[tp] > start and of_group:
                change.unexplained[tp] = at[tp] - start
            elif proven is not None and proven < at[tp]:
                change.back[tp] = proven
        return change

    def _keep_followed(self, changes: Iterable[_Change], translated: translated_offsets.TranslatedOffsets) -> None:
        """Take back what is to be changed of offsets that `ops follow` has set: it has proven them by more.

        Not of one that it has set before the group went back at the source.
        """
        doubtful = {change.group: change for change in changes if change.back or change.unexplained}
        for group, offsets in group_commits.read(self._target, doubtful).items():
            change = doubtful[group]
            for tp, committed in offsets.items():
                if committed.offset != change.at.get(tp, -1) or not is_marked(committed.metadata):
                    continue
                upstream = marked_upstream(committed.metadata)
                if upstream is None or not translated.has_gone_back(group, tp, upstream):
                    change.back.pop(tp, None)
                    change.unexplained.pop(tp, None)

    def _facts(self, change: _Change) -> Facts:
        """Report what was changed of a group; return where it stands, and what is left to read from there."""
        if change.missing:
            self._say(f"  group {change.group}: set in {len(change.missing)} partitions by its checkpoints")
        report_set_back(self._say, change.group, change.at, change.back, "the mirror has translated no more")
        offsets = {**change.at, **change.missing, **change.back}
        return {
            "offsets": draining.format_places(offsets),
            "left": self.left(offsets),
            "withoutPosition": self._without_position(offsets),
        }

    def _without_position(self, offsets: Mapping[TopicPartition, int]) -> list[str]:
        """Partitions with records in topics that the group reads, in which it has no committed offset on the target."""
        held = (tp for topic in {topic for topic, _ in offsets} for tp in self._held.get(topic, ()))
        return [str(tp) for tp in sorted(held) if tp not in offsets]

    @cached_property
    def _logs(self) -> dict[TopicPartition, LogRange]:
        """The logs of the remote topics when they were asked for first: one reading for all groups."""
        ends = self.ends()
        return {tp: LogRange(start, ends[tp]) for tp, start in self._target.starts(ends).items()}

    @cached_property
    def _held(self) -> dict[str, list[TopicPartition]]:
        """The partitions of each remote topic that hold records."""
        found: dict[str, list[TopicPartition]] = {}
        for tp, log in self._logs.items():
            if log.end > log.start:
                found.setdefault(tp.topic, []).append(tp)
        return found

    def _is_remote(self, topic: str) -> bool:
        if self._pair.keeps_names:
            return self._mirror.carries_topic(topic)
        prefix = f"{self._mirror.source_alias}{self._mirror.separator}"
        return topic.startswith(prefix) and self._mirror.carries_topic(topic.removeprefix(prefix))
