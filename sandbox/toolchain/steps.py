"""Steps of the set-up: what one is, in which order they run, and the progress that is shown.

One line when a step starts and one when it ends. On a terminal the running steps are live, with their seconds;
elsewhere a line names them every 10 seconds.
"""

import concurrent.futures
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sandbox.toolchain.commands import Commands, Processes, StoppedError, ToolchainError


@dataclass(frozen=True)
class Part:
    """One of several results of a step."""

    name: str
    title: str
    is_done: Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to install. `run` must leave either the whole result or none, so that it can simply run again."""

    name: str
    title: str
    is_done: Callable[[], bool]
    run: Callable[[Commands], None]
    needs: tuple[str, ...] = ()
    lane: str | None = None
    """Steps of one lane run one after the other: they compete for the processor or for one local repository."""
    tool: str | None = None
    """What the machine must allow for the step to run: "go", "maven", "chromium", "prometheus", "image-parts", None."""
    disk_mib: int = 1
    """How much the result takes on the cache's disk."""
    is_deferred: bool = False
    """Whether the set-up leaves it out unless it is named: something works without it and makes it later."""
    parts: tuple[Part, ...] = ()
    """What the step makes, if that is more than one thing."""

    @property
    def results(self) -> tuple[Part, ...]:
        """What the step makes, one by one."""
        return self.parts or (Part(self.name, self.title, self.is_done),)


def with_needs(steps: Sequence[Step], names: Iterable[str]) -> list[Step]:
    """The named steps and everything they need, in the plan's order; raises ToolchainError for an unknown name."""
    by_name = {step.name: step for step in steps}
    wanted: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in by_name:
            raise ToolchainError(f"set-up: step must be a known one (got {name}, allowed {', '.join(by_name)}).")
        if name not in wanted:
            wanted.add(name)
            waiting.extend(by_name[name].needs)
    return [step for step in steps if step.name in wanted]


REPORT_EVERY_S = 10.0


@dataclass(frozen=True)
class _Running:
    since: float
    detail: Callable[[], str]

    def text(self, title: str) -> str:
        detail = self.detail()
        seconds = time.monotonic() - self.since
        return f"{title} ({seconds:.0f} s{', ' if detail else ''}{detail})"


class Progress:
    """Writes progress lines. Used by one thread."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._running: dict[str, _Running] = {}
        self._drawn = 0
        self._reported = time.monotonic()

    def report(self, text: str) -> None:
        """One line of text."""
        self._erase()
        self._stream.write(text + "\n")
        self._draw()

    def started(self, title: str, detail: Callable[[], str] = lambda: "") -> None:
        """A step starts; `detail` returns its progress in a few words, or nothing."""
        self._running[title] = _Running(time.monotonic(), detail)
        if self._live:
            self.tick()
        else:
            self.report(f"  start  {title}")

    def done(self, title: str) -> None:
        """A step ended well."""
        seconds = time.monotonic() - self._running.pop(title).since
        self.report(f"  done   {title} ({seconds:.1f} s)")

    def failed(self, title: str) -> None:
        """A step failed."""
        seconds = time.monotonic() - self._running.pop(title).since
        self.report(f"  FAILED {title} ({seconds:.1f} s)")

    def tick(self) -> None:
        """Draw the running steps again, on a terminal; elsewhere name those that take long, from time to time."""
        if self._live:
            self._erase()
            self._draw()
        elif time.monotonic() - self._reported >= REPORT_EVERY_S:
            self._report_slow()

    def close(self) -> None:
        """Take the live lines away."""
        self._running.clear()
        self._erase()
        self._stream.flush()

    def _report_slow(self) -> None:
        self._reported = time.monotonic()
        slow = {
            title: running
            for title, running in self._running.items()
            if self._reported - running.since >= REPORT_EVERY_S
        }
        if slow:
            self.report(f"  ...    {', '.join(running.text(title) for title, running in slow.items())}")

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _draw(self) -> None:
        if self._live:
            for title, running in self._running.items():
                self._stream.write(f"  ...    {running.text(title)}\n")
            self._drawn = len(self._running)
        self._stream.flush()


TICK_S = 1.0


def run_steps(steps: Sequence[Step], logs: Path, environ: Mapping[str, str], progress: Progress) -> None:
    """Run all steps that are not done; raises ToolchainError, which describes the first failure in full."""
    missing = [step for step in steps if not step.is_done()]
    _Run(missing, logs, environ, progress).to_the_end()


class _Run:
    def __init__(self, missing: list[Step], logs: Path, environ: Mapping[str, str], progress: Progress) -> None:
        self.waiting = missing
        self.logs = logs
        self.environ = environ
        self.progress = progress
        self.processes = Processes()
        self.running: dict[concurrent.futures.Future[None], Step] = {}

    def to_the_end(self) -> None:
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=max(1, len(self.waiting)))
        try:
            while self.waiting or self.running:
                self.start_ready(pool)
                self.collect()
        finally:
            self.processes.stop()
            pool.shutdown(wait=True)
            self.progress.close()

    def start_ready(self, pool: concurrent.futures.Executor) -> None:
        for step in list(self.waiting):
            unfinished = {other.name for other in [*self.waiting, *self.running.values()]}
            busy = {other.lane for other in self.running.values()}
            if unfinished & set(step.needs) or (step.lane and step.lane in busy):
                continue
            self.waiting.remove(step)
            commands = Commands(self.logs / f"{step.name}.log", self.environ, self.processes)
            self.progress.started(step.title, commands.progress)
            self.running[pool.submit(step.run, commands)] = step

    def collect(self) -> None:
        ended, _ = concurrent.futures.wait(self.running, timeout=TICK_S, return_when=concurrent.futures.FIRST_COMPLETED)
        self.progress.tick()
        for future in ended:
            step = self.running.pop(future)
            error = future.exception()
            if error is None and not step.is_done():
                error = ToolchainError(
                    f"  the step ended, but its result is not there; see {self.logs}/{step.name}.log"
                )
            if error is None:
                self.progress.done(step.title)
                continue
            self.progress.failed(step.title)
            if isinstance(error, StoppedError) or not isinstance(error, ToolchainError | OSError):
                raise error
            raise ToolchainError(
                f"set-up: step {step.name} failed\n{error}\n"
                "What was finished is kept: run the same command again when the cause is gone.",
            )
