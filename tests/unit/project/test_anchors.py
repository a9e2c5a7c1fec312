"""The table of what other suites test names tests that exist, and leaves no row without one or a reason."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
TABLE = TESTS / "integration" / "anchors.md"
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
COLUMNS, HEADS = 4, 2
BY_NIGHT, WITHOUT_BROKER = " (by night)", " (without a broker)"

NIGHTLY = "`recovery/test_way_back.py::test_records_return_once_and_none_loops`"


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
        if ", ".join(f"`{file}::{name}`{when(file, name)}" for file, name in named) != ours:
            found.append(
                f"{theirs}: must name tests as `file::test`, with{BY_NIGHT} or{WITHOUT_BROKER} behind those that are, "
                f"separated by commas (got {ours})"
            )
        found += [f"{theirs}: {file} has no {name}" for file, name in named if not exists(file, name)]
    return found


def path_of(file: str) -> Path:
    """The file, which is below the integration tests or named from the repository's root."""
    return TESTS.parent / file if file.startswith("tests/") else TABLE.parent / file


def exists(file: str, name: str) -> bool:
    """Whether the file has this test."""
    path = path_of(file)
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def when(file: str, name: str) -> str:
    """What a row has to say of a test that does not run on real brokers in every run."""
    if file.startswith("tests/unit/"):
        return WITHOUT_BROKER
    if not exists(file, name):
        return ""
    text = path_of(file).read_text(encoding="utf-8")
    above = text.partition(f"def {name}(")[0].rpartition("\n\n")[2]
    own = [line for line in text.splitlines() if line.startswith("pytestmark")]
    return BY_NIGHT if any("pytest.mark.nightly" in part for part in (above, *own)) else ""


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
        (f"| `a` | b | {NIGHTLY} | |", "must name tests"),
        (f"| `a` | b | {NIGHTLY} (without a broker) | |", "must name tests"),
        (
            "| `a` | b | `tests/unit/spark/test_truth.py::test_positions_are_judged_by_all_that_is_known` | |",
            "must name tests",
        ),
        ("| `a` | b | c |", "must have 4 cells"),
    ],
)
def test_a_row_that_is_wrong_is_named(row: str, problem: str) -> None:
    (found,) = problems(f"| x | y | z | r |\n|---|---|---|---|\n{row}\n")
    assert found.startswith("`a`: ")
    assert problem in found
