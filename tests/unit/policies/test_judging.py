"""The rules judge resources without an engine as with one: from the properties that Pulumi's SDK sends, by one file."""

import json
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel

from policies import judging
from policies.rules import POLICIES
from policies.support.configuration import levels, of_file
from tests.support import compliant_resources as kit
from tests.support.policy_violations import configuration, violations

SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def declared(sample: kit.Sample, *, protect: bool = False) -> dict[str, Any]:
    props = json.loads(json.dumps(sample.props), parse_int=float)
    return {"type": sample.type_, "urn": sample.urn, "props": props, "protect": protect}


def judged(
    samples: list[kit.Sample], tmp_path: Path, *, protect: bool = False, **given: Any
) -> list[judging.Violation]:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(given), encoding="utf-8")
    resources = [declared(sample, protect=protect) for sample in samples]
    return [*judging.violations(resources, of_file(file, kit.STAGE, POLICIES))]


@pytest.mark.parametrize("rule", [policy.name for policy in POLICIES])
def test_every_rule_finds_its_violation(rule: str, tmp_path: Path) -> None:
    found = judged(violations()[rule], tmp_path, **configuration())
    assert rule in {each["rule"] for each in found}


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_what_complies_and_is_protected_passes(shape: str, tmp_path: Path) -> None:
    assert judged(kit.compliant(shape), tmp_path, protect=True) == []


def test_a_rule_has_the_level_that_is_configured_and_one_that_is_disabled_finds_nothing(tmp_path: Path) -> None:
    samples = violations()["topic-replication"]

    def found_at(level: str) -> set[str]:
        found = judged(samples, tmp_path, **{"topic-replication": level})
        return {each["level"] for each in found if each["rule"] == "topic-replication"}

    assert found_at("advisory") == {"advisory"}
    assert found_at("disabled") == set()


def test_what_an_update_corrects_has_its_own_level(tmp_path: Path) -> None:
    remedied = next(policy for policy in POLICIES if "remediate" in levels(policy))
    found = judged(violations()[remedied.name], tmp_path, **{remedied.name: EnforcementLevel.REMEDIATE.value})
    assert {each["level"] for each in found if each["rule"] == remedied.name} == {"remediate"}


def test_a_secret_is_judged_by_its_value(tmp_path: Path) -> None:
    topic = kit.topic(kit.V1)
    topic.spec["replicas"] = {**SECRET, "value": 1}
    found = judged([topic], tmp_path, protect=True)
    assert [each["rule"] for each in found] == ["topic-replication"]


def test_a_mistake_of_the_configuration_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resources, config = tmp_path / "resources.json", tmp_path / "policy.json"
    resources.write_text("[]", encoding="utf-8")
    config.write_text('{"no-such-rule": "advisory"}', encoding="utf-8")
    words = ["--resources", str(resources), "--stack", "stg"]
    assert judging.main([*words, "--config", str(config)]) == 2
    assert "no-such-rule" in capsys.readouterr().err
    assert judging.main(words) == 0
    assert json.loads(capsys.readouterr().out) == []
