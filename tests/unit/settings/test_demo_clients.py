"""Demo clients: off unless asked for, small, somebody to log in as, a topic that will be there."""

from typing import Any

import pytest

from settings import parse

from ...support.stack_values import SOURCE, TARGET, Values, with_value
from .test_rules import problems

GIVEN = {"image": "registry.example.com/kafka/demo-clients:1.0.0", "user": "reader", "topic": "items"}
EXTERNAL = {
    "name": "cloud",
    "namespace": "kafka",
    "external": {"bootstrapServers": ["broker:9093"], "certificateAuthority": {"file": "ca.pem"}},
}


def clients(values: Values = SOURCE, **settings: Any) -> Values:
    given = {key: value for key, value in {**GIVEN, **settings}.items() if value is not None}
    return with_value(values, "demoClients", given)


def test_there_are_none_unless_asked_for() -> None:
    assert parse(SOURCE).demo_clients is None


def test_they_are_few_slow_and_small() -> None:
    found = parse(clients()).demo_clients
    assert found is not None
    assert (found.producers, found.consumers, found.rate, found.kind) == (1, 1, 1, "items")
    assert found.resources.rendered() == {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}


@pytest.mark.parametrize(
    ("settings", "key", "reported"),
    [
        ({"image": None}, "image", "image must be given (got nothing). Add it."),
        ({"image": "demo:latest"}, "image", "a tag that does not move (got 'demo:latest')"),
        ({"topic": None}, "topic", "topic must be given"),
        (
            {"topic": "item"},
            "topic",
            "must be declared, or one that a mirror makes (got item, allowed items, store.inv",
        ),
        ({"user": None}, "user", "user or secret must be given (got nothing)"),
        ({"user": "readr"}, "user", "one of this stack's users (got readr, allowed reader). Did you mean reader?"),
        ({"secret": "mm2-clients"}, "user", "must not be given with secret (got reader; the Secret says who logs in)"),
        ({"rate": 0}, "rate", "must be >= 1 (got 0, allowed 1..10000)"),
        ({"producers": -1}, "producers", "must be >= 0 (got -1, allowed 0..100)"),
        ({"consumers": 101}, "consumers", "must be <= 100"),
        ({"kind": "item"}, "kind", "allowed items, products). Did you mean items?"),
        ({"group": "my group"}, "group", "must be a name for Kafka"),
        ({"replicas": 1}, "replicas", "must be a known key"),
    ],
)
def test_one_mistake_is_reported_with_its_key(settings: dict[str, Any], key: str, reported: str) -> None:
    ((found, message),) = problems(clients(**settings))
    assert found == f"demoClients.{key}"
    assert message.startswith("demoClients: ")
    assert reported in message


def test_several_mistakes_are_reported_together() -> None:
    keys = [key for key, _ in problems(clients(user="nobody", topic="nothing"))]
    assert keys == ["demoClients.user", "demoClients.topic"]


@pytest.mark.parametrize("settings", [{"producers": 0, "consumers": 0}, {"user": None, "secret": "mm2-clients"}])
def test_what_is_allowed(settings: dict[str, Any]) -> None:
    assert parse(clients(**settings)).demo_clients is not None


@pytest.mark.parametrize(
    ("naming", "topic", "allowed"),
    [
        ("identity", "items", True),
        ("identity", "orders", False),
        ("identity", "es-src.items", False),
        ("prefixed", "es-src.items", True),
        ("prefixed", "items", False),
        ("identity", "audit", True),
    ],
)
def test_a_mirror_makes_topics_too(naming: str, topic: str, allowed: bool) -> None:
    values = clients(with_value(TARGET, "mirrors/0/naming", naming), user="writer", topic=topic)
    if allowed:
        assert parse(values, "stg").demo_clients is not None
    else:
        assert [key for key, _ in problems(values)] == ["demoClients.topic"]


def test_a_topic_is_not_asked_for_where_anybody_may_make_one_or_nothing_is_known() -> None:
    for path, value in [("cluster/config", {"auto.create.topics.enable": True}), ("topics", [])]:
        assert parse(with_value(clients(topic="any"), path, value)).demo_clients is not None


def test_an_unreadable_topic_or_user_is_reported_once() -> None:
    values = with_value(clients(topic="audit"), "topics/+", {"name": "audit", "partitions": 0, "replicas": 1})
    assert [key for key, _ in problems(values)] == ["topics[2].partitions"]
    values = with_value(SOURCE, "users/0", {"name": "reader", "rights": []})
    assert [key for key, _ in problems(clients(values))] == ["users[0].rights"]


def test_the_user_logs_in_as_the_listener_demands() -> None:
    values = with_value(SOURCE, "cluster/listeners", [{"name": "tls", "port": 9093, "authentication": "tls"}])
    ((key, message),) = problems(clients(values))
    assert key == "demoClients.user"
    assert "as listener tls of active demands (got scram-sha-512, allowed tls)" in message


def test_an_authority_in_a_file_is_out_of_a_pods_reach() -> None:
    external = {"cluster": EXTERNAL, "users": [{"name": "reader", "secret": {"name": "login"}}]}
    ((key, message),) = problems(clients(external))
    assert key == "demoClients.user"
    assert "certificateAuthority.secret (got its file ca.pem" in message
    assert parse(clients(external, user=None, secret="kafka")).demo_clients is not None
