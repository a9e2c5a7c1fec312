"""Committed offsets of many consumer groups with their metadata, read and set. A request takes one group.

Does not own which offsets are right, nor whether a group may be set.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupTopicPartitions, ConsumerGroupType, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka import in_flight
from kafka.errors import (
    DENIED,
    START_REPLICAS,
    UNANSWERED,
    ClusterError,
    UnansweredError,
    code_of,
    passes,
    without_leader,
)
from kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import Cluster

_UNSTABLE = KafkaError.UNSTABLE_OFFSET_COMMIT
_OFFSETS_TOPIC = "__consumer_offsets"
_LIST = "list all consumer groups"
CALL_DEADLINE_S = 20.0
STABLE_WITHIN_S, LOOK_EVERY_S = 5.0, 0.1
"""How long a transaction may take to end that has offsets of a group in it; none is asked for how long it lasts."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset of the next record that a group reads in a partition, and the metadata that was committed with it."""

    offset: int
    metadata: str = ""


Commits = Mapping[TopicPartition, CommittedOffset]


def answers(
    cluster: "Cluster", groups: Iterable[str], unread: dict[str, ClusterError] | None, *, stable: bool = True
) -> Iterator[tuple[str, Iterator[tuple[TopicPartition, Any]]]]:
    """Yield each group with the partitions in which it has a committed offset, each with the client's own object.

    `IN_FLIGHT` groups are asked for at the same time. One whose offsets cannot be read is left out, with the error in
    `unread`; without `unread`, or if nothing answers any more, the error is raised. Without it a group is waited for
    whose coordinator still loads: another broker has become it.

    A transaction that has not ended may have offsets of a group in it (`sendOffsetsToTransaction`): those before it may
    be undone by its end. With `stable` such a group comes after all others, once its transaction has ended; if it does
    not end soon, the group's offsets cannot be read. Without, its offsets are those before the transaction.
    """
    deadline: float | None = None
    left = groups
    while True:
        waiting: list[str] = []
        for group, answer in _answered(cluster, left, unread, stable=stable):
            if any(at.error is not None and at.error.code() == _UNSTABLE for at in answer.topic_partitions):
                waiting.append(group)
            else:
                yield group, _committed(answer)
        if not waiting:
            return
        now = time.monotonic()
        deadline = now + STABLE_WITHIN_S if deadline is None else deadline
        if now >= deadline:
            _refuse_unstable(cluster, waiting, unread)
            return
        time.sleep(LOOK_EVERY_S)
        left = waiting


def _refuse_unstable(cluster: "Cluster", groups: Iterable[str], unread: dict[str, ClusterError] | None) -> None:
    for group in groups:
        message = cluster.refusals.message(
            f"cannot read the offsets of group {group}: a transaction that has some of them (sendOffsetsToTransaction) "
            f"has not ended within {STABLE_WITHIN_S:g} s",
            "Let its application end the transaction, or wait for its transaction.timeout.ms, and run this again.",
        )
        if unread is None:
            raise ClusterError(message)
        unread[group] = ClusterError(message)


def _answered(
    cluster: "Cluster", groups: Iterable[str], unread: dict[str, ClusterError] | None, *, stable: bool
) -> Iterator[tuple[str, Any]]:
    """Yield each group with the answer to its request."""

    def send(group: str) -> Any:
        asked = [ConsumerGroupTopicPartitions(group)]
        options = {"require_stable": stable, "request_timeout": cluster.call_within_s}
        return cluster.admin.list_consumer_group_offsets(asked, **options)[group]

    unanswered = 0
    loaded_within_s = cluster.call_within_s if unread is None else 0.0
    for group, answer, error in in_flight.answers(groups, send, loaded_within_s):
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
        yield group, answer


def _committed(answer: Any) -> Iterator[tuple[TopicPartition, Any]]:
    for at in answer.topic_partitions:
        if at.error is None and at.offset >= 0:
            yield TopicPartition(at.topic, at.partition), at


def state_of(group: Any) -> str:
    """Return the state of a listed group.

    While members of a group of the new protocol (KIP-848) get their partitions, it has a state that the client does not
    know: RECONCILING here, for it has members.
    """
    name = str(group.state.name)
    return "RECONCILING" if name == "UNKNOWN" and group.type is ConsumerGroupType.CONSUMER else name


