"""The process supervisor, with processes that do little."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sandbox.processes import MARK, ProcessError, Processes, marked, resident_bytes, running
from sandbox.state import SandboxState

SLEEP = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(60)",
]


def wait_for(condition: Callable[[], object], deadline_s: float = 10) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def start(processes: Processes, state: SandboxState, name: str, argv: list[str] = SLEEP, **env: str) -> int:
    """Start a process, wait for its first line, return its pid."""
    log = state.log(name)
    before = log.stat().st_size if log.exists() else 0
    processes.start(name, argv, {"PATH": os.environ["PATH"], **env}, log)
    wait_for(lambda: log.stat().st_size > before)
    return next(entry.pid for entry in processes.entries() if entry.name == name)


def test_a_started_process_runs_in_its_own_session_with_its_log_private(
    processes: Processes, state: SandboxState
) -> None:
    pid = start(processes, state, "kafka.a.b.0")
    assert processes.alive("kafka.a.b.0")
    assert os.getsid(pid) == pid
    assert state.log("kafka.a.b.0").read_text() == "here\n"
    assert state.log("kafka.a.b.0").stat().st_mode & 0o777 == 0o600


def test_the_environment_is_passed_whole_and_written_nowhere(processes: Processes, state: SandboxState) -> None:
    pid = start(processes, state, "operator", SECRET="s3cret-value")
    environment = psutil.Process(pid).environ()
    assert environment["SECRET"] == "s3cret-value"
    assert "HOME" not in environment
    assert "s3cret-value" not in (state.processes / "operator.json").read_text()


def test_stop_ends_the_process_and_forgets_it(processes: Processes, state: SandboxState) -> None:
    pid = start(processes, state, "operator")
    processes.stop("operator", deadline_s=5)
    assert processes.names() == []
    wait_for(lambda: not psutil.pid_exists(pid))


def test_a_process_that_ignores_sigterm_is_killed_at_the_deadline(processes: Processes, state: SandboxState) -> None:
    start(processes, state, "operator", STUBBORN)
    began = time.monotonic()
    processes.stop("operator", deadline_s=0.5)
    assert 0.4 < time.monotonic() - began < 5
    assert not marked(state)


def test_stop_ends_the_helpers_of_a_process_too(processes: Processes, state: SandboxState) -> None:
    parent = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; print(1, flush=True);"
    start(processes, state, "operator", [sys.executable, "-c", parent + " time.sleep(60)']); time.sleep(60)"])
    assert len(marked(state)) == 2
    processes.stop("operator", deadline_s=2)
    wait_for(lambda: not marked(state))


def test_a_killed_operator_leaves_what_it_started_under_an_own_name(processes: Processes, state: SandboxState) -> None:
    """As the operator does it: a program starts another one through the supervisor."""
    inner = (
        "import os, sys, time; from pathlib import Path; from sandbox.state import SandboxState\n"
        "from sandbox.processes import Processes\n"
        f"state = SandboxState(Path({str(state.path)!r}))\n"
        f"Processes(state).start('kafka.a.b.0', {SLEEP!r}, dict(os.environ), state.log('kafka'))\n"
        "print('here', flush=True); time.sleep(60)"
    )
    root = str(Path(__file__).parents[3])
    start(processes, state, "operator", [sys.executable, "-c", inner], PYTHONPATH=root)
    operator = next(entry for entry in processes.entries() if entry.name == "operator")
    own = psutil.Process(operator.pid).memory_info().rss
    assert resident_bytes(operator) == pytest.approx(own, rel=0.05)
    processes.kill("operator")
    assert not processes.alive("operator")
    assert processes.alive("kafka.a.b.0")


def test_a_pid_that_was_given_to_somebody_else_is_never_signalled(processes: Processes, state: SandboxState) -> None:
    stranger = subprocess.Popen(SLEEP, stdout=subprocess.DEVNULL)
    try:
        start(processes, state, "operator")
        file = state.processes / "operator.json"
        entry = json.loads(file.read_text())
        file.write_text(json.dumps({**entry, "pid": stranger.pid, "start_time": entry["start_time"] - 100}))
        assert not processes.alive("operator")
        processes.stop("operator", deadline_s=0.2)
        processes.stop_all(deadline_s=0.2)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_that_ends_by_itself_is_not_alive_and_can_be_started_again(
    processes: Processes, state: SandboxState
) -> None:
    start(processes, state, "operator", [sys.executable, "-c", "print('here')"])
    wait_for(lambda: not processes.alive("operator"))
    start(processes, state, "operator")
    assert processes.alive("operator")


def test_a_running_name_is_not_started_twice(processes: Processes, state: SandboxState) -> None:
    start(processes, state, "operator")
    with pytest.raises(ProcessError, match="operator: must not run already"):
        start(processes, state, "operator")
    assert len(marked(state)) == 1


def test_two_starters_at_once_start_one_process(state: SandboxState, environment: dict[str, str]) -> None:
    outcomes: list[str] = []

    def attempt() -> None:
        try:
            Processes(state).start("operator", SLEEP, environment, state.log("operator"))
            outcomes.append("started")
        except ProcessError:
            outcomes.append("refused")

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 7 + ["started"]
    assert len(marked(state)) == 1


def test_a_held_process_is_not_started_until_it_is_released(processes: Processes, state: SandboxState) -> None:
    start(processes, state, "kafka.a.b.0")
    processes.kill("kafka.a.b.0", hold=True)
    assert processes.held("kafka.a.b.0")
    with pytest.raises(ProcessError, match="must not be held"):
        start(processes, state, "kafka.a.b.0")
    processes.release("kafka.a.b.0")
    start(processes, state, "kafka.a.b.0")
    assert processes.alive("kafka.a.b.0")


def test_a_kill_without_hold_leaves_an_entry_that_may_be_started(processes: Processes, state: SandboxState) -> None:
    start(processes, state, "kafka.a.b.0")
    processes.kill("kafka.a.b.0")
    assert processes.names() == ["kafka.a.b.0"]
    assert not processes.alive("kafka.a.b.0")
    assert not processes.held("kafka.a.b.0")


def test_an_unknown_name_is_answered_with_the_known_ones(processes: Processes, state: SandboxState) -> None:
    start(processes, state, "operator")
    with pytest.raises(ProcessError, match=r"process broker: .*allowed operator"):
        processes.kill("broker")


def test_a_program_that_cannot_be_executed_leaves_no_entry(processes: Processes, state: SandboxState) -> None:
    with pytest.raises(ProcessError, match="No such file"):
        processes.start("plane", ["/nowhere/controlplane"], {}, state.log("plane"))
    assert processes.names() == []


# Ends once as many of its kind as it is given have been asked to end.
TOGETHER = """
import signal, sys, time
name, number, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def note(word):
    with open(path, "a") as ends:
        ends.write(word + " ")
