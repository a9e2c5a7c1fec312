"""Offsets of consumer groups: set while a group is inactive, and read back.

Owns the one way in which a command changes a group's position. Does not own which position is right.
"""

from collections.abc import Callable, Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.groups import IDLE
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

Offsets = Mapping[TopicPartition, int]
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
            f"{', '.join(active)}). Stop these applications there and run the command again."
        )


def commit(
    cluster: Cluster, group: str, offsets: Offsets, require_permission: Callable[[], None] = lambda: None
) -> None:
    """Set a group's offsets of the next records to read, and read them back; raises OpsError.

    Offsets are set where they differ only: what is right already is not touched, so that it is safe to do again.
    `require_permission` is called right before they are set, and raises if they must not be.
    """
    known = cluster.group_offsets([group])[group]
    wrong = {tp: offset for tp, offset in offsets.items() if known.get(tp) != offset}
    if not wrong:
        return
    wanted = [ClientTopicPartition(*tp, offset) for tp, offset in sorted(wrong.items())]
    request = [ConsumerGroupTopicPartitions(group, wanted)]
    require_permission()
    futures = cluster.admin.alter_consumer_group_offsets(request, request_timeout=CALL_DEADLINE_S)
    try:
        answer = futures[group].result()
        refused = [(part, part.error) for part in answer.topic_partitions if part.error is not None]
    except KafkaException as error:
        raise _refusal(cluster, group, error.args[0]) from None
    if refused:
        part, reason = refused[0]
        raise _refusal(cluster, group, reason, f" on {part.topic}-{part.partition}")
    now = cluster.group_offsets([group])[group]
    if missed := {tp: offset for tp, offset in offsets.items() if now.get(tp) != offset}:
        (topic, partition), offset = next(iter(sorted(missed.items())))
        raise OpsError(
            f"cluster {cluster.side.alias}: group {group} must stand at {offset} on {topic}-{partition} after it was "
            f"set (got {now.get(TopicPartition(topic, partition))}). Somebody else commits for it: stop that and run "
            "this again."
        )


def require_reached(cluster: Cluster, wanted: Mapping[str, Offsets]) -> None:
    """Raise OpsError unless each group stands where it was set, or further: its application may work already."""
    for group, partitions in wanted.items():
        at = cluster.group_offsets([group])[group]
        for (topic, partition), offset in partitions.items():
            if at.get(TopicPartition(topic, partition), -1) < offset:
                raise OpsError(
                    f"cluster {cluster.side.alias}: group {group} must stand at {offset} or further on "
                    f"{topic}-{partition} (got {at.get(TopicPartition(topic, partition), 'nothing')}). Somebody has "
                    "reset it: stop that, set it with `python -m ops offsets set`, and run this again."
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
