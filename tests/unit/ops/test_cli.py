"""The command line: one JSON document on stdout, exit codes, one message for an error."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from ops.cli import app, application

SECRET = "very-secret-4711"
VARIABLES = ("KAFKA_BROKERS", "KAFKA_USER", "KAFKA_PWD", "KAFKA_CERT", "KAFKA_SECURITY_PROTOCOL", "SOURCE_TOPIC")


@pytest.fixture(autouse=True)
def _no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_an_error_is_exit_2_and_with_json_it_is_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PWD", SECRET)
    result = CliRunner().invoke(app, ["produce", "--json"])
    assert result.exit_code == 2
    assert "KAFKA_BROKERS must be set" in json.loads(result.stdout)["error"]
    assert SECRET not in result.output


@pytest.mark.parametrize("arguments", [[], ["--max", "1", "--until-end"]])
def test_consume_must_know_when_to_stop(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["consume", *arguments])
    assert result.exit_code == 2
    assert "--until-end" in result.stderr


@pytest.mark.parametrize("command", ["produce", "consume", "verify"])
def test_help_teaches_by_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert f"python -m ops {command} --stack" in result.stdout


def test_each_command_about_a_stack_takes_the_folder_of_its_project() -> None:
    of_stacks = {name: options for name, options in options_of(get_command(application())) if "--stack" in options}
    lacking = {name for name, options in of_stacks.items() if "-C" not in options}
    assert lacking == {"ops pipeline comment"}  # it reads what other steps have written


def options_of(command: Any, name: str = "ops") -> Iterator[tuple[str, set[str]]]:
    """The options of each command that a group has, by its name."""
    if not isinstance(command, TyperGroup):
        yield name, {option for one in command.params for option in one.opts}
        return
    context = command.make_context(name, ["status"], resilient_parsing=True)
    for each in command.list_commands(context):
        yield from options_of(command.get_command(context, each), f"{name} {each}")


def test_a_misspelt_command_is_answered_with_the_right_one() -> None:
    result = CliRunner().invoke(app, ["stauts"], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "No such command 'stauts'. Did you mean status?" in result.output
    assert "Did you mean" not in CliRunner().invoke(app, ["xyz"]).output


def test_the_help_is_broken_by_the_terminal_alone() -> None:
    shown = CliRunner().invoke(app, ["offsets", "--help"], env={"COLUMNS": "300"}).stdout
    assert "The verification job finds each record" in shown
    lines = CliRunner().invoke(app, ["render", "--help"], env={"COLUMNS": "300"}).stdout.splitlines()
    assert sum(line.strip().startswith("Example: ") for line in lines) == 3


def test_ctrl_c_while_a_command_is_loaded_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ops.cli.import_module", interrupted)
    result = CliRunner().invoke(app, ["status"])
    assert (result.exit_code, result.stderr) == (130, "Interrupted. Nothing was changed.\n")
