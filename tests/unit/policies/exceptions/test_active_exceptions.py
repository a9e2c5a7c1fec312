"""The list of active exceptions."""

from datetime import UTC, datetime, timedelta

import pytest
from pulumi_policy import EnforcementLevel
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.exceptions.active_exceptions import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic, excepted

TODAY = datetime.now(UTC).date()


def violation() -> list[kit.Sample]:
    return broken_topic("excused", lambda topic: excepted(topic, "topic-retention", TODAY + timedelta(days=1)))


def topic(days: int, shape: str = kit.V1) -> kit.Sample:
    until = f"until {TODAY + timedelta(days=days)}: the new rack is not there"
    return kit.topic(shape).annotated(**{"exception.rt-inventory/topic-replication": until})


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("days", [0, 1, 366])
def test_an_exception_is_listed_through_its_last_day(shape: str, days: int) -> None:
    sample, day = topic(days, shape), TODAY + timedelta(days=days)
    message = f"KafkaTopic items: topic-replication is lifted until {day}: the new rack is not there"
    assert kit.judge_stack_by_urn(POLICY, [sample]) == [(message, sample.urn)]


def test_annotations_that_a_preview_does_not_know_hide_no_other() -> None:
    unknown = kit.topic(kit.V1, "new")
    unknown.props["metadata"]["annotations"] = UNKNOWN_STRING_VALUE
    assert len(kit.judge_stack(POLICY, [unknown, topic(1)])) == 1


def test_an_expired_exception_is_not_listed() -> None:
    assert kit.judge_stack(POLICY, [topic(-1)]) == []


def test_active_exceptions_do_not_fail_a_run() -> None:
    assert POLICY.enforcement_level == EnforcementLevel.ADVISORY
