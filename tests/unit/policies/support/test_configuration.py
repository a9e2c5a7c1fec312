"""The configuration of a stack: what is read, filled in and refused."""

import json
from pathlib import Path

import pytest
from pulumi_policy import EnforcementLevel, Severity

from policies.rules import POLICIES
from policies.support.configuration import ConfigurationError, for_stack, mistakes
from policies.support.policy_builder import resource_policy

STAGED = resource_policy(
    name="staged",
    description="knows the stage",
    types=frozenset(),
    violations=lambda type_, props, config: (),
    severity=Severity.LOW,
    remediation_steps="none",
    options={"stage": {"type": "string", "default": "", "description": "the stage"}},
)
ALL = (*POLICIES, STAGED)


def written(folder: Path, content: object) -> Path:
    (folder / "config.stg.json").write_text(
        content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
    )
    return folder


def test_a_level_alone_and_an_object_of_options_are_read(tmp_path: Path) -> None:
    written(
        tmp_path,
        {"topic-replication": {"enforcementLevel": "advisory", "minimum": 1}, "mirror-replication": "disabled"},
    )
    found = for_stack(tmp_path, "any", "stg", ALL)
    assert found["topic-replication"] == {"enforcementLevel": EnforcementLevel.ADVISORY, "minimum": 1}
    assert found["mirror-replication"] == {"enforcementLevel": EnforcementLevel.DISABLED}


def test_a_stack_without_a_file_gets_the_defaults(tmp_path: Path) -> None:
    written(tmp_path, {"topic-replication": "disabled"})
    assert for_stack(tmp_path, "any", "prd", ALL)["topic-replication"] == {
        "enforcementLevel": EnforcementLevel.MANDATORY
    }


def test_another_projects_stack_of_that_name_gets_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("# The project.\nname: shop # ours\nruntime: python\n", encoding="utf-8")
    (tmp_path / "pack").mkdir()
    pack = written(tmp_path / "pack", {"topic-replication": "disabled"})
    levels = {
        each: for_stack(pack, each, "stg", ALL)["topic-replication"]["enforcementLevel"] for each in ("shop", "x")
    }
    assert levels == {"shop": EnforcementLevel.DISABLED, "x": EnforcementLevel.MANDATORY}


def test_options_without_a_level_leave_the_rule_its_own(tmp_path: Path) -> None:
    found = for_stack(written(tmp_path, {"topic-replication": {"minimum": 1}}), "any", "stg", ALL)
    assert found["topic-replication"] == {"enforcementLevel": EnforcementLevel.MANDATORY, "minimum": 1}
    assert found["active-exceptions"] == {"enforcementLevel": EnforcementLevel.ADVISORY}


def test_rules_that_know_stages_get_the_stacks_name_unless_reported(tmp_path: Path) -> None:
    assert for_stack(tmp_path, "any", "stg", ALL)["staged"]["stage"] == "stg"
    written(tmp_path, {"staged": {"stage": "prd"}})
    assert for_stack(tmp_path, "any", "stg", ALL)["staged"]["stage"] == "prd"


def test_all_sets_the_level_of_every_rule(tmp_path: Path) -> None:
    given = {"all": "advisory", "topic-replication": {"minimum": 1}, "mirror-replication": "mandatory"}
    found = for_stack(written(tmp_path, given), "any", "stg", ALL)
    levels = {name: settings["enforcementLevel"] for name, settings in found.items()}
    assert levels.pop("mirror-replication") == EnforcementLevel.MANDATORY
    assert set(levels.values()) == {EnforcementLevel.ADVISORY}


def test_every_mistake_is_reported_at_once(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "topic-replicaton": {"minimum": 1},
            "topic-replication": {"minimun": 1, "enforcementLevel": "loud"},
            "mirror-replication": "remediate",
            "staged": 3,
            "all": {"minimum": 1},
        },
    )
    with pytest.raises(ConfigurationError) as raised:
        for_stack(tmp_path, "any", "stg", ALL)
    assert str(raised.value).splitlines() == [
        "config.stg.json: topic-replicaton must be a rule of this pack (got topic-replicaton). README.md lists them.",
        "config.stg.json: topic-replication.minimun must be a known key "
        "(got minimun, allowed enforcementLevel, minimum). Correct it.",
        "config.stg.json: topic-replication: enforcementLevel must be one of advisory, mandatory, remediate, disabled "
        "(got loud).",
        "config.stg.json: mirror-replication: enforcementLevel must be one of advisory, mandatory, disabled "
        "(got remediate).",
        "config.stg.json: staged must be a level or an object (got 3).",
        "config.stg.json: all.minimum must be a known key (got minimum, allowed enforcementLevel). Correct it.",
    ]


@pytest.mark.parametrize("content", ["{", "[1]", '"advisory"'])
def test_what_is_no_object_of_rules_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^config\.stg\.json: must be "):
        for_stack(written(tmp_path, content), "any", "stg", ALL)


@pytest.mark.parametrize("stack", ["dev", "stg"])
def test_the_projects_own_configurations_have_no_mistake(stack: str) -> None:
    file = Path(__file__).parents[4] / "policies" / f"config.{stack}.json"
    assert [*mistakes(json.loads(file.read_text(encoding="utf-8")), POLICIES)] == []
