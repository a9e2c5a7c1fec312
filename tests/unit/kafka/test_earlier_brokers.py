"""What brokers of earlier Kafka versions leave out of their answers, and what is made of it."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException, Uuid

from contract.verification_request import ClusterConfig
from kafka import group_commits
from kafka.errors import Refusals
from kafka.topic_metadata import topic_ids

NO_ID, ID = Uuid(0, 0), Uuid(1, 2)


def answer(value: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    if isinstance(value, BaseException):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


def group(name: str, state: ConsumerGroupState) -> Any:
    return SimpleNamespace(group_id=name, state=state, type=ConsumerGroupType.UNKNOWN)


def cluster(**admin: Any) -> Any:
    side = ClusterConfig(role="source", alias="earlier", client_config={})
    made = {"side": side, "refusals": Refusals(side), "call_within_s": 1.0}
    return SimpleNamespace(**made, admin=SimpleNamespace(**admin))


def test_a_topic_has_no_id_where_brokers_give_none() -> None:
    described = {"old": NO_ID, "new": ID}

    def describe(names: Any, **_: Any) -> dict[str, "Future[Any]"]:
        return {name: answer(SimpleNamespace(topic_id=one)) for name, one in described.items()}

    assert topic_ids(cluster(describe_topics=describe), described) == {"old": None, "new": str(ID)}


def test_groups_that_are_listed_without_a_state_are_described() -> None:
    states = {"empty": ConsumerGroupState.EMPTY, "busy": ConsumerGroupState.STABLE}
    asked: list[list[str]] = []

    def describe(names: list[str], **_: Any) -> dict[str, "Future[Any]"]:
        asked.append(names)
        return {name: answer(group(name, states[name])) for name in names}

    listed = [group(name, ConsumerGroupState.UNKNOWN) for name in states]
    found = group_commits.states(cluster(describe_consumer_groups=describe), listed)
    assert found == {"empty": "EMPTY", "busy": "STABLE"}
    assert asked == [["empty", "busy"]]


def test_a_group_that_may_not_be_described_stays_unknown() -> None:
    denied = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    listed = [group("hidden", ConsumerGroupState.UNKNOWN)]
    asked = cluster(describe_consumer_groups=lambda names, **_: {name: answer(denied) for name in names})
    assert group_commits.states(asked, listed) == {"hidden": "UNKNOWN"}


def test_groups_that_are_listed_with_their_states_are_not_described() -> None:
    assert group_commits.states(cluster(), [group("empty", ConsumerGroupState.EMPTY)]) == {"empty": "EMPTY"}
