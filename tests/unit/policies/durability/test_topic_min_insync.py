"""The rule on how many brokers acknowledge a topic's records."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE

from policies.rules.durability.topic_min_insync import KEY, POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic


def violation() -> list[kit.Sample]:
    return broken_topic("one.in.sync", lambda topic: topic.spec.update(config={"min.insync.replicas": 1}))


def topic(shape: str, value: object, replicas: int | str | None = 3) -> kit.Sample:
    sample = kit.topic(shape, min_insync_replicas=value)
    if replicas is None:
        del sample.spec["replicas"]
    else:
        sample.spec["replicas"] = replicas
    return sample


def too_few(got: str, minimum: int = 2) -> str:
    return (
        f"topic items: min.insync.replicas must be >= {minimum} (got {got}). "
        "With fewer, the loss of one broker can lose acknowledged records."
    )


def too_many(got: int, most: int, replicas: int) -> str:
    return (
        f"topic items: min.insync.replicas must be <= {most} (got {got}, replicas {replicas}). "
        "With more, the loss of one broker stops producers with acks=all."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [2, "2"])
def test_two_of_three_pass(shape: str, value: object) -> None:
    assert kit.judge(POLICY, topic(shape, value)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_topic_that_leaves_it_to_the_brokers_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.topic(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("value", "got"), [(1, "1"), ("1", "1"), ("two", "two")])
def test_fewer_than_the_minimum_are_reported(shape: str, value: object, got: str) -> None:
    assert kit.judge(POLICY, topic(shape, value)) == [too_few(got)]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("value", "replicas"), [(3, 3), (4, 3), (2, 2)])
def test_as_many_as_there_are_replicas_are_reported(shape: str, value: int, replicas: int) -> None:
    assert kit.judge(POLICY, topic(shape, value, replicas)) == [too_many(value, replicas - 1, replicas)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_with_one_replica_only_one_can_work(shape: str) -> None:
    assert kit.judge(POLICY, topic(shape, 1, 1)) == []
    assert kit.judge(POLICY, topic(shape, 2, 1)) == [too_many(2, 1, 1)]


@pytest.mark.parametrize("replicas", [None, -1])
def test_where_the_brokers_decide_on_the_replicas_only_the_minimum_counts(replicas: int | None) -> None:
    assert kit.judge(POLICY, topic(kit.V1, 1, replicas)) == [too_few("1")]
    assert kit.judge(POLICY, topic(kit.V1, 5, replicas)) == []


def test_the_minimum_can_be_configured() -> None:
    assert kit.judge(POLICY, topic(kit.V1, 1), minimum=1) == []
    assert kit.judge(POLICY, topic(kit.V1, 2, 5), minimum=3) == [too_few("2", 3)]


def test_another_type_is_ignored() -> None:
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaTopic", topic(kit.V1, 1).props)) == []


def test_what_a_preview_does_not_know_is_left_to_the_update() -> None:
    assert kit.judge(POLICY, topic(kit.V1, UNKNOWN_NUMBER_VALUE)) == []
    assert kit.judge(POLICY, topic(kit.V1, 3, UNKNOWN_NUMBER_VALUE)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("value", "replicas"), [(1, 3), ("1", 3), (3, 3), (5, 5)])
def test_the_remedy_sets_the_minimum_and_nothing_else(shape: str, value: object, replicas: int) -> None:
    sample = topic(shape, value, replicas)
    spec = {"partitions": 3, "replicas": replicas, "config": {KEY: 2}}
    assert kit.remedied(POLICY, sample) == {**sample.props, "spec": spec}


@pytest.mark.parametrize(
    ("value", "replicas"), [(2, 3), (1, 2), (2, 2), (2, 1), (1, 1), (1, None), (1, -1), ("two", 3)]
)
def test_the_remedy_does_nothing_that_could_stop_producers(value: object, replicas: int | None) -> None:
    assert kit.remedied(POLICY, topic(kit.V1, value, replicas)) is None


@pytest.mark.parametrize(
    ("value", "replicas"),
    [(UNKNOWN_NUMBER_VALUE, 3), (UNKNOWN_NUMBER_VALUE, UNKNOWN_NUMBER_VALUE), (1, UNKNOWN_NUMBER_VALUE)],
)
def test_the_remedy_leaves_alone_what_is_unknown(value: object, replicas: int | str) -> None:
    assert kit.remedied(POLICY, topic(kit.V1, value, replicas)) is None


def test_the_remedy_leaves_alone_an_unknown_configuration() -> None:
    sample = kit.topic(kit.V1)
    sample.spec["config"] = UNKNOWN_OBJECT_VALUE
    assert kit.remedied(POLICY, sample) is None
