"""Waiting for a condition, as all tests do it: with a deadline, and with progress every ten seconds."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

PATIENCE = 3.0
PROGRESS_S = 10.0


def at_most(seconds: float) -> float:
    """The deadline, in seconds, of a command that takes so long at most on a machine without other load."""
    return seconds * PATIENCE


def wait_until(
    what: str,
    condition: Callable[[], Any],
    deadline_s: float = 60.0,
    *,
    every_s: float = 0.2,
    otherwise: Callable[[], str] = str,
) -> Any:
    """Return the first true answer of `condition`.

    Args:
        what: What is waited for, for the messages.
        condition: Asked every `every_s` seconds.
        deadline_s: What a machine without other load needs at most; the wait ends after `PATIENCE` times as long,
            because it must not fail for the load alone.
        every_s: Seconds between two questions, or twice as long as the question took, if that is more: one that is
            costly must not take the machine from what it waits for.
        otherwise: What is known when the deadline has passed, for the message.

    Raises:
        AssertionError: The deadline has passed.
    """
    began = time.monotonic()
    progress_at = began + PROGRESS_S
    end = began + at_most(deadline_s)
    while True:
        asked = time.monotonic()
        if answer := condition():
            return answer
        now = time.monotonic()
        assert now < end, f"waited {now - began:.0f} s for: {what}. {otherwise()}".rstrip()
        if now >= progress_at:
            sys.stderr.write(f"waiting for: {what} ({now - began:.0f} s of {at_most(deadline_s):.0f} s)\n")
            progress_at += PROGRESS_S
        time.sleep(max(every_s, 2 * (now - asked)))


def wait_for_line(process: "subprocess.Popen[str]", part: str, deadline_s: float = 60.0) -> None:
    """Read what a process prints until a line holds `part`. It is killed `PATIENCE` times `deadline_s` later.

    Raises:
        AssertionError: The process ended without such a line; the message has what it printed.
    """
    printed: list[str] = []
    for line in lines(process, process.stdout, f"a line with {part!r}", deadline_s):
        printed.append(line)
        if part in line:
            return
    raise AssertionError(f"the process ended without a line with {part!r}: {''.join(printed)}")


def lines(
    process: "subprocess.Popen[str]", stream: IO[str] | None, what: str, deadline_s: float = 60.0
) -> Iterator[str]:
    """Yield what a process writes to one of its pipes, line by line. It is killed `PATIENCE` times `deadline_s` later.

    Raises:
        AssertionError: It was killed; the message says what was waited for, and has what it wrote.
    """
    written: list[str] = []
    late = threading.Event()

    def kill() -> None:
        late.set()
        process.kill()

    watchdog = threading.Timer(at_most(deadline_s), kill)
    watchdog.start()
    try:
        for line in stream or ():
            written.append(line)
            yield line
    finally:
        watchdog.cancel()
    assert not late.is_set(), f"waited {at_most(deadline_s):.0f} s for {what}: {''.join(written)}"