def end(*_):
    note(name)
    while open(path).read().split().count(name) < number:
        time.sleep(0.05)
    note(name + "-ended")
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("here", flush=True)
time.sleep(600)
"""


def test_stop_all_goes_backwards_and_stops_one_kind_at_the_same_time(processes: Processes, state: SandboxState) -> None:
    ends = state.path / "ends"
    for name in ("plane", "operator", "kafka.a.a.0", "kafka.b.b.0", "mirror.b.m.0"):
        kind = name.split(".")[0]
        number = "2" if kind == "kafka" else "1"
        start(processes, state, name, [sys.executable, "-c", TOGETHER, kind, number, str(ends)])
    processes.stop_all(deadline_s=20)
    ended = ["mirror", "mirror-ended", "kafka", "kafka", "kafka-ended", "kafka-ended"]
    assert ends.read_text().split() == [*ended, "operator", "operator-ended", "plane", "plane-ended"]
    assert processes.names() == []
    assert not marked(state)


def test_while_all_are_stopped_none_can_be_started_again(processes: Processes, state: SandboxState) -> None:
    start(processes, state, "operator", STUBBORN)
    start(processes, state, "kafka.a.a.0")
    stopping = threading.Thread(target=processes.stop_all, args=(1.5,))
    stopping.start()
    wait_for(lambda: not processes.alive("kafka.a.a.0"))
    with pytest.raises(ProcessError, match="must not be held"):
        start(processes, state, "kafka.a.a.0")
    stopping.join()


def test_a_process_without_an_entry_is_found_as_an_orphan(processes: Processes, state: SandboxState) -> None:
    pid = start(processes, state, "kafka.a.b.0")
    assert processes.orphans() == []
    (state.processes / "kafka.a.b.0.json").unlink()
    assert [process.pid for process in processes.orphans()] == [pid]


def test_a_shell_that_only_uses_the_sandbox_is_not_one_of_its_processes(
    processes: Processes, state: SandboxState, environment: dict[str, str]
) -> None:
    shell = subprocess.Popen(
        SLEEP, env={**environment, "RT_INVENTORY_SANDBOX": str(state.path)}, stdout=subprocess.DEVNULL
    )
    other = subprocess.Popen(SLEEP, env={**environment, MARK: f"{state.path}-2:plane"}, stdout=subprocess.DEVNULL)
    try:
        assert processes.orphans() == []
    finally:
        for process in (shell, other):
            process.kill()
            process.wait()


def test_memory_of_a_running_process_is_counted_and_of_a_dead_one_is_none(
    processes: Processes, state: SandboxState
) -> None:
    start(processes, state, "operator")
    (entry,) = processes.entries()
    assert resident_bytes(entry) > 1_000_000
    processes.kill("operator")
    wait_for(lambda: not running(entry))
    assert resident_bytes(entry) == 0
