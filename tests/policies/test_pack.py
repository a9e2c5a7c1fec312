"""Every rule is registered, tested, in the table, and content with a stack that complies."""

from pathlib import Path

import pytest
from pulumi_policy import ResourceValidationPolicy

from policies.rules import GROUPS, POLICIES, reference
from tests.policies import kit

ROOT = Path(__file__).parents[2]
RULES = ROOT / "policies" / "rules"


MODULES = [
    path.relative_to(RULES)
    for path in sorted(RULES.glob("*/*.py"))
    if path.parent.name != "support" and path.stem != "__init__"
]


def test_every_rule_is_registered_under_the_name_of_its_file() -> None:
    registered = {policy.name.replace("-", "_") for policy in POLICIES if policy not in GROUPS["Exceptions"]}
    assert registered == {path.stem for path in MODULES}


def test_no_name_is_given_twice() -> None:
    assert len({policy.name for policy in POLICIES}) == len(POLICIES)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_every_rule_has_tests(path: Path) -> None:
    assert (Path(__file__).parent / path.parent / f"test_{path.name}").is_file()


def test_every_rule_stands_in_the_table() -> None:
    stale = [file.name for file, text in reference.documents() if file.read_text(encoding="utf-8") != text]
    assert not stale, "run: python -m policies.rules.reference"
    table = reference.README.read_text(encoding="utf-8")
    assert {policy.name for policy in POLICIES if f"| `{policy.name}` |" not in table} == set()


def test_every_option_has_a_description_and_a_default() -> None:
    for policy in POLICIES:
        for key, option in (policy.config_schema.properties if policy.config_schema else {}).items():
            assert {"type", "default", "description"} <= set(option), f"{policy.name}.{key}"


def test_every_rule_says_how_severe_it_is_and_what_to_do() -> None:
    assert all(policy.severity and policy.remediation_steps for policy in POLICIES)


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_stack_that_complies_passes(shape: str, policy: kit.Policy) -> None:
    samples = kit.compliant(shape)
    config = {"stage": kit.STAGE} if policy.config_schema and "stage" in policy.config_schema.properties else {}
    if isinstance(policy, ResourceValidationPolicy):
        assert [message for sample in samples for message in kit.judge(policy, sample, **config)] == []
    else:
        assert kit.judge_stack(policy, samples, **config) == []
