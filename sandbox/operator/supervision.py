"""Keeping the Java processes alive: started when they should run and do not, ever later if they die at once."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

QUICK_DEATH_S = 30.0
DELAYS_S = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0)


class Supervisor(Protocol):
    """The process registry as the operator uses it."""

    def start(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> None:
        """Start a process under this name; its output goes to `log`."""

    def stop(self, name: str, deadline_s: float) -> None:
        """Stop the process if it runs: SIGTERM, after `deadline_s` SIGKILL; forget it."""

    def alive(self, name: str) -> bool:
        """True if the process runs."""

    def held(self, name: str) -> bool:
        """True if it must not be started, because somebody wants it stopped."""

    def names(self) -> list[str]:
        """All names in the registry."""


@dataclass
class _Starts:
    at: float = 0.0
    quick_deaths: int = 0


@dataclass
class Keeper:
    """Decides when a dead process is started again, and how often it died just after its start."""

    processes: Supervisor
    _starts: dict[str, _Starts] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_s(self, name: str) -> float:
        """Seconds until this dead process may be started; 0 means now."""
        with self._lock:
            starts = self._starts.get(name)
            if starts is None:
                return 0.0
            delay_s = DELAYS_S[min(starts.quick_deaths, len(DELAYS_S) - 1)]
            return max(0.0, starts.at + delay_s - time.monotonic())

    def start(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> None:
        """Start the process and remember when."""
        with self._lock:
            starts = self._starts.setdefault(name, _Starts())
            now = time.monotonic()
            quick = starts.at and now - starts.at < QUICK_DEATH_S + DELAYS_S[-1]
            starts.quick_deaths = starts.quick_deaths + 1 if quick else 0
            starts.at = now
        self.processes.start(name, argv, env, log)

    def stop(self, name: str, deadline_s: float = 20.0) -> None:
        """Stop the process on purpose: its next start counts as its first."""
        self.processes.stop(name, deadline_s)
        with self._lock:
            self._starts.pop(name, None)

    def deaths(self, name: str) -> int:
        """How many times in a row the process died soon after its start."""
        with self._lock:
            starts = self._starts.get(name)
            return starts.quick_deaths if starts else 0


def last_problem(log: Path, *, tail_bytes: int = 64 * 1024) -> str:
    """The last line of a log that tells of an error, without its time stamp; empty if there is none."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - tail_bytes))
        lines = file.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        if " ERROR " in line or " FATAL " in line or line.startswith(("Caused by:", "Exception in thread")):
            return line.split("] ", 1)[-1][:300]
    return ""
