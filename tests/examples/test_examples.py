"""Every example: its stack files are good, it renders to the expected manifests, and the README's table has it."""

from pathlib import Path

import pytest

from examples.__main__ import with_table
from examples.catalog import Example, examples
from settings.__main__ import main

ROOT = Path(__file__).parent.parent.parent
STACKS = [pytest.param(each, stack, id=f"{each.name}-{stack}") for each in examples() for stack in each.stacks]


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_the_stack_file_is_good(example: Example, stack: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(example.folder / f"Pulumi.{stack}.yaml")]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(("example", "stack"), STACKS)
def test_it_renders_to_the_expected_manifests(example: Example, stack: str) -> None:
    assert example.rendered(stack) == example.expected(stack).read_text(encoding="utf-8"), (
        "the manifests changed: look at the difference, then run `python -m examples`"
    )


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_its_readme_is_short_and_says_how_to_render_it(example: Example) -> None:
    text = (example.folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {example.name}\n")
    assert len(text.splitlines()) <= 14
    assert f"make render EXAMPLE={example.name} STACK=" in text


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_it_is_a_pulumi_project_that_runs_this_program(example: Example) -> None:
    project = (example.folder / "Pulumi.yaml").read_text(encoding="utf-8")
    assert f"name: {example.name}\n" in project
    assert "main: ../..\n" in project
    # Pulumi looks for a virtual environment beside the project, but runs dynamic providers beside the program.
    assert "runtime: python\n" in project


def test_the_readme_has_the_present_table() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == with_table(readme), "run `python -m examples`"
