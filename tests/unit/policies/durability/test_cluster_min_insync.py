"""The rule on how many brokers acknowledge records of topics that leave it to them, and transactions."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE

from policies.rules.durability.cluster_min_insync import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster

MIN, FACTOR = "min.insync.replicas", "default.replication.factor"
LOG_MIN, LOG_FACTOR = "transaction.state.log.min.isr", "transaction.state.log.replication.factor"
SHARE_MIN, SHARE_FACTOR = (f"share.coordinator.state.topic.{key}" for key in ("min.isr", "replication.factor"))
PAIRS = [(MIN, FACTOR), (LOG_MIN, LOG_FACTOR), (SHARE_MIN, SHARE_FACTOR)]


def violation() -> list[kit.Sample]:
    return broken_cluster("in-sync", lambda cluster: kit.brokers(cluster)["config"].update({"min.insync.replicas": 1}))


def too_few(key: str, got: str, minimum: int = 2) -> str:
    return (
        f"cluster rt-inventory-stg: {key} must be >= {minimum} (got {got}). "
        "With fewer, the loss of one broker can lose acknowledged records."
    )


def too_many(key: str, factor: str, got: str, factor_got: str) -> str:
    return (
        f"cluster rt-inventory-stg: {key} must be below {factor} (got {got}, factor {factor_got}). "
        "Without a replica to spare, the loss of one broker stops producers."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_two_of_three_pass(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", [MIN, LOG_MIN, SHARE_MIN])
@pytest.mark.parametrize(("value", "got"), [(1, "1"), ("1", "1"), ("two", "two")])
def test_fewer_than_the_minimum_are_reported(shape: str, key: str, value: object, got: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["config"][key] = value
    assert kit.judge(POLICY, cluster) == [too_few(key, got)]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("key", "factor"), PAIRS)
@pytest.mark.parametrize(("value", "factor_value"), [(3, 3), ("4", 3), (2, 2), (2, 1)])
def test_as_many_as_there_are_replicas_are_reported(
    shape: str, key: str, factor: str, value: int | str, factor_value: int
) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["config"] |= {key: value, factor: factor_value}
    assert kit.judge(POLICY, cluster) == [too_many(key, factor, str(value), str(factor_value))]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_kafkas_defaults_are_too_few_for_topics_and_enough_for_transactions(shape: str) -> None:
    cluster = kit.cluster(shape)
    del kit.brokers(cluster)["config"]
    assert kit.judge(POLICY, cluster) == [too_few(MIN, "nothing, which means 1")]


def test_a_factor_that_is_not_set_counts_as_kafkas_default() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] = {MIN: 2, LOG_MIN: 3}
    assert kit.judge(POLICY, cluster) == [
        too_many(MIN, FACTOR, "2", "nothing, which means 1"),
        too_many(LOG_MIN, LOG_FACTOR, "3", "nothing, which means 3"),
    ]


def test_one_of_one_passes_with_a_minimum_of_one() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] = {MIN: 1, FACTOR: 1, LOG_MIN: 1, LOG_FACTOR: 1}
    assert kit.judge(POLICY, cluster) == [too_few(MIN, "1"), too_few(LOG_MIN, "1")]
    assert kit.judge(POLICY, cluster, minimum=1) == []


def test_the_minimum_can_be_raised() -> None:
    expected = [too_few(MIN, "2", 3), too_few(LOG_MIN, "2", 3)]
    assert kit.judge(POLICY, kit.cluster(kit.V1), minimum=3) == expected


def test_another_type_is_ignored() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] = {}
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:Kafka", cluster.props)) == []


def test_one_unknown_value_hides_no_other() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] |= {MIN: UNKNOWN_NUMBER_VALUE, LOG_MIN: 1}
    assert kit.judge(POLICY, cluster) == [too_few(LOG_MIN, "1")]


def test_an_unknown_factor_does_not_hide_that_the_minimum_is_missed() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["config"] |= {MIN: 1, FACTOR: UNKNOWN_NUMBER_VALUE}
    assert kit.judge(POLICY, cluster) == [too_few(MIN, "1")]
