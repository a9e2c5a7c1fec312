"""Faults that begin and end at their times, whatever they do."""

import time
from collections.abc import Callable, Iterable

from benchmarks.nemesis.schedule import ScheduledFault

Act = Callable[[ScheduledFault], None]


def inject(faults: Iterable[ScheduledFault], begin: Act, end: Act) -> None:
    """Call `begin` and `end` of each fault at its times, in seconds from now; return after the last end."""
    moments: list[tuple[float, int, Act, ScheduledFault]] = []
    for number, fault in enumerate(faults):
        moments += [(fault.at_s, number, begin, fault), (fault.until_s, number, end, fault)]
    began = time.monotonic()
    for at_s, _, act, fault in sorted(moments, key=lambda one: one[:2]):
        time.sleep(max(0.0, began + at_s - time.monotonic()))
        act(fault)
