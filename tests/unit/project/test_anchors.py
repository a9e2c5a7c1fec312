"""The table of what other suites test names tests that exist, and leaves no row without one or a reason."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
TABLE = TESTS / "integration" / "anchors.md"
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
COLUMNS, HEADS = 4, 2


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each row, without those of the heads."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        for line in block.splitlines()[HEADS:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def problems(text: str) -> list[str]:
    """What is wrong with the table: tests that do not exist, cells that are missing, rows that say nothing."""
    found = []
    for cells in rows(text):
        if len(cells) != COLUMNS or not all(cells[:2]):
            found.append(f"{cells[0]}: must have {COLUMNS} cells, the first two with text")
            continue
        theirs, _, ours, reason = cells
        named = TEST.findall(ours)
        if not named and not reason:
            found.append(f"{theirs}: must have a test or a reason")
        if ", ".join(f"`{file}::{name}`" for file, name in named) != ours:
            found.append(f"{theirs}: must name tests as `file::test`, separated by commas (got {ours})")
        found += [f"{theirs}: {file} has no {name}" for file, name in named if not exists(file, name)]
    return found


def exists(file: str, name: str) -> bool:
    """Whether the file, below the integration tests or from the repository's root, has this test."""
    path = TESTS.parent / file if file.startswith("tests/") else TABLE.parent / file
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_every_row_names_tests_that_exist_or_a_reason() -> None:
    text = TABLE.read_text(encoding="utf-8")
    assert sum(1 for _ in rows(text)) >= text.count("\n| `") > 0
    assert problems(text) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| `a` | b | `recovery/test_active_active.py::test_renamed` | |", "has no test_renamed"),
        ("| `a` | b | `recovery/test_gone.py::test_x` | |", "has no test_x"),
        ("| `a` | b | | |", "must have a test or a reason"),
        ("| `a` | b | some test | c |", "must name tests"),
        ("| `a` | b | c |", "must have 4 cells"),
    ],
)
def test_a_row_that_is_wrong_is_named(row: str, problem: str) -> None:
    (found,) = problems(f"| x | y | z | r |\n|---|---|---|---|\n{row}\n")
    assert found.startswith("`a`: ")
    assert problem in found
