"""Prints on standard error what a run is doing, and records how long each step took.

Secrets are taken out of each line, and what a terminal would not show as text is made visible: names of groups are
written by others. On a terminal a live line below them shows the stage and, while records are read, partitions
done, records a second and the time left. Everywhere else there are plain lines only.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from contract.terminal import printable
from kafka.errors import redact

REDRAWS_PER_S = 4


class Progress:
    """Prints what is being done, a line that repeats the last one left out, and records how long each step took."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.started = time.monotonic()
        self.steps: list[dict[str, Any]] = []
        self._stream = stream or sys.stderr
        self._secrets: Sequence[str] = ()
        self._last = ""
        self._stage = ""
        self._began = self.started
        self._done: tuple[int, int, int, int] | None = None
        self._live: Live | None = None
        if self._stream.isatty():
            console = Console(file=self._stream)
            self._live = Live(
                console=console,
                get_renderable=self._drawn,
                refresh_per_second=REDRAWS_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def hide(self, secrets: Sequence[str]) -> None:
        """Take these secrets out of every line from now on."""
        self._secrets = secrets

    def _fit(self, text: str) -> str:
        return printable(redact(text, self._secrets), lines=False)

    def __call__(self, text: str) -> None:
        """Print one line, unless it repeats the last one."""
        text = self._fit(text)
        if text != self._last:
            line = f"[{time.monotonic() - self.started:6.1f} s] {text}"
            if self._live is None:
                self._stream.write(f"{line}\n")
                self._stream.flush()
            else:
                self._live.console.print(Text(line))
        self._last = text

    def step(self, name: str, began: float) -> None:
        """Record that a step that began at this monotonic time has ended."""
        self.steps.append({"step": name, "seconds": round(time.monotonic() - began, 2)})

    def stage(self, name: str) -> None:
        """Name what is being done from now on, in the live line."""
        self._stage, self._done, self._began = name, None, time.monotonic()

    def advance(self, partitions_done: int, partitions: int, records_done: int, records: int) -> None:
        """Note how far the reading of records is; from any thread, as often as one likes."""
        self._done = (partitions_done, partitions, records_done, records)

    def close(self) -> None:
        """Take the live line away; later lines are plain ones."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _drawn(self) -> Text:
        """Return the live line for the width of the terminal."""
        width = self._live.console.width if self._live is not None else None
        return Text(self.line(time.monotonic(), width), no_wrap=True, overflow="ellipsis", style="bold")

    def line(self, now: float, width: int | None = None) -> str:
        """Return the live line at a monotonic time. Where it is longer than `width`, the rate is left out first.

        Then the partitions are. The time left stays.
        """
        text = f"[{now - self.started:6.1f} s] {self._fit(self._stage) or 'starting'}"
        if self._done is None:
            return text
        partitions_done, partitions, records_done, records = self._done
        rate = records_done / max(now - self._began, 0.1)
        facts = [f"{partitions_done} of {partitions} partitions", f"{rate:,.0f} records/s"]
        left = [f"{_duration((records - records_done) / rate)} left"] if rate > 0 and records > records_done else []
        while width is not None and facts and len(" | ".join([text, *facts, *left])) > width:
            facts.pop()
        line = " | ".join([text, *facts, *left])
        if width is None or len(line) <= width:
            return line
        end = " | ".join(["", *left])
        return f"{text[: max(0, width - len(end) - 1)]}…{end}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02} min"
