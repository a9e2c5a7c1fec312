"""Topics of a site's cluster: their roles, what is shown, and what is not deleted."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, ConfigSource  # type: ignore[attr-defined]
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.topics import command as topics_command
from ops.topics.roles import Role, inventory_of

SECRET = "very-secret-4711"
SIDE = {"client_config": {"bootstrap.servers": "kafka.stg:9093"}}


def outputs(naming: str = "identity") -> dict[str, Any]:
    """A stack that declares `audit`, with a mirror of two topics, and one of the other direction."""

    def request(name: str, source: str, target: str, topics: list[str]) -> dict[str, Any]:
        kept = [{"name": f"{name}-state", "location": "target"}]
        mirror = {"name": name, "topics": topics, "naming": naming, "internal_topics": kept}
        return {"source": {"alias": source, **SIDE}, "target": {"alias": target, **SIDE}, "mirror": mirror}

    return {
        "cluster": {"name": "kafka-stg", "bootstrapServers": "kafka.stg:9093", "securityProtocol": "SASL_SSL"},
        "userPasswords": {"admin": SECRET},
        "topics": ["audit"],
        "mirrors": {"mm2": {"targetCluster": "kafka-stg"}, "back": {"targetCluster": "kafka-dev"}},
        "verificationRequests": {
            "mm2": request("mm2", "es-src", "es-tgt", ["items", r"store\..*"]),
            "back": request("back", "es-tgt", "es-src", ["scratch"]),
        },
    }


class FakeAdmin:
    """An admin client of a cluster with a few topics; `denied` are those that it may not delete."""

    def __init__(self, *names: str, denied: tuple[str, ...] = ()) -> None:
        self.names, self.denied = names, denied
        self.deleted: list[str] = []

    def list_topics(self, *, timeout: float) -> Any:
        parts = {number: SimpleNamespace(id=number, leader=1, replicas=[1, 2, 3], isrs=[1, 2]) for number in (1, 0)}
        return SimpleNamespace(topics={name: SimpleNamespace(partitions=parts) for name in self.names})

    def list_offsets(self, wanted: dict[TopicPartition, Any], *, request_timeout: float) -> dict[TopicPartition, Any]:
        earliest = all(spec is topics_command._EARLIEST for spec in wanted.values())
        return {place: _Future(SimpleNamespace(offset=5 if earliest else 40 + place.partition)) for place in wanted}

    def describe_configs(self, resources: list[ConfigResource], *, request_timeout: float) -> Any:
        own, default = ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DEFAULT_CONFIG.value
        entries = {
            "retention.ms": SimpleNamespace(value="1000", source=own, is_sensitive=False),
            "cleanup.policy": SimpleNamespace(value="delete", source=default, is_sensitive=False),
        }
        return {resource: _Future(entries) for resource in resources}

    def delete_topics(self, topics: list[str], *, request_timeout: float) -> dict[str, Any]:
        self.deleted += [topic for topic in topics if topic not in self.denied]
        denial = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        return {topic: _Future(denial if topic in self.denied else None) for topic in topics}


class _Future:
    def __init__(self, value: Any) -> None:
        self.value = value

    def result(self) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    fake = FakeAdmin("items", "store.shoes", "audit", "scratch", "mm2-state", "__consumer_offsets", denied=("shut",))
    monkeypatch.setattr(topics_command, "AdminClient", lambda _: fake)
    monkeypatch.setattr(topics_command, "stack_outputs", lambda *_: outputs())
    return fake


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["topics", *arguments, "--stack", "stg"], env={"COLUMNS": "80"})
    assert SECRET not in result.output
    return result


@pytest.mark.parametrize(
    ("topic", "role"),
    [
        ("items", Role.MIRRORED),
        ("store.shoes", Role.MIRRORED),
        ("audit", Role.DECLARED),
        ("scratch", Role.OTHER),  # the mirror of the other direction reads it
        ("mm2-state", Role.INTERNAL),
        ("__consumer_offsets", Role.INTERNAL),
        ("mm2-offset-syncs.es-tgt.internal", Role.INTERNAL),
        ("es-src.checkpoints.internal", Role.INTERNAL),
        ("es-src.heartbeats", Role.INTERNAL),
        # Of Connect, of a mirror made by hand, of schema registries: lost positions mean that all is copied again.
        ("mirrormaker2-cluster-offsets", Role.INTERNAL),
        ("connect-cluster-configs", Role.INTERNAL),
        ("my-connect-status", Role.INTERNAL),
        ("connect-offsets", Role.INTERNAL),
        ("_schemas", Role.INTERNAL),
        ("kafkasql-journal", Role.INTERNAL),
        ("order-status", Role.OTHER),
        ("disconnected.status", Role.OTHER),
    ],
)
def test_a_topic_has_the_role_that_the_stacks_outputs_give_it(topic: str, role: Role) -> None:
    assert inventory_of("stg", outputs(), {}).role(topic) is role


def test_prefixed_copies_are_known_by_their_prefix() -> None:
    known = inventory_of("stg", outputs("prefixed"), {})
    assert (known.role("es-src.items"), known.role("items")) == (Role.MIRRORED, Role.OTHER)


def test_list_shows_every_topic_with_its_role_and_internal_ones_when_asked(admin: FakeAdmin) -> None:
    rows = json.loads(run("list", "--json").stdout)["topics"]
    assert {row["name"]: row["role"] for row in rows} == {
        "audit": "declared", "items": "mirrored", "scratch": "other", "store.shoes": "mirrored",
    }  # fmt: skip
    assert rows[1] | {"name": ""} == {
        "name": "", "role": "mirrored", "mirror": "mm2", "partitionCount": 2, "replicationFactor": 3,
        "underReplicated": 2,
    }  # fmt: skip
    everything = json.loads(run("list", "--internal", "--json").stdout)["topics"]
    assert {row["name"] for row in everything} == set(admin.names)
    assert "mirrored by mm2" in run("list").stdout


def test_describe_shows_partitions_offsets_and_the_topics_own_settings(admin: FakeAdmin) -> None:
    (topic,) = json.loads(run("describe", "items", "--json").stdout)["topics"]
    assert topic["config"] == {"retention.ms": "1000"}
    assert [(each["partition"], each["logStartOffset"], each["logEndOffset"]) for each in topic["partitions"]] == [
        (0, 5, 40),
        (1, 5, 41),
    ]
    table = run("describe", "items").stdout
    assert "retention.ms=1000" in table
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize("action", ["describe", "delete"])
def test_a_topic_that_is_not_there_is_one_message(action: str, admin: FakeAdmin) -> None:
    result = run(action, "item")
    assert result.exit_code == 2
    assert "topic item must exist and be open to the user (got none, allowed audit, items," in result.stderr


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("__consumer_offsets", "must not be internal"),
        ("mm2-state", "must not be internal"),
        ("audit", "Take it out of rt-inventory:topics in Pulumi.stg.yaml"),
        ("items", "must not be written by a mirror (got mirror mm2)"),
    ],
)
def test_what_must_stay_is_not_deleted_nor_is_anything_with_it(topic: str, reason: str, admin: FakeAdmin) -> None:
    result = run("delete", "scratch", topic, "--yes")
    assert result.exit_code == 2
    assert reason in result.stderr
    assert admin.deleted == []


def test_a_mirrored_topic_is_deleted_when_reported_and_an_internal_one_is_not(admin: FakeAdmin) -> None:
    assert run("delete", "items", "--mirrored", "--yes").exit_code == 0
    assert admin.deleted == ["items"]
    assert run("delete", "mm2-state", "--mirrored", "--yes").exit_code == 2


def test_a_topic_that_applications_use_after_a_failover_is_not_deleted(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_over = outputs()
    failed_over["mirrors"]["mm2"]["active"] = "target"
    monkeypatch.setattr(topics_command, "stack_outputs", lambda *_, **__: failed_over)
    for more in ([], ["--mirrored"]):
        result = run("delete", "items", "--yes", *more)
        assert result.exit_code == 2
        assert "topic items: must not be in use (the target of mirror mm2 is active)" in result.stderr
        assert "docs/runbook.md#mirror-everything-again" in result.stderr
    assert admin.deleted == []


def test_topics_that_failed_over_alone_are_not_deleted(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    split = outputs()
    split["verificationRequests"]["mm2"]["mirror"] |= {
        "topics_exclude": ["items", r"store\.shoes"],
        "failed_over": ["items", "store.shoes"],
    }
    monkeypatch.setattr(topics_command, "stack_outputs", lambda *_, **__: split)
    for more in ([], ["--mirrored"]):
        result = run("delete", "scratch", "items", "store.shoes", "--yes", *more)
        assert result.exit_code == 2
        assert (
            "topics items, store.shoes: must not be in use (they fail over from mirror mm2 alone, or have done so)"
            in result.stderr
        )
        assert "docs/topic-failover.md" in result.stderr
    assert admin.deleted == []
    assert run("delete", "scratch", "--yes").exit_code == 0


def test_a_topic_that_failed_over_alone_is_still_its_mirrors() -> None:
    prefixed = outputs("prefixed")
    prefixed["verificationRequests"]["mm2"]["mirror"] |= {"topics_exclude": ["items"], "failed_over": ["items"]}
    known = inventory_of("stg", prefixed, {})
    assert known.role("es-src.items") is Role.MIRRORED
    assert known.failed_over(["es-src.items", "items", "audit"]) == {"mm2": ["es-src.items"]}


def test_nothing_is_deleted_without_an_answer(admin: FakeAdmin) -> None:
    result = run("delete", "scratch")
    assert result.exit_code == 2
    assert "--yes must be given where nobody can be asked" in result.stderr
    assert admin.deleted == []


def test_what_kafka_refuses_to_delete_is_reported_with_the_right_that_is_missing(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.names = (*admin.names, "shut")
    result = run("delete", "scratch", "shut", "--yes", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["deleted"], [*document["failed"]]) == (["scratch"], ["shut"])
    assert "Grant it Delete on the topic" in result.stderr
