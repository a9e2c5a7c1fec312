"""Many requests of one group each: a bounded number is in flight, and each group has its own answer or error."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException

from contract.verification_request import ClusterConfig
from kafka import group_commits, in_flight
from kafka.cluster import Cluster
from kafka.errors import ClusterError, DeniedError, UnansweredError


class Broker:
    """An admin client whose answers come when somebody waits for them: it counts what is in flight until then.

    `of_group` returns the answer, or the error that is one.
    """

    def __init__(self, of_group: Callable[[str], Any]) -> None:
        self.of_group = of_group
        self.sent: list[str] = []
        self.stable: list[bool] = []
        self.in_flight = self.most = 0

    def list_consumer_group_offsets(
        self, asked: Any, *, require_stable: bool, request_timeout: float
    ) -> dict[str, Any]:
        self.stable.append(require_stable)
        return {asked[0].group_id: self.send(asked[0].group_id)}

    def send(self, group: str) -> Any:
        self.sent.append(group)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        future: Future[Any] = Future()
        plain = future.result

        def result(timeout: float | None = None) -> Any:
            self.in_flight -= 1
            found = self.of_group(group)
            future.set_exception(found) if isinstance(found, Exception) else future.set_result(found)
            return plain(timeout)

        future.result = result  # type: ignore[method-assign]
        return future


def offsets(*at: tuple[str, int, int]) -> Any:
    parts = [SimpleNamespace(topic=topic, partition=number, offset=offset, error=None) for topic, number, offset in at]
    return SimpleNamespace(topic_partitions=parts)


def error(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


def cluster(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> Cluster:
    config = {"bootstrap.servers": "h:1", "sasl.username": "mirror"}
    side = Cluster(ClusterConfig(role="source", alias="es-src", client_config=config))
    monkeypatch.setattr(side, "_admin", broker)
    return side


def test_a_bounded_number_of_requests_is_in_flight_and_all_are_answered_in_order() -> None:
    broker, names = Broker(str.upper), [f"g{number}" for number in range(1000)]
    taken: list[str] = []

    def one_by_one() -> Iterator[str]:
        for name in names:
            taken.append(name)
            yield name

    found = []
    for name, answer, problem in in_flight.answers(one_by_one(), broker.send):
        found.append((name, answer, problem))
        assert len(taken) - len(found) < in_flight.IN_FLIGHT, "names are taken when they are sent"
    assert found == [(name, name.upper(), None) for name in names]
    assert broker.most == in_flight.IN_FLIGHT


def test_few_requests_are_all_sent_before_the_first_answer_is_waited_for() -> None:
    broker = Broker(str.upper)
    assert [name for name, *_ in in_flight.answers(["a", "b", "c"], broker.send)] == ["a", "b", "c"]
    assert broker.most == 3
    assert list(in_flight.answers([], broker.send)) == []


def test_the_offsets_of_many_groups_are_read_several_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(lambda group: offsets(("items", 0, int(group)), ("items", 1, -1)))
    found = cluster(monkeypatch, broker).group_offsets(str(number) for number in range(500))
    assert found == {str(number): {("items", 0): number} for number in range(500)}
    assert (broker.most, len(broker.sent)) == (in_flight.IN_FLIGHT, 500)
    places = {id(tp) for at in found.values() for tp in at}
    assert len(places) == 1, "a partition is in memory once, however many groups read it"


def test_a_group_that_cannot_be_read_has_its_reason_and_the_others_their_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad = {"7": error(KafkaError.GROUP_AUTHORIZATION_FAILED), "9": error(KafkaError._TIMED_OUT)}
    broker = Broker(lambda group: bad.get(group) or offsets(("items", 0, 1)))
    unread: dict[str, ClusterError] = {}
    found = cluster(monkeypatch, broker).group_offsets(map(str, range(100)), unread)
    assert len(found) == 98
    assert {group: type(why) for group, why in unread.items()} == {"7": DeniedError, "9": UnansweredError}
    assert "user mirror may not Describe group 7" in str(unread["7"])
    with pytest.raises(DeniedError, match="group 7"):
        cluster(monkeypatch, broker).group_offsets(map(str, range(100)))


def test_a_cluster_that_answers_no_more_is_not_asked_for_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request has the deadline of one: ten thousand of them shall not take that many deadlines."""
    broker = Broker(lambda group: error(KafkaError._TIMED_OUT) if int(group) >= 100 else offsets(("items", 0, 1)))
    with pytest.raises(UnansweredError, match="cannot read the offsets of group"):
        cluster(monkeypatch, broker).group_offsets(map(str, range(10_000)), {})
    assert len(broker.sent) < 100 + 2 * in_flight.IN_FLIGHT


