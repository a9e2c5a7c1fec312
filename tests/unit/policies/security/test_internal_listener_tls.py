"""The rule on TLS of internal listeners."""

import pytest
from pulumi_policy.proxy import UNKNOWN_BOOLEAN_VALUE

from policies.rules.security.internal_listener_tls import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster


def violation() -> list[kit.Sample]:
    return broken_cluster("inside", lambda cluster: kit.brokers(cluster)["listeners"][0].update(tls=False))


def message(got: str) -> str:
    return (
        f"cluster rt-inventory-stg: listener tls tls must be true (got {got}, the type is internal). "
        "Without TLS, whoever is in the network of the pods can read records and logins."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_cluster_with_tls_on_its_internal_listener_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_internal_listener_without_tls_is_reported(shape: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["listeners"][0]["tls"] = False
    assert kit.judge(POLICY, cluster) == [message("false")]
    del kit.brokers(cluster)["listeners"][0]["tls"]
    assert kit.judge(POLICY, cluster) == [message("nothing")]


def test_the_option_names_listeners_that_may_do_without() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["listeners"][0]["tls"] = False
    assert kit.judge(POLICY, cluster, plaintext=["tls"]) == []
    assert kit.judge(POLICY, cluster, plaintext=["other"]) == [message("false")]


def test_an_external_listener_is_judged_by_another_rule() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["listeners"][1]["tls"] = False
    assert kit.judge(POLICY, cluster) == []


def test_another_type_is_ignored() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["listeners"][0]["tls"] = False
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:Kafka", cluster.props)) == []


def test_one_unknown_listener_hides_no_other() -> None:
    cluster = kit.cluster(kit.V1)
    listeners = kit.brokers(cluster)["listeners"]
    listeners[0]["tls"] = False
    listeners.insert(0, {"name": "later", "port": 9095, "type": "internal", "tls": UNKNOWN_BOOLEAN_VALUE})
    assert kit.judge(POLICY, cluster) == [message("false")]
