"""Offsets of consumer groups: set while a group is inactive, and read back.

Owns the one way in which a command changes a group's position. Does not own which position is right.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka import in_flight
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.groups import IDLE
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from settings.text import format_names

Offsets = Mapping[TopicPartition, int]
GROUPS_AT_ONCE = 200
"""Groups that are read, set and read back before the next ones: what is held in memory of a million offsets."""
_HAS_MEMBERS = (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS)
_DENIED = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)


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


def commit(
    cluster: Cluster, group: str, offsets: Offsets, require_permission: Callable[[], None] = lambda: None
) -> None:
    """Set a group's offsets of the next records to read, and read them back; raises OpsError.

    Offsets are set where they differ only: what is right already is not touched, so that it is safe to do again.
    `require_permission` is called right before they are set, and raises if they must not be.
    """
    for _ in commit_each(cluster, [(group, offsets)], require_permission):
        pass


def commit_each(
    cluster: Cluster, wanted: Iterable[tuple[str, Offsets]], require_permission: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, Offsets]]:
    """Do for many groups what `commit` does for one, and yield each with its offsets once it stands there.

    Several groups are set at the same time. If one is refused, no more requests are sent, those that are in flight are
    waited for, and OpsError is raised for the first one that was refused.
    """
    left = iter(wanted)
    while part := dict(islice(left, GROUPS_AT_ONCE)):
        known = cluster.group_offsets(part)
        wrong = {group: _differing(known[group], offsets) for group, offsets in part.items()}
        changed = [group for group in part if wrong[group]]
        _set(cluster, {group: wrong[group] for group in changed}, require_permission)
        now = cluster.group_offsets(changed)
        for group, offsets in part.items():
            _require_set(cluster, group, offsets, now.get(group, offsets))
            yield group, offsets


def _differing(known: Offsets, wanted: Offsets) -> Offsets:
    return {tp: offset for tp, offset in wanted.items() if known.get(tp) != offset}


def _set(cluster: Cluster, wrong: Mapping[str, Offsets], require_permission: Callable[[], None]) -> None:
    """Set offsets; raises the first problem once nothing is in flight any more."""
    problems: list[Exception] = []

    def allowed() -> Iterator[str]:
        for group in wrong:
            if problems:
                return
            try:
                require_permission()
            except OpsError as error:
                problems.append(error)
                return
            yield group

    def send(group: str) -> Any:
        parts = [ClientTopicPartition(*tp, offset) for tp, offset in sorted(wrong[group].items())]
        request = [ConsumerGroupTopicPartitions(group, parts)]
        return cluster.admin.alter_consumer_group_offsets(request, request_timeout=CALL_DEADLINE_S)[group]

    for group, answer, error in in_flight.answers(allowed(), send):
        if error is not None:
            problems.append(_refusal(cluster, group, error.args[0]))
        elif refused := [part for part in answer.topic_partitions if part.error is not None]:
            where = f" on {refused[0].topic}-{refused[0].partition}"
            problems.append(_refusal(cluster, group, refused[0].error, where))
    if problems:
        raise problems[0]


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
        fix = "Nothing of it was set; run the command again."
    return OpsError(
        f"cluster {cluster.side.alias}: offsets of group {group}{where} must be set (got {error.str()}). {fix}"
    )
