"""The rule on names of topics."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.topic_names import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic

MESSAGE = "topic {0}: name must match [a-z0-9]+([.-][a-z0-9]+)* (got {0}). People, alerts and other stacks go by it."


def violation() -> list[kit.Sample]:
    return broken_topic("upper", lambda topic: topic.spec.update(topicName="Upper"))


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", ["items", "items.inventory", "store-2.inventory", "es-src.items", "mm2-configs"])
def test_lower_case_with_dots_and_dashes_passes(shape: str, name: str) -> None:
    assert kit.judge(POLICY, kit.topic(shape, name)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", ["Items", "store_inventory", "items..inventory", ".items", "items-", "_items"])
def test_any_other_name_is_reported(shape: str, name: str) -> None:
    assert kit.judge(POLICY, kit.topic(shape, name)) == [MESSAGE.format(name)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_the_name_in_kafka_counts(shape: str) -> None:
    topic = kit.topic(shape)
    topic.spec["topicName"] = "Store_Inventory"
    assert kit.judge(POLICY, topic) == [MESSAGE.format("Store_Inventory")]


@pytest.mark.parametrize(
    "name",
    [
        "__consumer_offsets",
        "mm2-offset-syncs.ES_SRC.internal",
        "ES_SRC.checkpoints.internal",
        "ES_SRC.heartbeats",
        "heartbeats",
    ],
)
def test_names_that_kafka_and_mirrors_make_are_not_judged(name: str) -> None:
    assert kit.judge(POLICY, kit.topic(kit.V1, name), pattern="items") == []


def test_the_pattern_can_be_configured_and_may_ask_for_the_stage() -> None:
    topic = kit.topic(kit.V1, "stg_items")
    assert kit.judge(POLICY, topic, pattern="{stage}_.+", stage="stg") == []
    assert len(kit.judge(POLICY, topic, pattern="{stage}_.+", stage="dev")) == 1


def test_another_type_is_ignored() -> None:
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaTopic", kit.topic(kit.V1, "Items").props)) == []


def test_a_name_not_known_in_a_preview_is_left_to_the_update() -> None:
    topic = kit.topic(kit.V1)
    topic.spec["topicName"] = UNKNOWN_STRING_VALUE
    assert kit.judge(POLICY, topic, pattern="orders") == []
