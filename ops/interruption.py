"""How a process that a command has started is ended, with everything that it started itself."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator

ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end."""


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Deliver signals that ask this process to end only when the block has ended.

    For the start of a child: one that interrupted it would leave a child that nobody knows. Signals that are ignored,
    and those of another thread than the main one, which gets none, are left as they are.
    """
    arrived: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in ASKED}
        before = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


def end(process: "subprocess.Popen[bytes]", signals: Iterable[tuple[signal.Signals, float]]) -> None:
    """Send signals to a process of a session of its own, each followed by its seconds of patience, until it is gone."""
    for number, wait_s in signals:
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=wait_s)
