"""Workers, connectors and tasks, and the operator's opinion."""

from tests.support.alert_cases.case import MIRROR, STACK, Case, Fired, also_at, in_both, of, of_operator, of_worker

_SOURCE = "es-src->es-tgt.MirrorSourceConnector"
_READY = of_operator("strimzi_resource_state", kind="KafkaMirrorMaker2", name=MIRROR, reason="none")
_UNREADY = of_operator("strimzi_resource_state", kind="KafkaMirrorMaker2", name=MIRROR, reason="ConnectRestException")
_UP, _UP_TOO = of_worker("up"), of_worker("up", pod="mm2-1")
_OF = {"stack": STACK, "mirror": MIRROR}


def _connector(status: str, pod: str = "mm2-0") -> str:
    return of_worker("kafka_connect_connector_metrics_status", pod=pod, connector=_SOURCE, status=status)


def _task(status: str, task: str = "0", mirror: str = MIRROR) -> str:
    return of_worker("kafka_connect_connector_task_metrics_status", mirror, connector=_SOURCE, task=task, status=status)


_DOWN = Fired(labels=_OF, severity="critical", summary="Mirror mm2 of stg has no worker")
_TASK_STOPPED = Fired(
    labels={**_OF, "connector": _SOURCE, "task": "1"},
    severity="critical",
    summary=f"Task 1 of connector {_SOURCE} does not run",
)
_CONNECTOR_STOPPED = Fired(
    labels={**_OF, "connector": _SOURCE}, severity="critical", summary=f"Connector {_SOURCE} of stg does not run"
)
_OTHERS = {of_worker("up", "plainest"): "1x60"}
_CRASHING = "1x5 " + "0 0 0 0 1 " * 12
_MISSING = Fired(labels=_OF, severity="warning", summary="1 workers of mirror mm2 of stg are missing")
_ONE_TASK_FAILS = {_task("running"): "1x30", _task("running", "1"): "1x5 stale", _task("failed", "1"): "_x6 1x20"}

