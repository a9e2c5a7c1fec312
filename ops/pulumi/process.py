"""Runs one command in a process group of its own, and explains a failure of Pulumi by its exit code and what it prints.

The process has a deadline, and is stopped together with all that it started. Owns the order of the signals that stop
it, and the reading of a stack's lock. From 3.226 on Pulumi ends with a code for each kind of failure; earlier releases,
such as the sandbox's 3.218, end with 255 for nearly all of them, and only what they print gives the reason.
"""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO

from ops.errors import OpsError
from settings.text import did_you_mean, format_names

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
_LOCKED = ("the stack is currently locked", "Another update is currently in progress")
_BY = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


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


class PulumiExit(IntEnum):
    """The exit codes on which this project acts."""

    NOT_LOGGED_IN = 3
    NO_SUCH_STACK = 6
    UNEXPECTED_CHANGES = 7
    CANCELLED = 8


_CUT_OFF = "unexpected end of JSON input"
_MEANINGS = {
    1: "it failed",
    2: "it does not accept its options or its configuration",
    PulumiExit.NOT_LOGGED_IN: "there is no login to the backend",
    4: "a resource failed",
    5: "a policy was violated",
    PulumiExit.NO_SUCH_STACK: "there is no such stack",
    PulumiExit.UNEXPECTED_CHANGES: "there are changes where none were expected",
    PulumiExit.CANCELLED: "it was cancelled",
    9: "it took too long",
    255: "it failed",
}


def explain_exit(code: int) -> str:
    """Return the code with its meaning, for example `exit 6: there is no such stack`; -N is the end by signal N."""
    if code < 0:
        return f"exit {code}: ended by {_signal(-code)}"
    meaning = _MEANINGS.get(code)
    return f"exit {code}: {meaning}" if meaning else f"exit {code}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# What client-go says of a 401: the API server's own words, or its own where it gets no Status.
_UNAUTHORIZED = re.compile(
    r"(?:error:)?((?:(?!error:).)*(?:: Unauthorized\b|has asked for the client to provide credentials))"
)


def no_pulumi(stack: str) -> OpsError:
    """Return the error of a command that did not find Pulumi."""
    return OpsError(
        f"stack {stack}: pulumi must be on PATH. Install it, or in the sandbox: "
        '`eval "$(venv/bin/python -m sandbox env)"`.'
    )


def missing_stack(text: str, exit_code: int) -> bool:
    """Whether Pulumi failed because its backend has no stack of the name."""
    return exit_code == PulumiExit.NO_SUCH_STACK or "no stack named" in text


class UnreachableError(OpsError):
    """Pulumi has not returned a stack's outputs: its bucket, its key or a login to the cloud may be the reason."""

    def __init__(self, got: str) -> None:
        super().__init__(f"{got} Check the backend; if a token of the cloud has expired, log in to the cloud again.")


def in_folder(folder: Path) -> str:
    """Return the option, behind a space, with which Pulumi works in a folder; empty if it is the working folder."""
    place = folder.resolve()
    return "" if place == Path.cwd() else f" -C {shlex.quote(str(place))}"


def up(stack: str, folder: Path) -> str:
    """Return the command that deploys a stack."""
    return f"pulumi up -s {stack}{in_folder(folder)}"


def cancel(stack: str, folder: Path) -> str:
    """Return the command that releases the lock of a stack."""
    return f"pulumi cancel --yes -s {stack}{in_folder(folder)}"


