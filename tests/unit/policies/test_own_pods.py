"""What runs of our own images in the cluster is clean: no rule finds anything in the manifests of the example."""

import re
from functools import cache
from typing import Any

import pytest
import yaml
from pulumi_policy import ResourceValidationPolicy

from examples.__main__ import examples
from policies.rules import POLICIES

from ...support import compliant_resources as kit

OURS = re.compile("-verify|-demo-|-follower|-audit")
GROUPS = {"v1": "core/v1"}
(EXAMPLE,) = (each for each in examples() if each.name == "verification-in-cluster")
KINDS = {
    "ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding", "Job", "CronJob", "SparkApplication",
    "ScheduledSparkApplication", "Deployment", "NetworkPolicy",
}  # fmt: skip


@cache
def manifests() -> list[dict[str, Any]]:
    """The manifests of the example that run our images, parsed once: rules get copies of them."""
    pages = [yaml.safe_load_all(EXAMPLE.expected(stack).read_text("utf-8")) for stack in EXAMPLE.stacks]
    return [each for page in pages for each in page if OURS.search(each["metadata"]["name"])]


def sample(manifest: dict[str, Any]) -> kit.Sample:
    version = GROUPS.get(manifest["apiVersion"], manifest["apiVersion"])
    return kit.Sample(f"kubernetes:{version}:{manifest['kind']}", manifest)


def test_the_example_has_every_kind() -> None:
    assert {each["kind"] for each in manifests()} == KINDS


@pytest.mark.parametrize(
    "policy", [each for each in POLICIES if isinstance(each, ResourceValidationPolicy)], ids=lambda each: str(each.name)
)
def test_no_rule_finds_anything(policy: ResourceValidationPolicy) -> None:
    assert [found for each in manifests() for found in kit.judge(policy, sample(each))] == []


def test_digests_can_be_insisted_on() -> None:
    (pinned,) = (each for each in POLICIES if each.name == "pinned-images")
    assert isinstance(pinned, ResourceValidationPolicy)
    found = [reported for each in manifests() for reported in kit.judge(pinned, sample(each), digests=True)]
    assert len(found) == 11
