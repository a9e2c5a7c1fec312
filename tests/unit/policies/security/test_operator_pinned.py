"""The rule on subscriptions to a Kafka operator."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.operator_pinned import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import changed

CHANNEL = r"subscription strimzi-kafka-operator: channel must match .*\d.* (got {}). " + (
    "A channel without a version leads to the next release, which can restart every broker."
)
APPROVAL = (
    "subscription strimzi-kafka-operator: installPlanApproval must be Manual (got {}). "
    "Otherwise an upgrade of the operator can restart every broker at any time."
)


def violation() -> list[kit.Sample]:
    return changed(
        kit.subscription(), "strimzi", lambda operator: operator.spec.update(installPlanApproval="Automatic")
    )


def test_a_channel_with_a_version_and_manual_approval_pass() -> None:
    assert kit.judge(POLICY, kit.subscription()) == []


def test_the_first_version_need_not_be_named() -> None:
    sample = kit.subscription()
    del sample.spec["startingCSV"]
    assert kit.judge(POLICY, sample) == []


@pytest.mark.parametrize("channel", ["stable", "alpha"])
def test_a_channel_without_a_version_is_reported(channel: str) -> None:
    sample = kit.subscription()
    sample.spec["channel"] = channel
    assert kit.judge(POLICY, sample) == [CHANNEL.format(channel)]


def test_the_default_channel_of_the_package_is_reported() -> None:
    sample = kit.subscription()
    del sample.spec["channel"]
    expected = [CHANNEL.format("nothing, which means the default of the package")]
    assert kit.judge(POLICY, sample) == expected
    assert kit.judge(POLICY, sample, channel=".*")[0].startswith("subscription strimzi-kafka-operator: channel must")


def test_automatic_approval_is_reported_also_where_it_is_the_default() -> None:
    sample = kit.subscription()
    sample.spec["installPlanApproval"] = "Automatic"
    assert kit.judge(POLICY, sample) == [APPROVAL.format("Automatic")]
    del sample.spec["installPlanApproval"]
    assert kit.judge(POLICY, sample) == [APPROVAL.format("nothing, which means Automatic")]


@pytest.mark.parametrize("package", ["strimzi-kafka-operator", "ibm-eventstreams", "amq-streams", "Kafka-operator"])
def test_every_kafka_operator_is_judged(package: str) -> None:
    sample = kit.subscription()
    sample.spec.update(name=package, channel="stable")
    assert kit.judge(POLICY, sample) == [CHANNEL.format("stable")]


def test_other_operators_are_not_judged_unless_configured() -> None:
    sample = kit.subscription()
    sample.spec.update(name="cert-manager", channel="stable", installPlanApproval="Automatic")
    assert kit.judge(POLICY, sample) == []
    assert kit.judge(POLICY, sample, packages=["cert-.*"]) == [CHANNEL.format("stable"), APPROVAL.format("Automatic")]


def test_channels_and_approvals_can_be_configured() -> None:
    sample = kit.subscription()
    sample.spec.update(channel="stable", installPlanApproval="Automatic")
    assert kit.judge(POLICY, sample, channel="stable|v.*", approvals=["Manual", "Automatic"]) == []
    assert kit.judge(POLICY, kit.subscription(), channel="v.*") == [
        CHANNEL.format("strimzi-1.0.x").replace(r".*\d.*", "v.*")
    ]


def test_an_expression_that_cannot_be_read_is_reported() -> None:
    found = kit.judge(POLICY, kit.subscription(), channel="(")
    assert found[0].startswith("subscription strimzi-kafka-operator: option channel must hold regular expressions")


def test_another_type_is_ignored() -> None:
    sample = kit.subscription()
    sample.spec["channel"] = "stable"
    assert kit.judge(POLICY, kit.Sample("kubernetes:messaging.example.com/v1:Subscription", sample.props)) == []


def test_an_unknown_channel_does_not_hide_the_approval() -> None:
    sample = kit.subscription()
    sample.spec.update(channel=UNKNOWN_STRING_VALUE, installPlanApproval="Automatic")
    assert kit.judge(POLICY, sample) == [APPROVAL.format("Automatic")]