def explain_failure(
    stack: str, stderr: str, exit_code: int, folder: Path, known_stacks: Sequence[str] = ()
) -> str | None:
    """Return what to do about a frequent failure of Pulumi's command line, None for any other one.

    Where Pulumi has an exit code for the reason (3.226 and later), the code decides, else what Pulumi prints.

    Args:
        stack: Name of the stack, for the message.
        stderr: What Pulumi printed on its error stream, which holds no secret values.
        exit_code: Pulumi's exit code.
        folder: Folder of the stack's project, in which the commands of the message work.
        known_stacks: Names of the stacks in the backend. If there are none, the backend itself may be the wrong one.
    """
    if missing_stack(stderr, exit_code):
        if known_stacks:
            return (
                f"stack {stack}: must exist in the backend (got none, allowed "
                f"{format_names(known_stacks)}).{did_you_mean(stack, known_stacks)} "
                f"A new one is made by `{up(stack, folder)}`."
            )
        return (
            f"stack {stack}: must exist in the backend. Run `{up(stack, folder)}`, or load the sandbox's backend: "
            '`eval "$(venv/bin/python -m sandbox env)"`.'
        )
    if "passphrase" in stderr:
        reason = next(line.strip() for line in stderr.splitlines() if "passphrase" in line)
        return (
            f"stack {stack}: passphrase must be the one the stack was made with (Pulumi says: {reason[:200]}). Set "
            "PULUMI_CONFIG_PASSPHRASE_FILE, or "
            'inside the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
        )
    if (lock := find_lock(stderr)) is not None:
        return explain_lock(stack, lock, folder)
    if _CUT_OFF in stderr:
        return (
            f"stack {stack}: each file of its state must be whole (Pulumi says: {_CUT_OFF}). A full disk leaves such a "
            f"lock: make room, release it with `{cancel(stack, folder)}`, then run this again."
        )
    if exit_code == PulumiExit.NOT_LOGGED_IN or "PULUMI_ACCESS_TOKEN" in stderr or "pulumi login" in stderr:
        return (
            f"stack {stack}: a Pulumi backend must be chosen. Set PULUMI_BACKEND_URL or run `pulumi login`, or inside "
            'the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
        )
    if refused := _UNAUTHORIZED.search(stderr):
        return (
            f"stack {stack}: the API server must accept who runs Pulumi (Pulumi says: {refused[1].strip()[:300]}). Its "
            "token or certificate may have expired: log in again, then run this again."
        )
    if exit_code == PulumiExit.CANCELLED:
        return (
            f"stack {stack}: Pulumi must run to its end ({explain_exit(exit_code)}, by `pulumi cancel` or by Ctrl-C). "
            "Run this again."
        )
    return None


@dataclass(frozen=True, kw_only=True)
class StackLock:
    """A lock as the CLI describes it: who holds it. Of a lock in Pulumi Cloud all fields are None."""

    user: str | None = None
    host: str | None = None
    pid: int | None = None
    since: str | None = None

    def __str__(self) -> str:
        if self.user is None:
            return "another update"
        return f"{self.user}@{self.host}, process {self.pid}, since {self.since}"

    @property
    def is_left_over(self) -> bool:
        """Whether its process ran on this machine and has ended, so that it is never released."""
        if self.pid is None or self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # it runs, as another user
            return False
        return False


def find_lock(text: str) -> StackLock | None:
    """Return the lock that Pulumi reports as the reason for its failure, None if it reports none.

    Of several locks one whose process still runs comes first.
    """
    if not any(words in text for words in _LOCKED):
        return None
    found = [
        StackLock(user=each["user"], host=each["host"], pid=int(each["pid"]), since=each["since"])
        for each in _BY.finditer(text)
    ]
    running = [lock for lock in found if not lock.is_left_over]
    return next(iter(running or found), StackLock())


def explain_lock(stack: str, lock: StackLock, folder: Path, waited_s: float | None = None) -> str:
    """Return what to do about a stack's lock; `folder` is its project's, `waited_s` how long it was waited for."""
    release = f"its lock, then run this again: {cancel(stack, folder)}."
    if lock.is_left_over:
        return f"stack {stack}: must not be locked (locked by {lock}, which has ended). Release {release}"
    end = "end first" if waited_s is None else f"end within {waited_s:.0f} s"
    return (
        f"stack {stack}: somebody else's update must {end} (locked by {lock}). Wait for it, or if it was killed "
        f"release {release}"
    )
