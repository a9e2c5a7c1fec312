"""The markers that leave tests out of a run: those that start a JVM, set by their fixtures, and those for the night."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import JVM_FIXTURES, pytest_collection_modifyitems
from tests.support.make_targets import planned_by

TESTS = Path(__file__).parents[2]
# What starts a JVM, or gives what one starts with: only a fixture of JVM_FIXTURES may call it.
STARTERS = re.compile(r"java_regex\.program\(|sources\.session\(|class_archive\(\)|bin/keytool")
FIXTURE = re.compile(r"^@pytest\.fixture\b.*\ndef (\w+)\(", re.MULTILINE)


def item(*fixtures: str, mark: str | None = None) -> Any:
    """A collected test that asks for these fixtures, directly or through others."""
    marks: list[str] = [mark] if mark else []
    return SimpleNamespace(
        nodeid="test_x",
        fixturenames=fixtures,
        marks=marks,
        add_marker=lambda mark: marks.append(mark.name),
        get_closest_marker=lambda name: name if name in marks else None,
    )


def config(*, nightly: bool, left: list[Any]) -> Any:
    """The options of a run, which reports what it leaves out to `left`."""
    return SimpleNamespace(
        getoption={"--nightly": nightly}.__getitem__,
        hook=SimpleNamespace(pytest_deselected=lambda items: left.extend(items)),
    )


def functions() -> Iterator[tuple[str, str]]:
    """Each top-level function of the fast tests by its name, with its decorators."""
    for file in (TESTS / "conftest.py", *sorted((TESTS / "unit").rglob("*.py"))):
        for part in re.split(r"\n\n\n", file.read_text(encoding="utf-8")):
            if file.samefile(__file__) or not (named := re.search(r"^def (\w+)\(", part, re.MULTILINE)):
                continue
            yield named[1], part


@pytest.mark.parametrize("fixture", sorted(JVM_FIXTURES))
def test_a_test_is_marked_by_each_fixture_that_starts_a_jvm(fixture: str) -> None:
    items = [item("tmp_path", fixture), item("tmp_path")]
    pytest_collection_modifyitems(config(nightly=False, left=[]), items)
    assert [each.marks for each in items] == [["jvm"], []]


@pytest.mark.parametrize("nightly", [False, True])
def test_a_test_for_the_night_is_left_to_it(nightly: bool) -> None:
    left: list[Any] = []
    items = [item(mark="nightly"), item()]
    pytest_collection_modifyitems(config(nightly=nightly, left=left), items)
    assert ([each.marks for each in left], len(items)) == (([], 2) if nightly else ([["nightly"]], 1))


def test_only_such_fixtures_start_one() -> None:
    starting = {name for name, part in functions() if STARTERS.search(part)}
    fixtures = {name for _, part in functions() for name in FIXTURE.findall(part)}
    assert starting - JVM_FIXTURES == set()
    assert fixtures >= JVM_FIXTURES


def test_the_fast_tests_leave_them_out_and_name_the_command_that_runs_them() -> None:
    fast = planned_by("test-fast")
    assert "JAVA_HOME=/nowhere venv/bin/python -m pytest -q -m not sandbox and not jvm" in fast
    assert fast.endswith("They are: make test-jvm")
    assert "pytest -q -m jvm and not sandbox" in planned_by("test-jvm")
    assert "pytest -q -m not sandbox --ignore" in planned_by("test"), "make test runs them"
