"""Alerts on a mirror's audit: how fast it uses up its budget, what is at fault, and whether it still reads.

Nobody has to run an audit: without its series no alert fires. The two windows of a burn rate, and its factors, are
those of Google's SRE workbook for an objective over 30 days.
"""

from monitoring.alerts import Alert, AlertGroup, Severity

OBJECTIVE = 0.999
"""Share of the records that should be in buckets which are complete in time: that of an audit's document."""
FAST, SLOW = 14.4, 6.0
"""How many times as fast as the objective allows over 30 days: 2 % of the budget in an hour, 5 % in six."""
_LABELS = ("stack", "mirror")
_AUDIT = "rt_inventory_audit"
_MIRROR = "mirror {{ $labels.mirror }} of {{ $labels.stack }}"
_INTERVAL = f"{_AUDIT}_interval_seconds{{<mirror>}}"


def burn_rate(factor: float) -> float:
    """Return the share of records not complete in time that uses up the budget this many times too fast."""
    return round(factor * (1 - OBJECTIVE), 6)


def _missed(window: str) -> str:
    return f'max by (stack, mirror) ({_AUDIT}_missed_ratio{{<mirror>,window="{window}"}})'


def _burns(name: str, severity: Severity, factor: float, windows: tuple[str, str], description: str) -> Alert:
    """The long window says that it matters, the short one that it still goes on."""
    long, short = windows
    return Alert(
        name=name,
        severity=severity,
        value=_missed(long),
        comparison=">",
        threshold=burn_rate(factor),
        guard=f"and on (stack, mirror) {_missed(short)} > {burn_rate(factor)}",
        hold="0m",
        labels=_LABELS,
        summary="{{ $value | humanizePercentage }} of the records of " + _MIRROR + " were not complete in time",
        description=f"In the last {long}, and in the last {short} as well. {description}",
    )


def _buckets(states: str) -> str:
    """Buckets in these states; 0 where an audit runs and none is."""
    found = f'{_AUDIT}_buckets{{<mirror>,state=~"{states}"}}'
    counted = f"sum by (stack, mirror) (max by (stack, mirror, topic, state) ({found}))"
    return f"{counted} or 0 * max by (stack, mirror) ({_INTERVAL})"


def _last(series: str) -> str:
    """An audit that has ended has no series: remember the last ones for a day."""
    return f"last_over_time({series}[1d])"


AUDIT = AlertGroup(
    name="audit",
    dashboard="rt-inventory-verification",
    alerts=(
        _burns(
            "AuditBudgetBurnsFast",
            Severity.CRITICAL,
            FAST,
            ("1h", "5m"),
            "At this rate what the objective of 99.9 % allows in 30 days is used up in two.",
        ),
        _burns(
            "AuditBudgetBurns",
            Severity.WARNING,
            SLOW,
            ("6h", "30m"),
            "At this rate what the objective of 99.9 % allows in 30 days is used up in five.",
        ),
        Alert(
            name="AuditFoundFault",
            severity=Severity.CRITICAL,
            value=_buckets("missing|altered"),
            comparison=">",
            threshold=0,
            # Records that are late only have arrived by then, unless lag grows: which has alerts of its own.
            hold="15m",
            labels=_LABELS,
            summary="The audit misses records of " + _MIRROR + ", or found others, in {{ $value }} buckets",
            description="For 15 minutes the target has held fewer records than the source in a minute of a partition, "
            "or as many that are not the same.",
        ),
        Alert(
            name="AuditFoundExtra",
            severity=Severity.WARNING,
            value=_buckets("extra"),
            comparison=">",
            threshold=0,
            hold="15m",
            labels=_LABELS,
            summary="The audit found more records at the target of " + _MIRROR + " in {{ $value }} buckets",
            description="For 15 minutes the target has held more records than the source in a minute of a partition.",
        ),
        Alert(
            name="AuditStale",
            severity=Severity.WARNING,
            # The side that was read the longest time ago.
            value=f"(time() - min by (stack, mirror) (max by (stack, mirror, side) "
            f"({_last(f'{_AUDIT}_read_through_timestamp_seconds{{<mirror>}}')}))) "
            f"/ on (stack, mirror) max by (stack, mirror) ({_last(_INTERVAL)})",
            comparison=">",
            threshold="audit_intervals",
            hold="5m",
            labels=_LABELS,
            summary="The audit of " + _MIRROR + " does not read",
            description='A side was not read for {{ $value | printf "%.0f" }} times the interval between two readings. '
            "The other alerts of the audit are not evaluated meanwhile.",
        ),
    ),
)
