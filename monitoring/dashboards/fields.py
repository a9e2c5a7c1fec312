"""Value mappings and thresholds of panels: the texts shown for 0, 1 and 2, and the colours of numbers and cells."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from monitoring.alerts.model import Thresholds


class Colour(StrEnum):
    """Colours as Grafana names them; each means the same everywhere."""

    GOOD = "green"
    WARNING = "orange"
    BAD = "red"
    PLANNED = "blue"
    UNKNOWN = "purple"
    NEUTRAL = "text"


ValueMappings = Mapping[int, tuple[str, Colour]]
LabelValues = Mapping[str, Colour]

# Values of a label, from the least to the most grave: see queries.coded.
CONNECTOR_STATES: LabelValues = {
    "running": Colour.GOOD,
    "paused": Colour.PLANNED,
    "stopped": Colour.PLANNED,
    "restarting": Colour.WARNING,
    "unassigned": Colour.WARNING,
    "destroyed": Colour.BAD,
    "failed": Colour.BAD,
}
MIRROR_STATES: LabelValues = {"running": Colour.GOOD, "paused": Colour.PLANNED, "stopped": Colour.PLANNED}
SIDES: LabelValues = {"source": Colour.GOOD, "target": Colour.WARNING}
VERDICTS: LabelValues = {
    "pass": Colour.GOOD,
    "stopped": Colour.UNKNOWN,
    "unknown": Colour.WARNING,
    "error": Colour.BAD,
    "fail": Colour.BAD,
}

UP: ValueMappings = {0: ("down", Colour.BAD), 1: ("up", Colour.GOOD)}
RUNNING: ValueMappings = {0: ("not running", Colour.BAD), 1: ("running", Colour.GOOD)}
REACHED: ValueMappings = {0: ("no answer", Colour.BAD), 1: ("answers", Colour.GOOD)}
STATUS_RUN: ValueMappings = {0: ("good", Colour.GOOD), 1: ("failed", Colour.BAD)}
READY: ValueMappings = {0: ("not ready", Colour.BAD), 1: ("ready", Colour.GOOD)}
CHECK: ValueMappings = {-1: ("unknown", Colour.WARNING), 0: ("fails", Colour.BAD), 1: ("holds", Colour.GOOD)}
NEVER: ValueMappings = {-1: ("never", Colour.GOOD)}
REBALANCING: ValueMappings = {0: ("steady", Colour.GOOD), 1: ("rebalancing", Colour.WARNING)}


def numbered(label_values: LabelValues) -> ValueMappings:
    """Return the words under the numbers that queries.coded gives them."""
    return {number: (word, colour) for number, (word, colour) in enumerate(label_values.items(), start=1)}


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
