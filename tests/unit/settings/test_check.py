"""`python -m settings check FILE`: a stack file is judged without Pulumi."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from settings.__main__ import main
from settings.files import yaml_loader

ROOT = Path(__file__).parents[3]
THREE_MISTAKES = """\
config:
  kubernetes:namespace: left-alone
  rt-inventory:cluster: {name: a, namespace: a, brokers: 1, protekt: false}
  rt-inventory:topics:
    - {name: items, partitions: 1, replicas: 3}
  rt-inventory:mirrors:
    - name: mm2
      source: {stack: dev, alias: s, user: u}
      target: {alias: t, user: nobody}
      topics: [items]
      replicationFactor: 1
"""


def run(*files: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "settings", "check", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_good_file_ends_with_0() -> None:
    result = run(ROOT / "Pulumi.dev.yaml", ROOT / "Pulumi.stg.yaml")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("good") == 2


def test_a_bad_file_ends_with_2_and_every_problem_with_its_key(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(THREE_MISTAKES)
    result = run(file)
    assert result.returncode == 2
    lines = result.stderr.splitlines()
    assert lines[0] == f"{file}: 4 problems"
    assert [line.split(": ")[0].strip() for line in lines[1:]] == [
        "rt-inventory:cluster.protekt",
        "rt-inventory:topics[0].replicas",
        "rt-inventory:mirrors[0].target.user",
        "rt-inventory:mirrors[0].source.stack",
    ]


def test_a_text_that_may_be_nested_too_deep_for_libyaml_is_parsed_in_python() -> None:
    assert [yaml_loader(opener * 10_001) for opener in ("[", "{", "- ", "? ")] == [yaml.SafeLoader] * 4
    assert yaml_loader("- a\n" * 10_000) is not yaml.SafeLoader


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ("a: [", "must be YAML (expected the node content, but found something else, line 1, column 5)"),
        ("", "config must be a mapping"),
        ("config: " + "[" * 1000, "must be YAML (it refers to itself, or is nested too deep)"),
        ("config: {a: 2026-13-45}", "must be YAML (a date or number in it cannot be)"),
        ("a: {b: 1, b: 2, c: 1, c: 3}", "c must be given once (got it in line 1 and in line 1)"),
        ("- 1", "config must be a mapping"),
        ("config: 3", "config must be a mapping"),
        ("config: {}", "cluster must be given"),
        ("config: {rt-inventory:cluster: null}", "cluster must be given"),
        ("config: {rt-inventory:topics: 2026-01-01}", "topics must be a list"),
    ],
)
def test_a_file_that_is_no_stack_file_is_reported_in_one_line(
    tmp_path: Path, content: str, reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(content)
    assert main(["check", str(file)]) == 2
    assert reported in capsys.readouterr().err


def test_a_missing_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "none.yaml")]) == 2
    assert "  file " in (reported := capsys.readouterr().err)
    assert "must be readable (No such file or directory). There is no stack file in that folder." in reported
