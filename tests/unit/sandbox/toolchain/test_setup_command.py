"""The whole set-up on a made-up machine."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from sandbox import toolchain
from sandbox.toolchain import STAMP, ToolchainError, all_steps, locate, pins
from sandbox.toolchain.__main__ import chosen, ensure, status
from sandbox.toolchain.paths import STAMP as CACHE_STAMP
from tests.support.waiting import wait_until

from .conftest import Machine, script

ROOT = Path(__file__).parents[4]
ENDS_WITHIN_S = 180.0


def builds(calls: list[str]) -> Counter[str]:
    """How often each Go program was built, by its package."""
    commands = [call.split(" -o ")[1].split() for call in calls if call.startswith("go build")]
    return Counter(package for _output, *packages in commands for package in packages)


@pytest.fixture
def slow(machine: Machine) -> Iterator[Path]:
    """A switch: while the file is there, a build takes ten minutes and notes its process id."""
    switch = machine.folder / "slow"
    switch.touch()
    yield switch
    pid_file = machine.folder / "slow.pid"
    if pid_file.exists() and alive(int(pid_file.read_text(encoding="utf-8"))):
        os.killpg(int(pid_file.read_text(encoding="utf-8")), signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def building(machine: Machine, set_up: "subprocess.Popen[str]") -> int:
    """Wait until the set-up builds; returns the process id of the build."""
    file = machine.folder / "slow.pid"

    def written() -> str:
        return file.read_text(encoding="utf-8") if file.exists() else ""

    wait_until("a build", lambda: written() or set_up.poll() is not None)
    assert set_up.poll() is None, "the set-up ended before it built anything"
    return int(written())


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_first_set_up_installs_everything_and_locate_finds_it(machine: Machine) -> None:
    assert ensure(machine.paths) == 0
    tools = locate(machine.paths)
    for path in (tools.pulumi, tools.controlplane, tools.kubectl, tools.java, tools.kafka_libs, tools.spark_jars):
        assert path.exists()
    assert len(list(tools.strimzi_crds.glob("*.yaml"))) == 10
    assert len(list(tools.strimzi_v1beta2_crds.glob("*.yaml"))) == 5
    assert len(list(tools.event_streams_crds.glob("*.yaml"))) == 5
    assert len(list(tools.served_crds.iterdir())) == 10
    assert [file.name for file in tools.olm_crds.glob("*.yaml")] == ["subscriptions.yaml"]
    assert len(list(tools.monitoring_crds.glob("*.yaml"))) == 5
    assert tools.metrics_reporter.is_dir()
    for program in (tools.prometheus, tools.promtool, tools.alertmanager, tools.amtool):
        assert program.exists()
    names = {
        "pulumi",
        "kubectl",
        "pulumi-language-python",
        "pulumi-resource-pulumi-python",
        "pulumi-analyzer-policy-python",
    }
    assert names <= {file.name for file in tools.bin.iterdir()}


def test_a_second_set_up_runs_no_command_and_takes_no_time(machine: Machine) -> None:
    ensure(machine.paths)
    before = machine.calls()
    started = time.process_time()
    assert ensure(machine.paths) == 0
    assert time.process_time() - started < 1
    assert machine.calls() == before


def test_a_failed_step_reports_its_command_last_lines_and_log_and_keeps_the_rest(machine: Machine) -> None:
    (machine.folder / "broken").touch()
    with pytest.raises(ToolchainError) as failure:
        ensure(machine.paths)
    message = str(failure.value)
    log = machine.paths.logs / "go-programs.log"
    assert "step go-programs failed" in message
    assert "go build -v -trimpath" in message
    assert "| undefined: something" in message
    assert "| some/package" not in message  # it only says how far the build is
    assert f"full log  {log}" in message
    assert "undefined: something" in log.read_text(encoding="utf-8")

    (machine.folder / "broken").unlink()
    downloads = machine.calls().count("go mod download")
    assert ensure(machine.paths) == 0
    assert machine.calls().count("go mod download") == downloads


def test_a_stopped_set_up_leaves_no_process_and_the_next_one_goes_on(machine: Machine, slow: Path) -> None:
    set_up = subprocess.Popen(machine.driver(), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    build = building(machine, set_up)
    set_up.send_signal(signal.SIGTERM)
    _, said = set_up.communicate(timeout=ENDS_WITHIN_S)
    assert set_up.returncode == 130
    assert "run the same command again to go on" in said
    assert not alive(build)

    slow.unlink()
    assert ensure(machine.paths) == 0
    assert locate(machine.paths).controlplane.exists()
    assert machine.calls().count("go mod download") == 1


def test_a_killed_set_up_leaves_nothing_half_made(machine: Machine, slow: Path) -> None:
    set_up = subprocess.Popen(machine.driver(), cwd=ROOT, stderr=subprocess.DEVNULL, text=True)
    build = building(machine, set_up)
    set_up.send_signal(signal.SIGSTOP)
    others = [each for each in psutil.Process(set_up.pid).children() if each.pid != build]
    set_up.kill()
    set_up.wait(timeout=ENDS_WITHIN_S)
    # What it ran besides the build ends by itself; on a busy machine it would write while the next set-up runs.
    wait_until("the end of the other steps", lambda: all(map(has_ended, others)))
    assert not (machine.paths.cache / "controlplane").exists()
    slow.unlink()
    assert ensure(machine.paths) == 0
    assert not (machine.paths.cache / "tmp").exists() or not list((machine.paths.cache / "tmp").iterdir())


def test_two_set_ups_at_once_install_everything_once(machine: Machine) -> None:
    pair = [subprocess.Popen(machine.driver(), cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=ENDS_WITHIN_S)[1] for process in pair]
    assert [process.returncode for process in pair] == [0, 0], said
    counted = builds(machine.calls())
    assert len(counted) == 7
    assert set(counted.values()) == {1}


def test_changed_requirements_are_installed_again_and_nothing_else(machine: Machine) -> None:
    ensure(machine.paths)
    (machine.paths.project / "requirements.lock").write_text("setuptools==2 \\\n  --hash=sha256:0\n", encoding="utf-8")
    assert [step.name for step in chosen(machine.paths, None) if not step.is_done()] == ["venv"]
    before = len(machine.calls())
    assert ensure(machine.paths) == 0
    build, rest = machine.calls()[before:]
    assert (build.split(" -r ")[0][-16:], "build.txt" in build) == ("--require-hashes", True)
    assert rest.endswith("--require-hashes --no-build-isolation --use-pep517 -r requirements.lock")


def test_only_the_named_step_and_its_needs_are_installed(machine: Machine) -> None:
    assert ensure(machine.paths, ["strimzi-crds"]) == 0
    done = {step.name for step in all_steps(machine.paths) if step.is_done()}
    assert done == {"venv", "java", "chromium", "pulumi-on-path", "strimzi-generator", "strimzi-crds"}


def test_a_cache_of_an_earlier_version_only_gains_what_is_new(machine: Machine) -> None:
    ensure(machine.paths)
    for name in ("api-versions", "kafka-before"):
        shutil.rmtree(machine.paths.cache / name)
    before = machine.calls()
    assert ensure(machine.paths) == 0
    new = machine.calls()[len(before) :]
    assert [call.split("-")[0] for call in new if call != "java"] == ["mvn kafka"]
    assert locate(machine.paths).served_crds.is_dir()


def test_an_unknown_step_is_refused_with_the_known_ones(machine: Machine) -> None:
    with pytest.raises(ToolchainError, match=r"got kafak, allowed venv, .*kafka"):
        ensure(machine.paths, ["kafak"])


def test_a_found_tool_is_linked_and_not_built(machine: Machine) -> None:
    answer = '{"clientVersion": {"major": "1", "minor": "35+"}}'
    tool = machine.tool("kubectl", f"#!/bin/sh\necho '{answer}'\n")
    ensure(machine.paths)
    assert locate(machine.paths).kubectl.resolve() == tool
    assert "k8s.io/kubernetes/cmd/kubectl" not in builds(machine.calls())
    assert builds(machine.calls())["./controlplane"] == 1


def official_pulumi(folder: Path, version: str) -> Path:
    """A Pulumi as its makers publish it, with its language host."""
    script(folder / "pulumi-language-python", "#!/bin/sh\n")
    return script(folder / "pulumi", f"#!/bin/sh\necho {version}\n")


def test_pulumi_on_path_is_preferred_to_a_filled_cache_and_brings_its_own_parts(machine: Machine) -> None:
    assert ensure(machine.paths) == 0
    built = locate(machine.paths)
    assert (built.bin / "pulumi-language-python").exists()
    tool = official_pulumi(machine.folder / "bin", "v3.259.0")
    assert ensure(machine.paths) == 0
    official = locate(machine.paths)
    assert official.pulumi.resolve() == tool
    assert {file.name for file in official.bin.iterdir()} == {"pulumi", "kubectl", CACHE_STAMP}
    assert builds(machine.calls())["github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"] == 1


def test_pulumi_on_path_is_not_built_on_a_first_set_up(machine: Machine) -> None:
    official_pulumi(machine.folder / "bin", "v3.259.0")
    assert ensure(machine.paths) == 0
    assert "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi" not in builds(machine.calls())


def test_a_pulumi_that_is_too_old_leaves_the_built_one(machine: Machine) -> None:
    assert ensure(machine.paths) == 0
    official_pulumi(machine.folder / "bin", "v3.190.0")
    assert ensure(machine.paths) == 0
    assert (locate(machine.paths).bin / "pulumi-language-python").exists()


def test_another_pulumi_on_path_takes_the_place_of_the_one_before(machine: Machine) -> None:
    first = official_pulumi(machine.folder / "bin", "v3.259.0")
    assert ensure(machine.paths) == 0
    second = official_pulumi(machine.folder / "newer", "v3.260.0")
    newer = replace(
        machine.paths, environ={**machine.paths.environ, "PATH": f"{second.parent}:{machine.paths.environ['PATH']}"}
    )
    assert ensure(newer) == 0
    assert locate(newer).pulumi.resolve() == second
    # A shell without it uses what the last set-up found, until that is gone.
    assert locate(machine.paths).pulumi.resolve() == second
    second.unlink()
    assert ensure(machine.paths) == 0
    assert locate(machine.paths).pulumi.resolve() == first


def test_a_pulumi_that_is_gone_gives_way_to_the_built_one(machine: Machine) -> None:
    assert ensure(machine.paths) == 0
    tool = official_pulumi(machine.folder / "bin", "v3.259.0")
    assert ensure(machine.paths) == 0
    tool.unlink()
    assert (locate(machine.paths).bin / "pulumi-language-python").exists()


def test_locate_runs_no_pulumi(machine: Machine) -> None:
    assert ensure(machine.paths) == 0
    official_pulumi(machine.folder / "bin", f"v3.259.0; touch {machine.folder}/asked")
    locate(machine.paths)
    assert not (machine.folder / "asked").exists()


def test_the_programs_that_are_missing_are_built_together_and_the_others_kept(machine: Machine) -> None:
    ensure(machine.paths)
    assert len([call for call in machine.calls() if call.startswith("go build -v")]) == 1
    for name in ("kubectl", "pulumi-resource-random"):
        shutil.rmtree(machine.paths.cache / name)
    before = len(machine.calls())
    assert ensure(machine.paths) == 0
    again = builds(machine.calls()[before:])
    assert again == {"k8s.io/kubernetes/cmd/kubectl": 1, "./pulumi-resource-random": 1}


def test_status_names_every_program_and_does_not_miss_what_is_made_later(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ensure(machine.paths) == 0
    (machine.paths.project / "venv" / STAMP).touch()
    shutil.rmtree(machine.paths.cache / "kubectl")
    assert status(machine.paths) == 1
    said = capsys.readouterr().out
    assert "installed  controlplane " in said
    assert "MISSING    kubectl " in said
    assert "later      spark-classes " in said
    assert ensure(machine.paths) == 0
    assert status(machine.paths) == 0


def test_what_is_missing_is_named_by_locate_and_status(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ToolchainError, match=r"Kafka 4.*Run `make setup`"):
        locate(machine.paths)
    assert status(machine.paths) == 1
    assert "MISSING    kafka " in capsys.readouterr().out


def test_locate_needs_less_than_half_a_second(machine: Machine) -> None:
    ensure(machine.paths)
    started = time.process_time()
    locate(machine.paths)
    assert time.process_time() - started < 0.5


def test_another_project_shares_the_tools_but_not_what_names_its_environment(machine: Machine) -> None:
    ensure(machine.paths)
    other_project = machine.folder / "other"
    shutil.copytree(machine.paths.project, other_project)
    (other_project / "venv" / STAMP).unlink()
    other = replace(machine.paths, project=other_project)
    assert {step.name for step in all_steps(other) if not step.is_done()} == {
        "venv",
        "bin",
        "spark-classes",
        "image-parts",
        *(f"kafka-{version}" for version in pins.KAFKA_WITH_ZOOKEEPER),
    }
    assert ensure(other) == 0
    assert str(other_project) in (locate(other).bin / "pulumi-language-python").read_text(encoding="utf-8")


def test_what_a_machine_lacks_is_reported_before_anything_starts(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = replace(machine.paths, environ={"PATH": "/nowhere", "HOME": "/nowhere"})
    assert ensure(bare) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in ("Go:", "JDK:", "Maven:"))
    assert not machine.paths.cache.exists()


def test_a_virtual_environment_that_was_moved_is_made_anew(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By this Python's own `venv`, but for pip, which takes it four seconds; a fake one notes that it installs."""
    ensure(machine.paths)
    fake = machine.folder / "fake-python"
    shutil.copy(machine.paths.venv_python, fake)
    with_fake_pip = f'{sys.executable} "$@" --without-pip && rm "$4/bin/python" && cp {fake} "$4/bin/python"'
    maker = machine.tool("python-that-makes-it", f"#!/bin/sh\n{with_fake_pip}\n")
    monkeypatch.setattr(toolchain, "sys", SimpleNamespace(executable=str(maker)))
    moved = replace(machine.paths, project=machine.folder / "moved")
    machine.paths.project.rename(moved.project)
    assert ensure(moved, ["venv"]) == 0
    assert (moved.project / "venv" / "pyvenv.cfg").exists()
    assert machine.calls()[-1].endswith("--require-hashes --no-build-isolation --use-pep517 -r requirements.lock")
