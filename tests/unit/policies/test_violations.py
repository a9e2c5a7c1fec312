"""Every rule has a violation that it finds: the same that the sandbox's test declares in one stack."""

import pytest
from pulumi_policy import ResourceValidationPolicy

from policies.rules import POLICIES
from tests.support import compliant_resources as kit
from tests.support.policy_violations import configuration, violations


def test_there_is_a_violation_of_every_rule_and_of_no_other() -> None:
    assert set(violations()) == {policy.name for policy in POLICIES}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_rule_finds_its_violation(policy: kit.Policy) -> None:
    samples = violations()[policy.name]
    config = dict(configuration().get(policy.name, {}))
    if policy.config_schema and "stage" in policy.config_schema.properties:
        config["stage"] = kit.STAGE
    if isinstance(policy, ResourceValidationPolicy):
        assert [message for sample in samples for message in kit.judge(policy, sample, **config)]
    else:
        assert kit.judge_stack(policy, samples, protected=False, **config)
