"""Progress of the set-up: one line when a step starts, one when it ends; on a terminal the running ones are live."""

import sys
import time
from typing import TextIO


class Progress:
    """Writes progress lines. Used by one thread."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._running: dict[str, float] = {}
        self._drawn = 0

    def say(self, text: str) -> None:
        """One line of text."""
        self._erase()
        self._stream.write(text + "\n")
        self._draw()

    def started(self, title: str) -> None:
        """A step starts."""
        self._running[title] = time.monotonic()
        if self._live:
            self.tick()
        else:
            self.say(f"  start  {title}")

    def done(self, title: str) -> None:
        """A step ended well."""
        seconds = time.monotonic() - self._running.pop(title)
        self.say(f"  done   {title} ({seconds:.1f} s)")

    def failed(self, title: str) -> None:
        """A step failed."""
        seconds = time.monotonic() - self._running.pop(title)
        self.say(f"  FAILED {title} ({seconds:.1f} s)")

    def tick(self) -> None:
        """Draw the running steps again, on a terminal."""
        self._erase()
        self._draw()

    def close(self) -> None:
        """Take the live lines away."""
        self._running.clear()
        self._erase()
        self._stream.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0

    def _draw(self) -> None:
        if self._live:
            now = time.monotonic()
            for title, since in self._running.items():
                self._stream.write(f"  ...    {title} ({now - since:.0f} s)\n")
            self._drawn = len(self._running)
        self._stream.flush()
