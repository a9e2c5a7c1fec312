"""The stack's own brokers."""

from tests.support.alert_cases.case import CLUSTER, SCRAPED_PODS, STACK, Case, Fired, also_at, in_both, of_broker

_OF = {"stack": STACK, "cluster": CLUSTER}
_WHOSE = f"cluster {CLUSTER} of stg"
_UP = tuple(of_broker("up", pod=f"stg-{number}") for number in range(SCRAPED_PODS))
_CONTROLLER = "kafka_controller_kafkacontroller_"
_ACTIVE = tuple(of_broker(f"{_CONTROLLER}activecontrollercount", pod=f"stg-{number}") for number in range(2))
_OFFLINE = of_broker(f"{_CONTROLLER}offlinepartitionscount")
_BEHIND = of_broker("kafka_server_replicamanager_underreplicatedpartitions")
_STARTED = tuple(of_broker("process_start_time_seconds", pod=f"stg-{number}") for number in range(SCRAPED_PODS))
_REFUSING = of_broker("kafka_server_replicamanager_underminisrpartitioncount")


def _fired(summary: str, severity: str = "critical") -> tuple[Fired]:
    return (Fired(labels=_OF, severity=severity, summary=summary),)


KAFKA_CASES = (
    Case(
        alert="BrokerDown",
        name="one of three",
        series={_UP[0]: "1x30", _UP[1]: "1x30", _UP[2]: "0x30"},
        at="12m",
        fires=_fired(f"1 pods of {_WHOSE} are down"),
    ),
    Case(
        alert="BrokerDown",
        name="one is scraped no more",
        series={_UP[0]: "1x30", _UP[1]: "1x30", _UP[2]: "1x2 stale"},
        at="14m",
        fires=_fired(f"1 pods of {_WHOSE} are down"),
    ),
    Case(
        alert="BrokerDown", name="no target is left", series={}, at="12m", fires=_fired(f"3 pods of {_WHOSE} are down")
    ),
    Case(
        alert="BrokerDown",
        name="a rolling restart",
        series={_UP[0]: "0x4 1x30", _UP[1]: "1x5 0x4 1x30", _UP[2]: "1x30"},
        at="12m",
    ),
    *in_both(
        *also_at(
            Case(
                alert="BrokerDown",
                name="one pod after the other for longer than a single restart may take",
                series={up: f"1x{5 + 8 * number} 0x7 1x60" for number, up in enumerate(_UP)},
                at="13m",
            ),
            "21m",
            "24m",
        )
    ),
    Case(
        alert="BrokerDown",
        name="restarts that make a pod another target",
        series={
            _UP[0]: "1x60",
            _UP[1]: "1x60",
            _UP[2]: "1x10 stale",
            _UP[2].replace("}", ',instance="new"}'): "_x12 1x40",
        },
        at="25m",
        rules="plain",
    ),
    Case(
        alert="BrokerDown",
        name="plain rules remember a pod that is scraped no more",
        series={_UP[0]: "1x60", _UP[1]: "1x60", _UP[2]: "1x10 stale"},
        at="25m",
        rules="plain",
        fires=_fired(f"1 pods of {_WHOSE} are down"),
    ),
    Case(
        alert="BrokerDown",
        name="plain rules see one of three down",
        series={_UP[0]: "1x30", _UP[1]: "1x30", _UP[2]: "0x30"},
        at="12m",
        rules="plain",
        fires=_fired(f"1 pods of {_WHOSE} are down"),
    ),
    Case(
        alert="BrokerDown",
        name="plain rules remember a cluster of which no target is left",
        series={_UP[0]: "1x5 stale", _UP[1]: "1x5 stale"},
        at="30m",
        rules="plain",
        fires=_fired(f"2 pods of {_WHOSE} are down"),
    ),
    Case(
        alert="BrokerDown",
        name="plain rules need no third",
        series={_UP[0]: "1x30", _UP[1]: "1x30"},
        at="20m",
        rules="plain",
    ),
    Case(
        alert="UnderReplicatedPartitions",
        name="a replica does not catch up",
        series={_BEHIND: "4x40"},
        at="25m",
        fires=_fired(f"4 partitions of {_WHOSE} have too few replicas", "warning"),
    ),
    Case(alert="UnderReplicatedPartitions", name="a restart", series={_BEHIND: "0x5 4x10 0x30"}, at="16m"),
    Case(
        alert="UnderReplicatedPartitions",
        name="brokers restart one after the other",
        series={
            _BEHIND: "0x5 4x35 0x30",
            **{one: f"0x{10 + 12 * number} {60 * (11 + 12 * number)}x60" for number, one in enumerate(_STARTED)},
        },
        at="35m",
    ),
    Case(
        alert="UnderReplicatedPartitions",
        name="one broker restarts again and again",
        series={_BEHIND: "0x5 4x60", _STARTED[0]: "0+60x60"},
        at="27m",
        fires=_fired(f"4 partitions of {_WHOSE} have too few replicas", "warning"),
    ),
    Case(
        alert="PartitionsUnderMinIsr",
        name="two replicas are away",
        series={_REFUSING: "4x40"},
        at="6m",
        fires=_fired(f"4 partitions of {_WHOSE} refuse writes"),
    ),
    Case(alert="PartitionsUnderMinIsr", name="for a moment", series={_REFUSING: "0 4x2 0x30"}, at="3m"),
    Case(
        alert="OfflinePartitions",
        name="no replica is left",
        series={_OFFLINE: "2x40"},
        at="6m",
        fires=_fired(f"2 partitions of {_WHOSE} have no leader"),
    ),
    Case(alert="OfflinePartitions", name="a restart without replicas", series={_OFFLINE: "0 2x3 0x30"}, at="4m"),
    Case(
        alert="NoActiveController",
        name="none",
        series={_ACTIVE[0]: "0x20", _ACTIVE[1]: "0x20"},
        at="6m",
        fires=_fired(f"0 controllers of {_WHOSE} are active, not one"),
    ),
    Case(
        alert="NoActiveController",
        name="the active one vanishes",
        series={_ACTIVE[0]: "0x20", _ACTIVE[1]: "1 1 stale"},
        at="9m",
        fires=_fired(f"0 controllers of {_WHOSE} are active, not one"),
    ),
    Case(
        alert="NoActiveController",
        name="another takes over",
        series={_ACTIVE[0]: "0x7 1x20", _ACTIVE[1]: "1x3 0x20"},
        at="7m",
    ),
)
