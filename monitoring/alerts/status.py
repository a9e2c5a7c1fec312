"""Whoever looks at both clusters from outside or at resources, and whether anybody does."""

from monitoring.alerts.model import OF_OPERATOR, Alert, AlertGroup, Severity

_LABELS = ("stack", "mirror")

STATUS = AlertGroup(
    name="status",
    dashboard="rt-inventory-fleet",
    alerts=(
        Alert(
            name="SideUnreachable",
            severity=Severity.CRITICAL,
            value="min by (stack, mirror, side) (rt_inventory_cluster_reachable{<mirror>})",
            comparison="<",
            threshold=1,
            hold="10m",
            labels=(*_LABELS, "side"),
            summary="The {{ $labels.side }} of mirror {{ $labels.mirror }} of {{ $labels.stack }} cannot be reached",
            description="It has not answered for 10 minutes where `ops` looks from. If it is the source, this may be "
            "the day for an unplanned failover.",
        ),
        Alert(
            name="StatusStale",
            severity=Severity.WARNING,
            value="time() - max by (stack, mirror)"
            " (last_over_time(rt_inventory_status_timestamp_seconds{<mirror>}[15d]))",
            comparison=">",
            threshold="status_age_seconds",
            hold="10m",
            labels=_LABELS,
            summary="Nobody looks at mirror {{ $labels.mirror }} of {{ $labels.stack }}",
            description="`ops` told its status {{ $value | humanizeDuration }} ago for the last time. Alerts about "
            "lag in seconds, groups and certificates say nothing meanwhile.",
        ),
        Alert(
            name="StatusFails",
            severity=Severity.WARNING,
            # Whoever never had a good look knows no mirror: the label is empty then.
            value="max by (stack, mirror) (rt_inventory_status_error{<stack>})",
            comparison=">",
            threshold=0,
            hold="15m",
            labels=_LABELS,
            mirrors=None,
            summary="`ops` cannot look at {{ with $labels.mirror }}mirror {{ . }} of {{ end }}{{ $labels.stack }}",
            description="Every look for 15 minutes has failed. Alerts about lag in seconds, groups, sides and "
            "certificates say nothing meanwhile.",
        ),
        Alert(
            name="OperatorDown",
            severity=Severity.WARNING,
            value="<operators>",
            comparison="<",
            threshold=1,
            hold="15m",
            labels=OF_OPERATOR,
            mirrors=None,
            dashboard="rt-inventory-cluster",
            summary="The operator of {{ $labels.stack }} does not answer",
            description="Nobody brings resources to what is declared. Alerts about mirrors that are not Ready and "
            "about its authorities say nothing meanwhile.",
        ),
    ),
)
