"""What a report says to type and to read: commands that the command line takes, and pages that are there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ops.cli import app
from spark.checks.registry import ENDED, OTHER, UNPROVEN, Remedy, definitions
from spark.report.html import Links, as_html, todo
from spark.report.summary import GROUPS_MAX, STACK, again, commands, groups_left

from ...support import report_documents as made

ROOT = Path(__file__).parents[3]
REMEDIES = {name: one.remedy for name, one in definitions().items()}
ALL = [*REMEDIES.values(), OTHER, UNPROVEN, *ENDED.values()]


def failing(name: str) -> made.Document:
    """A check that fails, with evidence of whatever kind a check of this name has."""
    rows = [{"topic": "orders", "target_topic": "orders", "group": "billing", "repeated": 70_000}]
    return made.check(name, False, "something", evidence=rows)


def document(**fields: Any) -> made.Document:
    found = made.faulty() | fields
    found["limits"]["reread_records_max"] = 50_000
    return found


def taken(command: str) -> dict[str, Any]:
    """The parameters that the command line reads from a command; raises what it raises for a wrong one."""
    program, module, name, *words = shlex.split(command)
    assert (program, module, name) == ("python", "-m", "ops")
    found: Any = get_command(app)
    while hasattr(found, "commands"):
        context = found.make_context(found.name, list(words), resilient_parsing=True)
        _, found, words = found.resolve_command(context, words)
    return dict(found.make_context(found.name, words).params)


@pytest.mark.parametrize("name", REMEDIES)
def test_the_command_line_takes_every_command_of_a_remedy(name: str) -> None:
    result = document()
    remedy = REMEDIES[name]
    found = commands(remedy, result, failing(name))
    assert found, "what to do is a command"
    assert len(found) == len(remedy.commands), "with all that a check can know no command is left out"
    for command in [*found, again(result)]:
        parameters = taken(command)
        assert parameters["stack"] in ("dev", "stg")
        assert parameters.get("mirror") in ("mm2", None)


def test_a_wrong_command_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        taken("python -m ops doctor --stck stg")


@pytest.mark.parametrize("remedy", ALL, ids=lambda one: one.page)
def test_every_page_of_a_remedy_is_there_with_its_section(remedy: Remedy) -> None:
    path, _, anchor = remedy.page.partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    assert not anchor or anchor in slugs


def test_groups_that_would_skip_records_are_named_in_the_command_and_no_others() -> None:
    result = document()
    (item,) = [one for one in todo(result) if one["check"]["name"] == "groups_no_loss"]
    assert item["commands"] == ["python -m ops offsets set --stack stg --mirror mm2 --group billing --exact"]


def test_names_of_others_are_quoted_for_a_shell() -> None:
    evil = "a b; rm -rf $HOME 'x'"
    result = document(mirror="mm2; reboot")
    result["groups"][0]["group"] = evil
    (command,) = commands(REMEDIES["groups_no_loss"], result, failing("groups_no_loss"))
    assert shlex.split(command)[-3:] == ["--group", evil, "--exact"]
    assert taken(command)["mirror"] == "mm2; reboot"


def test_a_command_names_a_limited_number_of_groups_those_that_skip_most() -> None:
    result = document(groups=[made.group(f"g{n:02}", skipped=n + 1, synced=950) for n in range(GROUPS_MAX + 5)])
    check = failing("groups_no_loss")
    (command,) = commands(REMEDIES["groups_no_loss"], result, check)
    assert command.count("--group") == GROUPS_MAX
    assert "--group g24 " in command
    assert groups_left(check, result) == 5
    assert "and 5 more groups" in as_html(result)


def test_what_is_not_known_is_not_typed() -> None:
    result = document(stack=None)
    del result["source"]["stack"]
    assert commands(REMEDIES["partitions_match"], result, failing("partitions_match")) == []
    assert commands(OTHER, result) == [f"python -m ops doctor --stack {STACK} --mirror mm2"]
    # Without its own command a check still has one.
    assert all(one["commands"] for one in todo(result))


def test_a_command_that_stands_above_is_not_shown_as_another_one() -> None:
    shown = {one["check"]["name"]: one["as_above"] for one in todo(document())}
    assert shown["records_complete"] is False
    assert shown["records_ordered"] is True


def test_pages_are_linked_from_where_the_report_lies_and_named_where_they_are_not(tmp_path: Path) -> None:
    project = tmp_path / "my project"
    folder = project / "reports" / "stg"
    folder.mkdir(parents=True)
    links = Links(folder=folder, project=project)
    page = "docs/mirrors.md#copy-everything-again"
    assert links.to_page(page) is None
    assert f"<code>{page}</code>" in as_html(document(), links)
    (project / "docs").mkdir()
    (project / "docs" / "mirrors.md").write_text("# Mirrors")
    assert f'<a href="../../docs/mirrors.md#copy-everything-again">{page}</a>' in as_html(document(), links)
    assert Links(project=project).to_page(page) is None


def test_an_index_is_linked_from_the_report_that_is_in_it(tmp_path: Path) -> None:
    links = Links(folder=tmp_path / "stg mm2: 1", index=tmp_path / "index.html")
    assert '<a href="../index.html">All runs</a>' in as_html(document(), links)
    assert "All runs" not in as_html(document())
