"""The archive of Spark's classes: made when it is asked for, again when what it was made for has changed."""

import subprocess
from pathlib import Path

import pytest

from sandbox.toolchain import all_steps, java
from sandbox.toolchain.__main__ import ensure
from tests.unit.sandbox.toolchain.conftest import Machine

MAKES_IT = """#!/bin/sh
case "$1" in -c) exit 0 ;; esac
echo "python $*" >> {calls}
case "$2" in spark.class_archive) echo classes > "$4" ;; esac
"""


def test_the_archive_is_made_once_and_again_for_another_pyspark(machine: Machine) -> None:
    python = machine.paths.venv_python
    python.write_text(MAKES_IT.format(calls=machine.folder / "calls"), encoding="utf-8")
    core = python.parent.parent / "lib" / "python3.11" / "site-packages" / "pyspark" / "jars" / "spark-core_2.13-4.jar"
    core.parent.mkdir(parents=True)
    core.write_bytes(b"a jar")
    assert ensure(machine.paths, ["spark-classes"]) == 0
    assert java.spark_classes_archive(machine.paths).read_text() == "classes\n"
    assert _made(machine) == 1
    assert ensure(machine.paths, ["spark-classes"]) == 0
    assert _made(machine) == 1
    core.write_bytes(b"another jar")
    assert ensure(machine.paths, ["spark-classes"]) == 0
    assert _made(machine) == 2


def test_a_jvm_that_keeps_no_classes_leaves_the_set_up_complete(machine: Machine) -> None:
    assert ensure(machine.paths, ["spark-classes"]) == 0
    assert not Path(java.spark_classes_archive(machine.paths)).exists()
    assert java.spark_classes_step(machine.paths).is_done()


def test_the_set_up_leaves_the_archive_for_later(machine: Machine) -> None:
    assert ensure(machine.paths) == 0
    assert _made(machine) == 0
    assert not java.spark_classes_step(machine.paths).is_done()


def test_it_is_made_in_the_background_unless_it_is_there(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    assert ensure(machine.paths) == 0
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_options: started.append(command))
    assert java.make_spark_classes_in_background(machine.paths, all_steps(machine.paths))
    assert started[0][-4:] == ["sandbox.toolchain", "ensure", "--only", "spark-classes"]
    monkeypatch.undo()
    assert ensure(machine.paths, ["spark-classes"]) == 0
    assert not java.make_spark_classes_in_background(machine.paths, all_steps(machine.paths))


def test_in_the_background_no_environment_is_made_anew(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    assert ensure(machine.paths) == 0
    (machine.paths.project / "requirements.lock").write_text("another\n", encoding="utf-8")
    assert machine.paths.venv_python.exists()
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_options: started.append(command))
    assert not java.make_spark_classes_in_background(machine.paths, all_steps(machine.paths))
    assert started == []


def _made(machine: Machine) -> int:
    return sum("spark.class_archive" in call for call in machine.calls())
