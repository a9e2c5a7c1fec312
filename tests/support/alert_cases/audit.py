"""What an audit serves. It is nobody's duty to run one: no case fires without its series."""

from tests.support.alert_cases.case import MIRROR, STACK, Case, Fired, in_both, of

_OF = {"stack": STACK, "mirror": MIRROR}
_AUDIT = "rt_inventory_audit_"
_INTERVAL = of(f"{_AUDIT}interval_seconds")
_WHOSE = "mirror mm2 of stg"
_BUDGET = {"AuditBudgetBurnsFast": ("1h", "5m", "critical"), "AuditBudgetBurns": ("6h", "30m", "warning")}
_LATE = {"AuditBudgetBurnsFast": 0.02, "AuditBudgetBurns": 0.01}
"""A share beyond the alert's own; half of it is within."""


def _missed(window: str, mirror: str = MIRROR) -> str:
    return of(f"{_AUDIT}missed_ratio", mirror, window=window)


def _buckets(state: str, topic: str = "items", mirror: str = MIRROR) -> str:
    return of(f"{_AUDIT}buckets", mirror, topic=topic, state=state)


def _read_through(side: str, mirror: str = MIRROR) -> str:
    return of(f"{_AUDIT}read_through_timestamp_seconds", mirror, side=side)


def _fired(summary: str, severity: str = "critical", *said: str) -> tuple[Fired]:
    return (Fired(labels=_OF, severity=severity, summary=summary, said=said),)


def _shown(share: float) -> str:
    return f"{100 * share:g}%"


_BURNING = tuple(
    case
    for alert, (long, short, severity) in _BUDGET.items()
    for share in (_LATE[alert],)
    for case in (
        *in_both(
            Case(
                alert=alert,
                name="in both windows",
                series={_missed(long): f"{share}x20", _missed(short): f"{share}x20"},
                at="7m",
                fires=_fired(f"{_shown(share)} of the records of {_WHOSE} were not complete in time", severity),
            ),
            Case(alert=alert, name="nobody runs an audit", series={}, at="7m"),
            Case(
                alert=alert,
                name="it is over",
                series={_missed(long): f"{share}x20", _missed(short): "0x20"},
                at="7m",
            ),
            Case(
                alert=alert,
                name="it has just begun",
                series={_missed(long): f"{share / 2}x20", _missed(short): "1x20"},
                at="7m",
            ),
        ),
        Case(
            alert=alert,
            name="nothing was due in the short window, and the other mirror is stopped",
            series={_missed(long): "1x20", _missed(long, "resting"): "1x20", _missed(short, "resting"): "1x20"},
            at="7m",
        ),
    )
)

AUDIT_CASES = (
    *_BURNING,
    *in_both(
        Case(
            alert="AuditFoundFault",
            name="of two topics and kinds, by two scrapes",
            series={
                _buckets("missing"): "2x40",
                _buckets("missing").replace("}", ',instance="other"}'): "2x40",
                _buckets("altered", "orders"): "1x40",
                _buckets("extra"): "5x40",
                _INTERVAL: "10x40",
            },
            at="20m",
            fires=_fired(f"The audit misses records of {_WHOSE}, or found others, in 3 buckets"),
        ),
        Case(
            alert="AuditFoundFault",
            name="they arrive late",
            series={_buckets("missing"): "2x10 0x30", _buckets("late"): "0x10 2x30", _INTERVAL: "10x40"},
            at="14m",
        ),
        Case(
            alert="AuditFoundFault",
            name="not for long",
            series={_buckets("missing"): "2x40", _INTERVAL: "10x40"},
            at="14m",
        ),
        Case(alert="AuditFoundFault", name="nobody runs an audit", series={}, at="20m"),
        Case(
            alert="AuditFoundExtra",
            name="a worker has copied again",
            series={_buckets("extra"): "2x40", _buckets("missing"): "1x40", _INTERVAL: "10x40"},
            at="20m",
            fires=_fired(f"The audit found more records at the target of {_WHOSE} in 2 buckets", "warning"),
        ),
        Case(
            alert="AuditFoundExtra",
            name="not for long",
            series={_buckets("extra"): "2x40", _INTERVAL: "10x40"},
            at="14m",
        ),
        Case(
            alert="AuditFoundExtra",
            name="all is complete",
            series={_buckets("complete"): "2x40", _INTERVAL: "10x40"},
            at="20m",
        ),
        Case(
            alert="AuditStale",
            name="the target does not answer",
            series={_read_through("source"): "0+60x40", _read_through("target"): "0x40", _INTERVAL: "10x40"},
            at="15m",
            fires=_fired(f"The audit of {_WHOSE} does not read", "warning", "90"),
        ),
        Case(
            alert="AuditStale",
            name="it has ended",
            series={
                _read_through("source"): "0 0 stale",
                _read_through("target"): "0 0 stale",
                _INTERVAL: "10 10 stale",
            },
            at="15m",
            fires=_fired(f"The audit of {_WHOSE} does not read", "warning", "90"),
        ),
        Case(
            alert="AuditStale",
            name="not for long",
            series={_read_through("source"): "0x40", _read_through("target"): "0x40", _INTERVAL: "10x40"},
            at="8m",
        ),
        Case(
            alert="AuditStale",
            name="it reads every five minutes",
            series={_read_through("source"): "0x40", _read_through("target"): "0x40", _INTERVAL: "300x40"},
            at="15m",
        ),
        Case(alert="AuditStale", name="nobody runs an audit", series={}, at="15m"),
    ),
    Case(
        alert="AuditFoundFault",
        name="of a mirror that is stopped",
        series={_buckets("missing", mirror="resting"): "2x40"},
        at="20m",
    ),
)
