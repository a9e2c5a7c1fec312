"""Runs the missing steps: independent ones side by side, each after what it needs, and stops all when one fails."""

import concurrent.futures
from collections.abc import Mapping, Sequence
from pathlib import Path

from .commands import Commands, Processes
from .errors import StoppedError, ToolchainError
from .progress import Progress
from .steps import Step

TICK_S = 1.0


def run(steps: Sequence[Step], logs: Path, environ: Mapping[str, str], progress: Progress) -> None:
    """Run all steps that are not done; raises ToolchainError that tells everything about the first failure."""
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
