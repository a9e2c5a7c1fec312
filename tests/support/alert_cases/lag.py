"""How far a mirror is behind."""

from tests.support.alert_cases.case import MIRROR, STACK, Case, Fired, of, of_worker

_OF = {"stack": STACK, "mirror": MIRROR}
_RECORDS, _SECONDS = of("rt_inventory_mirror_lag_records"), of("rt_inventory_mirror_lag_seconds")
_CLIENT = "es-src->es-tgt|MirrorSourceConnector-0|replication-consumer"
_UNREAD = of_worker(
    "kafka_consumer_consumer_fetch_manager_metrics_records_lag", client_id=_CLIENT, topic="items", partition="0"
)
_OF_CONNECT = _UNREAD.replace(_CLIENT, "mm2-offsets").replace('"items"', '"mm2-offsets"')
_COPIED = of_worker(
    "kafka_connect_mirror_mirrorsourceconnector_record_count",
    source="es-src",
    target="es-tgt",
    topic="items",
    partition="0",
)
_LATENCY = _COPIED.replace("record_count", "replication_latency_ms_max")
_SLOW = _LATENCY.replace('partition="0"', 'partition="1"')
_HEARTBEATS = of_worker(
    "kafka_connect_source_task_metrics_source_record_write",
    connector="es-src->es-tgt.MirrorHeartbeatConnector",
    task="0",
)


def _behind(severity: str, said: str) -> Fired:
    return Fired(labels=_OF, severity=severity, summary=f"Mirror mm2 of stg is {said} behind")


def _stalled(said: str) -> Fired:
    return Fired(labels=_OF, severity="critical", summary="Mirror mm2 of stg copies nothing", said=(said,))


_TOPIC = {"topic": "items"}
_LEFT, _WAITED, _CATCHES_UP = (
    of(f"rt_inventory_topic_{name}_seconds", **_TOPIC) for name in ("until_deletion", "lag", "catch_up")
)
_OVERTAKEN = Fired(
    labels={**_OF, **_TOPIC}, severity="critical", summary="Retention overtakes mirror mm2 of stg in items"
)


