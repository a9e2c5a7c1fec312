"""The demo: two clusters, a mirror, a failover, and a count of every record, in a sandbox or on real clusters.

Here is how it runs its stages: commands with a deadline, their output in a log, and a line that shows their progress.
"""

import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from sandbox.state import PROJECT

SOURCE, TARGET = "dev", "stg"
INDENT = 6
_TAIL_LINES = 15
_STEP = re.compile(r"\[\d+/\d+\] \w+")
_INTERRUPT_S = 30.0
_PULUMI_INTERRUPT_S = 120.0


class StageError(Exception):
    """A stage of the demo failed; the message names it and the reason, `log` is the file to read, `tail` its end."""

    def __init__(self, message: str, log: Path | None = None, tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.log = log
        self.tail = list(tail)


@dataclass
class Stages:
    """Runs the stages one after the other and remembers how long each took."""

    console: Console
    logs: Path
    seconds: dict[str, float] = field(default_factory=dict)
    current: str = ""
    found: list[str] | None = None
    """What the present stage found so far; None between stages."""
    log: Path | None = None
    """The log of the command that runs."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show a stage while it runs and its seconds when it is done."""
        self.current = name
        found: list[str] = []
        self.found = found
        started = time.monotonic()
        try:
            with self._status(name, started):
                yield
            self.seconds[name] = round(time.monotonic() - started, 1)
            seconds = f"[dim]{self.seconds[name]:.1f} s[/dim]"
            self.console.print(f"[green]done[/green]  {escape(name)} {seconds}", highlight=False)
        finally:
            self.found = None
            for line in found:
                self._print(line)

    def report(self, text: str) -> None:
        """Show one line: of what the present stage found, below its name when it is done; at once between stages."""
        if self.found is None:
            self._print(text)
        else:
            self.found.append(text)

    @contextmanager
    def _status(self, name: str, started: float) -> Iterator[None]:
        """Show that a stage goes on: for how long, and the step that a failover or failback is at."""
        ended = threading.Event()

        def update(status: Status) -> None:
            while not ended.wait(1.0):
                words = name, _step(self.log) if self.log is not None else "", f"({time.monotonic() - started:.0f} s)"
                status.update(escape(" ".join(word for word in words if word)))

        self.log = None
        with self.console.status(escape(name)) as status:
            updating = threading.Thread(target=update, args=(status,), daemon=True)
            updating.start()
            try:
                yield
            finally:
                ended.set()
                updating.join()

    def _print(self, text: str) -> None:
        self.console.print(f"{' ' * INDENT}{escape(text)}", style="dim", highlight=False)

    def run(
        self,
        label: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        timeout_s: float,
        *,
        interrupted_once: bool = False,
        show: str | None = None,
    ) -> str:
        """Run a command in the project's folder and return its stdout.

        Its stderr, and its stdout too, go to `logs/demo.<label>.log` (0600). Raises StageError if it fails or lasts
        longer than `timeout_s`. Whatever ends this program's wait early (Ctrl-C too) ends the command first.

        Args:
            label: Names the log.
            command: The program and its arguments.
            environment: All variables that it gets.
            timeout_s: Deadline.
            interrupted_once: End it by one SIGINT, and keep the terminal's from it. Pulumi writes its state and
                releases its lock at the first one; the second one ends it at once.
            show: What follows this text in a line of its stdout is shown as it comes, once.
        """
        self.log = log = self.logs / f"demo.{label}.log"
        end = _interrupt if interrupted_once else _end
        with _private(log) as file:
            process = subprocess.Popen(
                list(command),
                cwd=PROJECT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=interrupted_once,
            )
            late = threading.Event()

            def too_late() -> None:
                late.set()
                end(process)

            watchdog = threading.Timer(timeout_s, too_late)
            watchdog.daemon = True
            watchdog.start()
            try:
                output = self._drain(process, file, show)
            except BaseException:
                end(process)
                raise
            finally:
                watchdog.cancel()
        if late.is_set():
            raise StageError(f"command {label}: must end within {timeout_s:g} s (got no end).", log, tail(log))
        if process.returncode != 0:
            raise StageError(f"command {label}: must succeed (got exit code {process.returncode}).", log, tail(log))
        return output

    def _drain(self, process: "subprocess.Popen[str]", file: IO[str], show: str | None) -> str:
        """Copy stdout to the log as it comes, return all of it when the process has ended."""
        lines: list[str] = []
        shown = set[str]()
        for line in process.stdout or ():
            lines.append(line)
            file.write(line)
            file.flush()
            if show is not None and show in line:
                found = line[line.index(show) :].strip()
                if found not in shown:
                    self._print(found)
                shown.add(found)
        process.wait()
        return "".join(lines)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let neither Ctrl-C nor SIGTERM stop what removes things."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tail(log: Path, lines: int = _TAIL_LINES) -> list[str]:
    """Return the last lines of a log, empty if there is none."""
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip() for line in deque(file, maxlen=lines)]
    except OSError:
        return []


def _step(log: Path) -> str:
    """Return the step that a failover or failback is at, such as `[3/6] stop`, empty for other commands."""
    found = [match[0] for line in tail(log) if (match := _STEP.match(line))]
    return found[-1] if found else ""


def _private(log: Path) -> IO[str]:
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8")


def _end(process: "subprocess.Popen[str]") -> None:
    """Ask a command to stop; kill it if it does not."""
    process.terminate()
    try:
        process.wait(timeout=_INTERRUPT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _interrupt(process: "subprocess.Popen[str]") -> None:
    """Interrupt a command that leads its own session; kill it with all that it started if it goes on."""
    for number, wait_s in ((signal.SIGINT, _PULUMI_INTERRUPT_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=wait_s)
            return
