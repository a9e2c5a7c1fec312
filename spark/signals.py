"""Signals from the first moment on: one that arrives while modules are loaded ends the run as soon as it could begin.

Imports nothing that takes time.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType

STOPPED = 130
_NUMBERS = (signal.SIGTERM, signal.SIGINT)
_arrived: list[int] = []


def hold() -> None:
    """Remember the first SIGTERM or SIGINT for `handle`; a second one ends the process at once."""
    for number in _NUMBERS:
        signal.signal(number, _remember)


def handle(handler: Callable[[int, FrameType | None], None]) -> None:
    """Give both signals to a handler, first of all one that has arrived already."""
    for number in _NUMBERS:
        signal.signal(number, handler)
    if _arrived:
        handler(_arrived.pop(), None)


def ignore() -> None:
    """Let what was begun come to its end: the run is over, its result is being reported."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _remember(number: int, frame: FrameType | None) -> None:
    if _arrived:
        os._exit(STOPPED)
    _arrived.append(number)