MIRROR_CASES = (
    Case(
        alert="MirrorDown", name="the only worker dies", series={**_OTHERS, _UP: "1x5 0x20"}, at="12m", fires=(_DOWN,)
    ),
    Case(
        alert="MirrorDown", name="it is scraped no more", series={**_OTHERS, _UP: "1x5 stale"}, at="12m", fires=(_DOWN,)
    ),
    Case(alert="MirrorDown", name="it never was scraped", series=_OTHERS, at="12m", fires=(_DOWN,)),
    Case(alert="MirrorDown", name="a rolling restart", series={**_OTHERS, _UP: "1x5 0x3 1x20"}, at="9m"),
    Case(alert="MirrorDown", name="one of two is left", series={**_OTHERS, _UP: "0x20", _UP_TOO: "1x20"}, at="12m"),
    Case(
        alert="MirrorDown",
        name="plain rules remember a mirror that is scraped no more",
        series={_UP: "1x5 stale"},
        at="12m",
        rules="plain",
        fires=(_DOWN,),
    ),
    Case(
        alert="MirrorDown",
        name="plain rules leave out what was stopped on purpose",
        series={_UP: "1x5 stale", of("rt_inventory_mirror_state", state="stopped"): "1x20"},
        at="12m",
        rules="plain",
    ),
    *in_both(
        *(
            Case(
                alert="WorkerDown",
                name=name,
                series={**_OTHERS, _UP: values, _UP_TOO: "1x60"},
                at="30m",
                fires=(_MISSING,),
            )
            for name, values in {"it does not answer": "1x5 0x60", "one scrape in five succeeds": _CRASHING}.items()
        )
    ),
    Case(
        alert="WorkerDown",
        name="one of two was never there",
        series={**_OTHERS, _UP: "1x60"},
        at="30m",
        fires=(_MISSING,),
    ),
    Case(
        alert="WorkerDown",
        name="one more than the settings ask for crashes again and again",
        series={**_OTHERS, _UP: "1x60", _UP_TOO: "1x60", of_worker("up", pod="mm2-2"): _CRASHING},
        at="30m",
        fires=(_MISSING,),
    ),
    *in_both(
        *also_at(
            Case(
                alert="WorkerDown",
                name="one after the other restarts",
                series={**_OTHERS, _UP: "1x2 0x5 1x60", _UP_TOO: "1x8 0x5 1x60"},
                at="16m",
            ),
            "22m",
            "30m",
        )
    ),
    *in_both(
        Case(
            alert="WorkerDown",
            name="a single long restart",
            series={**_OTHERS, _UP: "1x20 0x8 1x60", _UP_TOO: "1x80"},
            at="36m",
        )
    ),
    Case(
        alert="WorkerDown",
        name="pods become other targets",
        series={**_OTHERS, _UP: "1x5 stale", _UP.replace("}", ',instance="new"}'): "_x6 0 1x60", _UP_TOO: "1x60"},
        at="30m",
    ),
    Case(
        alert="MirrorNotReady",
        name="a connector cannot be made",
        series={_UNREADY: "0x20"},
        at="12m",
        fires=(Fired(labels=_OF, severity="critical", summary="Mirror mm2 of stg is not Ready"),),
    ),
    Case(
        alert="MirrorNotReady",
        name="plain rules learn the stack from the pods",
        series={_UNREADY: "0x20", _UP: "1x20"},
        at="12m",
        rules="plain",
        fires=(Fired(labels=_OF, severity="critical", summary="Mirror mm2 of stg is not Ready"),),
    ),
    *also_at(
        Case(
            alert="MirrorNotReady",
            name="it comes back",
            series={_UNREADY: "0x5 stale", _READY: "_x6 1x20"},
            at="5m",
        ),
        "12m",
    ),
    Case(
        alert="MirrorNotReady",
        name="another namespace's mirror of the same name",
        series={_UNREADY.replace('"rt-inventory-stg"', '"elsewhere"'): "0x20"},
        at="12m",
    ),
    Case(
        alert="ConnectorNotRunning",
        name="it failed, and the mirror is Ready",
        series={_connector("running"): "1x5 stale", _connector("failed"): "_x6 1x20", _READY: "1x30"},
        at="17m",
        fires=(_CONNECTOR_STOPPED,),
    ),
    Case(
        alert="ConnectorNotRunning",
        name="nobody asks the operator",
        series={_connector("paused"): "1x20"},
        at="11m",
        fires=(_CONNECTOR_STOPPED,),
    ),
    Case(
        alert="ConnectorNotRunning",
        name="no worker has it",
        series={of("rt_inventory_connector_running", connector=_SOURCE): "0x20"},
        at="11m",
        fires=(_CONNECTOR_STOPPED,),
    ),
    Case(
        alert="ConnectorNotRunning",
        name="the operator has said so already",
        series={_connector("failed"): "1x20", _UNREADY: "0x20"},
        at="11m",
    ),
    *also_at(
        Case(
            alert="ConnectorNotRunning",
            name="a rebalance takes it to another worker",
            series={
                _connector("running"): "1x5 stale",
                _connector("unassigned", "mm2-1"): "_x6 1x5 stale",
                _connector("running", "mm2-1"): "_x12 1x20",
            },
            at="11m",
        ),
        "20m",
    ),
    Case(
        alert="TaskNotRunning",
        name="one of two fails",
        series=_ONE_TASK_FAILS,
        at="17m",
        fires=(_TASK_STOPPED,),
    ),
    Case(
        alert="TaskNotRunning",
        name="one of two fails, and the mirror is Ready",
        series={**_ONE_TASK_FAILS, _READY: "1x30"},
        at="17m",
        fires=(_TASK_STOPPED,),
    ),
    Case(
        alert="TaskNotRunning",
        name="the operator has said so already",
        series={**_ONE_TASK_FAILS, _UNREADY: "0x30"},
        at="17m",
    ),
    Case(
        alert="TaskNotRunning",
        name="it is restarted",
        series={_task("running"): "1x5 stale", _task("restarting"): "_x6 1x5 stale", _task("running", "1"): "1x30"},
        at="11m",
    ),
    Case(
        alert="TaskNotRunning",
        name="a mirror that is stopped on purpose",
        series={_task("stopped", mirror="resting"): "1x30"},
        at="20m",
    ),
    Case(
        alert="TaskNotRunning",
        name="plain rules leave out what is paused on purpose",
        series={_task("paused"): "1x30", of("rt_inventory_mirror_state", state="paused"): "1x30"},
        at="20m",
        rules="plain",
    ),
)
