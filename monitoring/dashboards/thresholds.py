"""From which value on a number is no longer good: the colours of numbers, cells and dashed lines."""

from collections.abc import Sequence

from monitoring.alerts.model import Thresholds
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

_SECOND_MS, _HOUR, _DAY = 1_000, 3_600, 86_400
# Where an alert compares with a number, a panel shows the same one; a stack may have its own, see its settings.
_ALERTS = Thresholds()
LAG_RECORDS = limits(_ALERTS.lag_rising_records, 10 * _ALERTS.lag_rising_records)
LAG_SECONDS = limits(_ALERTS.lag_seconds, _ALERTS.lag_critical_seconds)
LATENCY_MS = limits(_ALERTS.replication_latency_p99_ms, 5 * _ALERTS.replication_latency_p99_ms)
CHECKPOINT_AGE_SECONDS = limits(_ALERTS.checkpoint_age_seconds, 4 * _ALERTS.checkpoint_age_seconds)
CHECKPOINT_LATENCY_MS = limits(10 * _SECOND_MS, 60 * _SECOND_MS)
UNSYNCED_RECORDS = limits(_ALERTS.group_unsynced_records, 10 * _ALERTS.group_unsynced_records)
VERIFIED_SECONDS = limits(_HOUR * _ALERTS.verification_age_hours, 3 * _HOUR * _ALERTS.verification_age_hours)
STATUS_SECONDS = limits(_ALERTS.status_age_seconds, 4 * _ALERTS.status_age_seconds)
EXPIRY_SECONDS = at_least(_DAY * _ALERTS.certificate_critical_days, _DAY * _ALERTS.certificate_warning_days)
COMMIT_FAILURES = limits(_ALERTS.offset_commit_failure_ratio, 5 * _ALERTS.offset_commit_failure_ratio)
COMMIT_MS = limits(5 * _SECOND_MS, 30 * _SECOND_MS)
REBALANCE_MS = limits(30 * _SECOND_MS, 120 * _SECOND_MS)
IDLE = at_least(0.1, 0.3)
MEMORY = limits(0.8, 0.95)
GARBAGE = limits(0.1, 0.3)
SOME: Steps = ((0, Colour.BAD), (1, Colour.NEUTRAL))
