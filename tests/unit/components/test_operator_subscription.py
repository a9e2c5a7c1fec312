"""What OLM is asked for: package, catalog, approval, pinned version and the namespaces that the operator watches."""

from typing import Any

import pytest

from ...support.pulumi_engine import Engine, target, up

EVENT_STREAMS = {"type": "event-streams", "version": "11.0.0", "distribution": "openshift", "license": {"accept": True}}
STATUS = {"kafkaListeners": [{"name": "tls", "bootstrapServers": "es:9093", "certificates": ["c"]}]}


def install(platform: dict[str, Any] | None = None, **operator: Any) -> Engine:
    """Run a stack whose operator OLM installs."""
    engine = Engine(status=STATUS if platform and platform["type"] == "event-streams" else None)
    settings = target(operator={"install": "olm", **operator}, mirrors=[])
    up(engine, settings | ({"platform": platform} if platform else {}))
    return engine


def subscription(engine: Engine) -> dict[str, Any]:
    spec: dict[str, Any] = engine.one("v1alpha1:Subscription")["spec"]
    return spec


@pytest.mark.parametrize(
    ("platform", "spec"),
    [
        (
            {"type": "strimzi", "version": "1.2.0"},
            {
                "name": "strimzi-kafka-operator",
                "channel": "stable",
                "source": "operatorhubio-catalog",
                "sourceNamespace": "olm",
            },
        ),
        (
            {"type": "strimzi", "version": "1.2.0", "distribution": "openshift"},
            {
                "name": "strimzi-kafka-operator",
                "channel": "stable",
                "source": "community-operators",
                "sourceNamespace": "openshift-marketplace",
            },
        ),
        (
            EVENT_STREAMS,
            {
                "name": "ibm-eventstreams",
                "channel": "v3.0",
                "source": "ibm-operator-catalog",
                "sourceNamespace": "openshift-marketplace",
            },
        ),
    ],
)
def test_each_platforms_operator_is_found_where_it_is_usually_published(
    platform: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert subscription(install(platform)) == {**spec, "installPlanApproval": "Automatic"}


def test_every_part_of_the_package_can_be_set() -> None:
    engine = install(
        package="amq-streams",
        channel="amq-streams-2.9.x",
        source="redhat-operators",
        sourceNamespace="openshift-marketplace",
        approval="Manual",
        startingCsv="amqstreams.v2.9.0-0",
        readySeconds=1200,
    )
    assert subscription(engine) == {
        "name": "amq-streams",
        "channel": "amq-streams-2.9.x",
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
        "installPlanApproval": "Manual",
        "startingCSV": "amqstreams.v2.9.0-0",
    }
    metadata = engine.one("v1alpha1:Subscription")["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("amq-streams", "stg")
    assert metadata["annotations"]["pulumi.com/timeoutSeconds"] == "1200"


@pytest.mark.parametrize(
    ("operator", "home", "spec"),
    [
        ({}, "stg", {"targetNamespaces": ["stg"]}),
        (
            {"namespace": "operators", "watchedNamespaces": ["stg", "mirrors"]},
            "operators",
            {"targetNamespaces": ["stg", "mirrors"]},
        ),
        ({"namespace": "operators", "allNamespaces": True}, "operators", {}),
    ],
)
def test_the_operator_group_names_what_is_watched_or_nothing_for_all(
    operator: dict[str, Any], home: str, spec: dict[str, Any]
) -> None:
    engine = install(**operator)
    group = engine.one("v1:OperatorGroup")
    assert (group["metadata"]["namespace"], group["spec"]) == (home, spec)
    assert engine.one("v1alpha1:Subscription")["metadata"]["namespace"] == home
    assert ("", home) in engine.all("v1:Namespace")


def test_a_catalog_of_the_stacks_own_is_made_where_the_subscription_looks_for_it() -> None:
    image = "registry.example.com/catalog@sha256:0"
    engine = install(source="mirrored", sourceNamespace="olm", catalog={"image": image, "pollMinutes": 10})
    catalog = engine.one("v1alpha1:CatalogSource")
    assert (catalog["metadata"]["name"], catalog["metadata"]["namespace"]) == ("mirrored", "olm")
    assert catalog["spec"] == {
        "sourceType": "grpc",
        "image": image,
        "displayName": "Kafka operators",
        "publisher": "platform",
        "updateStrategy": {"registryPoll": {"interval": "10m"}},
    }
    needed = {urn.rsplit("::", 1)[-1] for urn in engine.asked("operator-subscription").dependencies}
    assert {"operator-group", "operator-catalog"} <= needed


def test_the_cluster_waits_for_the_operator() -> None:
    needed = {urn.rsplit("::", 1)[-1] for urn in install().asked("cluster").dependencies}
    assert "operator-subscription" in needed


def test_an_operator_that_is_there_already_is_left_alone() -> None:
    engine = Engine()
    up(engine, target(operator={"install": "none"}, mirrors=[]))
    assert not [
        kind for kind in engine.kinds() if kind.split(":")[-1] in ("Subscription", "OperatorGroup", "Deployment")
    ]


def test_an_operator_for_two_namespaces_comes_when_both_are_there() -> None:
    """OLM copies the operator's ClusterServiceVersion into each namespace of the OperatorGroup, and does not wait."""
    engine = install(namespace="operators", watchedNamespaces=["stg", "europe"], createNamespaces=True)
    assert {name for _, name in engine.all("v1:Namespace")} == {"stg", "operators", "europe"}
    assert engine.one("v1:OperatorGroup")["spec"] == {"targetNamespaces": ["stg", "europe"]}
    needed = {urn.rsplit("::", 1)[-1] for urn in engine.asked("operator").dependencies}
    assert {"namespaces-stg", "namespaces-operators", "namespaces-europe"} <= needed
