"""The rule on a topic's partitions."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE

from policies.rules.size.partition_limits import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic

MESSAGE = (
    "topic items: partitions must be <= {} (got {}). "
    "Kafka never takes partitions back, and each one costs brokers memory and time."
)


def violation() -> list[kit.Sample]:
    return broken_topic("wide", lambda topic: topic.spec.update(partitions=1000))


def topic(shape: str, partitions: object) -> kit.Sample:
    sample = kit.topic(shape)
    sample.spec["partitions"] = partitions
    return sample


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_partitions_up_to_the_limit_pass_and_one_more_does_not(shape: str) -> None:
    assert kit.judge(POLICY, topic(shape, 120)) == []
    assert kit.judge(POLICY, topic(shape, 121)) == [MESSAGE.format(120, 121)]


def test_partitions_left_to_the_brokers_pass() -> None:
    assert kit.judge(POLICY, topic(kit.V1, None)) == []


def test_the_limit_can_be_configured() -> None:
    assert kit.judge(POLICY, topic(kit.V1, 121), maximum=200) == []
    assert kit.judge(POLICY, topic(kit.V1, 13), maximum=12) == [MESSAGE.format(12, 13)]


def test_another_type_is_ignored() -> None:
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaTopic", topic(kit.V1, 500).props)) == []


def test_partitions_not_known_in_a_preview_are_left_to_the_update() -> None:
    assert kit.judge(POLICY, topic(kit.V1, UNKNOWN_NUMBER_VALUE)) == []
