"""`make demo` and `make demo KEEP=1`, as the README shows them, in state folders of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import control_plane
from sandbox.processes import Processes, marked
from sandbox.pulumi import Pulumi
from sandbox.state import PROJECT, SandboxState
from sandbox.toolchain import locate
from tests.support.waiting import at_most, wait_for_line

DEMO_S = at_most(900)
RESIDENT_LIMIT_MIB = 6 * 1024


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SandboxState]:
    """The folder of the demo's sandbox, stopped afterwards whatever the demo left."""
    state = SandboxState(tmp_path / "sandbox")
    yield state
    control_plane.down(state, lambda _: None)


def environment(state: SandboxState) -> dict[str, str]:
    return {**os.environ, "RT_INVENTORY_SANDBOX": str(state.path)}


def make_demo(state: SandboxState, *variables: str) -> str:
    """Run `make demo`, which must succeed; return what it showed."""
    command = ["make", "demo", f"PY={sys.executable}", *variables]
    result = subprocess.run(
        command, cwd=PROJECT, env=environment(state), capture_output=True, text=True, timeout=DEMO_S, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def run(state: SandboxState, *words: str) -> str:
    """Run a command of the demo's text in its sandbox, which must succeed; return what it showed."""
    command = [sys.executable, "-m", *words]
    result = subprocess.run(
        command, cwd=PROJECT, env=shell(state), capture_output=True, text=True, timeout=at_most(300), check=False
    )
    assert result.returncode == 0, f"{words}: {result.stdout}{result.stderr}"
    return result.stdout


def shell(state: SandboxState) -> dict[str, str]:
    """The environment after `eval "$(python -m sandbox env)"`."""
    return {**environment(state), **Pulumi(state, locate()).environment()}


@pytest.mark.nightly
def test_the_demo_fails_over_and_back_loses_nothing_and_leaves_a_healthy_pair(state: SandboxState) -> None:
    stack_file = (PROJECT / "Pulumi.stg.yaml").read_bytes()
    shown = make_demo(state, "KEEP=1")
    (found,) = state.reports.glob("demo-*/summary.json")
    summary = json.loads(found.read_text())
    records = summary["records"]
    assert (records["produced"], records["replicated"], records["lost"]) == (10_000, 10_000, 0)
    assert records["read_before"] + records["read_after"] - records["repeated"] == 10_000
    assert summary["verdict"] == "pass"
    assert summary["residentMiB"] < RESIDENT_LIMIT_MIB
    assert Path(summary["report"]).is_file()
    assert summary["report"] in shown
    assert "the target of stack stg is active since" in shown
    assert "No record was lost: all were compared." in shown
    assert "10000 records compared on the way back." in shown
    assert (PROJECT / "Pulumi.stg.yaml").read_bytes() == stack_file
    properties = [Path(line.split(": ")[1]) for line in shown.splitlines() if line.endswith(".properties")]
    assert len(properties) == 2
    for path in properties:
        assert path.stat().st_mode & 0o077 == 0
        assert not any(line.partition("=")[2] in shown for line in path.read_text().splitlines() if "password" in line)
    # What the README types next.
    run(state, "ops", "produce", "--stack", "dev", "--count", "100")
    run(state, "ops", "verify", "--stack", "stg", "--report-dir", str(state.reports / "after"))
    assert "mm2 of stack stg: healthy; active: rt-inventory-dev (source)" in run(state, "ops", "status", "-s", "stg")
    run(state, "ops", "failover", "--to", "stg", "--exact", "--dry-run")
    run(state, "sandbox", "status")
    run(state, "sandbox", "down")
    assert not marked(state)


def test_a_terminated_demo_leaves_nothing_running(state: SandboxState) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "sandbox", "demo"],
        cwd=PROJECT,
        env=environment(state),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for_line(demo, "sandbox up", 120)
    time.sleep(5)  # somewhere inside `pulumi up -s dev`
    demo.send_signal(signal.SIGTERM)
    shown = demo.communicate(timeout=at_most(120))[0]
    assert demo.returncode == 143, shown
    assert not marked(state)
    assert list(state.logs.glob("*.log"))


def test_a_demo_beside_a_running_sandbox_is_refused_and_harms_nothing(state: SandboxState) -> None:
    state.create()
    Processes(state).start("kafka.a.b.0", ["sleep", "60"], {"PATH": os.environ["PATH"]}, state.log("sleep"))
    command = [sys.executable, "-m", "sandbox", "demo"]
    result = subprocess.run(
        command, cwd=PROJECT, env=environment(state), capture_output=True, text=True, timeout=at_most(60), check=False
    )
    assert result.returncode == 2
    assert "must not be of a running sandbox" in result.stderr
    assert Processes(state).alive("kafka.a.b.0")
