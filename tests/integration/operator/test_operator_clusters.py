"""The operator on a cluster of its own: doors, topics, users, dead brokers, deletion."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from sandbox.state import read_json
from tests.support.small_cluster import ALL_RIGHTS, CLUSTER, NAMESPACE, PASSWORD, USER, Kit, rotate, user_spec
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def kit(sandbox: Any) -> Iterator[Kit]:
    kit = Kit(sandbox.state)
    kit.create_cluster()
    yield kit
    kit.remove_cluster()


def topic_config(kit: Kit, name: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    admin = AdminClient(kit.client_config())
    entries = admin.describe_configs([resource])[resource].result(10)
    return {key: str(entry.value) for key, entry in entries.items()}


def partitions(kit: Kit, name: str) -> int:
    topics = AdminClient(kit.client_config()).list_topics(timeout=10).topics
    return len(topics[name].partitions) if name in topics else 0


@pytest.mark.parametrize("door", ["replication-9091", "controlplane-9090"])
@pytest.mark.parametrize(
    "visitor", ["no certificate", "a password", "no encryption", "a certificate of its own making"]
)
def test_nobody_enters_an_internal_listener_without_the_clusters_certificate(
    kit: Kit, door: str, visitor: str, tmp_path: Any
) -> None:
    from sandbox import pki

    settings = kit.client_config()
    port = read_json(kit.folder() / "layout.json")["nodes"][0]["ports"][door]
    settings["bootstrap.servers"] = f"127.0.0.1:{port}"
    if visitor != "a password":
        settings = {key: value for key, value in settings.items() if not key.startswith("sasl.")}
        settings["security.protocol"] = "PLAINTEXT" if visitor == "no encryption" else "SSL"
    if visitor == "a certificate of its own making":
        forged = pki.operator_certificate(pki.authority(CLUSTER), CLUSTER)
        settings |= {"ssl.certificate.pem": forged.certificate, "ssl.key.pem": forged.key}
    assert not kit.admits(settings)


def test_the_operators_own_certificate_opens_the_replication_listener(kit: Kit) -> None:
    port = read_json(kit.folder() / "layout.json")["nodes"][0]["ports"]["replication-9091"]
    assert kit.admits(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(kit.folder() / "ca.crt"),
            "ssl.certificate.location": str(kit.folder() / "operator.crt"),
            "ssl.key.location": str(kit.folder() / "operator.key"),
        }
    )


def test_a_topic_is_created_configured_grown_and_deleted(kit: Kit) -> None:
    kit.apply("KafkaTopic", "orders", {"partitions": 1, "replicas": 1, "config": {"retention.ms": 60000}})
    kit.ready("KafkaTopic", "orders")
    assert topic_config(kit, "orders")["retention.ms"] == "60000"
    kit.change(
        "KafkaTopic",
        "orders",
        {"spec": {"partitions": 3, "config": {"retention.ms": None, "cleanup.policy": "compact"}}},
    )
    kit.ready("KafkaTopic", "orders")
    assert partitions(kit, "orders") == 3
    config = topic_config(kit, "orders")
    assert (config["cleanup.policy"], config["retention.ms"]) == ("compact", "604800000")
    kit.delete("KafkaTopic", "orders")
    wait_until("the topic is gone from Kafka", lambda: partitions(kit, "orders") == 0)


def test_what_a_topic_cannot_become_is_refused_and_others_go_on(kit: Kit) -> None:
    kit.apply("KafkaTopic", "wide", {"partitions": 1, "replicas": 3})
    kit.apply("KafkaTopic", "narrow", {"partitions": 2, "replicas": 1})
    kit.ready("KafkaTopic", "narrow")
    assert "got 3, allowed 1..1" in kit.refused("KafkaTopic", "wide", "KafkaError")
    kit.change("KafkaTopic", "narrow", {"spec": {"partitions": 1}})
    assert "got 1, allowed 2 or more" in kit.refused("KafkaTopic", "narrow", "NotSupported")
    kit.apply("KafkaTopic", "later", {"partitions": 1, "replicas": 1})
    kit.ready("KafkaTopic", "later")
    assert kit.is_ready("Kafka", CLUSTER)
    for name in ("wide", "narrow", "later"):
        kit.delete("KafkaTopic", name)


def test_a_user_without_its_secret_waits_for_it_and_follows_its_password(kit: Kit) -> None:
    kit.apply("KafkaUser", "late", user_spec("late-credentials", ALL_RIGHTS))
    assert "late-credentials" in kit.refused("KafkaUser", "late", "SecretNotFound")
    kit.secret("late-credentials", {"password": "one-password"})
    kit.ready("KafkaUser", "late")
    wait_until("the first password is admitted", lambda: kit.admits(kit.client_config("late", "one-password")))
    assert kit.read_secret("late")["password"] == "one-password"
    kit.secret("late-credentials", {"password": "another-password"})
    rotate(kit, "late", 2)
    wait_until("the new password is admitted", lambda: kit.admits(kit.client_config("late", "another-password")))
    assert not kit.admits(kit.client_config("late", "one-password"))
    assert 'password="another-password"' in kit.read_secret("late")["sasl.jaas.config"]
    kit.delete("KafkaUser", "late")
    wait_until("the user is no longer admitted", lambda: not kit.admits(kit.client_config("late", "another-password")))


def test_an_acl_that_is_no_longer_declared_is_taken_away(kit: Kit) -> None:
    create = {
        "resource": {"type": "topic", "name": "own-", "patternType": "prefix"},
        "operations": ["Create", "Delete"],
    }
    kit.secret("narrow-credentials", {"password": "narrow-password"})
    kit.apply("KafkaUser", "narrow", user_spec("narrow-credentials", [create]))
    kit.ready("KafkaUser", "narrow")
    admin = AdminClient(kit.client_config("narrow", "narrow-password"))

    def may_create() -> bool:
        try:
            admin.create_topics([NewTopic("own-topic", 1, 1)], validate_only=True)["own-topic"].result(5)
        except KafkaException:
            return False
        return True

    wait_until("the user may create its topic", may_create)
    kit.change("KafkaUser", "narrow", {"spec": {"authorization": {"acls": []}}})
    wait_until("the right is taken away", lambda: not may_create())
    kit.delete("KafkaUser", "narrow")


def test_a_dead_broker_is_started_again_unless_it_is_held_and_admits_all_but_a_deleted_user(kit: Kit) -> None:
    kit.secret("brief-credentials", {"password": "brief-password"})
    kit.apply("KafkaUser", "brief", user_spec("brief-credentials", ALL_RIGHTS))
    kit.ready("KafkaUser", "brief")
    kit.delete("KafkaUser", "brief")  # as with Strimzi it is gone before its credential is
    wait_until("the deleted user is refused", lambda: not kit.admits(kit.client_config("brief", "brief-password")))
    kit.processes.kill(kit.broker())
    wait_until("the broker runs again", lambda: kit.processes.alive(kit.broker()), 20)
    kit.ready("Kafka", CLUSTER)
    wait_until("the other user is admitted again", lambda: kit.admits(kit.client_config()))
    assert not kit.admits(kit.client_config("brief", "brief-password"))
    kit.processes.kill(kit.broker(), hold=True)
    assert kit.broker() in kit.refused("Kafka", CLUSTER, "BrokerHeld")
    assert not kit.processes.alive(kit.broker())
    kit.processes.release(kit.broker())
    kit.ready("Kafka", CLUSTER)
    wait_until("the user is admitted", lambda: kit.admits(kit.client_config(USER, PASSWORD)), 60)


def test_a_changed_broker_option_restarts_the_broker_with_it(kit: Kit) -> None:
    before = kit.pid(kit.broker())
    kit.change("Kafka", CLUSTER, {"spec": {"kafka": {"config": {"log.retention.hours": 24}}}})
    wait_until("a new broker process", lambda: kit.pid(kit.broker()) not in (before, None))
    kit.ready("Kafka", CLUSTER)
    assert "log.retention.hours=24" in (kit.folder() / "0" / "server.properties").read_text(encoding="utf-8")


def test_another_number_of_brokers_is_refused_and_the_cluster_goes_on(kit: Kit) -> None:
    kit.change("KafkaNodePool", "pool", {"spec": {"replicas": 2}})
    assert "got 2" in kit.refused("Kafka", CLUSTER, "ScalingNotSupported")
    pool = kit.get("KafkaNodePool", "pool")
    assert pool
    assert pool["status"]["conditions"] == []
    wait_until("a client is admitted", lambda: kit.admits(kit.client_config()), 60)
    kit.change("KafkaNodePool", "pool", {"spec": {"replicas": 1}})
    kit.ready("Kafka", CLUSTER)


def test_a_deleted_cluster_leaves_no_process_and_no_files(kit: Kit) -> None:
    kit.delete("Kafka", CLUSTER)
    assert not [name for name in kit.processes.names() if name.startswith(f"kafka.{NAMESPACE}.")]
    assert not kit.folder().exists()
    kit.create_cluster()
