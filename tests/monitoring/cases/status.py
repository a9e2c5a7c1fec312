"""Whether somebody looks from outside, and what that shows."""

from tests.monitoring.cases.case import MIRROR, STACK, Case, Fired, of

_OF = {"stack": STACK, "mirror": MIRROR}
_SOURCE = of("rt_inventory_cluster_reachable", side="source")
_LOOKED = of("rt_inventory_status_timestamp_seconds")
_STALE = "Nobody looks at mirror mm2 of stg"

STATUS_CASES = (
    Case(
        alert="SideUnreachable",
        name="the source does not answer",
        series={_SOURCE: "1x5 0x20"},
        at="16m",
        fires=(
            Fired(
                labels={**_OF, "side": "source"},
                severity="critical",
                summary="The source of mirror mm2 of stg cannot be reached",
            ),
        ),
    ),
    Case(alert="SideUnreachable", name="for a moment", series={_SOURCE: "1x5 0x5 1x20"}, at="16m"),
    Case(
        alert="StatusStale",
        name="its timer stands still",
        series={_LOOKED: "60x60"},
        at="40m",
        fires=(Fired(labels=_OF, severity="warning", summary=_STALE, said=("39m 0s",)),),
    ),
    Case(
        alert="StatusStale",
        name="its target vanishes",
        series={_LOOKED: "0 60 stale"},
        at="40m",
        fires=(Fired(labels=_OF, severity="warning", summary=_STALE, said=("39m 0s",)),),
    ),
    Case(alert="StatusStale", name="it looks every minute", series={_LOOKED: "0+60x60"}, at="40m"),
    Case(alert="StatusStale", name="nobody has ever looked", series={}, at="40m"),
)
