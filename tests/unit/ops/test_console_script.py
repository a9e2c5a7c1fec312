"""The command `rt-inventory`: installed in place, named in its own help, and completed by a shell."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from setuptools import find_packages
from typer.testing import CliRunner

from ops.cli import COMMANDS, SCRIPT_NAME, app, application
from tests.test_imports import imported, python_files

ROOT = Path(__file__).parents[3]
SCRIPT = Path(sys.prefix) / "bin" / SCRIPT_NAME
INSTALLED = ("components", "contract", "kafka", "monitoring", "ops", "settings", "spark")
# Brought along by pinned ones whose own parts they are.
PARTS = {
    "pydantic_core": "pydantic",
    "google": "pulumi",
    "botocore": "boto3",
    "urllib3": "kubernetes",
    "py4j": "pyspark",
}
# Writes the dashboards that are committed, and is no part of what is used.
ONLY_HERE = {"grafana_foundation_sdk"}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(*arguments: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(SCRIPT), *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "COLUMNS": "100", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_runs_from_any_folder_and_names_itself_in_its_help(tmp_path: Path) -> None:
    result = run("verify", "--help", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Usage: rt-inventory verify" in result.stdout
    assert "Example: rt-inventory verify --stack stg" in result.stdout
    assert "python -m ops" not in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_names_another_program_than_the_one_that_was_called(name: str) -> None:
    script = CliRunner().invoke(application(completes=True), [name, "--help"], prog_name=SCRIPT_NAME)
    assert script.exit_code == 0
    assert "python -m ops" not in " ".join(script.output.split())
    module = CliRunner().invoke(app, [name, "--help"], prog_name="python -m ops")
    assert "rt-inventory " not in " ".join(module.output.split())


def completing(words: str) -> dict[str, str]:
    """The variables with which bash asks for what may follow these words."""
    return {"_RT_INVENTORY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    def offered(words: str) -> list[str]:
        result = CliRunner().invoke(application(completes=True), [], prog_name=SCRIPT_NAME, env=completing(words))
        return result.output.split()

    assert run(cwd=tmp_path, **completing("rt-inventory ")).stdout.split() == list(COMMANDS)
    assert offered("rt-inventory fail") == ["failover", "failback"]
    assert "--exact" in offered("rt-inventory failover --e")
    assert {"show", "set"} <= set(offered("rt-inventory offsets "))


def test_a_module_of_another_command_that_is_broken_does_not_stop_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "status", "ops.no_such_module")
    variables = completing("rt-inventory s")
    result = CliRunner().invoke(application(completes=True), [], prog_name=SCRIPT_NAME, env=variables)
    assert result.output.split() == ["status", "size"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_installed_by_the_name_of_the_command(
    monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = CliRunner().invoke(application(completes=True), ["--show-completion", shell], prog_name=SCRIPT_NAME)
    assert shown.exit_code == 0, shown.output
    assert "_RT_INVENTORY_COMPLETE" in shown.stdout
    assert "rt-inventory" in shown.stdout


def test_python_m_offers_no_completion_for_it_has_no_name() -> None:
    assert "completion" not in CliRunner().invoke(app, ["--help"]).output


def test_an_installation_makes_the_command_and_no_other() -> None:
    assert project()["project"]["scripts"] == {SCRIPT_NAME: "ops.cli:console_script"}


def test_only_what_the_commands_and_the_program_import_is_installed() -> None:
    chosen = project()["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.partition(".")[0] for name in find_packages(str(ROOT), include=chosen)} == set(INSTALLED)


def test_what_it_needs_is_pinned_as_in_the_requirements() -> None:
    pinned = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [each for each in project()["project"]["dependencies"] if each not in pinned] == []


def test_it_needs_everything_that_is_imported_and_nothing_else() -> None:
    needed = {each.partition("==")[0].lower() for each in project()["project"]["dependencies"]}
    found = set(distributions())
    assert found - needed == set()
    # PySpark imports pandas where it reads Arrow; the policy pack, which Pulumi starts, runs in the same environment.
    assert needed - found <= {"pandas", "pulumi-policy"}


def distributions() -> Iterator[str]:
    """Names of the distributions that the installed packages and the program import."""
    known = packages_distributions()
    files = [ROOT / "__main__.py", *(path for name in INSTALLED for path in python_files(ROOT / name))]
    for name in set[str]().union(*(imported(path) for path in files)) - {*INSTALLED, *ONLY_HERE}:
        yield distribution(known[PARTS.get(name, name)][0]).metadata["Name"].lower().replace("_", "-")
