"""Demo clients: two Deployments of small pods that know the cluster by variables, and secrets by their place."""

import json
from typing import Any

import pytest

from components.kafka.demo_clients import GRACE_S, READY_S
from ops.connection import CONTACT_TIMEOUT_S
from ops.demo_client.producer import DELIVERY_TIMEOUT_S

from ...support.pulumi_engine import Engine, target, up
from ...support.recorded_program import PASSWORD

IMAGE = "registry.example.com/kafka/demo-clients:1.0.0"
DEPLOYMENT = "v1:Deployment"
PRODUCER, CONSUMER = ("stg", "kafka-stg-demo-producer"), ("stg", "kafka-stg-demo-consumer")
Spec = dict[str, Any]


def made(*, stack: dict[str, Any] | None = None, **settings: Any) -> Engine:
    engine = Engine()
    given = {"image": IMAGE, "user": "writer", "topic": "items", **settings}
    clients = {key: value for key, value in given.items() if value is not None}
    up(engine, target(demoClients=clients, **(stack or {})))
    return engine


def spec(engine: Engine, place: tuple[str, str] = PRODUCER) -> Spec:
    found: Spec = engine.all(DEPLOYMENT)[place]["spec"]
    return found


def pod(engine: Engine, place: tuple[str, str] = PRODUCER) -> Spec:
    found: Spec = spec(engine, place)["template"]["spec"]
    return found


def variables(engine: Engine, place: tuple[str, str] = PRODUCER) -> dict[str, Any]:
    """Variables by name: their value, or the Secret, its key, and whether it may be missing."""
    found = {}
    for each in pod(engine, place)["containers"][0]["env"]:
        reference = each.get("valueFrom", {}).get("secretKeyRef")
        parts = ("name", "key", "optional")
        found[each["name"]] = tuple(reference[key] for key in parts if key in reference) if reference else each["value"]
    return found


def test_without_the_setting_there_are_none() -> None:
    engine = Engine()
    up(engine, target())
    assert not engine.all(DEPLOYMENT)


def test_there_is_one_of_each_role_beside_the_cluster_with_the_number_of_pods_that_is_set() -> None:
    engine = made(producers=0, consumers=3)
    assert engine.all(DEPLOYMENT).keys() == {PRODUCER, CONSUMER}
    assert (spec(engine)["replicas"], spec(engine, CONSUMER)["replicas"]) == (0, 3)


def test_each_selects_its_own_pods_and_no_others() -> None:
    engine = made()
    selected = [spec(engine, place)["selector"]["matchLabels"] for place in (PRODUCER, CONSUMER)]
    labels = [spec(engine, place)["template"]["metadata"]["labels"] for place in (PRODUCER, CONSUMER)]
    assert all(chosen.items() <= given.items() for chosen, given in zip(selected, labels, strict=True))
    assert selected[0] != selected[1]


def test_they_run_forever_with_the_given_arguments() -> None:
    engine = made(kind="products", rate=25, group="tutorial")
    arguments = [pod(engine, place)["containers"][0]["args"] for place in (PRODUCER, CONSUMER)]
    assert arguments == [
        ["produce", "--forever", "--kind", "products", "--rate", "25", "--json"],
        ["consume", "--forever", "--group", "tutorial", "--print", "--json"],
    ]
    assert "--print" not in pod(made(printRecords=False), CONSUMER)["containers"][0]["args"]


def test_variables_say_where_the_cluster_is_and_secrets_are_named_only() -> None:
    engine = made()
    assert variables(engine) == variables(engine, CONSUMER)
    assert variables(engine) == {
        "KAFKA_BROKERS": "127.0.0.1:9093",
        "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "KAFKA_USER": "writer",
        "KAFKA_PWD": ("writer", "password"),
        "KAFKA_CERT": ("kafka-stg-cluster-ca-cert", "ca.crt"),
        "SOURCE_TOPIC": "items",
    }
    assert PASSWORD not in json.dumps(spec(engine))


def test_a_user_may_have_a_certificate() -> None:
    cluster = {
        "name": "kafka-stg", "namespace": "stg", "protect": False,
        "listeners": [{"name": "tls", "port": 9093, "authentication": "tls"}],
    }  # fmt: skip
    engine = Engine(existing={"stg/users-writer": {}, "stg/writer": {"user.crt": "c", "user.key": "k"}})
    clients = {"image": IMAGE, "user": "writer", "topic": "items"}
    users = [{"name": "writer", "authentication": "tls"}]
    up(engine, target(cluster=cluster, users=users, demoClients=clients))
    found = variables(engine)
    assert found["KAFKA_SECURITY_PROTOCOL"] == "SSL"
    assert found["KAFKA_CLIENT_CERT"] == ("writer", "user.crt")
    assert found["KAFKA_CLIENT_KEY"] == ("writer", "user.key")
    assert not {"KAFKA_PWD", "KAFKA_USER", "KAFKA_SASL_MECHANISM"} & found.keys()


def test_a_secret_in_place_of_a_user_says_everything_but_the_topic() -> None:
    engine = made(user=None, secret="mm2-clients")
    assert variables(engine) == {
        "KAFKA_BROKERS": ("mm2-clients", "bootstrapServers"),
        "KAFKA_SECURITY_PROTOCOL": ("mm2-clients", "securityProtocol"),
        "KAFKA_SASL_MECHANISM": ("mm2-clients", "saslMechanism", True),
        "KAFKA_USER": ("mm2-clients", "user", True),
        "KAFKA_PWD": ("mm2-clients", "password", True),
        "KAFKA_CLIENT_CERT": ("mm2-clients", "user.crt", True),
        "KAFKA_CLIENT_KEY": ("mm2-clients", "user.key", True),
        "KAFKA_CERT": ("mm2-clients", "ca.crt", True),
        "SOURCE_TOPIC": "items",
    }


def test_a_new_password_makes_new_pods_and_nothing_else_does() -> None:
    def template(generation: int) -> Spec:
        users = [{"name": "writer", "passwordGeneration": generation}]
        found: Spec = spec(made(stack={"users": users}))["template"]
        return found

    assert template(1) == template(1)
    assert template(1) != template(2)


def test_the_pods_may_change_nothing_and_ask_nothing_of_kubernetes() -> None:
    for place in (PRODUCER, CONSUMER):
        found = pod(made(), place)
        (container,) = found["containers"]
        assert found["securityContext"]["runAsNonRoot"] is True
        assert found["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert found["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"] == {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}


def test_open_shift_chooses_the_user() -> None:
    platform = {"type": "strimzi", "version": "1.2.0", "distribution": "openshift"}
    context = pod(made(stack={"platform": platform}))["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_they_have_time_to_deliver_and_count_as_ready_only_once_they_are_let_in() -> None:
    engine = made()
    assert pod(engine)["terminationGracePeriodSeconds"] == GRACE_S > DELIVERY_TIMEOUT_S
    assert spec(engine)["minReadySeconds"] == READY_S > CONTACT_TIMEOUT_S


@pytest.mark.parametrize("place", [PRODUCER, CONSUMER])
def test_up_does_not_wait_without_end(place: tuple[str, str]) -> None:
    engine = made(imagePullSecrets=["login"])
    assert pod(engine, place)["imagePullSecrets"] == [{"name": "login"}]
    name = f"demo-clients-{place[1].rpartition('-')[2]}"
    assert engine.asked(name).customTimeouts.create == "600s"
