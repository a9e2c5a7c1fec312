"""Committed offsets of many consumer groups with their metadata, read and set. A request takes one group.

Does not own which offsets are right, nor whether a group may be set.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka import in_flight
from kafka.errors import ClusterError, UnansweredError
from kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import Cluster

CALL_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset of the next record that a group reads in a partition, and the metadata that was committed with it."""

    offset: int
    metadata: str = ""


Commits = Mapping[TopicPartition, CommittedOffset]


def answers(
    cluster: "Cluster", groups: Iterable[str], unread: dict[str, ClusterError] | None
) -> Iterator[tuple[str, Iterator[tuple[TopicPartition, Any]]]]:
    """Yield each group with the partitions in which it has a committed offset, each with the client's own object.

    `IN_FLIGHT` groups are asked for at the same time. One whose offsets cannot be read is left out, with the error in
    `unread`; without `unread`, or if nothing answers any more, the error is raised.
    """

    def send(group: str) -> Any:
        asked = [ConsumerGroupTopicPartitions(group)]
        return cluster.admin.list_consumer_group_offsets(asked, request_timeout=CALL_DEADLINE_S)[group]

    unanswered = 0
    for group, answer, error in in_flight.answers(groups, send):
        try:
            if error is not None:
                cluster.refusals.call(f"read the offsets of group {group}", error, ("Describe", f"group {group}"))
        except ClusterError as refusal:
            unanswered = unanswered + 1 if isinstance(refusal, UnansweredError) else 0
            if unread is None or unanswered == in_flight.IN_FLIGHT:
                raise
            unread[group] = refusal
            continue
        unanswered = 0
        yield group, _committed(answer)


def _committed(answer: Any) -> Iterator[tuple[TopicPartition, Any]]:
    for at in answer.topic_partitions:
        if at.error is None and at.offset >= 0:
            yield TopicPartition(at.topic, at.partition), at


def read(
    cluster: "Cluster", groups: Iterable[str], unread: dict[str, ClusterError] | None = None
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """Return the committed offsets of each group with their metadata; `unread` as in `answers`."""
    return {
        group: {tp: CommittedOffset(at.offset, at.metadata or "") for tp, at in committed}
        for group, committed in answers(cluster, groups, unread)
    }


def write(cluster: "Cluster", wanted: Mapping[str, Commits]) -> dict[str, KafkaError]:
    """Set offsets with their metadata; return the error of each group of which not all were set.

    A broker refuses a group that has members.
    """

    def send(group: str) -> Any:
        parts = [
            ClientTopicPartition(*tp, one.offset, metadata=one.metadata) for tp, one in sorted(wanted[group].items())
        ]
        request = [ConsumerGroupTopicPartitions(group, parts)]
        return cluster.admin.alter_consumer_group_offsets(request, request_timeout=CALL_DEADLINE_S)[group]

    refused: dict[str, KafkaError] = {}
    for group, answer, error in in_flight.answers(wanted, send):
        problem = _problem(answer, error)
        if problem is not None:
            refused[group] = problem
    return refused


def _problem(answer: Any, error: KafkaException | None) -> KafkaError | None:
    if error is not None:
        found: KafkaError = error.args[0]
        return found
    return next((part.error for part in answer.topic_partitions if part.error is not None), None)
