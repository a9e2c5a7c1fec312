"""The rules of the numbers that `python -m ops size` is given: every problem is told, all at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ops.errors import OpsError

T = TypeVar("T")
_SMALLEST_BUFFER = 1024


@dataclass
class Options:
    """Reads options and remembers what is wrong with them; a wrong one reads as a value that works."""

    problems: list[str] = field(default_factory=list)

    def of(self, read: Callable[[], T], otherwise: T) -> T:
        """Return what `read` returns; `otherwise`, with its problem remembered, if it raises OpsError."""
        try:
            return read()
        except OpsError as error:
            self.problems.append(str(error))
            return otherwise

    def number(self, name: str, text: str | None, least: float, most: float) -> float:
        """Return a number within its limits."""
        try:
            value = float(text or "")
        except ValueError:
            value = math.nan
        if least <= value <= most:
            return value
        return self._wrong(name, text, f"a number from {least:g} to {most:g}", least)

    def count(self, name: str, text: str | None, most: int = 1_000_000) -> int:
        """Return a whole number from 1."""
        value = _whole(text)
        if value is not None and 1 <= value <= most:
            return value
        return self._wrong(name, text, f"a whole number from 1 to {most}", 1)

    def buffer(self, name: str, text: str) -> int:
        """Return a socket's buffer in bytes, -1 for the system's choice."""
        value = _whole(text)
        if value is not None and (value == -1 or value >= _SMALLEST_BUFFER):
            return value
        return self._wrong(name, text, f"-1 (the system chooses) or a whole number >= {_SMALLEST_BUFFER}", -1)

    def choice(self, name: str, text: str, allowed: Sequence[str]) -> str:
        """Return one of the allowed words."""
        return text if text in allowed else self._wrong(name, text, f"one of {', '.join(allowed)}", allowed[0])

    def _wrong(self, name: str, text: str | None, rule: str, otherwise: T) -> T:
        got = "nothing" if text is None else repr(text)
        self.problems.append(f"{name}: must be {rule} (got {got}).")
        return otherwise


def _whole(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
