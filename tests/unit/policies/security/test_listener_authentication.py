"""The rule on authentication of external listeners."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.listener_authentication import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster

EXTERNAL = ["route", "tlsroute", "loadbalancer", "nodeport", "ingress", "cluster-ip"]


def violation() -> list[kit.Sample]:
    return broken_cluster("anonymous", lambda cluster: kit.brokers(cluster)["listeners"][1].pop("authentication"))


def message(listener: str = "external", got: str = "nothing", kind: str = "loadbalancer") -> str:
    return (
        f"cluster rt-inventory-stg: listener {listener} authentication must be set (got {got}, the type is {kind}). "
        "Otherwise it lets in whoever reaches it."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_cluster_with_authentication_on_its_external_listener_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("kind", EXTERNAL)
def test_an_external_listener_without_authentication_is_reported(shape: str, kind: str) -> None:
    cluster = kit.cluster(shape)
    listener = kit.brokers(cluster)["listeners"][1]
    listener["type"] = kind
    del listener["authentication"]
    assert kit.judge(POLICY, cluster) == [message(kind=kind)]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "authentication",
    [
        {"type": "custom"},
        {"type": "custom", "sasl": False, "listenerConfig": {"ssl.client.auth": "requested"}},
    ],
)
def test_custom_authentication_that_asks_nobody_is_reported(shape: str, authentication: dict[str, Any]) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["listeners"][1]["authentication"] = authentication
    assert kit.judge(POLICY, cluster) == [message(got="custom with neither sasl nor ssl.client.auth: required")]


@pytest.mark.parametrize(
    "authentication",
    [
        {"type": "tls"},
        {"type": "custom", "sasl": True},
        {"type": "custom", "listenerConfig": {"ssl.client.auth": "required"}},
    ],
)
def test_every_way_to_ask_passes(authentication: dict[str, Any]) -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["listeners"][1]["authentication"] = authentication
    assert kit.judge(POLICY, cluster) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_internal_listener_is_judged_only_where_the_option_says_so(shape: str) -> None:
    cluster = kit.cluster(shape)
    del kit.brokers(cluster)["listeners"][0]["authentication"]
    assert kit.judge(POLICY, cluster) == []
    assert kit.judge(POLICY, cluster, types=["internal"]) == [message("tls", kind="internal")]


def test_types_can_be_left_out() -> None:
    cluster = kit.cluster(kit.V1)
    del kit.brokers(cluster)["listeners"][1]["authentication"]
    assert kit.judge(POLICY, cluster, types=["route", "nodeport"]) == []


def test_another_type_is_ignored() -> None:
    cluster = kit.cluster(kit.V1)
    del kit.brokers(cluster)["listeners"][1]["authentication"]
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:Kafka", cluster.props)) == []


def test_one_unknown_listener_hides_no_other() -> None:
    cluster = kit.cluster(kit.V1)
    listeners = kit.brokers(cluster)["listeners"]
    del listeners[1]["authentication"]
    listeners.insert(1, {"name": "later", "type": "route", "authentication": {"type": UNKNOWN_STRING_VALUE}})
    assert kit.judge(POLICY, cluster) == [message()]
