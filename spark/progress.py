"""Tells on standard error what a run is doing, and how long each step took."""

import sys
import time
from typing import Any


class Progress:
    """Says on standard error what is being done, each line once in a row, and remembers how long each step took."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.steps: list[dict[str, Any]] = []
        self._last = ""

    def __call__(self, text: str) -> None:
        """Say one line, unless it is the one said last."""
        if text != self._last:
            sys.stderr.write(f"[{time.monotonic() - self.started:6.1f} s] {text}\n")
            sys.stderr.flush()
        self._last = text

    def step(self, name: str, began: float) -> None:
        """Record that a step that began at this monotonic time has ended."""
        self.steps.append({"step": name, "seconds": round(time.monotonic() - began, 2)})
