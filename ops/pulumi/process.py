"""Runs one command in a process group of its own: with a deadline, and stopped together with all that it started.

Owns the order of the signals that stop it. Does not own what the command is, nor what its output means.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

END_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end."""
SignalLadder = Sequence[tuple[signal.Signals, float]]
"""Signals in the order in which they are sent, each with the seconds that the process then has to end."""
# Pulumi finishes the running steps, writes its state and releases its lock after the first SIGINT; a second one
# cancels the steps too.
UPDATE_LADDER: SignalLadder = (
    (signal.SIGINT, 60.0),
    (signal.SIGINT, 10.0),
    (signal.SIGTERM, 5.0),
    (signal.SIGKILL, 10.0),
)
PREVIEW_LADDER: SignalLadder = ((signal.SIGINT, 30.0), *UPDATE_LADDER[1:])
READ_LADDER: SignalLadder = ((signal.SIGINT, 5.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0))
POLL_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A command that ended by itself. `stderr` is empty if it was written into `stdout`."""

    exit_code: int
    stdout: str
    stderr: str


class DeadlineExceededError(Exception):
    """The command did not end in time and was stopped; `stdout` is what it had written."""

    def __init__(self, stdout: str) -> None:
        super().__init__("the command did not end in time")
        self.stdout = stdout


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    within_s: float,
    ladder: SignalLadder = READ_LADDER,
    one_stream: bool = False,
    on_poll: Callable[[], None] | None = None,
    on_interrupt: Callable[[], None] = lambda: None,
) -> Completed:
    """Run a command to its end; whatever ends this function also ends the command and its children.

    Args:
        command: The program and its arguments.
        folder: Working directory.
        environment: Environment of the command, all of it.
        within_s: Deadline in seconds.
        ladder: How the command is stopped at its deadline or by an exception.
        one_stream: Write stderr into stdout, in the order in which the command writes.
        on_poll: Called every half second while the command runs.
        on_interrupt: Called before the command is stopped by anything but its deadline.

    Raises:
        DeadlineExceededError: The command did not end in time.
        FileNotFoundError: There is no such program or folder.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process: subprocess.Popen[bytes] | None = None
        try:
            with end_requests_deferred():
                process = subprocess.Popen(
                    [*command],
                    cwd=folder,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT if one_stream else err,
                    start_new_session=True,
                )
            exit_code = _wait(process, within_s, on_poll)
        except BaseException as error:
            late = isinstance(error, subprocess.TimeoutExpired)
            if process is not None:
                if not late:
                    on_interrupt()
                stop(process, ladder)
            if late:
                raise DeadlineExceededError(_text(out)) from None
            raise
        return Completed(exit_code=exit_code, stdout=_text(out), stderr=_text(err))


def stop(process: "subprocess.Popen[bytes]", ladder: SignalLadder) -> None:
    """Send signals to the process group until the process is gone.

    A signal that asks this process to end meanwhile is ignored.
    """
    with _end_requests_handled(lambda _: None):
        for number, wait_s in ladder:
            if process.poll() is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=wait_s)


@contextlib.contextmanager
def end_requests_deferred() -> Iterator[None]:
    """Deliver signals that ask this process to end only when the block has ended.

    For the start of a child: a signal in the middle of it would leave a child that nothing stops.
    """
    arrived: list[int] = []
    try:
        with _end_requests_handled(arrived.append):
            yield
    finally:
        for late in arrived:
            signal.raise_signal(late)


@contextlib.contextmanager
def _end_requests_handled(handle: Callable[[int], None]) -> Iterator[None]:
    """Handle requests to end in another way. Only the main thread gets signals; those it ignores stay ignored."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in END_REQUESTS}
        before = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, lambda number, _: handle(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(process: "subprocess.Popen[bytes]", within_s: float, on_poll: Callable[[], None] | None) -> int:
    if on_poll is None:
        return process.wait(timeout=within_s)
    deadline = time.monotonic() + within_s
    while (left_s := deadline - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=min(POLL_S, left_s))
        on_poll()
    raise subprocess.TimeoutExpired(process.args, within_s)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
