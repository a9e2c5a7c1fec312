"""The rule on dots that make a pattern match a second topic."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.unescaped_dots import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

CONFIGURATION = {"sourceTopics": ["store.inventory", "store-inventory"]}


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-dots", lambda mirror: kit.flow(mirror).update(topicsPattern="store.inventory"))


def mirror_with(shape: str, topics: str) -> kit.Sample:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["topicsPattern"] = topics
    return mirror


def message(got: str, meant: str, other: str, escaped: str) -> str:
    return (
        "mirror mm2: mirrors[0].topicsPattern must escape dots that are part of a name "
        f"(got {got}, which matches {meant} and {other}). Write {escaped}, or list {other} too."
    )


ITEMS = message("items.inventory", "items.inventory", "items-inventory", r"items\.inventory")


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_dot_that_matches_two_topics_of_the_stack_is_reported_at_the_mirror(shape: str) -> None:
    mirror = mirror_with(shape, "items,items.inventory")
    topics = [kit.topic(shape, "items.inventory"), kit.topic(shape, "items-inventory")]
    assert kit.judge_stack_by_urn(POLICY, [*topics, mirror]) == [(ITEMS, mirror.urn)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_topics_of_the_source_count_too(shape: str) -> None:
    mirror = mirror_with(shape, "items|items.inventory")
    assert kit.judge_stack(POLICY, [mirror]) == []
    assert kit.judge_stack(POLICY, [mirror], sourceTopics=["items.inventory", "items-inventory"]) == [ITEMS]
    assert kit.judge_stack(POLICY, [kit.topic(shape, "items.inventory"), mirror], sourceTopics=["items-inventory"]) == [
        ITEMS
    ]


def test_a_topics_name_in_kafka_counts() -> None:
    topic = kit.topic(kit.V1, "items-inventory-of-stores")
    topic.spec["topicName"] = "items_inventory"
    mirror = mirror_with(kit.V1, "items.inventory")
    expected = message("items.inventory", "items.inventory", "items_inventory", r"items\.inventory")
    assert kit.judge_stack(POLICY, [topic, mirror], sourceTopics=["items.inventory"]) == [expected]


def test_a_dot_before_a_wildcard_is_reported() -> None:
    topics = ["retail.orders", "retailers"]
    expected = message("retail..*", "retail.orders", "retailers", r"retail\..*")
    assert kit.judge_stack(POLICY, [mirror_with(kit.V1, "retail..*")], sourceTopics=topics) == [expected]


@pytest.mark.parametrize(
    "topics",
    [
        r"items\.inventory",
        r"\Qitems.inventory\E",
        "items.*",
        "items.?inventory",
        "items[.-]inventory",
        r"items\.inventory|items-inventory",
        "store.inventory",
        "",
        "items.inventory|(",
    ],
)
def test_patterns_whose_dots_are_escaped_or_repeated_or_harmless_pass(topics: str) -> None:
    names = ["items.inventory", "items-inventory", "store.inventory"]
    assert kit.judge_stack(POLICY, [mirror_with(kit.V1, topics)], sourceTopics=names) == []


def test_a_dot_that_stands_for_any_character_on_purpose_passes() -> None:
    names = ["run-1", "run-2"]
    assert kit.judge_stack(POLICY, [mirror_with(kit.V1, "run-.")], sourceTopics=names) == []


def test_a_second_topic_that_is_excluded_passes() -> None:
    mirror = mirror_with(kit.V1, "items.inventory")
    kit.flow(mirror)["topicsExcludePattern"] = "items-.*"
    assert kit.judge_stack(POLICY, [mirror], sourceTopics=["items.inventory", "items-inventory"]) == []


def test_a_mirror_that_copies_no_topics_passes() -> None:
    mirror = mirror_with(kit.V1, "items.inventory")
    del kit.flow(mirror)["sourceConnector"]
    assert kit.judge_stack(POLICY, [mirror], sourceTopics=["items.inventory", "items-inventory"]) == []


def test_another_type_is_ignored() -> None:
    mirror = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror_with(kit.V1, "items.inventory").props)
    assert kit.judge_stack(POLICY, [mirror], sourceTopics=["items.inventory", "items-inventory"]) == []


def test_what_is_unknown_hides_no_other_mirror_and_no_other_topic() -> None:
    unknown, topic = mirror_with(kit.V1, UNKNOWN_STRING_VALUE), kit.topic(kit.V1)
    topic.spec["topicName"] = UNKNOWN_STRING_VALUE
    mirrors = [unknown, topic, mirror_with(kit.V1, "items.inventory")]
    assert kit.judge_stack(POLICY, mirrors, sourceTopics=["items.inventory", "items-inventory"]) == [ITEMS]


@pytest.mark.parametrize("pattern", [r"items|\Q\E", r"\Qa.b\E|\Q\E|c", r"\c\Q|a"])
def test_quotations_that_are_empty_or_within_an_escape_pass(pattern: str) -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["topicsPattern"] = pattern
    assert kit.judge_stack(POLICY, [mirror, kit.topic(kit.V1, "items")]) == []
