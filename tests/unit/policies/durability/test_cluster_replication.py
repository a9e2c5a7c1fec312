"""The rule on the replicas that brokers give topics by default, and Kafka its own."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE

from policies.rules.durability.cluster_replication import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster

DEFAULT, OFFSETS, TRANSACTIONS, SHARES = KEYS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)


def violation() -> list[kit.Sample]:
    return broken_cluster(
        "factor", lambda cluster: kit.brokers(cluster)["config"].update({"default.replication.factor": 1})
    )


def message(key: str, got: str, minimum: int = 3) -> str:
    return (
        f"cluster rt-inventory-stg: {key} must be >= {minimum} (got {got}). "
        "With fewer, the loss of one broker can stop clients or lose the records of such a topic."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_cluster_with_every_factor_three_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("value", "got"), [(1, "1"), ("2", "2"), ("three", "three")])
def test_one_low_factor_is_reported(shape: str, key: str, value: object, got: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["config"][key] = value
    assert kit.judge(POLICY, cluster) == [message(key, got)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_only_the_default_factor_is_too_low_if_nothing_is_set(shape: str) -> None:
    cluster = kit.cluster(shape)
    del kit.brokers(cluster)["config"]
    assert kit.judge(POLICY, cluster) == [message(DEFAULT, "nothing, which means 1")]


def test_null_is_as_nothing() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] = {DEFAULT: None, OFFSETS: None}
    assert kit.judge(POLICY, cluster) == [message(DEFAULT, "nothing, which means 1")]


def test_the_minimum_can_be_configured() -> None:
    cluster = kit.cluster(kit.V1)
    assert kit.judge(POLICY, cluster, minimum=4) == [message(key, "3", 4) for key in KEYS if key != SHARES]
    kit.brokers(cluster)["config"] = {}
    assert kit.judge(POLICY, cluster, minimum=1) == []


def test_another_type_is_ignored() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] = {}
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:Kafka", cluster.props)) == []


def test_one_unknown_factor_hides_no_other() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] |= {DEFAULT: UNKNOWN_NUMBER_VALUE, TRANSACTIONS: 1}
    assert kit.judge(POLICY, cluster) == [message(TRANSACTIONS, "1")]
