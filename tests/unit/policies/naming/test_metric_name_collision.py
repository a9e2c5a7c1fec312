"""The rule on topics whose metrics would be one."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.metric_name_collision import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic


def violation() -> list[kit.Sample]:
    return [
        *broken_topic("collision.a"),
        *broken_topic("collision", lambda topic: topic.spec.update(topicName="collision_a")),
    ]


def message(name: str, other: str) -> str:
    return (
        f"topic {name}: name must differ from topic {other} by more than . and _ (got {name}). "
        "Metrics make both one, so Kafka refuses the second."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_names_that_differ_by_more_pass(shape: str) -> None:
    names = ["items", "items.inventory", "items-inventory", "itemsinventory"]
    assert kit.judge_stack(POLICY, [kit.topic(shape, name) for name in names]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_the_second_of_two_is_reported(shape: str) -> None:
    topics = [kit.topic(shape, "store.inventory.eu"), kit.topic(shape, "store-inventory-eu")]
    topics[1].spec["topicName"] = "store_inventory.eu"
    expected = [(message("store_inventory.eu", "store.inventory.eu"), topics[1].urn)]
    assert kit.judge_stack_by_urn(POLICY, topics) == expected


def test_each_further_one_is_reported() -> None:
    topics = [kit.topic(kit.V1, name) for name in ("a.b.c", "a.b_c", "a_b_c")]
    assert kit.judge_stack(POLICY, topics) == [message("a.b_c", "a.b.c"), message("a_b_c", "a.b.c")]


def test_topics_of_different_clusters_do_not_collide() -> None:
    topics = [kit.topic(kit.V1, "a.b") for _ in range(3)]
    topics[1].spec["topicName"] = topics[2].spec["topicName"] = "a_b"
    topics[1].props["metadata"]["labels"]["strimzi.io/cluster"] = "spare"
    topics[2].props["metadata"]["namespace"] = "spare"
    assert kit.judge_stack(POLICY, topics) == []


def test_the_same_name_twice_is_no_collision() -> None:
    assert kit.judge_stack(POLICY, [kit.topic(kit.V1, "a.b"), kit.topic(kit.V1, "a.b")]) == []


def test_another_type_is_ignored() -> None:
    users = [kit.Sample(kit.user(kit.V1).type_, kit.topic(kit.V1, name).props) for name in ("a.b", "a_b")]
    assert kit.judge_stack(POLICY, users) == []


def test_one_unknown_name_hides_no_other() -> None:
    topics = [kit.topic(kit.V1, name) for name in ("a.b", UNKNOWN_STRING_VALUE, "a_b")]
    assert kit.judge_stack(POLICY, topics) == [message("a_b", "a.b")]
