"""The rule on names that carry another stage."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.stage_in_names import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic, excepted


def violation() -> list[kit.Sample]:
    return broken_topic("orders.dev")


def message(described: str, got: str, allowed: str = "stg") -> str:
    return f"{described}: name must not carry another stage (got {got}, allowed {allowed}). It is taken for that one."


def named(sample: kit.Sample, name: str) -> kit.Sample:
    sample.props["metadata"]["name"] = name
    return sample


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_stack_whose_names_carry_its_own_stage_passes(shape: str) -> None:
    assert kit.judge_stack(POLICY, kit.compliant(shape), stage="stg") == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("make", "noun"),
    [(kit.cluster, "cluster"), (kit.user, "user"), (kit.topic, "topic")],
)
@pytest.mark.parametrize("name", ["rt-inv-dev-user", "dev", "orders.dev", "orders-Dev-2"])
def test_each_name_with_another_stage_is_reported(
    shape: str, make: Callable[[str], kit.Sample], noun: str, name: str
) -> None:
    sample = named(make(shape), name)
    assert kit.judge_stack_by_urn(POLICY, [sample], stage="stg") == [(message(f"{noun} {name}", "dev"), sample.urn)]


def test_a_namespace_with_another_stage_is_reported_once_for_all_in_it() -> None:
    namespace = kit.core("Namespace", "rt-inventory-prod")
    topic = kit.topic(kit.V1)
    topic.props["metadata"]["namespace"] = "rt-inventory-prod"
    expected = [(message("namespace rt-inventory-prod", "prod"), namespace.urn)]
    assert kit.judge_stack_by_urn(POLICY, [topic, namespace], stage="stg") == expected


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_namespace_that_the_stack_does_not_declare_is_reported_once(shape: str) -> None:
    samples = [kit.mirror(shape), kit.topic(shape)]
    for sample in samples:
        sample.props["metadata"]["namespace"] = "rt-inventory-prod"
    expected = [(message("namespace rt-inventory-prod", "prod"), samples[0].urn)]
    assert kit.judge_stack_by_urn(POLICY, samples, stage="stg") == expected


def test_an_exception_of_one_resource_does_not_lift_its_namespace_from_others() -> None:
    samples = [kit.mirror(kit.V1), kit.topic(kit.V1), kit.topic(kit.V1, "orders")]
    for sample in samples:
        sample.props["metadata"]["namespace"] = "rt-inventory-prod"
    excepted(samples[0], "stage-in-names", datetime.now(UTC).date() + timedelta(days=1))
    expected = [(message("namespace rt-inventory-prod", "prod"), samples[1].urn)]
    assert kit.judge_stack_by_urn(POLICY, samples, stage="stg") == expected


def test_the_name_in_kafka_of_a_topic_counts() -> None:
    topic = kit.topic(kit.V1, "items-dev")
    topic.spec["topicName"] = "items"
    assert kit.judge_stack(POLICY, [topic], stage="stg") == []
    topic.spec["topicName"] = "items_dev"
    assert kit.judge_stack(POLICY, [topic], stage="stg") == [message("topic items_dev", "dev")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_the_alias_of_a_source_is_no_stage_of_a_topic(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["alias"] = "ledger-dev"
    names = [
        "ledger-dev.ledger",
        "ledger-dev.ledger-dev.ledger",
        "ledger-dev.checkpoints.internal",
        "mm2-offset-syncs.ledger-dev.internal",
    ]
    assert kit.judge_stack(POLICY, [mirror, *(kit.topic(shape, name) for name in names)], stage="stg") == []
    reported = ["ledger-dev.orders-dev", "ledger-devices.dev", "ledger-dev"]
    found = kit.judge_stack(POLICY, [mirror, *(kit.topic(shape, name) for name in reported)], stage="stg")
    assert found == [message(f"topic {name}", "dev") for name in reported]


@pytest.mark.parametrize("name", ["devices", "contest", "product-stg", "stgdev"])
def test_only_whole_words_are_stages(name: str) -> None:
    assert kit.judge_stack(POLICY, [kit.topic(kit.V1, name)], stage="stg") == []


@pytest.mark.parametrize("stage", ["", "europe", "production"])
def test_a_stack_that_is_no_stage_is_not_judged(stage: str) -> None:
    samples = [kit.core("Namespace", "rt-inventory-prod"), kit.topic(kit.V1, "dev")]
    assert kit.judge_stack(POLICY, samples, stage=stage) == []


def test_the_stages_can_be_configured() -> None:
    samples = [kit.topic(kit.V1, "items-dev"), kit.topic(kit.V1, "items-qa")]
    assert kit.judge_stack(POLICY, samples, stage="stg") == [message("topic items-dev", "dev")]
    found = kit.judge_stack(POLICY, samples, stage="stg", stages=["stg", "qa"])
    assert found == [message("topic items-qa", "qa")]
    assert kit.judge_stack(POLICY, samples, stage="stg", stages=["stg"]) == []


def test_another_type_is_ignored() -> None:
    secret = kit.core("Secret", "rt-inv-dev-user")
    assert kit.judge_stack(POLICY, [secret, named(kit.node_pool(kit.V1), "dev")], stage="stg") == []


def test_one_unknown_name_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1)
    kit.source(mirror)["alias"] = UNKNOWN_STRING_VALUE
    unknown = [kit.core("Namespace", UNKNOWN_STRING_VALUE), kit.topic(kit.V1, UNKNOWN_STRING_VALUE), mirror]
    found = kit.judge_stack(POLICY, [*unknown, kit.topic(kit.V1, "dev")], stage="stg")
    assert found == [message("topic dev", "dev")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_no_topic_is_judged_while_a_mirrors_aliases_are_not_known(shape: str) -> None:
    mirror, topic = kit.mirror(shape), named(kit.topic(shape), "es-dev.items")
    assert kit.judge_stack(POLICY, [mirror, topic], stage="stg") != []
    mirror.props["spec"] = UNKNOWN_STRING_VALUE
    assert kit.judge_stack(POLICY, [mirror, topic], stage="stg") == []
