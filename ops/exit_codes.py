"""What the exit code of Pulumi's command line means.

From 3.226 on Pulumi ends with a code for each kind of failure; earlier releases, such as the sandbox's 3.218, end with
255 for nearly all of them, and what happened is known by what they print only.
"""

import signal
from enum import IntEnum


class PulumiExit(IntEnum):
    """The codes that this project acts on."""

    NOT_LOGGED_IN = 3
    NO_SUCH_STACK = 6
    UNEXPECTED_CHANGES = 7
    CANCELLED = 8


_MEANINGS = {
    1: "it failed",
    2: "it does not accept its options or its configuration",
    PulumiExit.NOT_LOGGED_IN: "nobody is logged in to the backend",
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
