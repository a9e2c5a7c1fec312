"""The rule on leaders that lack acknowledged records."""

import pytest
from pulumi_policy.proxy import UNKNOWN_BOOLEAN_VALUE

from policies.rules.durability.unclean_leader_election import KEY, POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic


def violation() -> list[kit.Sample]:
    return broken_topic("unclean", lambda topic: topic.spec.update(config={"unclean.leader.election.enable": True}))


def message(described: str) -> str:
    return (
        f"{described}: unclean.leader.election.enable must be false (got true). "
        "A replica that lags behind can become the leader, and acknowledged records are lost."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("config", [None, {}, {KEY: False}, {KEY: "false"}])
def test_kafkas_default_and_false_pass(shape: str, config: object) -> None:
    cluster, topic = kit.cluster(shape), kit.topic(shape)
    kit.brokers(cluster)["config"] = config
    topic.spec["config"] = config
    assert kit.judge(POLICY, cluster) == []
    assert kit.judge(POLICY, topic) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [True, "true", "TRUE"])
def test_true_is_reported_of_a_cluster(shape: str, value: object) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["config"][KEY] = value
    assert kit.judge(POLICY, cluster) == [message("cluster rt-inventory-stg")]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [True, "true", "TRUE"])
def test_true_is_reported_of_a_topic(shape: str, value: object) -> None:
    topic = kit.topic(shape, unclean_leader_election_enable=value)
    assert kit.judge(POLICY, topic) == [message("topic items")]


def test_another_type_is_ignored() -> None:
    topic = kit.topic(kit.V1, unclean_leader_election_enable=True)
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", topic.props)) == []


def test_what_a_preview_does_not_know_is_left_to_the_update() -> None:
    topic = kit.topic(kit.V1, unclean_leader_election_enable=UNKNOWN_BOOLEAN_VALUE)
    assert kit.judge(POLICY, topic) == []
