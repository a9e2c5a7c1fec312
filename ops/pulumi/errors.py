"""Why Pulumi's command line failed: its exit codes, what it prints, and the lock of a stack.

From 3.226 on Pulumi ends with a code for each kind of failure; earlier releases, such as the sandbox's 3.218, end with
255 for nearly all of them, and only what they print gives the reason.
"""

import os
import re
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from ops.errors import OpsError
from settings.text import did_you_mean, format_names

_LOCKED = ("the stack is currently locked", "Another update is currently in progress")
_BY = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


class PulumiExit(IntEnum):
    """The exit codes on which this project acts."""

    NOT_LOGGED_IN = 3
    NO_SUCH_STACK = 6
    UNEXPECTED_CHANGES = 7
    CANCELLED = 8


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


def no_pulumi(stack: str) -> OpsError:
    """Return the error of a command that did not find Pulumi."""
    return OpsError(
        f"stack {stack}: pulumi must be on PATH. Install it, or in the sandbox: "
        '`eval "$(venv/bin/python -m sandbox env)"`.'
    )


def missing_stack(text: str, exit_code: int) -> bool:
    """Whether Pulumi failed because its backend has no stack of the name."""
    return exit_code == PulumiExit.NO_SUCH_STACK or "no stack named" in text


def explain_failure(stack: str, stderr: str, exit_code: int, known_stacks: Sequence[str] = ()) -> str | None:
    """Return what to do about a frequent failure of Pulumi's command line, None for any other one.

    Where Pulumi has an exit code for the reason (3.226 and later), the code decides, else what Pulumi prints.

    Args:
        stack: Name of the stack, for the message.
        stderr: What Pulumi printed on its error stream, which holds no secret values.
        exit_code: Pulumi's exit code.
        known_stacks: Names of the stacks in the backend. If there are none, the backend itself may be the wrong one.
    """
    if missing_stack(stderr, exit_code):
        if known_stacks:
            return (
                f"stack {stack}: must exist in the backend (got none, allowed "
                f"{format_names(known_stacks)}).{did_you_mean(stack, known_stacks)} "
                f"A new one is made by `pulumi up -s {stack}`."
            )
        return (
            f"stack {stack}: must exist in the backend. Run `pulumi up -s {stack}`, or load the sandbox's backend: "
            '`eval "$(venv/bin/python -m sandbox env)"`.'
        )
    if "passphrase" in stderr:
        reason = next(line.strip() for line in stderr.splitlines() if "passphrase" in line)
        return (
            f"stack {stack}: passphrase must be the one the stack was made with (Pulumi says: {reason[:200]}). Set "
            "PULUMI_CONFIG_PASSPHRASE_FILE, or "
            'inside the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
        )
    if "currently locked" in stderr:
        by = next((line.strip() for line in stderr.splitlines() if "created by" in line), "")
        return (
            f"stack {stack}: another run must end first (locked{f', {by}' if by else ''}). Wait for it; "
            f"if it was killed, release its lock: pulumi cancel -s {stack}."
        )
    if exit_code == PulumiExit.NOT_LOGGED_IN or "PULUMI_ACCESS_TOKEN" in stderr or "pulumi login" in stderr:
        return (
            f"stack {stack}: a Pulumi backend must be chosen. Set PULUMI_BACKEND_URL or run `pulumi login`, or inside "
            'the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
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
