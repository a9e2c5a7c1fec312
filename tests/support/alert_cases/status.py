"""Whether `ops` observes the mirror from outside, and what it reports."""

from tests.support.alert_cases.case import MIRROR, STACK, Case, Fired, in_both, of, of_operator

_OF = {"stack": STACK, "mirror": MIRROR}
_SOURCE = of("rt_inventory_cluster_reachable", side="source")
_LOOKED = of("rt_inventory_status_timestamp_seconds")
_FAILED, _FAILED_AT_ALL = of("rt_inventory_status_error"), of("rt_inventory_status_error", "")
_STALE = "Nobody observes mirror mm2 of stg"

_OPERATOR = of_operator("up", stack=STACK)
_NO_OPERATOR = Fired(labels={"stack": STACK}, severity="warning", summary="The operator of stg does not answer")

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
    Case(alert="SideUnreachable", name="for a moment", series={_SOURCE: "1x5 0x5 1x20"}, at="11m"),
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
    Case(
        alert="StatusStale",
        name="its target has been gone for a week",
        series={_LOOKED: "0 0 stale"},
        interval="30m",
        at="168h",
        fires=(Fired(labels=_OF, severity="warning", summary=_STALE, said=("7d 0h 0m 0s",)),),
    ),
    Case(alert="StatusStale", name="it reports again after a pause", series={_LOOKED: "60x20 1260x40"}, at="20m"),
    Case(alert="StatusStale", name="its snapshot is ten minutes old", series={_LOOKED: "-600+60x60"}, at="40m"),
    Case(alert="StatusStale", name="it reports every minute", series={_LOOKED: "0+60x60"}, at="40m"),
    Case(alert="StatusStale", name="nobody has ever looked", series={}, at="40m"),
    *in_both(
        Case(
            alert="StatusFails",
            name="it never had a good snapshot",
            series={_FAILED_AT_ALL: "1x30"},
            at="16m",
            fires=(Fired(labels={"stack": STACK}, severity="warning", summary="`ops` cannot inspect stg"),),
        )
    ),
    *in_both(
        Case(
            alert="StatusFails",
            name="it cannot inspect a mirror any more",
            series={_FAILED: "0x5 1x30"},
            at="22m",
            fires=(Fired(labels=_OF, severity="warning", summary="`ops` cannot inspect mirror mm2 of stg"),),
        )
    ),
    *in_both(
        Case(
            alert="StatusFails",
            name="some observations fail",
            series={_FAILED: "1x10 0 1x10 0x9"},
            at="22m",
        )
    ),
    *in_both(
        *(
            Case(
                alert="OperatorDown",
                name=name,
                series={_OPERATOR: values},
                at="30m",
                fires=(_NO_OPERATOR,),
            )
            for name, values in {"it does not answer": "1x5 0x60", "its target vanishes": "1x5 stale"}.items()
        )
    ),
    Case(alert="OperatorDown", name="it never was there", series={}, at="16m", fires=(_NO_OPERATOR,)),
    *in_both(
        Case(
            alert="OperatorDown",
            name="it restarts",
            series={_OPERATOR: "1x5 0x11 1x60"},
            at="17m",
        )
    ),
    Case(alert="OperatorDown", name="plain rules miss none that never was", series={}, at="30m", rules="plain"),
)
