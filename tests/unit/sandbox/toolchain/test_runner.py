"""Steps run side by side, in order, and end together when one fails."""

import io
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.toolchain.commands import CommandFailedError, Commands, Counted, Processes, ToolchainError
from sandbox.toolchain.steps import Progress, Step, run_steps, with_needs

ENVIRON = {"PATH": os.environ["PATH"]}


class Notes:
    """Steps that only note when they run."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.done: set[str] = set()
        self.running: set[str] = set()
        self.together: set[frozenset[str]] = set()
        self._lock = threading.Lock()

    def step(self, name: str, needs: tuple[str, ...] = (), lane: str | None = None) -> Step:
        def work(_commands: Commands) -> None:
            with self._lock:
                self.running.add(name)
                self.together.add(frozenset(self.running))
            time.sleep(0.05)
            with self._lock:
                self.running.discard(name)
                self.order.append(name)
                self.done.add(name)

        return Step(name=name, title=name, is_done=lambda: name in self.done, run=work, needs=needs, lane=lane)


def command_step(name: str, script: str, is_done: Callable[[], bool] = lambda: False) -> Step:
    """A step that runs a shell script."""
    return Step(
        name=name,
        title=name,
        is_done=is_done,
        run=lambda commands: commands.run(["sh", "-c", script], cwd=Path("/")),
    )


def test_a_step_runs_after_what_it_needs(tmp_path: Path) -> None:
    notes = Notes()
    run_steps([notes.step("b", needs=("a",)), notes.step("a")], tmp_path, ENVIRON, Progress(io.StringIO()))
    assert notes.order == ["a", "b"]


def test_independent_steps_run_side_by_side(tmp_path: Path) -> None:
    both, done = threading.Barrier(2), set[str]()

    def step(name: str) -> Step:
        def meet(_commands: Commands) -> None:
            both.wait(30)  # broken unless the other one runs too
            done.add(name)

        return Step(name=name, title=name, is_done=lambda: name in done, run=meet)

    run_steps([step("a"), step("b")], tmp_path, ENVIRON, Progress(io.StringIO()))
    assert done == {"a", "b"}


def test_steps_of_one_lane_run_one_after_the_other(tmp_path: Path) -> None:
    notes = Notes()
    run_steps([notes.step("a", lane="go"), notes.step("b", lane="go")], tmp_path, ENVIRON, Progress(io.StringIO()))
    assert notes.order == ["a", "b"]
    assert frozenset({"a", "b"}) not in notes.together


def test_each_step_has_a_line_for_its_start_and_one_with_seconds_for_its_end(tmp_path: Path) -> None:
    stream = io.StringIO()
    run_steps([Notes().step("Kafka")], tmp_path, ENVIRON, Progress(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "  start  Kafka"
    assert lines[1].startswith("  done   Kafka (0.")


def test_a_failure_stops_the_other_steps(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    slow = command_step("slow", f"echo $$ > {pid_file}; sleep 60")
    bad = command_step("bad", f"while [ ! -s {pid_file} ]; do sleep 0.05; done; echo broken; exit 7")
    started = time.monotonic()
    with pytest.raises(ToolchainError, match=r"step bad failed") as failure:
        run_steps([slow, bad], tmp_path / "logs", ENVIRON, Progress(io.StringIO()))
    assert time.monotonic() - started < 10
    assert "status    7" in str(failure.value)
    assert "| broken" in str(failure.value)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text(encoding="utf-8")), 0)


def test_a_command_that_does_not_exist_is_a_failed_step(tmp_path: Path) -> None:
    step = Step(
        name="x",
        title="x",
        is_done=lambda: False,
        run=lambda commands: commands.run(["no-such-program"], cwd=tmp_path),
    )
    with pytest.raises(ToolchainError, match=r"command   no-such-program"):
        run_steps([step], tmp_path, ENVIRON, Progress(io.StringIO()))


def test_a_step_that_leaves_no_result_has_failed(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"its result is not there"):
        run_steps([command_step("empty", "true")], tmp_path, ENVIRON, Progress(io.StringIO()))


def test_only_the_last_lines_of_a_long_output_are_shown(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as failure:
        run_steps([command_step("long", "seq 1 500; exit 1")], tmp_path, ENVIRON, Progress(io.StringIO()))
    assert "| 500" in str(failure.value)
    assert "| 480" not in str(failure.value)
    assert "480" in (tmp_path / "long.log").read_text(encoding="utf-8")


def test_a_terminal_shows_the_running_steps_and_takes_them_away(tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    run_steps([Notes().step("Kafka")], tmp_path, ENVIRON, Progress(stream))
    assert "  ...    Kafka (0 s)" in stream.getvalue()
    assert "\x1b[1F\x1b[J" in stream.getvalue()


def test_named_steps_bring_what_they_need() -> None:
    notes = Notes()
    steps = [notes.step("a"), notes.step("b", needs=("a",)), notes.step("c", needs=("b",)), notes.step("d")]
    assert [step.name for step in with_needs(steps, ["c"])] == ["a", "b", "c"]


def test_a_long_step_is_named_every_ten_seconds_with_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("sandbox.toolchain.steps.time", SimpleNamespace(monotonic=lambda: now))
    stream = io.StringIO()
    progress = Progress(stream)
    progress.started("Go programs", lambda: f"{now:.0f} packages compiled")
    for seconds in (1.0, 9.0, 10.0, 11.0, 19.0):
        now = seconds
        progress.tick()
    progress.started("quick")
    for seconds in (20.0, 21.0):
        now = seconds
        progress.tick()
    assert stream.getvalue().splitlines() == [
        "  start  Go programs",
        "  ...    Go programs (10 s, 10 packages compiled)",
        "  start  quick",
        "  ...    Go programs (20 s, 20 packages compiled)",
    ]


def test_lines_that_show_how_far_a_command_is_are_counted_while_it_runs(tmp_path: Path) -> None:
    script = "echo a/b; echo c; echo two words; while [ ! -e go-on ]; do sleep 0.05; done; exit 1"
    counted = Counted(re.compile(r"\S+"), "packages compiled")
    commands = Commands(tmp_path / "log", ENVIRON, Processes())
    failed: list[CommandFailedError] = []

    def work() -> None:
        try:
            commands.run(["sh", "-c", script], cwd=tmp_path, counted=counted)
        except CommandFailedError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 60
    while commands.progress() != "2 packages compiled" and time.monotonic() < deadline:
        time.sleep(0.02)
    (tmp_path / "go-on").touch()
    thread.join(60)
    assert commands.progress() == ""
    assert "| two words" in str(failed[0])
    assert "| c" not in str(failed[0])
