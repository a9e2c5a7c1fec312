"""Groups that the brokers list are all there are, or it is said why there may be others."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException

from contract.verification_request import ClusterConfig
from kafka.cluster import Cluster
from kafka.errors import ClusterError

LOADS = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
HUNG_UP = KafkaError(KafkaError._TRANSPORT)
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)
HIDDEN = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
NO_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
ALL = ["billing", "orders"]
LED = [SimpleNamespace(id=0, leader=object()), SimpleNamespace(id=1, leader=object())]
LOST = [LED[0], SimpleNamespace(id=1, leader=None)]
Answer = tuple[list[str], list[KafkaError]]


def future(value: Any) -> "Future[Any]":
    made: Future[Any] = Future()
    if isinstance(value, KafkaError):
        made.set_exception(KafkaException(value))
    else:
        made.set_result(value)
    return made


class Admin:
    """Answers one after the other, the last one for ever."""

    def __init__(self, answers: list[Answer], partitions: Any) -> None:
        self.answers, self.partitions, self.asked = answers, partitions, 0

    def list_consumer_groups(self, **_: Any) -> "Future[Any]":
        self.asked += 1
        names, errors = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        empty = {"state": ConsumerGroupState.EMPTY, "type": ConsumerGroupType.CLASSIC}
        return future(SimpleNamespace(valid=[SimpleNamespace(group_id=one, **empty) for one in names], errors=errors))

    def describe_topics(self, *_: Any, **__: Any) -> dict[str, "Future[Any]"]:
        known = self.partitions
        return {
            "__consumer_offsets": future(known if isinstance(known, KafkaError) else SimpleNamespace(partitions=known))
        }


def cluster(*answers: Answer, partitions: Any = LED) -> tuple[Cluster, Admin]:
    made, admin = Cluster(ClusterConfig(role="source", alias="es-src", client_config={})), Admin([*answers], partitions)
    made._admin, made.call_within_s = admin, 0.5  # type: ignore[assignment]  # made up
    return made, admin


@pytest.mark.parametrize("passing", [LOADS, HUNG_UP])
def test_a_broker_that_does_not_list_its_groups_yet_is_asked_again(passing: KafkaError) -> None:
    unlisted: dict[str, str] = {}
    side, admin = cluster(([], [passing]), (["orders"], [passing]), (ALL, []))
    assert sorted(side.group_states(unlisted)) == ALL
    assert (admin.asked, unlisted) == (3, {})


@pytest.mark.parametrize("error", [LOADS, HUNG_UP, TIMED_OUT])
def test_groups_of_a_broker_that_goes_on_not_listing_them_may_be_there(error: KafkaError) -> None:
    with pytest.raises(ClusterError, match="cannot list all consumer groups"):
        cluster((["orders"], [error]))[0].group_states()
    unlisted: dict[str, str] = {}
    assert [*cluster((["orders"], [error]))[0].group_states(unlisted)] == ["orders"]
    assert unlisted[""].startswith("source es-src (, user no user): cannot list all consumer groups")


def test_a_broker_that_has_not_answered_in_time_is_not_asked_again() -> None:
    side, admin = cluster((["orders"], [TIMED_OUT]))
    side.group_states({})
    assert admin.asked == 1


@pytest.mark.parametrize("error", [LOADS, HUNG_UP, TIMED_OUT])
def test_a_cluster_of_which_no_broker_lists_a_group_has_not_answered(error: KafkaError) -> None:
    with pytest.raises(ClusterError, match="cannot list all consumer groups"):
        cluster(([], [error]))[0].group_states({})


def test_who_asks_for_no_leaders_goes_by_what_is_listed() -> None:
    unlisted: dict[str, str] = {}
    assert [*cluster((["orders"], []), partitions=LOST)[0].group_states(unlisted, leaders=False)] == ["orders"]
    assert unlisted == {}


def test_no_broker_lists_the_groups_of_a_partition_without_a_leader() -> None:
    unlisted = {"": "target es-tgt: cannot list all consumer groups"}
    assert [*cluster((["orders"], []), partitions=LOST)[0].group_states(unlisted)] == ["orders"]
    assert unlisted[""] == (
        "target es-tgt: cannot list all consumer groups; source es-src (, user no user): __consumer_offsets-1 has no "
        "leader, so that no broker lists the groups whose offsets are there. Start the brokers that hold the replicas."
    )


def test_a_reason_that_is_known_is_not_given_twice() -> None:
    unlisted: dict[str, str] = {}
    source, _ = cluster((["orders"], []), partitions=LOST)
    source.group_states(unlisted)
    cluster((["orders"], [HUNG_UP]))[0].group_states(unlisted)
    before = unlisted[""]
    source.group_states(unlisted)
    assert unlisted[""] == before
    assert before.count("; ") == 1


@pytest.mark.parametrize("answer", [HIDDEN, NO_TOPIC])
def test_who_may_not_ask_for_the_leaders_goes_by_what_is_listed(answer: KafkaError) -> None:
    unlisted: dict[str, str] = {}
    assert sorted(cluster((ALL, []), partitions=answer)[0].group_states(unlisted)) == ALL
    assert unlisted == {}


def test_a_missing_right_hides_groups_and_is_no_error_of_a_broker() -> None:
    unlisted: dict[str, str] = {}
    side, _ = cluster(([], [KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)]))
    assert side.group_states(unlisted) == {}
    assert unlisted == {}
