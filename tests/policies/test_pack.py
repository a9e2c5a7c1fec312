"""Every rule is registered, tested and in the README's table."""

from pathlib import Path

from policies.rules import POLICIES

ROOT = Path(__file__).parents[2]
RULES = {path.stem for path in (ROOT / "policies" / "rules").glob("*.py")} - {"__init__", "custom_resource"}


def test_every_rule_is_registered() -> None:
    assert {policy.name.replace("-", "_") for policy in POLICIES} == RULES


def test_every_rule_has_tests() -> None:
    assert {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")} >= RULES


def test_every_rule_stands_in_the_table() -> None:
    table = (ROOT / "policies" / "README.md").read_text(encoding="utf-8")
    assert {rule for rule in RULES if f"| `{rule.replace('_', '-')}` |" not in table} == set()
