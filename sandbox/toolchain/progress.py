"""Progress of the set-up: one line when a step starts, one when it ends, and the running steps with their seconds.

On a terminal the running steps are live; elsewhere a line names them every 10 seconds.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

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

    def say(self, text: str) -> None:
        """One line of text."""
        self._erase()
        self._stream.write(text + "\n")
        self._draw()

    def started(self, title: str, detail: Callable[[], str] = lambda: "") -> None:
        """A step starts; `detail` says how far it is, in a few words or none."""
        self._running[title] = _Running(time.monotonic(), detail)
        if self._live:
            self.tick()
        else:
            self.say(f"  start  {title}")

    def done(self, title: str) -> None:
        """A step ended well."""
        seconds = time.monotonic() - self._running.pop(title).since
        self.say(f"  done   {title} ({seconds:.1f} s)")

    def failed(self, title: str) -> None:
        """A step failed."""
        seconds = time.monotonic() - self._running.pop(title).since
        self.say(f"  FAILED {title} ({seconds:.1f} s)")

    def tick(self) -> None:
        """Draw the running steps again, on a terminal; elsewhere name those that take long, from time to time."""
        if self._live:
            self._erase()
            self._draw()
        elif time.monotonic() - self._reported >= REPORT_EVERY_S:
            self._report()

    def close(self) -> None:
        """Take the live lines away."""
        self._running.clear()
        self._erase()
        self._stream.flush()

    def _report(self) -> None:
        self._reported = time.monotonic()
        slow = {
            title: running
            for title, running in self._running.items()
            if self._reported - running.since >= REPORT_EVERY_S
        }
        if slow:
            self.say(f"  ...    {', '.join(running.text(title) for title, running in slow.items())}")

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
