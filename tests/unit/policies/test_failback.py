"""The default pair while a failback is under way: no rule finds more than before it, and what would loop is found."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi_policy import ResourceValidationPolicy, StackValidationPolicy

from components.__main__ import manifests
from policies.rules import POLICIES
from policies.rules.mirror.identity_loops import POLICY as LOOPS

from ...support import compliant_resources as kit

ROOT = Path(__file__).parents[3]
CONFIG = json.loads((ROOT / "policies" / "config.stg.json").read_text("utf-8"))
AT_TARGET = {"active": "target", "state": "stopped"}
PHASES: dict[str, dict[str, str]] = {
    "settling": {"active": "target", "failback": "settling"},
    "prepared": {**AT_TARGET, "failback": "prepared"},
    "copying": {**AT_TARGET, "failback": "copying"},
}


def samples(folder: Path, **settings: str) -> list[kit.Sample]:
    """What the target stack makes with these settings of its mirror."""
    for stack in ("dev", "stg"):
        document = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text("utf-8"))
        # Only a running cluster knows the address of a load balancer without it.
        document["config"]["rt-inventory:cluster"]["expose"]["host"] = f"kafka.{stack}.example.com"
        for mirror in document["config"].get("rt-inventory:mirrors") or []:
            mirror |= settings
        (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return [
        kit.Sample(f"kubernetes:{_version(each['apiVersion'])}:{each['kind']}", each)
        for each in manifests(folder, "stg")
    ]


def _version(api_version: str) -> str:
    return api_version if "/" in api_version else f"core/{api_version}"


def findings(found: list[kit.Sample]) -> Iterator[tuple[str, str]]:
    """Every rule with what it finds."""
    for policy in POLICIES:
        options = CONFIG.get(policy.name, {})
        if isinstance(policy, ResourceValidationPolicy):
            yield from ((policy.name, reported) for each in found for reported in kit.judge(policy, each, **options))
        elif isinstance(policy, StackValidationPolicy):
            yield from ((policy.name, reported) for reported in kit.judge_stack(policy, found, **options))


def mirrors(found: list[kit.Sample]) -> list[dict[str, Any]]:
    return [each.props for each in found if each.props["kind"] == "KafkaMirrorMaker2"]


@pytest.mark.parametrize("phase", PHASES)
def test_no_rule_finds_more_than_before_the_failback(phase: str, tmp_path: Path) -> None:
    before = set(findings(samples(tmp_path, **AT_TARGET)))
    during = samples(tmp_path, **PHASES[phase])
    assert len(mirrors(during)) == (1 if phase == "settling" else 2)
    assert set(findings(during)) - before == set()


def test_both_directions_at_once_are_a_loop(tmp_path: Path) -> None:
    found = samples(tmp_path, **PHASES["copying"])
    assert kit.judge_stack(LOOPS, found) == []
    for props in mirrors(found):
        props["spec"]["mirrors"][0]["sourceConnector"].pop("state", None)
    assert any("mm2-failback" in reported for reported in kit.judge_stack(LOOPS, found))
