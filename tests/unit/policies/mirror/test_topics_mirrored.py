"""The rule on topics that some mirror must copy."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.topics_mirrored import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

CONFIGURATION = {"sourceTopics": ["orders"]}


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-topics", lambda mirror: kit.flow(mirror).update(topicsPattern="store"))


def message(topic: str, got: str) -> str:
    return (
        f"topic {topic}: topicsPattern of some mirror must match it and no topicsExcludePattern take it out "
        f"(got {got}). It would be missing on the target after a failover."
    )


def mirror_with(shape: str, topics: str, name: str = "mm2") -> kit.Sample:
    mirror = kit.mirror(shape, name)
    kit.flow(mirror)["topicsPattern"] = topics
    return mirror


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_topics_that_some_mirror_copies_pass(shape: str) -> None:
    mirrors = [mirror_with(shape, "items", "a"), mirror_with(shape, r"retail\..*", "b")]
    assert kit.judge_stack(POLICY, mirrors, sourceTopics=["items", "retail.orders"]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_topic_that_no_mirror_copies_is_reported(shape: str) -> None:
    mirrors = [mirror_with(shape, "items", "a"), mirror_with(shape, "", "b")]
    expected = [message("stock", "items, an empty one")]
    assert kit.judge_stack(POLICY, mirrors, sourceTopics=["items", "stock"]) == expected


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_topic_that_is_taken_out_again_is_reported(shape: str) -> None:
    mirror = mirror_with(shape, ".*")
    kit.flow(mirror)["topicsExcludePattern"] = "st.*"
    assert kit.judge_stack(POLICY, [mirror], sourceTopics=["items", "stock"]) == [message("stock", ".*")]


def test_a_mirror_without_patterns_copies_what_mirrormaker_does() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.flow(mirror)["topicsPattern"]
    assert kit.judge_stack(POLICY, [mirror], sourceTopics=["items", "a.replica"]) == [message("a.replica", ".*")]


def test_a_pattern_that_cannot_be_judged_is_taken_to_match() -> None:
    assert kit.judge_stack(POLICY, [mirror_with(kit.V1, "[a-z&&[^x]]+")], sourceTopics=["items"]) == []


def test_nothing_is_asked_for_unless_configured_or_without_a_mirror() -> None:
    assert kit.judge_stack(POLICY, [mirror_with(kit.V1, "")]) == []
    assert kit.judge_stack(POLICY, [kit.topic(kit.V1)], sourceTopics=["items"]) == []


def test_a_mirror_without_a_source_connector_copies_nothing() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.flow(mirror)["sourceConnector"]
    assert kit.judge_stack(POLICY, [mirror], sourceTopics=["items"]) == [message("items", "no sourceConnector")]


def test_another_type_is_no_mirror() -> None:
    other = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror_with(kit.V1, "").props)
    assert kit.judge_stack(POLICY, [other], sourceTopics=["items"]) == []


def test_a_pattern_that_is_not_known_yet_may_match_any_topic() -> None:
    mirrors = [mirror_with(kit.V1, "", "a"), mirror_with(kit.V1, UNKNOWN_STRING_VALUE, "b")]
    assert kit.judge_stack(POLICY, mirrors, sourceTopics=["items"]) == []


def test_an_exception_at_the_first_mirror_lifts_it() -> None:
    mirrors = [mirror_with(kit.V1, "items", "a"), mirror_with(kit.V1, "orders", "b")]
    assert [urn for _, urn in kit.judge_stack_by_urn(POLICY, mirrors, sourceTopics=["stock"])] == [mirrors[0].urn]
    mirrors[0].annotated(**{"exception.rt-inventory/topics-mirrored": "until 9999-12-31: it is made anew there"})
    assert kit.judge_stack(POLICY, mirrors, sourceTopics=["stock"]) == []
