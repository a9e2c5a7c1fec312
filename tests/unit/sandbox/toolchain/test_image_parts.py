"""What the tests of the images need: where it comes from, what is made of it, what is said where it cannot be had."""

import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.toolchain import all_steps, image_parts
from sandbox.toolchain.__main__ import ensure, problems
from sandbox.toolchain.image_parts import BASES, JAVA_HOME, NAME
from sandbox.toolchain.paths import ToolchainPaths

from .conftest import Machine, script

APT = """#!/bin/sh
echo "apt-get $*" >> {calls}
for word do case "$word" in Dir::Cache::archives=*) touch "${{word#*=}}/one_1_amd64.deb" ;; esac; done
"""
DPKG = "#!/bin/sh\ncat {machine}/package.tar\n"
PYTHON = """#!/bin/sh
case "$1" in -c) exit 0 ;; esac
echo "python $*" >> {calls}
while [ $# -gt 0 ]; do
  [ "$1" != --dest ] || mkdir -p "$2"
  shift
done
"""
JAVA = "usr/lib/jvm/java-17-openjdk-amd64"
FILES = {
    "bin/true": "moved",
    "usr/bin/dash": "a shell",
    "usr/bin/buildah": "a builder",
    "usr/lib/python3.11/EXTERNALLY-MANAGED": "",
    "usr/share/doc/java/README": "",
    "etc/java-17/net.properties": "some settings",
    f"{JAVA}/bin/java": "a java",
}
LINKS = {
    f"{JAVA}/conf/net.properties": "/etc/java-17/net.properties",
    f"{JAVA}/lib/cacerts": "/etc/ssl/nothing",
    "usr/lib/jvm/java-1.17.0-openjdk-amd64": "java-17-openjdk-amd64",
}


def package() -> bytes:
    """One package with what is in the real ones, as far as it matters here."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in LINKS.items():
            member = tarfile.TarInfo(f"./{name}")
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return written.getvalue()


@pytest.fixture
def debian(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> ToolchainPaths:
    """The made-up machine as root of a Debian that has the packages."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    values = {"calls": machine.folder / "calls", "machine": machine.folder}
    machine.tool("apt-get", APT.format(**values))
    machine.tool("dpkg-deb", DPKG.format(**values))
    for name in ("unshare", "mount", "setpriv", "chroot"):
        machine.tool(name, "#!/bin/sh\n")
    script(machine.folder / "project" / "venv" / "bin" / "python", PYTHON.format(**values))
    (machine.folder / "package.tar").write_bytes(package())
    for image in image_parts.IMAGES:
        script(lock(machine.paths, image), "alpha==1 --hash=sha256:0\n")
    machine.tool("buildah", "#!/bin/sh\n").unlink()
    return machine.paths


def lock(paths: ToolchainPaths, image: str) -> Path:
    return paths.project / "images" / image / "requirements.lock"


def fetched(machine: Machine) -> list[str]:
    return [call for call in machine.calls() if call.startswith("apt-get") and " install " in call]


def problem(paths: ToolchainPaths) -> list[str]:
    return problems(paths, [step for step in all_steps(paths) if step.name == NAME])


def test_buildah_and_the_roots_of_the_bases_are_unpacked_once(debian: ToolchainPaths, machine: Machine) -> None:
    assert ensure(debian, [NAME]) == 0
    python, java = (image_parts.base(debian, name) for name in BASES)
    assert (python / "usr" / "bin" / "true").read_text(encoding="utf-8") == "moved"
    assert (python / "bin").readlink() == Path("usr/bin")
    assert (python / "bin" / "sh").read_text(encoding="utf-8") == "a shell"
    assert (python / "etc" / "passwd").read_text(encoding="utf-8").startswith("root:x:0:0:")
    assert not (python / "usr" / "lib" / "python3.11" / "EXTERNALLY-MANAGED").exists()
    assert not (python / "usr" / "share" / "doc").exists()
    assert (java / JAVA_HOME / "bin" / "java").read_text(encoding="utf-8") == "a java"
    assert (java / JAVA_HOME / "conf" / "net.properties").read_text(encoding="utf-8") == "some settings"
    assert not [path for path in (java / JAVA_HOME).rglob("*") if path.is_symlink()]
    assert sorted(path.name for path in python.parent.iterdir()) == [
        ".complete", "buildah", "java", "python", image_parts.PYTHON_PACKAGES,
    ]  # fmt: skip
    assert len(fetched(machine)) == 1 + len(BASES)
    assert not ensure(debian, [NAME])
    assert len(fetched(machine)) == 1 + len(BASES)


def test_a_base_is_fetched_whole_and_of_buildah_what_the_machine_lacks(
    debian: ToolchainPaths, machine: Machine
) -> None:
    assert ensure(debian, [NAME]) == 0
    builder, *bases = fetched(machine)
    assert "Dir::State::status=/var/lib/dpkg/status " in builder
    assert builder.endswith("--no-install-recommends --yes buildah")
    for call, names in zip(bases, BASES.values(), strict=True):
        assert f"Dir::State::status={debian.cache}/" in call
        assert call.endswith(f"--no-install-recommends --yes {' '.join(names)}")


def test_python_packages_are_the_locked_ones_for_the_bases_python(debian: ToolchainPaths, machine: Machine) -> None:
    assert ensure(debian, [NAME]) == 0
    downloads = [call for call in machine.calls() if image_parts.PYTHON_PACKAGES in call]
    assert [call.rpartition(" --requirement ")[2] for call in downloads] == [
        str(lock(debian, image)) for image in image_parts.IMAGES
    ]
    for call in downloads:
        assert " download --require-hashes --no-deps --no-build-isolation --use-pep517 --python-version 3.11 " in call


def test_a_changed_lock_is_fetched_again(debian: ToolchainPaths) -> None:
    assert ensure(debian, [NAME]) == 0
    lock(debian, image_parts.IMAGES[0]).write_text("alpha==2 --hash=sha256:0\n", encoding="utf-8")
    assert not image_parts.is_done(debian)


def test_the_machines_own_buildah_is_used(debian: ToolchainPaths, machine: Machine) -> None:
    assert image_parts.buildah(debian)[0] == "unshare"
    own = machine.tool("buildah", "#!/bin/sh\n")
    assert ensure(debian, [NAME]) == 0
    assert image_parts.buildah(debian) == [str(own)]
    assert len(fetched(machine)) == len(BASES)
    own.unlink()
    assert not image_parts.is_done(debian), "it must be fetched when it is gone"


def test_the_set_up_leaves_them_out(debian: ToolchainPaths) -> None:
    (step,) = [step for step in all_steps(debian) if step.name == NAME]
    assert step.is_deferred


def test_a_machine_that_is_no_debian_or_a_user_who_is_not_root_is_reported(
    debian: ToolchainPaths, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = replace(debian, environ={**debian.environ, "PATH": str(machine.folder / "bin")})
    machine.tool("tar", "#!/bin/sh\n")
    assert problem(bare) == []
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [text.partition(", who")[0] for text in problem(bare)] == [
        "images: must be built and run by root (got user 1000)"
    ]
    (machine.folder / "bin" / "apt-get").unlink()
    assert "must be on PATH (no apt-get). Build and run images on Debian or Ubuntu." in problem(bare)[0]
