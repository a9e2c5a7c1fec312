"""The rule on the largest record that a mirror and its target take."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE

from policies.rules.mirror.record_size import MESSAGE_BYTES, POLICY, REQUEST_SIZE
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, broken_topic

LARGE = 2_097_152
KEY = "producer.override.max.request.size"


def violation() -> list[kit.Sample]:
    topic = broken_topic("sized", lambda topic: topic.spec.update(config={"max.message.bytes": LARGE}))
    return [*topic, *broken_mirror("mm-size", lambda mirror: kit.flow(mirror).update(topicsPattern="sized"))]


def of_mirror(needed: int, got: object, whose: str = "the largest record of the source") -> str:
    return (
        f"mirror mm2: mirrors[0].sourceConnector {KEY} must be >= {needed} (got {got}; {whose} may be so large). "
        "Its task would fail at such a record and copy nothing behind it."
    )


def of_cluster(name: str, needed: int, got: object) -> str:
    return (
        f"cluster {name}: message.max.bytes must be >= {needed} (got {got}; the largest record of the source may be so "
        "large). A remote topic that sets no max.message.bytes would refuse it."
    )


def mirror(shape: str, size: object = None, **flow: Any) -> kit.Sample:
    sample = kit.mirror(shape)
    if size is not None:
        kit.flow(sample)["sourceConnector"]["config"][KEY] = size
    kit.flow(sample).update(flow)
    return sample


def topic(shape: str, size: object) -> kit.Sample:
    return kit.topic(shape, max_message_bytes=size)


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_kafkas_defaults_go_together(shape: str) -> None:
    assert kit.judge_stack(POLICY, [mirror(shape), kit.cluster(shape), kit.topic(shape)]) == []
    assert kit.judge_stack(POLICY, [mirror(shape), topic(shape, MESSAGE_BYTES)]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_topic_that_takes_more_than_the_mirrors_producer_is_reported(shape: str) -> None:
    default = f"nothing, which means {REQUEST_SIZE}"
    expected = [of_mirror(LARGE, default, "topic items")]
    assert kit.judge_stack(POLICY, [mirror(shape), topic(shape, LARGE)]) == expected
    assert kit.judge_stack(POLICY, [mirror(shape, LARGE), topic(shape, LARGE)]) == []
    assert kit.judge_stack(POLICY, [mirror(shape, LARGE - 1), topic(shape, str(LARGE))]) == [
        of_mirror(LARGE, LARGE - 1, "topic items")
    ]


def test_a_topic_that_the_mirror_leaves_out_does_not_count() -> None:
    assert kit.judge_stack(POLICY, [mirror(kit.V1, topicsPattern="orders"), topic(kit.V1, LARGE)]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_records_of_another_stack_count_for_mirror_and_brokers(shape: str) -> None:
    cluster = kit.cluster(shape)
    name = cluster.props["metadata"]["name"]
    found = kit.judge_stack(POLICY, [mirror(shape), cluster], sourceMaxMessageBytes=LARGE)
    assert found == [
        of_mirror(LARGE, f"nothing, which means {REQUEST_SIZE}"),
        of_cluster(name, LARGE, f"nothing, which means {MESSAGE_BYTES}"),
    ]
    brokers = cluster.spec.get("strimziOverrides", cluster.spec)["kafka"]
    brokers["config"]["message.max.bytes"] = LARGE
    assert kit.judge_stack(POLICY, [mirror(shape, LARGE), cluster], sourceMaxMessageBytes=LARGE) == []


def test_the_workers_own_value_counts_where_the_connector_has_none() -> None:
    sample = mirror(kit.V1)
    sample.spec["target"].setdefault("config", {})["producer.max.request.size"] = LARGE
    assert kit.judge_stack(POLICY, [sample], sourceMaxMessageBytes=LARGE) == []


def test_a_mirror_at_rest_and_a_stack_without_one_are_left_alone() -> None:
    resting = mirror(kit.V1)
    kit.flow(resting)["sourceConnector"]["state"] = "stopped"
    assert kit.judge_stack(POLICY, [resting], sourceMaxMessageBytes=LARGE) == []
    assert kit.judge_stack(POLICY, [kit.cluster(kit.V1), topic(kit.V1, LARGE)], sourceMaxMessageBytes=LARGE) == []


def test_another_type_is_ignored() -> None:
    other = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror(kit.V1).props)
    assert kit.judge_stack(POLICY, [other], sourceMaxMessageBytes=LARGE) == []


def test_a_size_that_is_not_known_in_a_preview_is_left_to_the_update() -> None:
    sample = mirror(kit.V1, UNKNOWN_NUMBER_VALUE)
    assert kit.judge_stack(POLICY, [sample], sourceMaxMessageBytes=LARGE) == []
