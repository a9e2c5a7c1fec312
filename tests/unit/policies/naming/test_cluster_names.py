"""The rule on names of Kafka clusters."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.cluster_names import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import changed

CONVENTION = "[a-z][a-z0-9]*(-[a-z0-9]+)*-{stage}"


def violation() -> list[kit.Sample]:
    return changed(kit.cluster(kit.V1), "some.where", lambda cluster: None)


def named(shape: str, name: str) -> kit.Sample:
    cluster = kit.cluster(shape)
    cluster.props["metadata"]["name"] = name
    return cluster


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_lower_case_words_pass_and_another_name_does_not(shape: str) -> None:
    assert kit.judge(POLICY, named(shape, "kafka"), stage="stg") == []
    assert kit.judge(POLICY, named(shape, "kafka.eu"), stage="stg") == [
        "cluster kafka.eu: name must match [a-z][a-z0-9]*(-[a-z0-9]+)* (got kafka.eu). "
        "People, alerts and other stacks go by it."
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_convention_may_ask_for_the_stage(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape), pattern=CONVENTION, stage="stg") == []
    assert kit.judge(POLICY, named(shape, "rt-inventory-dev"), pattern=CONVENTION, stage="stg") == [
        "cluster rt-inventory-dev: name must match [a-z][a-z0-9]*(-[a-z0-9]+)*-stg (got rt-inventory-dev). "
        "People, alerts and other stacks go by it."
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_plain_kafka_event_streams_is_judged_too(shape: str) -> None:
    kafka = kit.Sample(f"kubernetes:{shape}:Kafka", named(shape, "kafka").props)
    assert len(kit.judge(POLICY, kafka, pattern=CONVENTION)) == 1


def test_without_a_stage_any_lower_case_word_is_one() -> None:
    assert kit.judge(POLICY, named(kit.V1, "kafka-europe"), pattern=CONVENTION) == []


def test_the_pattern_can_be_configured() -> None:
    assert kit.judge(POLICY, named(kit.V1, "main"), pattern="main|spare") == []
    assert len(kit.judge(POLICY, kit.cluster(kit.V1), pattern="main|spare")) == 1


def test_another_type_is_ignored() -> None:
    assert kit.judge(POLICY, kit.node_pool(kit.V1), stage="stg") == []


def test_a_name_not_known_in_a_preview_is_left_to_the_update() -> None:
    assert kit.judge(POLICY, named(kit.V1, UNKNOWN_STRING_VALUE), stage="stg") == []
