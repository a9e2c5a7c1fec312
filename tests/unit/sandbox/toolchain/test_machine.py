"""What is found on a machine, and what is said about what is not."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.toolchain import all_steps, installed_tools, pins
from sandbox.toolchain.__main__ import problems
from sandbox.toolchain.java import find_java, java_version, running_java
from sandbox.toolchain.paths import ToolchainPaths

from .conftest import Machine, script


def problems_here(paths: ToolchainPaths) -> list[str]:
    return problems(paths, [step for step in all_steps(paths) if not step.is_done() and not step.is_deferred])


def with_environ(machine: Machine, **changes: str) -> ToolchainPaths:
    return replace(machine.paths, environ={**machine.paths.environ, **changes})


def jdk(folder: Path, version: str) -> Path:
    script(folder / "bin" / "java", "#!/bin/sh\n")
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n', encoding="utf-8")
    return folder


def test_a_machine_with_everything_has_no_problem(machine: Machine) -> None:
    assert problems_here(machine.paths) == []


def test_a_missing_jdk_and_a_missing_maven_are_reported_together(machine: Machine) -> None:
    (machine.folder / "bin" / "mvn").unlink()
    paths = with_environ(machine, JAVA_HOME="/nowhere", PATH=str(machine.folder / "bin"))
    found = problems_here(paths)
    assert len(found) == 2
    assert found[0].startswith("JDK: version must be >= 17 (none in JAVA_HOME, on PATH or in ")
    assert found[1] == "Maven: mvn must be on PATH (not found). Install it, for example the package maven."


def test_an_old_jdk_is_none(machine: Machine) -> None:
    paths = with_environ(
        machine, JAVA_HOME=str(jdk(machine.folder / "old", "11.0.2")), PATH=str(machine.folder / "bin")
    )
    assert any(text.startswith("JDK:") for text in problems_here(paths))


@pytest.mark.parametrize(("said", "got"), [("go version go1.24.3 linux/amd64", "got 1.24"), ("", "not found on PATH")])
def test_a_go_that_is_too_old_or_missing_is_reported(machine: Machine, said: str, got: str) -> None:
    machine.tool("go", f"#!/bin/sh\necho '{said}'\n")
    assert problems_here(machine.paths) == [
        f"Go: version must be >= 1.26 ({got}). Install it and put its bin folder on PATH."
    ]


def test_nothing_is_asked_of_the_machine_for_steps_that_are_done(machine: Machine) -> None:
    (machine.folder / "bin" / "go").unlink()
    venv_only = [step for step in all_steps(machine.paths) if step.name == "venv"]
    assert problems(machine.paths, venv_only) == []


def test_a_cache_folder_without_rights_is_reported_with_the_way_out(machine: Machine) -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs a folder in which even root cannot write")
    found = problems_here(replace(machine.paths, cache=Path("/proc/rt-inventory")))
    assert len(found) == 1
    assert found[0].startswith("cache folder: /proc/rt-inventory must be writable (/proc: ")
    assert "RT_INVENTORY_CACHE" in found[0]


def test_a_cache_folder_that_is_a_file_is_reported(machine: Machine) -> None:
    machine.paths.cache.write_text("", encoding="utf-8")
    assert "cache folder" in problems_here(machine.paths)[0]
    assert "must be a folder" in problems_here(machine.paths)[0]


def test_a_full_disk_is_reported_with_the_space_needed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    one_free = SimpleNamespace(total=10 << 30, used=9 << 30, free=1 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: one_free)
    found = problems_here(machine.paths)
    assert len(found) == 1
    assert "GiB free (got 1.0 GiB). Make room, or move the cache with RT_INVENTORY_CACHE" in found[0]


def test_a_python_that_is_too_old_is_reported(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 1))
    assert problems_here(machine.paths)[0].startswith("Python: version must be >= 3.11 (got 3.10")


def test_java_home_comes_before_path_and_path_before_the_usual_folders(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, usual = jdk(machine.folder / "home", "17.0.1"), jdk(machine.folder / "jvm" / "one", "17.0.1")
    on_path = jdk(machine.folder / "path", "17.0.1")
    monkeypatch.setattr("sandbox.toolchain.java.HOMES", (str(usual.parent),))
    everything = {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}
    assert find_java(everything, 17) == home / "bin" / "java"
    assert find_java({"PATH": str(on_path / "bin")}, 17) == on_path / "bin" / "java"
    assert find_java({"PATH": "/nowhere"}, 17) == usual / "bin" / "java"


def test_a_java_too_new_for_spark_is_passed_over(machine: Machine) -> None:
    paths = with_environ(machine, JAVA_HOME=str(jdk(machine.folder / "new", "25.0.3")), PATH="/nowhere")
    assert running_java(paths) is None
    assert "java" in {step.name for step in all_steps(paths) if not step.is_done()}
    assert not any(
        text.startswith("JDK:") for text in problems_here(with_environ(machine, JAVA_HOME=str(machine.folder / "new")))
    )


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    java = script(tmp_path / "bin" / "java", "#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n")
    assert java_version(java) == 17


def test_pulumi_on_path_counts_with_its_own_language_host_beside_it(machine: Machine) -> None:
    tool = machine.tool("pulumi", "#!/bin/sh\n")
    assert list(installed_tools.pulumis(machine.paths.environ, machine.paths.cache)) == []
    machine.tool("pulumi-language-python", "#!/bin/sh\n")
    assert list(installed_tools.pulumis(machine.paths.environ, machine.paths.cache)) == [tool]


def test_the_language_host_may_lie_beside_what_a_link_on_path_leads_to(machine: Machine) -> None:
    real = script(machine.folder / "opt" / "pulumi", "#!/bin/sh\n")
    script(machine.folder / "opt" / "pulumi-language-python", "#!/bin/sh\n")
    link = machine.folder / "bin" / "pulumi"
    link.unlink()
    link.symlink_to(real)
    assert list(installed_tools.pulumis(machine.paths.environ, machine.paths.cache)) == [link]


def test_what_lies_in_the_cache_is_not_the_machines_own_pulumi(machine: Machine) -> None:
    bin_ = machine.paths.cache / "bin" / "abc"
    for name in ("pulumi", "pulumi-language-python"):
        script(bin_ / name, "#!/bin/sh\n")
    paths = with_environ(machine, PATH=f"{bin_}:/usr/bin:/bin")
    assert list(installed_tools.pulumis(paths.environ, paths.cache)) == []


@pytest.mark.parametrize(
    ("version", "serves"),
    [
        (f"v{pins.PULUMI}", True),
        ("v3.259.0", True),
        ("v3.260.0-alpha.1", True),
        ("v3.217.9", False),
        ("v4.0.0", False),
        ("what", False),
    ],
)
def test_a_pulumi_serves_from_the_least_release_on(machine: Machine, version: str, *, serves: bool) -> None:
    tool = machine.tool("pulumi", f"#!/bin/sh\necho {version}\n")
    assert installed_tools.is_supported(tool, machine.paths.environ) is serves


def test_the_pinned_pulumi_serves_itself() -> None:
    assert tuple(int(part) for part in pins.PULUMI.split(".")[:2]) >= pins.PULUMI_MIN


@pytest.mark.parametrize(("minor", "counts"), [("32", False), ("33", True), ("35+", True), ("x", False)])
def test_kubectl_on_path_counts_if_it_is_recent(machine: Machine, minor: str, *, counts: bool) -> None:
    answer = f'{{"clientVersion": {{"major": "1", "minor": "{minor}"}}}}'
    tool = machine.tool("kubectl", f"#!/bin/sh\necho '{answer}'\n")
    assert installed_tools.kubectl(machine.paths.environ) == (tool if counts else None)


def test_an_installed_provider_counts_in_exactly_its_version(machine: Machine) -> None:
    home = machine.folder / "home" / ".pulumi" / "plugins" / "resource-random-v4.21.4"
    binary = script(home / "pulumi-resource-random", "#!/bin/sh\n")
    assert installed_tools.provider(machine.paths.environ, "random", "4.21.4") == binary
    assert installed_tools.provider(machine.paths.environ, "random", "4.21.5") is None
