"""From which value on a number is no longer good: the colours of numbers, cells and dashed lines."""

from collections.abc import Sequence

from monitoring.dashboards.words import Colour

Steps = Sequence[tuple[float, Colour]]


def limits(warning: float, bad: float) -> Steps:
    """Return steps for what must stay small."""
    return ((0, Colour.GOOD), (warning, Colour.WARNING), (bad, Colour.BAD))


def at_least(warning: float, good: float) -> Steps:
    """Return steps for what must not be less."""
    return ((0, Colour.BAD), (warning, Colour.WARNING), (good, Colour.GOOD))


PLAIN: Steps = ((0, Colour.NEUTRAL),)
NONE_ALLOWED: Steps = ((0, Colour.GOOD), (1, Colour.BAD))
NONE_WISHED: Steps = ((0, Colour.GOOD), (1, Colour.WARNING))
ONE_EXACTLY: Steps = ((0, Colour.BAD), (1, Colour.GOOD), (2, Colour.BAD))

_MINUTE, _DAY = 60, 86_400
LAG_RECORDS = limits(10_000, 100_000)
LAG_SECONDS = limits(5 * _MINUTE, 15 * _MINUTE)
LATENCY_MS = limits(60_000, 300_000)
CHECKPOINT_AGE_SECONDS = limits(5 * _MINUTE, 15 * _MINUTE)
CHECKPOINT_LATENCY_MS = limits(10_000, 60_000)
UNSYNCED_RECORDS = limits(10_000, 100_000)
VERIFIED_SECONDS = limits(_DAY, 3 * _DAY)
STATUS_SECONDS = limits(5 * _MINUTE, 15 * _MINUTE)
EXPIRY_SECONDS = at_least(14 * _DAY, 30 * _DAY)
COMMIT_FAILURES = limits(0.01, 0.1)
COMMIT_MS = limits(5_000, 30_000)
REBALANCE_MS = limits(30_000, 120_000)
IDLE = at_least(0.1, 0.3)
MEMORY = limits(0.8, 0.95)
GARBAGE = limits(0.1, 0.3)
SOME: Steps = ((0, Colour.BAD), (1, Colour.GOOD))
