"""The rule on resources that all other rules would pass for their type."""

import pytest

from policies.rules.security.judged_versions import POLICY
from policies.support.resources import ANY_KAFKA, EVERY, JUDGED, WORKLOADS
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic


def violation() -> list[kit.Sample]:
    return [of_type(sample, "kafka.strimzi.io/v1beta1:KafkaTopic") for sample in broken_topic("older")]


def of_type(sample: kit.Sample, type_: str) -> kit.Sample:
    version, _, kind = type_.rpartition(":")
    return kit.Sample(f"kubernetes:{type_}", {**sample.props, "apiVersion": version, "kind": kind})


@pytest.mark.parametrize(
    ("version", "allowed"),
    [
        ("kafka.strimzi.io/v1alpha1", "kafka.strimzi.io/v1, kafka.strimzi.io/v1beta2"),
        ("kafka.strimzi.io/v1beta1", "kafka.strimzi.io/v1, kafka.strimzi.io/v1beta2"),
        ("kafka.strimzi.io/v2", "kafka.strimzi.io/v1, kafka.strimzi.io/v1beta2"),
        ("eventstreams.ibm.com/v1beta1", "eventstreams.ibm.com/v1beta2"),
        ("eventstreams.ibm.com/v1", "eventstreams.ibm.com/v1beta2"),
    ],
)
def test_an_api_version_that_no_rule_reads_is_reported(version: str, allowed: str) -> None:
    topic = of_type(kit.topic(kit.V1), f"{version}:KafkaTopic")
    assert kit.judge(POLICY, topic) == [
        f"KafkaTopic items: apiVersion must be one that the rules read (got {version}, allowed {allowed}). "
        "No other rule judges the resource."
    ]


@pytest.mark.parametrize("type_", sorted(ANY_KAFKA | WORKLOADS | {"kubernetes:core/v1:ConfigMap"}))
def test_a_patch_is_reported(type_: str) -> None:
    patch = of_type(kit.topic(kit.V1), f"{type_.removeprefix('kubernetes:')}Patch")
    kind = type_.rpartition(":")[2]
    assert kit.judge(POLICY, patch) == [
        f"{kind}Patch items: the object must be declared as a whole, as a {kind} (got a patch). "
        "No other rule judges what a patch changes."
    ]


def test_every_type_of_every_rule_is_judged_and_passes() -> None:
    assert JUDGED < EVERY
    for type_ in sorted(JUDGED):
        assert kit.judge(POLICY, kit.Sample(type_, kit.topic(kit.V1).props)) == []


def test_another_type_is_ignored() -> None:
    for type_ in ("example.com/v1beta1:KafkaTopic", "kafka.strimzi.io/v1beta1:Other", "core/v1:ServicePatch"):
        assert kit.judge(POLICY, of_type(kit.topic(kit.V1), type_)) == []
