"""Systems in which no alert fires: at work, idle, and after a failover."""

from collections.abc import Mapping

from tests.support.alert_cases.case import (
    MIRROR,
    SCRAPED_PODS,
    STACK,
    of,
    of_broker,
    of_certificate,
    of_operator,
    of_worker,
)

_SOURCE, _HEARTBEAT = (f"es-src->es-tgt.Mirror{kind}Connector" for kind in ("Source", "Heartbeat"))
_DAY_S = 86400
_MINUTES = 90
_PARTITION = {"source": "es-src", "target": "es-tgt", "topic": "items", "partition": "0"}
_COPY = "kafka_connect_mirror_mirrorsourceconnector_"
_SPARED = (("until_deletion", str(7 * _DAY_S)), ("lag", "3"), ("catch_up", "1"))
_TASK = {"connector": _SOURCE, "task": "0"}


def _brokers() -> dict[str, str]:
    found = {of_operator("strimzi_certificate_expiration_timestamp_ms", cluster="any", type="cluster-ca"): "1e12"}
    found[of_operator("up", stack=STACK)] = "1"
    for number in range(SCRAPED_PODS):
        pod = f"stg-{number}"
        found |= {
            of_broker("up", pod): "1",
            of_broker("kafka_controller_kafkacontroller_activecontrollercount", pod): str(int(number == 0)),
            of_broker("kafka_controller_kafkacontroller_offlinepartitionscount", pod): "0",
            of_broker("kafka_server_replicamanager_underreplicatedpartitions", pod): "0",
            of_broker("kafka_server_replicamanager_underminisrpartitioncount", pod): "0",
            of_broker("kafka_server_brokertopicmetrics_messagesinpersec_total", pod): "7",
        }
    return found


def _mirror(state: str) -> dict[str, str]:
    """A mirror with metrics of `ops` and of a verification."""
    running = state == "running"
    found = {
        of_operator("strimzi_resource_state", kind="KafkaMirrorMaker2", name=MIRROR, reason="none"): "1",
        of("rt_inventory_cluster_reachable", side="source"): str(int(running)),
        of("rt_inventory_cluster_reachable", side="target"): "1",
        of("rt_inventory_mirror_unproven"): "0",
        of("rt_inventory_mirror_lag_records"): "0" if running else "500",
        of("rt_inventory_mirror_lag_seconds"): "0" if running else "90000",
        of("rt_inventory_connector_running", connector=_SOURCE): str(int(running)),
        **(
            {of(f"rt_inventory_topic_{name}_seconds", topic="items"): value for name, value in _SPARED}
            if running
            else {}
        ),
        of("rt_inventory_task_running", **_TASK): str(int(running)),
        of("rt_inventory_group_unsynced_records", group="stock"): "700",
        of("rt_inventory_verification_finished_timestamp_seconds"): "0",
        of("rt_inventory_verification_exit_code"): "0",
        of_certificate("source-brokers"): str(90 * _DAY_S),
        of_worker("up"): "1",
        of_worker("up", pod="mm2-1"): "1",
        of_worker("up", "plainest"): "1",
        of_worker("kafka_connect_connector_metrics_status", connector=_SOURCE, status=state): "1",
        of_worker("kafka_connect_connector_task_metrics_status", **_TASK, status=state): "1",
    }
    for known in ("running", "paused", "stopped"):
        found[of("rt_inventory_mirror_state", state=known)] = str(int(known == state))
    for verdict in ("pass", "fail", "unknown", "error", "stopped"):
        found[of("rt_inventory_verification_verdict", verdict=verdict)] = str(int(verdict == "pass"))
    for check in ("complete", "unique", "intact", "ordered", "foreign"):
        found[of("rt_inventory_verification_check", check=f"records_{check}")] = "1"
    return found


def _at_work(*, idle: bool) -> dict[str, str]:
    errors = "kafka_connect_task_error_metrics_total_"
    return {
        of_worker("kafka_connect_source_task_metrics_source_record_write", connector=_HEARTBEAT, task="0"): "0+60",
        of_worker(f"{_COPY}record_count", **_PARTITION): "900" if idle else "0+300",
        of_worker(f"{_COPY}byte_count", **_PARTITION): "90000" if idle else "0+30000",
        of_worker(f"{_COPY}replication_latency_ms_max", **_PARTITION): "NaN" if idle else "80",
        of_worker("kafka_connect_connector_task_metrics_offset_commit_failure_percentage", **_TASK): "0",
        of_worker(f"{errors}record_failures", **_TASK): "0",
        of_worker(f"{errors}records_skipped", **_TASK): "0",
        of_worker(f"{errors}retries", **_TASK): "0",
        of("rt_inventory_group_checkpoint_age_seconds", group="stock"): "0" if idle else "5",
    }


def _of_status(*, looked: bool = True) -> dict[str, str]:
    return {of("rt_inventory_status_timestamp_seconds"): "0+60", of("rt_inventory_status_error"): "0"} if looked else {}


def _rolling() -> dict[str, str]:
    """Brokers that restart one after the other, each for 6 minutes, almost until the moment of the test."""
    series = _lasting({**_brokers(), **_mirror("running"), **_at_work(idle=False), **_of_status()})
    pods = [of_broker("up", f"stg-{number}") for number in range(SCRAPED_PODS)]
    for number, up in enumerate(pods):
        began = 60 + 9 * number
        series[up] = f"1x{began} 0x5 1x{_MINUTES}"
        started = up.replace("up{", "process_start_time_seconds{")
        series[started] = f"0x{began + 6} {60 * (began + 6)}x{_MINUTES}"
        series[up.replace("up{", "kafka_server_replicamanager_underreplicatedpartitions{")] = f"0x60 3x{_MINUTES}"
    return series


def _reported_twice() -> dict[str, str]:
    """A push gateway still exposes a run that failed, and `ops` the next one, which passed."""
    series = _lasting({**_brokers(), **_mirror("running"), **_at_work(idle=False), **_of_status()})
    verification = {name: value for name, value in series.items() if name.startswith("rt_inventory_verification_")}
    for name, value in verification.items():
        del series[name]
        at_gateway = {"0": f"1x{_MINUTES}", "1": f"0x{_MINUTES}"}[value[0]]
        newer = f"60x{_MINUTES}" if "finished" in name else value
        series[name.replace("}", ',instance="ops",job="ops"}')] = newer
        series[name.replace("}", ',instance="gateway",job="gateway"}')] = value if "finished" in name else at_gateway
    return series


def _lasting(series: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{value}x{_MINUTES}" if value != "NaN" else "NaN " * _MINUTES for name, value in series.items()}


HEALTHY = {
    "at work": _lasting({**_brokers(), **_mirror("running"), **_at_work(idle=False), **_of_status()}),
    "idle": _lasting({**_brokers(), **_mirror("running"), **_at_work(idle=True), **_of_status()}),
    "without ops and verification": _lasting(
        {
            name: value
            for name, value in {**_brokers(), **_mirror("running"), **_at_work(idle=False)}.items()
            if not name.startswith("rt_inventory_")
        }
    ),
    "in a rolling restart": _rolling(),
    "verified, by two exporters": _reported_twice(),
    # Only plain rules: those of the stack know from its settings that nothing is to be copied.
    "stopped after a failover": _lasting({**_brokers(), **_mirror("stopped"), **_of_status()}),
}
