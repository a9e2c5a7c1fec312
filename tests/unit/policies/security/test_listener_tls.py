"""The rule on TLS of external listeners."""

import pytest
from pulumi_policy.proxy import UNKNOWN_BOOLEAN_VALUE

from policies.rules.security.listener_tls import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster

EXTERNAL = ["route", "tlsroute", "loadbalancer", "nodeport", "ingress", "cluster-ip"]


def violation() -> list[kit.Sample]:
    return broken_cluster("plain", lambda cluster: kit.brokers(cluster)["listeners"][1].update(tls=False))


def message(got: str, kind: str = "loadbalancer") -> str:
    return (
        f"cluster rt-inventory-stg: listener external tls must be true (got {got}, the type is {kind}). "
        "Without TLS, records and logins can be read on their way."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_cluster_with_tls_on_its_external_listener_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("kind", EXTERNAL)
def test_an_external_listener_without_tls_is_reported(shape: str, kind: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["listeners"][1].update(type=kind, tls=False)
    assert kit.judge(POLICY, cluster) == [message("false", kind)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_external_listener_that_says_nothing_of_tls_is_reported(shape: str) -> None:
    cluster = kit.cluster(shape)
    del kit.brokers(cluster)["listeners"][1]["tls"]
    assert kit.judge(POLICY, cluster) == [message("nothing")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_internal_listener_may_do_without_tls(shape: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["listeners"][0]["tls"] = False
    assert kit.judge(POLICY, cluster) == []


def test_another_type_is_ignored() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["listeners"][1]["tls"] = False
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:Kafka", cluster.props)) == []


def test_one_unknown_listener_hides_no_other() -> None:
    cluster = kit.cluster(kit.V1)
    listeners = kit.brokers(cluster)["listeners"]
    listeners[1]["tls"] = False
    listeners.insert(1, {"name": "later", "port": 9095, "type": "route", "tls": UNKNOWN_BOOLEAN_VALUE})
    assert kit.judge(POLICY, cluster) == [message("false")]
