"""The rule on authorization of clusters."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.cluster_authorization import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster

MESSAGE = (
    "cluster rt-inventory-stg: authorization must be set (got nothing). Otherwise every client that reaches a listener "
    "reads, writes and deletes every topic, and no failover can refuse writes on a side."
)


def violation() -> list[kit.Sample]:
    return broken_cluster("open", lambda cluster: kit.brokers(cluster).pop("authorization"))


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("kind", ["simple", "opa", "keycloak", "custom"])
def test_a_cluster_with_authorization_passes(shape: str, kind: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["authorization"]["type"] = kind
    assert kit.judge(POLICY, cluster) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_cluster_without_authorization_is_reported(shape: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["authorization"] = {}
    assert kit.judge(POLICY, cluster) == [MESSAGE]
    del kit.brokers(cluster)["authorization"]
    assert kit.judge(POLICY, cluster) == [MESSAGE]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [True, "true", "TRUE"])
def test_a_cluster_that_lets_everybody_use_what_no_rule_names_is_reported(shape: str, value: object) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["config"]["allow.everyone.if.no.acl.found"] = value
    assert kit.judge(POLICY, cluster) == [
        f"cluster {cluster.props['metadata']['name']}: allow.everyone.if.no.acl.found must not be true (got true). "
        "Otherwise every client that reaches a listener reads, writes and deletes each topic that no rule names."
    ]
    kit.brokers(cluster)["config"]["allow.everyone.if.no.acl.found"] = "false"
    assert kit.judge(POLICY, cluster) == []


def test_what_is_not_known_yet_is_left_to_the_update() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["authorization"]["type"] = UNKNOWN_STRING_VALUE
    assert kit.judge(POLICY, cluster) == []


def test_another_type_is_ignored() -> None:
    cluster = kit.cluster(kit.V1)
    del kit.brokers(cluster)["authorization"]
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:Kafka", cluster.props)) == []
