"""docs/compatibility.md says what the tests try, and no more."""

import ast

from sandbox.state import PROJECT
from sandbox.toolchain import pins
from tests.support.compatibility import CASES, TRIED, table, tried

TESTS = PROJECT / "tests" / "integration" / "compatibility" / "test_source_versions.py"


def test_the_table_of_the_docs_is_that_of_the_cases() -> None:
    text = (PROJECT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    assert table() in text
    assert tried() in text


def test_each_entry_is_a_test_and_each_test_an_entry() -> None:
    tree = ast.parse(TESTS.read_text(encoding="utf-8"))
    tests = [one.name for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    assert tests == [*TRIED]


def test_each_earlier_version_that_can_be_installed_is_a_source() -> None:
    assert {case.source for case in CASES} == set(pins.KAFKA_WITH_ZOOKEEPER)
