"""How a process that a command has started is ended, with everything that it started itself."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable


def end(process: "subprocess.Popen[bytes]", signals: Iterable[tuple[signal.Signals, float]]) -> None:
    """Send signals to a process of a session of its own, each followed by its seconds of patience, until it is gone."""
    for number, wait_s in signals:
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=wait_s)
