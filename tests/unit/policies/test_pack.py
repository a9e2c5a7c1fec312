"""Every rule is found, tested and in the table, and a compliant stack violates none."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pulumi_policy import ResourceValidationPolicy

from policies.rules import POLICIES, reference
from tests.support import compliant_resources as kit

ROOT = Path(__file__).parents[3]
RULES = ROOT / "policies" / "rules"
MODULES = [path.relative_to(RULES) for path in sorted(RULES.glob("*/*.py")) if path.stem != "__init__"]


def test_every_rule_is_found_under_the_name_of_its_file() -> None:
    assert {policy.name.replace("-", "_") for policy in POLICIES} == {path.stem for path in MODULES}


def test_a_rule_is_found_where_its_file_is_added(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    rule = (RULES / "naming" / "user_names.py").read_text(encoding="utf-8").replace("user-names", "added-names")
    (tmp_path / "policies" / "rules" / "naming" / "added_names.py").write_text(rule, encoding="utf-8")
    program = "from policies.rules import GROUPS; print(*(policy.name for policy in GROUPS['Naming']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "added-names" in done.stdout.split()


def test_no_name_is_given_twice() -> None:
    assert len({policy.name for policy in POLICIES}) == len(POLICIES)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_every_rule_has_tests(path: Path) -> None:
    assert (Path(__file__).parent / path.parent / f"test_{path.name}").is_file()


def test_every_rule_is_in_the_table() -> None:
    stale = [file.name for file, text in reference.documents() if file.read_text(encoding="utf-8") != text]
    assert not stale, "run: python -m policies.rules.reference"
    table = reference.README.read_text(encoding="utf-8")
    assert {policy.name for policy in POLICIES if f"| `{policy.name}` |" not in table} == set()


def test_every_option_has_a_description_and_a_default() -> None:
    for policy in POLICIES:
        for key, option in (policy.config_schema.properties if policy.config_schema else {}).items():
            assert {"type", "default", "description"} <= set(option), f"{policy.name}.{key}"


def test_every_rule_has_a_severity_and_a_remedy() -> None:
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
