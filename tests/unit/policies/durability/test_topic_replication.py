"""The rule on a topic's replicas."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE

from policies.rules.durability.topic_replication import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic

MESSAGE = (
    "topic items: replicas must be >= 3 (got 1). With fewer, the loss of one broker can stop producers or lose records."
)


def violation() -> list[kit.Sample]:
    return broken_topic("one.replica", lambda topic: topic.spec.update(replicas=1))


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_three_replicas_pass_and_one_does_not(shape: str) -> None:
    topic = kit.topic(shape)
    assert kit.judge(POLICY, topic) == []
    topic.spec["replicas"] = 1
    assert kit.judge(POLICY, topic) == [MESSAGE]


@pytest.mark.parametrize("replicas", [None, -1])
def test_replicas_left_to_the_brokers_are_judged_at_the_cluster(replicas: int | None) -> None:
    topic = kit.topic(kit.V1)
    topic.spec["replicas"] = replicas
    assert kit.judge(POLICY, topic) == []


def test_the_topics_name_in_kafka_is_reported() -> None:
    topic = kit.topic(kit.V1)
    topic.spec.update(topicName="store.inventory", replicas=1)
    assert kit.judge(POLICY, topic)[0].startswith("topic store.inventory: ")


def test_the_minimum_can_be_configured() -> None:
    topic = kit.topic(kit.V1)
    assert kit.judge(POLICY, topic, minimum=4) == [MESSAGE.replace(">= 3 (got 1)", ">= 4 (got 3)")]
    topic.spec["replicas"] = 1
    assert kit.judge(POLICY, topic, minimum=1) == []


def test_another_type_is_ignored() -> None:
    topic = kit.topic(kit.V1)
    topic.spec["replicas"] = 1
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaTopic", topic.props)) == []


def test_replicas_not_known_in_a_preview_are_left_to_the_update() -> None:
    topic = kit.topic(kit.V1)
    topic.spec["replicas"] = UNKNOWN_NUMBER_VALUE
    assert kit.judge(POLICY, topic) == []


def test_the_remedy_raises_replicas_to_the_minimum() -> None:
    topic = kit.topic(kit.V1)
    topic.spec["replicas"] = 1
    assert kit.remedied(POLICY, topic) == {**topic.props, "spec": {"partitions": 3, "replicas": 3}}
    assert kit.remedied(POLICY, kit.topic(kit.V1)) is None


@pytest.mark.parametrize("spec", [UNKNOWN_OBJECT_VALUE, {"replicas": UNKNOWN_NUMBER_VALUE}, {"partitions": 3}])
def test_the_remedy_leaves_alone_what_is_unknown_or_left_to_the_brokers(spec: object) -> None:
    topic = kit.topic(kit.V1)
    topic.props["spec"] = spec
    assert kit.remedied(POLICY, topic) is None
