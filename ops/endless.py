"""Clients that run until somebody stops them: the signals that ask for it, and a line of progress now and then."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PULSE_S = 30.0


@contextmanager
def until_told() -> Iterator[Callable[[], bool]]:
    """Take SIGTERM and SIGINT for a wish to end; yields whether one came. A second one interrupts what still runs."""
    told = False

    def note(_number: int, _frame: object) -> None:
        nonlocal told
        if told:
            raise KeyboardInterrupt
        told = True

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pulse(
    title: str, say: Callable[[str], None], every_s: float = PULSE_S, clock: Callable[[], float] = time.monotonic
) -> Callable[[int], None]:
    """Return the function that takes the number of records so far and says it, at most once in `every_s` seconds."""
    last = clock()

    def beat(done: int) -> None:
        nonlocal last
        now = clock()
        if now - last >= every_s:
            last = now
            say(f"{title}: {done:,} records")

    return beat
