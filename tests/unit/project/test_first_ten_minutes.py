"""The walk-through for a new user: every command is one that is tested or that its program accepts."""

import re
import shlex
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from ops.cli import application
from sandbox.__main__ import app as sandbox
from settings.files import check
from tests.support import page_commands as shown
from tests.support import readme_commands as readme
from tests.support import runbook_commands as runbook

ROOT = readme.README.parent
PAGE = ROOT / "docs" / "first-ten-minutes.md"
LINES_MAX, COLUMNS = 300, 80
PROGRAMS = {
    "venv/bin/python -m ops": application(),
    "python -m ops": application(),
    "venv/bin/rt-inventory": application(),
    "venv/bin/python -m sandbox": sandbox,
}


def commands() -> list[str]:
    return list(dict.fromkeys((*shown.in_blocks(PAGE), *shown.in_text(PAGE))))


def accept(command: str) -> None:
    """Parse a command with its own program, without running it; raises a usage error if it is not accepted."""
    program, app = next((name, app) for name, app in PROGRAMS.items() if command.startswith(f"{name} "))
    parse(get_command(app), program, shlex.split(command.removeprefix(program)))


def parse(command: Any, name: str, words: list[str]) -> None:
    context = command.make_context(name, list(words))
    if isinstance(command, TyperGroup):
        found, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert inner is not None, words
        parse(inner, str(found), rest)


@pytest.mark.parametrize("command", commands())
def test_each_command_is_tested_elsewhere_or_accepted_by_its_program(command: str) -> None:
    if command.startswith("venv/bin/python -m settings check "):
        for file in shlex.split(command)[4:]:
            check(ROOT / file)
    elif command not in (*readme.commands(), *runbook.commands()):
        accept(command)


@pytest.mark.parametrize(
    "command",
    ["venv/bin/python -m ops status --stak stg", "venv/bin/python -m sandbox dwn", "venv/bin/rt-inventory nw"],
)
def test_a_command_that_has_changed_its_name_would_be_noticed(command: str) -> None:
    with pytest.raises(Exception, match=r"No such (option|command)"):
        accept(command)


def test_the_page_follows_the_readme_and_is_linked_from_it() -> None:
    known = readme.commands()
    order = [known.index(command) for command in shown.in_blocks(PAGE) if command in known]
    assert len(order) >= 14
    assert order == sorted(order)
    assert "docs/first-ten-minutes.md" in readme.README.read_text(encoding="utf-8")


def test_what_the_commands_print_is_shown_as_80_columns_show_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_MAX
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    printed = [block for language, block in blocks if not language]
    assert len(printed) >= 8
    assert [line for block in printed for line in block.splitlines() if len(line) > COLUMNS] == []


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (PAGE.parent / link).exists()] == []
