"""The runbook keeps its promises: no command that nothing runs, no link into nowhere, settings that are accepted."""

import re
from pathlib import Path

import pytest
import yaml

from settings.files import check
from tests.support import readme_commands as readme
from tests.support.runbook_commands import (
    PAGES,
    RUN_ELSEWHERE,
    commands,
    exchange_roles,
    only_reads,
    read_only,
    said_by,
    words,
)

ROOT = readme.README.parent
LINES_MAX = 350


@pytest.mark.parametrize("command", commands())
def test_every_command_is_run_by_a_test(command: str) -> None:
    run = command in RUN_ELSEWHERE or command in readme.commands() or only_reads(command)
    assert run, f"nothing runs `{command}`: name its test in tests/support/runbook_commands.py"


@pytest.mark.parametrize("command", RUN_ELSEWHERE)
def test_what_is_run_elsewhere_is_shown_and_really_run_there(command: str) -> None:
    assert command in commands()
    missing = set(words(command)) - said_by(ROOT / RUN_ELSEWHERE[command])
    assert words(command)
    assert not missing, f"{RUN_ELSEWHERE[command]} does not run `{command}`: it never says {sorted(missing)}"


def test_what_only_reads_is_left_for_the_sandbox_and_changes_nothing() -> None:
    assert len(read_only()) > 5
    changing = {"up", "destroy", "delete", "annotate", "patch", "set", "import", "--yes", "promote"}
    assert not [one for one in read_only() if changing & set(one.split()) and "can-i" not in one]
    assert not only_reads("venv/bin/python -m ops failover --to stg --exact")
    assert not only_reads("pulumi up -s stg --yes")


def test_both_sites_can_be_given_the_roles_that_the_runbook_says(tmp_path: Path) -> None:
    files = {stack: f"Pulumi.{stack}.yaml" for stack in ("dev", "stg")}
    config = {stack: yaml.safe_load((ROOT / name).read_text("utf-8"))["config"] for stack, name in files.items()}
    exchange_roles(**config)
    for stack, name in files.items():
        (tmp_path / name).write_text(yaml.safe_dump({"config": config[stack]}), "utf-8")
    for name in files.values():
        check(tmp_path / name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_is_short_and_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_MAX
    for link in re.findall(r"\]\(([^)]+)\)", text):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if "://" in link or (target.exists() and not anchor):
            continue
        assert target.exists(), link
        assert anchor in _anchors(target), link


def _anchors(page: Path) -> set[str]:
    return {_anchor(line) for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("#")}


def _anchor(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w -]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")
