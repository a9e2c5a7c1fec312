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

from sandbox import plane
from sandbox.processes import Processes, marked
from sandbox.state import PROJECT, SandboxState

DEMO_S = 900
RESIDENT_LIMIT_MIB = 6 * 1024


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SandboxState]:
    """The folder of the demo's sandbox, stopped afterwards whatever the demo left."""
    state = SandboxState(tmp_path / "sandbox")
    yield state
    plane.down(state, lambda _: None)


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


def test_the_demo_loses_nothing_and_leaves_nothing_running(state: SandboxState) -> None:
    shown = make_demo(state)
    found = list(state.reports.glob("demo-*/summary.json"))
    assert len(found) == 1
    summary = json.loads(found[0].read_text())
    records = summary["records"]
    assert (records["produced"], records["replicated"], records["lost"]) == (10_000, 10_000, 0)
    assert records["read_before"] + records["read_after"] - records["repeated"] == 10_000
    assert summary["verdict"] == "pass"
    assert summary["residentMiB"] < RESIDENT_LIMIT_MIB
    assert Path(summary["report"]).is_file()
    assert summary["report"] in shown
    assert not marked(state)


def test_a_kept_sandbox_is_used_as_the_demo_says(state: SandboxState) -> None:
    shown = make_demo(state, "KEEP=1")
    held = next(entry.name for entry in Processes(state).entries() if entry.held)
    assert f"sandbox start {held}" in shown
    properties = [Path(line.split(": ")[1]) for line in shown.splitlines() if line.endswith(".properties")]
    assert len(properties) == 2
    for path in properties:
        assert path.stat().st_mode & 0o077 == 0
        assert not any(line.partition("=")[2] in shown for line in path.read_text().splitlines() if "password" in line)
    for arguments in (["status"], ["start", held], ["down"]):
        command = [sys.executable, "-m", "sandbox", *arguments]
        subprocess.run(command, cwd=PROJECT, env=environment(state), check=True, timeout=120, capture_output=True)
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
    assert demo.stdout is not None
    for line in demo.stdout:
        if "sandbox up" in line:
            break
    time.sleep(5)  # somewhere inside `pulumi up -s dev`
    demo.send_signal(signal.SIGTERM)
    shown = demo.communicate(timeout=120)[0]
    assert demo.returncode == 143, shown
    assert not marked(state)
    assert list(state.logs.glob("*.log"))


def test_a_demo_beside_a_running_sandbox_is_refused_and_harms_nothing(state: SandboxState) -> None:
    state.create()
    Processes(state).start("kafka.a.b.0", ["sleep", "60"], {"PATH": os.environ["PATH"]}, state.log("sleep"))
    command = [sys.executable, "-m", "sandbox", "demo"]
    result = subprocess.run(
        command, cwd=PROJECT, env=environment(state), capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 2
    assert "must not hold a running sandbox" in result.stderr
    assert Processes(state).alive("kafka.a.b.0")
