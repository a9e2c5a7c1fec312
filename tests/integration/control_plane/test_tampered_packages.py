"""The steps of the set-up and of the images, with real pip and Maven, against a registry with other files."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.state import PROJECT
from sandbox.toolchain import LOCK, STAMP, maven, venv_step
from sandbox.toolchain.commands import Commands, Processes, ToolchainError
from sandbox.toolchain.paths import ToolchainPaths
from sandbox.toolchain.steps import Step
from tests.support import package_server
from tests.support.package_server import PackageServer, wheel
from tests.support.waiting import at_most

RUNS = "import pathlib; pathlib.Path('ran').touch()"


@pytest.fixture
def server() -> Iterator[PackageServer]:
    with package_server.serving() as made:
        yield made


def run(step: Step, paths: ToolchainPaths) -> None:
    step.run(Commands(paths.cache / "log", paths.environ, Processes()))


@pytest.fixture
def project(server: PackageServer, tmp_path: Path) -> ToolchainPaths:
    """A project that locks two packages, which the index has; pip is asked to use no other one."""
    folder = tmp_path / "project"
    folder.mkdir()
    lock = ""
    for name in ("setuptools", "alpha"):
        made = wheel(tmp_path, name, "")
        server.publish(made)
        lock += f"{name}==1 \\\n    --hash=sha256:{hashlib.sha256(made.read_bytes()).hexdigest()}\n"
    (folder / LOCK).write_text(lock, encoding="utf-8")
    settings = {"PIP_INDEX_URL": f"{server.url}/simple", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "HTTP", "http"))}
    return ToolchainPaths(project=folder, cache=tmp_path / "cache", environ={**kept, **settings, "PIP_RETRIES": "0"})


def installed(paths: ToolchainPaths) -> set[str]:
    return {path.name for path in (paths.project / "venv").rglob("alpha*")}


def test_what_the_lock_names_is_installed(project: ToolchainPaths) -> None:
    run(venv_step(project), project)
    assert "alpha.py" in installed(project)
    assert (project.project / "venv" / STAMP).exists()


def test_another_wheel_with_a_hash_of_its_own_is_not_installed(
    project: ToolchainPaths, server: PackageServer, tmp_path: Path
) -> None:
    server.publish(wheel(tmp_path, "alpha", RUNS))
    with pytest.raises(ToolchainError, match="THESE PACKAGES DO NOT MATCH THE HASHES") as refused:
        run(venv_step(project), project)
    assert "alpha==1 from" in str(refused.value)
    assert (installed(project), (project.project / "venv" / STAMP).exists()) == (set(), False)


def test_a_lock_without_hashes_installs_nothing(project: ToolchainPaths) -> None:
    (project.project / LOCK).write_text("setuptools==1\nalpha==1\n", encoding="utf-8")
    with pytest.raises(ToolchainError, match="Hashes are required in --require-hashes mode"):
        run(venv_step(project), project)
    assert installed(project) == set()


@pytest.mark.nightly  # the lock has it like any other package
def test_another_tool_that_would_build_packages_is_not_run(
    project: ToolchainPaths, server: PackageServer, tmp_path: Path
) -> None:
    server.publish(wheel(tmp_path, "setuptools", RUNS))
    with pytest.raises(ToolchainError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        run(venv_step(project), project)
    assert installed(project) == set()
    assert not [path for path in server.asked if "alpha" in path], "nothing else is fetched"


def install(image: str, paths: ToolchainPaths, target: Path) -> subprocess.CompletedProcess[str]:
    """Run what the image's Dockerfile runs to install its packages; the made-up project's lock stands for its own."""
    lines = (PROJECT / "images" / image / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    (run,) = [line for line in lines.splitlines() if line.startswith("RUN") and "pip install" in line]
    parts = re.sub(r"^RUN( --mount=\S+)?", "", run).split(" && ")
    command = " && ".join(part for part in parts if part.split()[0] not in ("ln", "useradd"))
    environment = {**paths.environ, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PIP_TARGET": str(target)}
    words = ["sh", "-euc", command.replace(f"/opt/{image}/pins", str(paths.project))]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=at_most(60), check=False)


@pytest.mark.parametrize("image", ["demo-clients", "follower", "verification"])
def test_an_image_installs_what_its_lock_names_and_no_other_file(
    image: str, project: ToolchainPaths, server: PackageServer, tmp_path: Path
) -> None:
    done = install(image, project, tmp_path / "locked")
    assert (done.returncode, (tmp_path / "locked" / "alpha.py").exists()) == (0, True), done.stderr
    server.publish(wheel(tmp_path, "alpha", RUNS))
    done = install(image, project, tmp_path / "other")
    assert done.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert not [*tmp_path.glob("other/alpha*")]
    (project.project / LOCK).write_text("setuptools==1\nalpha==1\n", encoding="utf-8")
    done = install(image, project, tmp_path / "other")
    assert done.returncode == 1
    assert "Hashes are required in --require-hashes mode" in done.stderr
    assert not [*tmp_path.glob("other/alpha*")]


@pytest.fixture
def repository(server: PackageServer, tmp_path: Path) -> ToolchainPaths:
    """A Maven repository that has what this machine's set-up has downloaded, and a Maven without any of it."""
    server.folder = Path.home() / ".m2" / "repository"
    home = tmp_path / "home"
    (home / ".m2").mkdir(parents=True)
    mirror = f"<id>fake</id><mirrorOf>*</mirrorOf><url>{server.url}</url>"
    (home / ".m2" / "settings.xml").write_text(f"<settings><mirrors><mirror>{mirror}</mirror></mirrors></settings>")
    kept = {name: value for name, value in os.environ.items() if name not in ("MAVEN_ARGS", "MAVEN_OPTS")}
    return ToolchainPaths(tmp_path, tmp_path / "cache", {**kept, "MAVEN_OPTS": f"-Duser.home={home}"})


def jar(server: PackageServer, tmp_path: Path) -> str:
    """The path of the jar that the step downloads, which Maven's own folder has as well from here on."""
    group, artifact, version = maven.JMX_EXPORTER[0].split(":")
    path = f"/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"
    if not server.answer(path):
        usual = ToolchainPaths(tmp_path, tmp_path / "usual", dict(os.environ))
        run(jmx_exporter(usual), usual)
    assert server.answer(path)
    return path


def jmx_exporter(paths: ToolchainPaths) -> Step:
    return next(step for step in maven.steps(paths) if step.name == "jmx-exporter")


@pytest.mark.parametrize(
    ("checksum", "refusal"),
    [
        pytest.param(lambda _: b"0" * 40, "Checksum validation failed", marks=pytest.mark.nightly),
        (lambda content: hashlib.sha1(content).hexdigest().encode(), "SHA-256 must be "),  # noqa: S324 - Maven's own
    ],
    ids=["with the checksum of another", "with a checksum of its own"],
)
def test_another_jar_is_not_installed(
    repository: ToolchainPaths,
    server: PackageServer,
    tmp_path: Path,
    checksum: Callable[[bytes], bytes],
    refusal: str,
) -> None:
    path = jar(server, tmp_path)
    server.files[path] = content = b"PK another jar"
    server.files[f"{path}.sha1"] = checksum(content)
    with pytest.raises(ToolchainError, match=refusal) as refused:
        run(jmx_exporter(repository), repository)
    assert path.rpartition("/")[2].removesuffix(".jar").rpartition("-")[0] in str(refused.value)
    assert not maven.jmx_exporter(repository).is_complete()
