"""The command line: its exit codes and its one message. As a process where that matters: one takes long to start."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.__main__ import main
from sandbox.processes import Processes
from sandbox.state import PROJECT, SandboxState

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
Completed = subprocess.CompletedProcess[str]
Command = Callable[..., Completed]


def process(state: SandboxState, *args: str, **environment: str) -> Completed:
    return subprocess.run(
        [sys.executable, "-m", "sandbox", *args],
        cwd=PROJECT,
        env={**os.environ, "RT_INVENTORY_SANDBOX": str(state.path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process: what `python -m sandbox` runs, with its words, variables, output and exit code."""

    def run(state: SandboxState, *args: str, **environment: str) -> Completed:
        capsys.readouterr()
        terminated = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["sandbox", *args])
            for name, value in {"RT_INVENTORY_SANDBOX": str(state.path), **environment}.items():
                patch.setenv(name, value)
            try:
                code = main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            finally:
                signal.signal(signal.SIGTERM, terminated)
        return Completed(args, code, *capsys.readouterr())

    return run


def test_status_of_nothing_says_so_and_exits_with_1(tmp_path: Path) -> None:
    answer = process(SandboxState(tmp_path / "never"), "status")
    assert answer.returncode == 1
    assert "not up" in answer.stdout
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("args", [("status", "--nonsense"), ("nonsense",), ("kill",)])
def test_wrong_usage_exits_with_2(sandbox: Command, state: SandboxState, args: tuple[str, ...]) -> None:
    answer = sandbox(state, *args)
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr


def test_missing_tools_are_one_message_that_says_what_to_run(state: SandboxState, tmp_path: Path) -> None:
    answer = process(state, "up", RT_INVENTORY_CACHE=str(tmp_path / "empty"))
    assert answer.returncode == 2
    assert "make setup" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_state_folder_with_other_files_is_refused(sandbox: Command, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    answer = sandbox(SandboxState(tmp_path), "up")
    assert answer.returncode == 2
    assert "must be empty or a sandbox's" in answer.stderr


def test_pulumi_without_a_running_sandbox_says_how_to_start_it(state: SandboxState) -> None:
    answer = process(state, "pulumi", "--", "up", "-s", "dev")
    assert answer.returncode == 2
    assert "python -m sandbox up" in answer.stderr


def test_kill_and_hold_and_start_change_what_status_says(
    sandbox: Command, state: SandboxState, processes: Processes
) -> None:
    processes.start("kafka.a.b.0", SLEEP, {}, state.log("kafka.a.b.0"))
    assert "running" in sandbox(state, "status").stdout
    killed = sandbox(state, "kill", "kafka.a.b.0", "--hold")
    assert killed.returncode == 0
    assert "python -m sandbox start kafka.a.b.0" in killed.stderr
    assert "held" in sandbox(state, "status").stdout
    assert sandbox(state, "start", "kafka.a.b.0").returncode == 0
    assert "dead" in sandbox(state, "status").stdout


def test_an_unknown_process_is_answered_with_the_known_ones(
    sandbox: Command, state: SandboxState, processes: Processes
) -> None:
    processes.start("kafka.a.b.0", SLEEP, {}, state.log("kafka.a.b.0"))
    answer = sandbox(state, "kill", "broker")
    assert answer.returncode == 1
    assert answer.stderr == "process broker: must be one of the sandbox's (got broker, allowed kafka.a.b.0).\n"


def test_logs_of_a_process_that_is_gone_can_be_read(sandbox: Command, state: SandboxState) -> None:
    state.log("operator").write_text("".join(f"line {number}\n" for number in range(1, 6)))
    assert sandbox(state, "logs", "operator", "-n", "2").stdout == "line 4\nline 5\n"
    assert sandbox(state, "logs").stdout == "operator\n"
    unknown = sandbox(state, "logs", "plan")
    assert unknown.returncode == 2
    assert "allowed operator" in unknown.stderr