def test_groups_whose_coordinator_does_not_answer_keep_nobody_from_reading_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One broker of three is down: every third group has no coordinator."""
    broker = Broker(lambda group: error(KafkaError._TIMED_OUT) if int(group) % 3 == 0 else offsets(("items", 0, 1)))
    unread: dict[str, ClusterError] = {}
    assert len(cluster(monkeypatch, broker).group_offsets(map(str, range(300)), unread)) == 200
    assert len(unread) == 100


def test_a_group_whose_coordinator_still_loads_is_asked_for_again_behind_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "AGAIN_S", 0.01)
    moving = [error(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)] * 3
    broker = Broker(lambda group: moving.pop() if group == "moved" and moving else offsets(("items", 0, 30)))
    side = cluster(monkeypatch, broker)
    assert list(side.group_offsets(["moved", "plain"])) == ["plain", "moved"]
    assert broker.sent == ["moved", "plain", "moved", "moved", "moved"]


def test_a_group_whose_coordinator_does_not_end_to_load_is_an_error_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "AGAIN_S", 0.01)
    broker = Broker(lambda group: error(KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    side = cluster(monkeypatch, broker)
    unread: dict[str, ClusterError] = {}
    assert side.group_offsets(["moved"], unread) == {}
    assert broker.sent == ["moved"], "who keeps the reason asks again when it wants to"
    assert "cannot read the offsets of group moved: Broker: Coordinator load in progress" in str(unread["moved"])
    side.call_within_s = 0.05
    with pytest.raises(ClusterError, match="Coordinator load in progress"):
        side.group_offsets(["moved"])
    assert len(broker.sent) > 2


def unstable(topic: str, number: int) -> Any:
    pending = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT)
    return SimpleNamespace(
        topic_partitions=[SimpleNamespace(topic=topic, partition=number, offset=-1001, error=pending)]
    )


def test_offsets_that_a_transaction_has_are_read_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commits, "LOOK_EVERY_S", 0.01)
    pending = [unstable("items", 0)] * 3
    broker = Broker(lambda group: pending.pop() if group == "eos" and pending else offsets(("items", 0, 30)))
    found = cluster(monkeypatch, broker).group_offsets(["eos", "plain"])
    assert (broker.stable, broker.sent) == ([True] * 5, ["eos", "plain", "eos", "eos", "eos"])
    assert found == {"plain": {("items", 0): 30}, "eos": {("items", 0): 30}}


def test_a_transaction_that_does_not_end_is_one_groups_error_and_not_an_old_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_commits, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(group_commits, "STABLE_WITHIN_S", 0.05)
    broker = Broker(lambda group: unstable("items", 0) if group == "eos" else offsets(("items", 0, 30)))
    unread: dict[str, ClusterError] = {}
    side = cluster(monkeypatch, broker)
    assert side.group_offsets(["eos", "plain"], unread) == {"plain": {("items", 0): 30}}
    assert "offsets of group eos: a transaction that has some of them" in str(unread["eos"])
    with pytest.raises(ClusterError, match=r"has not ended within 0.05 s. Let its application end the transaction"):
        side.group_offsets(["eos"])


@pytest.mark.parametrize(
    ("type_", "state", "shown"),
    [
        (ConsumerGroupType.CONSUMER, ConsumerGroupState.UNKNOWN, "RECONCILING"),
        (ConsumerGroupType.CONSUMER, ConsumerGroupState.EMPTY, "EMPTY"),
        (ConsumerGroupType.UNKNOWN, ConsumerGroupState.UNKNOWN, "UNKNOWN"),
    ],
)
def test_a_group_of_the_new_protocol_that_shares_out_partitions_is_not_idle(type_: Any, state: Any, shown: str) -> None:
    assert group_commits.state_of(SimpleNamespace(group_id="new", type=type_, state=state)) == shown
