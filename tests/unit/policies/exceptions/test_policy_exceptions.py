"""The rule on exceptions, and what an exception lifts."""

from datetime import UTC, datetime, timedelta

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.durability.topic_replication import POLICY as TOPIC_REPLICATION
from policies.rules.exceptions.policy_exceptions import POLICY
from policies.support.policy_builder import Finding, stack_policy
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic, excepted

KEY = "exception.rt-inventory/topic-replication"
TODAY = datetime.now(UTC).date()
RULE = (
    "topic items: replicas must be >= 3 (got 1). With fewer, the loss of one broker can stop producers or lose records."
)


def violation() -> list[kit.Sample]:
    return broken_topic("expired", lambda topic: excepted(topic, "topic-retention", TODAY - timedelta(days=1)))


def topic(value: str, shape: str = kit.V1, key: str = KEY) -> kit.Sample:
    """A topic with one replica and one exception."""
    sample = kit.topic(shape).annotated(**{key: value})
    sample.spec["replicas"] = 1
    return sample


def until(days: int) -> str:
    return f"until {TODAY + timedelta(days=days)}: the new rack is not there"


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("days", [0, 1, 366])
def test_an_exception_lifts_its_rule_through_its_last_day(shape: str, days: int) -> None:
    sample = topic(until(days), shape)
    assert kit.judge(TOPIC_REPLICATION, sample) == []
    assert kit.judge(POLICY, sample) == []


def test_an_expired_exception_fails_and_lifts_nothing() -> None:
    sample = topic(until(-1))
    assert kit.judge(TOPIC_REPLICATION, sample) == [RULE]
    assert kit.judge(POLICY, sample) == [
        f"KafkaTopic items: annotation {KEY} must not have expired (got until {TODAY - timedelta(days=1)}, today "
        f"{TODAY}). It lifts nothing any more: correct what it excused (the new rack is not there), or decide again."
    ]


@pytest.mark.parametrize(
    "value", ["", "yes", "until tomorrow: x", "until 2027-02-30: x", "until 2027-01-01:", "until 2027-01-01"]
)
def test_an_exception_without_a_day_or_a_reason_fails_and_lifts_nothing(value: str) -> None:
    sample = topic(value)
    assert kit.judge(TOPIC_REPLICATION, sample) == [RULE]
    assert kit.judge(POLICY, sample) == [
        f'KafkaTopic items: annotation {KEY} must be "until YYYY-MM-DD: reason" (got "{value}"). '
        "It lifts nothing until it is corrected."
    ]


def test_an_exception_from_a_rule_that_does_not_exist_fails() -> None:
    sample = topic(until(1), key="exception.rt-inventory/topic-replicaton")
    assert kit.judge(POLICY, sample) == [
        "KafkaTopic items: annotation exception.rt-inventory/topic-replicaton must name a rule that can be lifted "
        "(got topic-replicaton). The README lists the rules."
    ]


@pytest.mark.parametrize("rule", ["policy-exceptions", "active-exceptions"])
def test_the_rules_on_exceptions_cannot_be_lifted(rule: str) -> None:
    assert (
        "must name a rule that can be lifted"
        in kit.judge(POLICY, topic(until(1), key=f"exception.rt-inventory/{rule}"))[0]
    )


def test_an_exception_that_ends_too_late_fails_and_the_limit_can_be_configured() -> None:
    sample = topic(until(367))
    assert kit.judge(POLICY, sample) == [
        f"KafkaTopic items: annotation {KEY} must end within 366 days (got until {TODAY + timedelta(days=367)}, "
        f"allowed {TODAY + timedelta(days=366)}). A permanent exception belongs in the configuration."
    ]
    assert kit.judge(POLICY, sample, maximumDays=400) == []
    assert len(kit.judge(POLICY, topic(until(8)), maximumDays=7)) == 1


OVER_THE_STACK = stack_policy(
    name="topic-replication",
    description="every topic",
    types=frozenset({kit.topic(kit.V1).type_}),
    violations=lambda resources, config: [Finding(f"found {each.urn}", each) for each in resources],
    severity=TOPIC_REPLICATION.severity,  # type: ignore[arg-type] # it has one
    remediation_steps="none",
)


def test_an_exception_lifts_a_rule_over_the_stack_from_its_own_resource_only() -> None:
    other = kit.topic(kit.V1, "other")
    assert kit.judge_stack(OVER_THE_STACK, [topic(until(1)), other, kit.user(kit.V1)]) == [f"found {other.urn}"]


def test_annotations_that_a_preview_does_not_know_hide_no_finding_of_another_resource() -> None:
    unknown, other = kit.topic(kit.V1, "unknown"), kit.topic(kit.V1, "other")
    unknown.props["metadata"]["annotations"] = UNKNOWN_STRING_VALUE
    assert kit.judge_stack(OVER_THE_STACK, [unknown, other]) == [f"found {other.urn}"]


def test_an_exception_lifts_the_remedy_too() -> None:
    assert kit.remedied(TOPIC_REPLICATION, topic(until(1))) is None
    assert kit.remedied(TOPIC_REPLICATION, topic(until(-1))) is not None


def test_an_annotation_that_a_preview_does_not_know_is_left_to_the_update() -> None:
    sample = topic(UNKNOWN_STRING_VALUE).annotated(**{"exception.rt-inventory/nothing": "x"})
    assert len(kit.judge(POLICY, sample)) == 1
    assert kit.judge(TOPIC_REPLICATION, sample) == [RULE]