LAG_CASES = (
    Case(
        alert="MirrorLagRising",
        name="more is written than copied",
        series={_RECORDS: "0+1200x60"},
        at="40m",
        fires=(Fired(labels=_OF, severity="warning", summary="Mirror mm2 of stg falls behind", said=("20",)),),
    ),
    Case(
        alert="MirrorLagRising",
        name="without ops, by what the tasks' consumers know",
        series={_UNREAD: "0+1200x60", _OF_CONNECT: "0+600x60"},
        at="40m",
        fires=(Fired(labels=_OF, severity="warning", summary="Mirror mm2 of stg falls behind", said=("20",)),),
    ),
    Case(
        alert="MirrorLagRising",
        name="a burst that is copied",
        series={_RECORDS: "0x5 0+9000x8 72000-6000x12 0x30"},
        at="20m",
    ),
    Case(alert="MirrorLagRising", name="it rises, but it is little", series={_RECORDS: "0+150x60"}, at="50m"),
    Case(alert="MirrorLagRising", name="nothing but NaN", series={_UNREAD: "NaN NaN NaN NaN NaN"}, at="4m"),
    Case(
        alert="MirrorLagSeconds",
        name="more than five minutes",
        series={_SECONDS: "1500x30"},
        at="11m",
        fires=(_behind("warning", "25m 0s"),),
    ),
    Case(
        alert="MirrorLagSeconds",
        name="more than half an hour",
        series={_SECONDS: "2000x30"},
        at="11m",
        fires=(_behind("warning", "33m 20s"), _behind("critical", "33m 20s")),
    ),
    Case(alert="MirrorLagSeconds", name="a short pause", series={_SECONDS: "0x5 60+60x8 0x20"}, at="14m"),
    Case(alert="MirrorLagSeconds", name="long behind, but not for long", series={_SECONDS: "0x5 2000x3 0x20"}, at="9m"),
    Case(alert="MirrorLagSeconds", name="within the limit", series={_SECONDS: "200x30"}, at="11m"),
    Case(alert="MirrorLagSeconds", name="nobody knows", series={_SECONDS: "NaN NaN NaN NaN NaN NaN NaN NaN"}, at="7m"),
    Case(
        alert="RetentionOvertakesMirror",
        name="it copies nothing, and less than a day is left",
        series={_LEFT: "100000-60x300", _WAITED: "504800+60x300"},
        at="235m",
        fires=(_OVERTAKEN,),
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="it copies nothing, and more than a day is left",
        series={_LEFT: "100000-60x300", _WAITED: "504800+60x300"},
        at="220m",
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="it copies nothing, and half of an hour is gone",
        series={_LEFT: "3600-60x60", _WAITED: "0+60x60"},
        at="35m",
        fires=(_OVERTAKEN,),
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="it copies nothing, and little of an hour is gone",
        series={_LEFT: "3600-60x60", _WAITED: "0+60x60"},
        at="25m",
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="it copies too slowly",
        series={_LEFT: "500x10", _WAITED: "9000x10", _CATCHES_UP: "300x10"},
        at="5m",
        fires=(_OVERTAKEN,),
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="it copies fast enough, though not in every look",
        series={_LEFT: "500x10", _WAITED: "9000x10", _CATCHES_UP: "200 _ 200 _ 200 _ 200 _ 200 _ 200"},
        at="9m",
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="for a moment only",
        series={_LEFT: "5000x3 500x6", _WAITED: "9000x10", _CATCHES_UP: "300x10"},
        at="4m",
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="it is paused on purpose",
        series={_LEFT: "500x10", _WAITED: "9000x10", of("rt_inventory_mirror_state", state="paused"): "1x10"},
        at="5m",
        fires=(_OVERTAKEN,),
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="nobody knows how long the record has waited",
        series={_LEFT: "600x10"},
        at="5m",
        fires=(_OVERTAKEN,),
    ),
    Case(
        alert="RetentionOvertakesMirror",
        name="everything is copied",
        series={_LEFT: "600x10", _WAITED: "0x10", _CATCHES_UP: "0x10"},
        at="5m",
    ),
    Case(
        alert="MirrorStalled",
        name="lag and no progress",
        series={_RECORDS: "70x30", _COPIED: "500x30"},
        at="22m",
        fires=(_stalled("70"),),
    ),
    Case(
        alert="MirrorStalled",
        name="the workers' numbers vanish",
        series={_RECORDS: "70x30", _COPIED: "500x3 stale"},
        at="25m",
        fires=(_stalled("70"),),
    ),
    Case(alert="MirrorStalled", name="slow, but it moves", series={_RECORDS: "70x40", _COPIED: "0+1x40"}, at="35m"),
    Case(
        alert="MirrorStalled",
        name="a restart begins to count again",
        series={_RECORDS: "70x40", _COPIED: "900x8 0+2x40"},
        at="30m",
    ),
    Case(
        alert="MirrorStalled",
        name="it stopped a moment ago",
        series={_RECORDS: "70x40", _COPIED: "0+5x5 25x40"},
        at="22m",
    ),
    Case(alert="MirrorStalled", name="nothing is written", series={_RECORDS: "0x40", _COPIED: "500x40"}, at="35m"),
    Case(
        alert="ReplicationLatencyP99",
        name="one partition is slow",
        series={_LATENCY: "100x40", _SLOW: "90000x40"},
        at="35m",
        fires=(
            Fired(
                labels=_OF,
                severity="warning",
                summary="Records reach the target of mirror mm2 of stg late",
                said=("89.1k",),
            ),
        ),
    ),
    Case(
        alert="ReplicationLatencyP99",
        name="slow in all minutes with records, NaN between them",
        series={_SLOW: "90000 NaN 90000 NaN " * 12},
        at="35m",
        fires=(
            Fired(
                labels=_OF,
                severity="warning",
                summary="Records reach the target of mirror mm2 of stg late",
                said=("90k",),
            ),
        ),
    ),
    Case(alert="ReplicationLatencyP99", name="one slow minute", series={_LATENCY: "100x10 90000 100x40"}, at="20m"),
    Case(alert="ReplicationLatencyP99", name="within the limit", series={_LATENCY: "40000x40"}, at="35m"),
    Case(alert="ReplicationLatencyP99", name="nothing but NaN", series={_LATENCY: "NaN " * 40}, at="35m"),
    Case(
        alert="HeartbeatMissing",
        name="none is written",
        series={_HEARTBEATS: "500x40"},
        at="25m",
        fires=(Fired(labels=_OF, severity="warning", summary="Mirror mm2 of stg writes no heartbeats"),),
    ),
    Case(
        alert="HeartbeatMissing",
        name="there is no such connector",
        series={_COPIED: "0+5x40"},
        at="25m",
        fires=(Fired(labels=_OF, severity="warning", summary="Mirror mm2 of stg writes no heartbeats"),),
    ),
    Case(alert="HeartbeatMissing", name="a short pause", series={_HEARTBEATS: "0+60x5 300x12 360+60x20"}, at="18m"),
    Case(alert="HeartbeatMissing", name="one a second", series={_HEARTBEATS: "0+60x40"}, at="25m"),
    Case(
        alert="HeartbeatMissing",
        name="plain rules ask no mirror for heartbeats that never had any",
        series={of_worker("up"): "1x40"},
        at="25m",
        rules="plain",
    ),
)
