"""How long the operator keeps a client of a cluster: one of librdkafka, and one that a test controls."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sandbox.operator import admin
from sandbox.operator.kafka_nodes import REPLICATION, TRUSTED, Layout, Node
from tests.support.bootstrap_broker import TalkingBroker
from tests.support.waiting import wait_until


@pytest.fixture
def broker() -> Iterator[TalkingBroker]:
    broker = TalkingBroker()
    yield broker
    broker.close()


@pytest.fixture
def plan(broker: TalkingBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    for name in ("operator.crt", TRUSTED):
        (tmp_path / name).touch()
    plan = Layout("ns", "c", "id", (Node("pool", 0, ("broker",), {REPLICATION: broker.port}),), tmp_path)
    settings = {"bootstrap.servers": plan.addresses(REPLICATION), "log_level": 0}
    monkeypatch.setattr(admin, "client_settings", lambda _: settings)
    return plan


class ToldClient:
    """Stands in for the admin client: names the broker, or nothing at all while it is silent."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.silent = False

    def list_topics(self, timeout: float) -> Any:
        if self.silent:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(brokers={0: None}, topics={})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(admin, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(admin, "AdminClient", ToldClient)
    return now


def silence(client: Any) -> None:
    client.silent = True


def test_a_broker_that_named_no_brokers_while_it_stopped_is_found_again(
    broker: TalkingBroker, plan: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "SILENCE_S", 0.5)
    for _ in range(10):  # whether librdkafka loses its cluster is a race, which it loses more often than not
        clusters = admin.Clusters()
        until_found(clusters, plan)
        first = clusters.client(plan)
        broker.listed = False
        assert not clusters.health(plan).brokers
        broker.listed = True
        until_found(clusters, plan)
        if clusters.client(plan) is not first:
            return


def until_found(clusters: admin.Clusters, plan: Layout) -> None:
    wait_until("the cluster is found", lambda: clusters.health(plan).brokers, 30)


def test_a_client_is_replaced_only_after_a_long_silence(plan: Layout, clock: list[float]) -> None:
    clusters = admin.Clusters()
    first = clusters.client(plan)
    clock[0] += 60
    assert clusters.health(plan).brokers
    silence(first)
    clock[0] += admin.SILENCE_S
    assert not clusters.health(plan).brokers
    assert clusters.client(plan) is first
    clock[0] += 1
    assert not clusters.health(plan).brokers
    assert clusters.client(plan) is not first
    assert clusters.health(plan).brokers


def test_a_new_client_has_as_long_to_answer_as_one_that_was_known(plan: Layout, clock: list[float]) -> None:
    clusters = admin.Clusters()
    first = clusters.client(plan)
    silence(first)
    clock[0] += admin.SILENCE_S + 1
    clusters.health(plan)
    second = clusters.client(plan)
    assert second is not first
    silence(second)
    assert not clusters.health(plan).brokers
    assert clusters.client(plan) is second