def listed(cluster: "Cluster", unlisted: dict[str, str] | None, *, leaders: bool) -> list[Any]:
    """Return the groups that the brokers list: each those whose coordinator it is.

    One that has just become it reads their offsets first, and answers with an error meanwhile: it is asked again, as
    one is that hangs up.

    Args:
        cluster: the connected cluster.
        unlisted: gets under "" why there may be other groups: a broker did not answer, or a partition of
            `__consumer_offsets` has no leader, whose groups no broker lists. The latter is seen only if the user may
            describe this topic.
        leaders: whether to ask for the leaders.

    Raises:
        ClusterError: if a broker does not answer and no other one lists a group; without `unlisted` also if one does.
    """
    end = time.monotonic() + cluster.call_within_s
    while True:
        found, errors = _listed(cluster, max(1.0, end - time.monotonic()))
        again = all(passes(error) and code_of(error) not in UNANSWERED for error in errors)
        if not errors or not again or time.monotonic() >= end:
            break
        time.sleep(in_flight.AGAIN_S)
    if errors and (unlisted is None or not found):
        cluster.refusals.call(_LIST, errors[0], None)
    if unlisted is None:
        return found
    lost = lost_partitions(cluster) if leaders and not errors else ""
    reason = _reason(cluster, _LIST, errors[0]) if errors else lost
    known = unlisted.get("", "")
    if reason not in known:
        unlisted[""] = f"{known}; {reason}" if known else reason
    return found


def _listed(cluster: "Cluster", within_s: float) -> tuple[list[Any], list[KafkaException]]:
    """Return the groups, and the errors of brokers that have not listed theirs. A missing right only hides groups."""
    try:
        answer = cluster.admin.list_consumer_groups(request_timeout=within_s).result()
    except KafkaException as error:
        return [], [error]
    return list(answer.valid), [KafkaException(error) for error in answer.errors if error.code() not in DENIED]


def lost_partitions(cluster: "Cluster") -> str:
    """Return which partitions of `__consumer_offsets` have no leader, "" if none is known: not every user may ask.

    No broker lists the groups whose offsets are there.
    """
    asked = TopicCollection([_OFFSETS_TOPIC])
    future = cluster.admin.describe_topics(asked, request_timeout=cluster.call_within_s)[_OFFSETS_TOPIC]
    try:
        lost = [f"{_OFFSETS_TOPIC}-{one.id}" for one in future.result().partitions if one.leader is None]
    except KafkaException as error:
        is_answer = code_of(error) in (*DENIED, KafkaError.UNKNOWN_TOPIC_OR_PART)
        return "" if is_answer else _reason(cluster, f"describe topic {_OFFSETS_TOPIC}", error)
    if not lost:
        return ""
    what = f"{without_leader(lost)}, so that no broker lists the groups whose offsets are there"
    return cluster.refusals.message(what, START_REPLICAS)


def _reason(cluster: "Cluster", what: str, error: KafkaException) -> str:
    try:
        cluster.refusals.call(what, error, None)
    except ClusterError as refusal:
        return str(refusal)


def states(cluster: "Cluster", listed: Iterable[Any]) -> dict[str, str]:
    """Return the state of each listed group.

    Brokers before Kafka 2.6 list groups without their states (KIP-518): those are described. UNKNOWN remains of a group
    that this user may not describe.
    """
    found = {group.group_id: state_of(group) for group in listed}
    unknown = [group for group, state in found.items() if state == "UNKNOWN"]
    return found | _described(cluster, unknown)


def _described(cluster: "Cluster", groups: list[str]) -> dict[str, str]:
    """Return the state of each of these groups that this user may describe."""
    found: dict[str, str] = {}
    if not groups:
        return found
    for group, future in cluster.admin.describe_consumer_groups(groups, request_timeout=CALL_DEADLINE_S).items():
        try:
            found[group] = state_of(future.result())
        except KafkaException as error:
            if code_of(error) not in DENIED:
                cluster.refusals.call(f"describe group {group}", error, None)
    return found


def cut_names(cluster: "Cluster", groups: Iterable[str]) -> dict[str, ClusterError]:
    """Return which of these groups have a longer name than they are listed with, and why their offsets are unknown.

    A name may have a NUL byte in it, where the client library ends it: it asks for the offsets of a group that is none.
    The brokers describe that one as dead, and go on listing the one with the longer name.

    Args:
        cluster: the connected cluster.
        groups: listed groups for which no offset was found. With one, the name is whole.
    """
    dead = {group for group, state in _described(cluster, list(groups)).items() if state == "DEAD"}
    listed_still = dead and dead & {*cluster.group_states()}  # not one that has been deleted meanwhile
    return {
        group: ClusterError(
            cluster.refusals.message(
                f"cannot read the offsets of group {group}: its name goes on behind a NUL byte, where the client "
                "library ends it",
                "Leave it out of the mirror's groups, or give its application a group without such a byte.",
            )
        )
        for group in listed_still
    }


def read(
    cluster: "Cluster", groups: Iterable[str], unread: dict[str, ClusterError] | None = None
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """Return the committed offsets of each group with their metadata; `unread` as in `answers`."""
    return {
        group: {tp: CommittedOffset(at.offset, at.metadata or "") for tp, at in committed}
        for group, committed in answers(cluster, groups, unread)
    }


def moved(tp: TopicPartition, offset: int, before: CommittedOffset | None) -> ClientTopicPartition:
    """Return an offset to set, with the metadata that was committed before it if it is not behind that.

    Of a place behind it may be wrong: Kafka Streams keeps its stream's time there, and would call records late.
    """
    return ClientTopicPartition(*tp, offset, metadata=before.metadata if before and before.offset <= offset else "")


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
