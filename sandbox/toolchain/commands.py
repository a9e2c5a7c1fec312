"""Commands of the set-up's steps: run to their end with a log, stopped together; and the set-up's exceptions."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SHOWN_LINES = 15


@dataclass(frozen=True)
class Counted:
    """Lines of a command's output that only report its progress: they are counted, and left out of its error."""

    line: re.Pattern[str]
    what: str
    """What a line stands for, in the plural: "packages compiled"."""


STOP_S = 5.0


class Processes:
    """The commands that run now. Each has its own process group, so that stopping it stops what it started."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def start(self, argv: Sequence[str], **options: object) -> subprocess.Popen[str]:
        """Start a command, unless everything is being stopped."""
        with self._lock:
            if self._stopping:
                raise StoppedError("stopped")
            process = subprocess.Popen(argv, text=True, start_new_session=True, **options)  # type: ignore[call-overload]  # options are passed on as they are
            self._running.add(process)
        return process  # type: ignore[no-any-return]  # Popen's overloads are lost with passed-on options

    def ended(self, process: subprocess.Popen[str]) -> None:
        """Forget a command that has ended."""
        with self._lock:
            self._running.discard(process)

    def stop(self) -> None:
        """End all commands and start no more: SIGTERM, and SIGKILL for what is left after 5 seconds."""
        with self._lock:
            self._stopping = True
            running = list(self._running)
        for process in running:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


class Commands:
    """Runs the commands of one step; what they write goes to the step's log file."""

    def __init__(self, log: Path, environ: Mapping[str, str], processes: Processes) -> None:
        self.log = log
        self.environ = dict(environ)
        self._processes = processes
        self._counted: Counted | None = None
        self._started_at = 0  # where the running command's output begins in the log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")

    def run(
        self,
        argv: Sequence[str | Path],
        cwd: Path,
        env: Mapping[str, str] | None = None,
        counted: Counted | None = None,
    ) -> None:
        """Run a command to its end; raises CommandFailedError with its last lines if the status is not 0."""
        self._counted = counted
        try:
            self._run(argv, cwd, env, capture=False)
        finally:
            self._counted = None

    def progress(self) -> str:
        """How far the running command is, if that can be counted: "812 packages compiled". For any thread."""
        counted = self._counted
        if counted is None:
            return ""
        return f"{sum(counted.line.fullmatch(line) is not None for line in self._lines())} {counted.what}"

    def output(self, argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None) -> str:
        """Standard output of a command; what it writes to standard error goes to the log."""
        return self._run(argv, cwd, env, capture=True)

    def _run(self, argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None, *, capture: bool) -> str:
        texts = [str(part) for part in argv]
        self._started_at = self.log.stat().st_size
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(texts)}\n")
            log.flush()
            try:
                process = self._processes.start(
                    texts,
                    cwd=cwd,
                    env={**self.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if capture else log,
                    stderr=log,
                )
            except OSError as error:
                raise CommandFailedError(texts, 127, self.log, [str(error)]) from None
            try:
                output, _ = process.communicate()
            finally:
                self._processes.ended(process)
        if process.returncode != 0:
            raise CommandFailedError(texts, process.returncode, self.log, self._last_lines())
        return output or ""

    def _last_lines(self) -> list[str]:
        lines = self._lines()
        if counted := self._counted:
            lines = [line for line in lines if not counted.line.fullmatch(line)]
        return lines[-SHOWN_LINES:]

    def _lines(self) -> list[str]:
        """What the running command has written so far, without empty lines."""
        with self.log.open("rb") as log:
            log.seek(self._started_at)
            lines = log.read().decode("utf-8", "replace").splitlines()
        return [line.rstrip() for line in lines[1:] if line.strip()]


class ToolchainError(Exception):
    """Something is missing or cannot be built. The message is complete; no traceback is needed."""


class CommandFailedError(ToolchainError):
    """A command of a step ended with another status than 0."""

    def __init__(self, argv: list[str], status: int, log: Path, last_lines: list[str]) -> None:
        self.argv = argv
        self.status = status
        self.log = log
        shown = "\n".join(f"  | {line}" for line in last_lines) or "  | (it wrote nothing)"
        super().__init__(
            f"  command   {' '.join(argv)}\n  status    {status}\n  last lines\n{shown}\n  full log  {log}",
        )


class StoppedError(ToolchainError):
    """The set-up is being stopped, so this step does not go on."""
