"""The rule on what Pulumi must neither delete nor replace."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.durability.deletion_protection import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic

SECRET, CLAIM = "rt-inv-stg-user-credentials", "data-0"
OTHER_SECRET = "metrics-login"


def violation() -> list[kit.Sample]:
    return broken_topic("unprotected")


def message(described: str) -> str:
    return (
        f"{described}: protect must be true (got false). "
        "Without it, a destroy, a rename or another change that replaces the resource deletes it."
    )


def stack(shape: str) -> list[kit.Sample]:
    claim = kit.core("PersistentVolumeClaim", CLAIM, spec={"accessModes": ["ReadWriteOnce"]})
    return [*kit.compliant(shape), claim, kit.core("Secret", OTHER_SECRET)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_stack_that_is_protected_passes(shape: str) -> None:
    assert kit.judge_stack(POLICY, stack(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_each_unprotected_resource_of_these_kinds_is_reported_once(shape: str) -> None:
    found = kit.judge_stack_by_urn(POLICY, stack(shape), protected=False)
    urns = {sample.props["metadata"]["name"]: sample.urn for sample in stack(shape)}
    assert sorted(found) == sorted(
        [
            (message("cluster rt-inventory-stg"), kit.cluster(shape).urn),
            (message("topic items"), urns["items"]),
            (message("topic items.inventory"), urns["items.inventory"]),
            (message(f"Secret {SECRET}"), urns[SECRET]),
            (message(f"PersistentVolumeClaim {CLAIM}"), urns[CLAIM]),
        ]
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("kinds", "described"),
    [
        (["Kafka"], ["cluster rt-inventory-stg"]),
        (["Secret"], [f"Secret {SECRET}"]),
        (["PersistentVolumeClaim"], [f"PersistentVolumeClaim {CLAIM}"]),
        (["KafkaTopic", "Kafka"], ["cluster rt-inventory-stg", "topic items", "topic items.inventory"]),
        ([], []),
    ],
)
def test_the_kinds_can_be_configured(shape: str, kinds: list[str], described: list[str]) -> None:
    found = kit.judge_stack(POLICY, stack(shape), protected=False, kinds=kinds)
    assert found == [message(each) for each in described]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_secret_in_another_namespace_is_not_the_users(shape: str) -> None:
    secret = kit.core("Secret", SECRET)
    secret.props["metadata"]["namespace"] = "elsewhere"
    assert kit.judge_stack(POLICY, [kit.user(shape), secret], protected=False) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_secrets_matter_only_with_a_user_that_reads_its_password_there(shape: str) -> None:
    user = kit.user(shape)
    del user.spec["authentication"]["password"]
    assert kit.judge_stack(POLICY, [user, kit.core("Secret", SECRET)], protected=False) == []


def test_other_kinds_are_ignored() -> None:
    samples = [kit.mirror(kit.V1), kit.node_pool(kit.V1), kit.user(kit.V1), kit.core("Namespace", "rt-inventory-stg")]
    assert kit.judge_stack(POLICY, samples, protected=False) == []


def test_an_exception_lifts_the_rule_from_its_resource_only() -> None:
    topic = kit.topic(kit.V1).annotated(**{"exception.rt-inventory/deletion-protection": "until 2999-12-31: a test"})
    expected = [message("topic stock")]
    assert kit.judge_stack(POLICY, [topic, kit.topic(kit.V1, "stock")], protected=False) == expected


def test_one_unknown_name_hides_no_other() -> None:
    user, unknown = kit.user(kit.V1), kit.user(kit.V1)
    unknown.spec["authentication"]["password"]["valueFrom"]["secretKeyRef"]["name"] = UNKNOWN_STRING_VALUE
    unnamed = kit.topic(kit.V1)
    unnamed.spec["topicName"] = UNKNOWN_STRING_VALUE
    samples = [unknown, user, unnamed, kit.topic(kit.V1, "stock"), kit.core("Secret", SECRET)]
    expected = [message("topic stock"), message(f"Secret {SECRET}")]
    assert kit.judge_stack(POLICY, samples, protected=False) == expected
