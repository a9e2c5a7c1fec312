"""Jars that are downloaded are the pinned ones."""

import hashlib
from pathlib import Path

import pytest

from sandbox.toolchain import maven
from sandbox.toolchain.__main__ import ensure
from sandbox.toolchain.commands import ToolchainError

from .conftest import Machine

ROOT = Path(__file__).parents[4]


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one jar, which is pinned."""
    folder = tmp_path / "libs"
    folder.mkdir()
    (folder / "one-1.jar").write_bytes(b"one")
    (tmp_path / "pins").write_text(f"{hashlib.sha256(b'one').hexdigest()}  one-1.jar\n", encoding="utf-8")
    monkeypatch.setattr(maven, "PINNED", tmp_path / "pins")
    return folder


def test_the_pinned_jar_passes(pinned: Path) -> None:
    maven.check(pinned)


def test_another_file_and_an_unknown_one_are_reported_together(pinned: Path) -> None:
    (pinned / "one-1.jar").write_bytes(b"another")
    (pinned / "two-2.jar").write_bytes(b"two")
    with pytest.raises(ToolchainError) as refused:
        maven.check(pinned)
    lines = str(refused.value).splitlines()
    assert lines[0].endswith(f"(got {hashlib.sha256(b'another').hexdigest()}).")
    assert lines[1] == f"  two-2.jar: SHA-256 must be in pins (got {hashlib.sha256(b'two').hexdigest()})."


def test_a_set_of_jars_with_another_file_is_not_installed(machine: Machine) -> None:
    mvn = machine.folder / "bin" / "mvn"
    with_jar = (
        'for argument do case "$argument" in -DoutputDirectory=*) echo x > "${argument#*=}/x-1.jar" ;; esac; done\n'
    )
    mvn.write_text(f"{mvn.read_text(encoding='utf-8')}\n{with_jar}", encoding="utf-8")
    with pytest.raises(ToolchainError, match=r"x-1\.jar: SHA-256 must be in jars\.sha256"):
        ensure(machine.paths, ["jmx-exporter"])
    assert not maven.jmx_exporter(machine.paths).is_complete()


def test_maven_fails_where_a_checksum_does_not_match(machine: Machine) -> None:
    mvn = machine.folder / "bin" / "mvn"
    mvn.write_text(
        f'{mvn.read_text(encoding="utf-8")}\necho "options $*" >> {machine.folder}/calls\n', encoding="utf-8"
    )
    assert ensure(machine.paths, ["jmx-exporter"]) == 0
    assert [call for call in machine.calls() if "--strict-checksums" in call]


def test_jars_of_the_image_are_pinned_alike() -> None:
    pins = {line.split()[1]: line.split()[0] for line in maven.PINNED.read_text(encoding="utf-8").splitlines()}
    image = (ROOT / "images" / "verification" / "jars.txt").read_text(encoding="utf-8").split()
    assert {
        path.rpartition("/")[2]: digest for digest, path in zip(image[::2], image[1::2], strict=True)
    }.items() <= pins.items()
