"""Alerts on a mirror: its readiness as the operator reports it, its workers, connectors and tasks, and how it copies.

How it copies: replication lag, latency and heartbeats, and consumer groups' offsets; the recording rules are here too.
"""

from dataclasses import dataclass

from monitoring.alerts import Alert, AlertGroup, Severity, declared, with_checkpoints, with_heartbeats

_WORKERS = 'up{job="kafka-mirror-maker-2",<mirror>}'
_NOT_UNREADY = "unless on (stack, mirror) (<ready>) == 0"


def _running(status: str, from_ops: str, labels: str) -> str:
    """1 where something runs, else 0; `ops` measures what no worker reports, for instance a task that none runs."""
    return (
        f'max by ({labels}) ({status}{{<mirror>,status="running"}} == 1'
        f" or on ({labels}) 0 * {status}{{<mirror>}} or on ({labels}) {from_ops}{{<mirror>}})"
    )


MIRROR = AlertGroup(
    name="mirror",
    dashboard="rt-inventory-mirror",
    alerts=(
        Alert(
            name="MirrorDown",
            severity=Severity.CRITICAL,
            value=f"sum by (stack, mirror) ({_WORKERS})",
            missed=_WORKERS,
            comparison="<",
            threshold=1,
            hold="5m",
            labels=("stack", "mirror"),
            summary="Mirror {{ $labels.mirror }} of {{ $labels.stack }} has no worker",
            description="No worker of the mirror answers, or none is scraped any more. Nothing is copied; what is "
            "written to the source meanwhile is lost if the source is.",
        ),
        Alert(
            name="WorkerDown",
            severity=Severity.WARNING,
            value="<missing workers>",
            comparison=">",
            threshold=0,
            # Longer than a restart of up to ten minutes keeps a quarter of an hour below its half.
            hold="10m",
            labels=("stack", "mirror"),
            summary="{{ $value }} workers of mirror {{ $labels.mirror }} of {{ $labels.stack }} are missing",
            description="They have answered less than half of the time, or are not there. If there are others, they "
            "have their tasks.",
        ),
        Alert(
            name="MirrorNotReady",
            severity=Severity.CRITICAL,
            value="min by (stack, mirror) (<ready>)",
            comparison="<",
            threshold=1,
            hold="10m",
            labels=("stack", "mirror"),
            summary="Mirror {{ $labels.mirror }} of {{ $labels.stack }} is not Ready",
            description="The operator has not been able to bring the mirror to what is declared for 10 minutes. The "
            "resource's conditions name the reason: a connector or task that failed, a Secret, an update that hangs.",
        ),
        Alert(
            name="ConnectorNotRunning",
            severity=Severity.CRITICAL,
            value=_running(
                "kafka_connect_connector_metrics_status", "rt_inventory_connector_running", "stack, mirror, connector"
            ),
            comparison="<",
            threshold=1,
            guard=_NOT_UNREADY,
            yields_to="MirrorNotReady",
            hold="10m",
            labels=("stack", "mirror", "connector"),
            summary="Connector {{ $labels.connector }} of {{ $labels.stack }} does not run",
            description="It is failed, paused, stopped or on no worker for 10 minutes, although by the settings "
            "mirror {{ $labels.mirror }} runs and the operator does not call it unready.",
        ),
        Alert(
            name="TaskNotRunning",
            severity=Severity.CRITICAL,
            value=_running(
                "kafka_connect_connector_task_metrics_status",
                "rt_inventory_task_running",
                "stack, mirror, connector, task",
            ),
            comparison="<",
            threshold=1,
            guard=_NOT_UNREADY,
            yields_to="MirrorNotReady",
            hold="10m",
            labels=("stack", "mirror", "connector", "task"),
            summary="Task {{ $labels.task }} of connector {{ $labels.connector }} does not run",
            description="The partitions of this task of mirror {{ $labels.mirror }} of {{ $labels.stack }} have not "
            "been copied for 10 minutes, although the operator does not call the mirror unready.",
        ),
    ),
)


_TASK_LABELS = ("stack", "mirror", "connector", "task")
_BY = ", ".join(_TASK_LABELS)
_TASK_ERRORS = "kafka_connect_task_error_metrics"
_WHOSE = "Task {{ $labels.task }} of {{ $labels.connector }}"
_WHERE = "mirror {{ $labels.mirror }} of {{ $labels.stack }}"

TASKS = AlertGroup(
    name="tasks",
    dashboard="rt-inventory-mirror",
    alerts=(
        Alert(
            name="OffsetCommitFailures",
            severity=Severity.WARNING,
            value=f"max by ({_BY}) (kafka_connect_connector_task_metrics_offset_commit_failure_percentage{{<mirror>}})",
            comparison=">",
            threshold="offset_commit_failure_ratio",
            hold="15m",
            labels=_TASK_LABELS,
            summary=f"{_WHOSE} cannot commit its offsets",
            description="{{ $value | humanizePercentage }} of its offset commits fail, in " + _WHERE + ". After a "
            "restart it copies again what it has not committed.",
        ),
        Alert(
            name="TaskErrors",
            severity=Severity.WARNING,
            value=f"sum by ({_BY}) (increase({_TASK_ERRORS}_total_record_failures{{<mirror>}}[15m]))",
            comparison=">",
            threshold=0,
            hold="0m",
            labels=_TASK_LABELS,
            summary=f"{_WHOSE} failed on records",
            description="About {{ $value | humanize }} records failed in 15 minutes, in " + _WHERE + ".",
        ),
        Alert(
            name="RecordsSkipped",
            severity=Severity.CRITICAL,
            value=f"sum by ({_BY}) (increase({_TASK_ERRORS}_total_records_skipped{{<mirror>}}[1h]))",
            comparison=">",
            threshold=0,
            hold="0m",
            labels=_TASK_LABELS,
            summary=f"{_WHOSE} left out records",
            description="About {{ $value | humanize }} records were left out within an hour, in " + _WHERE + ": they "
            "are not on the target and will not come. Somebody has set `errors.tolerance`.",
        ),
        Alert(
            name="TaskRetries",
            severity=Severity.INFO,
            value=f"sum by ({_BY}) (increase({_TASK_ERRORS}_total_retries{{<mirror>}}[15m]))",
            comparison=">",
            threshold="task_retries",
            hold="15m",
            labels=_TASK_LABELS,
            summary=f"{_WHOSE} tries again and again",
            description="{{ $value | humanize }} attempts in 15 minutes, more than <task_retries>, in " + _WHERE + ".",
        ),
    ),
)


_SOURCE_CONNECTOR = "kafka_connect_mirror_mirrorsourceconnector"
_LABELS = ("stack", "mirror")
# A task's own consumer; Connect's consumers of its three topics are no mirror's lag.
_READ = 'kafka_consumer_consumer_fetch_manager_metrics_records_lag{<mirror>,client_id=~".*replication-consumer.*"}'
# `ops` compares both clusters. Without it there is what the tasks' consumers report, which is old once they hang.
LAG_RECORDS = (
    "max by (stack, mirror) (rt_inventory_mirror_lag_records{<mirror>} >= 0)"
    f" or sum by (stack, mirror) ({_READ} >= 0)"
)
_LATENCY = f"{_SOURCE_CONNECTOR}_replication_latency_ms_max{{<mirror>}}"
# MirrorMaker exports the slowest record of about a minute, no percentile. So this is of those: per partition what 99 %
# of the minutes of a quarter of an hour stayed below, then the same over partitions. Few records count as much as many.
LATENCY_P99_MS = f"quantile by (stack, mirror) (0.99, quantile_over_time(0.99, ({_LATENCY} >= 0)[15m:30s]))"
_COPIED = f"sum by (stack, mirror) (increase({_SOURCE_CONNECTOR}_record_count{{<mirror>}}[10m]))"
_HEARTBEATS = 'kafka_connect_source_task_metrics_source_record_write{<mirror>,connector=~".*MirrorHeartbeatConnector"}'

_TOPIC_LABELS = ("stack", "mirror", "topic")


# A look at the target may fall between two batches: a mirror copies as long as one of some looks has seen it do so.
_CATCHES_UP = "min by (stack, mirror, topic) (min_over_time(rt_inventory_topic_catch_up_seconds{<mirror>}[2m]))"
_LEFT = "min by (stack, mirror, topic) (rt_inventory_topic_until_deletion_seconds{<mirror>})"
_WAITED = "max by (stack, mirror, topic) (rt_inventory_topic_lag_seconds{<mirror>})"
RETENTION_MARGIN = 2
"""As `kafka.retention.MARGIN`: what is left must be this many times what the mirror needs."""
# Seconds that are left beyond what the mirror needs; if it copies nothing, beyond what the record has waited. If nobody
# knows how long that is it counts as longer, so that the guard decides alone: without a number nothing would fire.
RETENTION_MARGIN_S = f"{_LEFT} - ({RETENTION_MARGIN} * {_CATCHES_UP} or {_WAITED} or {_LEFT} + 1)"
_STANDS_WITH_TIME_LEFT = f"({_LEFT} >= <retention_left_seconds> unless on (stack, mirror, topic) {_CATCHES_UP})"

LAG = AlertGroup(
    name="lag",
    dashboard="rt-inventory-mirror",
    alerts=(
        Alert(
            name="MirrorLagRising",
            severity=Severity.WARNING,
            value=f"deriv(({LAG_RECORDS})[15m:30s])",
            comparison=">",
            threshold=0,
            guard=f"and on (stack, mirror) ({LAG_RECORDS}) > <lag_rising_records>",
            hold="15m",
            labels=_LABELS,
            summary="Mirror {{ $labels.mirror }} of {{ $labels.stack }} falls behind",
            description="More is written to the source than is copied: {{ $value | humanize }} records more every "
            "second, for half an hour, and more than <lag_rising_records> are to be copied.",
        ),
        Alert(
            name="MirrorLagSeconds",
            severity=Severity.WARNING,
            value="max by (stack, mirror) (rt_inventory_mirror_lag_seconds{<mirror>})",
            comparison=">",
            threshold="lag_seconds",
            hold="5m",
            labels=_LABELS,
            summary="Mirror {{ $labels.mirror }} of {{ $labels.stack }} is {{ $value | humanizeDuration }} behind",
            description="The oldest record that is not copied is older than <lag_seconds> s. A failover to the target "
            "now would leave that much behind.",
        ),
        Alert(
            name="MirrorLagSeconds",
            severity=Severity.CRITICAL,
            value="max by (stack, mirror) (rt_inventory_mirror_lag_seconds{<mirror>})",
            comparison=">",
            threshold="lag_critical_seconds",
            hold="5m",
            labels=_LABELS,
            summary="Mirror {{ $labels.mirror }} of {{ $labels.stack }} is {{ $value | humanizeDuration }} behind",
            description="The oldest record that is not copied is older than <lag_critical_seconds> s. A failover to "
            "the target now would leave that much behind.",
        ),
        Alert(
            name="MirrorStalled",
            severity=Severity.CRITICAL,
            value=LAG_RECORDS,
            comparison=">",
            threshold=0,
            guard=f"unless on (stack, mirror) ({_COPIED}) > 0",
            hold="10m",
            labels=_LABELS,
            summary="Mirror {{ $labels.mirror }} of {{ $labels.stack }} copies nothing",
            description="{{ $value | humanize }} records are to be copied, and none was in the last 10 minutes, for 10 "
            "minutes: connectors and tasks may all be reported as running.",
        ),
        Alert(
            name="RetentionOvertakesMirror",
            severity=Severity.CRITICAL,
            value=RETENTION_MARGIN_S,
            comparison="<",
            threshold=0,
            guard=f"unless on (stack, mirror, topic) {_STANDS_WITH_TIME_LEFT}",
            hold="1m",
            labels=_TOPIC_LABELS,
            mirrors=declared,
            summary="Retention overtakes mirror {{ $labels.mirror }} of {{ $labels.stack }} in {{ $labels.topic }}",
            description=f"Less than {RETENTION_MARGIN} times what the mirror needs to catch up is left until the "
            "source deletes the first record that is not copied; or the mirror copies nothing of it, and less than "
            "<retention_left_seconds> s and than the record has waited. What is deleted is lost to the target, and "
            "MirrorMaker goes on behind it without a word.",
        ),
        Alert(
            name="ReplicationLatencyP99",
            severity=Severity.WARNING,
            value=LATENCY_P99_MS,
            comparison=">",
            threshold="replication_latency_p99_ms",
            hold="15m",
            labels=_LABELS,
            summary="Records reach the target of mirror {{ $labels.mirror }} of {{ $labels.stack }} late",
            description="The slowest records of a minute take {{ $value | humanize }} ms or less in 99 of 100 minutes "
            "and partitions, and the limit is <replication_latency_p99_ms> ms. It is no percentile of single "
            "records, which MirrorMaker does not report.",
        ),
        Alert(
            name="HeartbeatMissing",
            severity=Severity.WARNING,
            value=f"sum by (stack, mirror) (increase({_HEARTBEATS}[10m]))",
            missed=_HEARTBEATS,
            comparison="<=",
            threshold=0,
            hold="10m",
            labels=_LABELS,
            mirrors=with_heartbeats,
            summary="Mirror {{ $labels.mirror }} of {{ $labels.stack }} writes no heartbeats",
            description="Its heartbeat connector has written nothing for 10 minutes, and it writes each second. The "
            "workers cannot write to the target, or the connector does not run.",
        ),
    ),
)


_TOPICS = "kafka_server_brokertopicmetrics"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recording rule; `of_mirrors` is false for those of brokers."""

    name: str
    value: str
    of_mirrors: bool = True


RECORDINGS = (
    Recording(name="mirror:lag_records:sum", value=LAG_RECORDS),
    Recording(name="mirror:replication_latency_ms:p99_15m", value=LATENCY_P99_MS),
    Recording(
        name="mirror:records_copied:rate5m",
        value=f"sum by (stack, mirror) (rate({_SOURCE_CONNECTOR}_record_count{{<mirror>}}[5m]))",
    ),
    Recording(
        name="mirror:bytes_copied:rate5m",
        value=f"sum by (stack, mirror) (rate({_SOURCE_CONNECTOR}_byte_count{{<mirror>}}[5m]))",
    ),
    Recording(
        name="cluster:messages_in:rate5m",
        value=f'sum by (stack, cluster) (rate({_TOPICS}_messagesinpersec_total{{<cluster>,topic=""}}[5m]))',
        of_mirrors=False,
    ),
)


_GROUP_LABELS = ("stack", "mirror", "group")
_UNSYNCED = "max by (stack, mirror, group) (rt_inventory_group_unsynced_records{<mirror>})"

GROUPS = AlertGroup(
    name="groups",
    dashboard="rt-inventory-groups",
    alerts=(
        Alert(
            name="CheckpointTooOld",
            severity=Severity.WARNING,
            value="max by (stack, mirror, group) (rt_inventory_group_checkpoint_age_seconds{<mirror>})",
            comparison=">",
            threshold="checkpoint_age_seconds",
            hold="10m",
            labels=_GROUP_LABELS,
            mirrors=with_checkpoints,
            summary="Group {{ $labels.group }} goes on, its checkpoints do not",
            description="What it has read in the last {{ $value | humanizeDuration }} at the source of mirror "
            "{{ $labels.mirror }} of {{ $labels.stack }} is in no checkpoint: after a failover it reads that again.",
        ),
        Alert(
            name="GroupWithoutPosition",
            severity=Severity.WARNING,
            value="max by (stack, mirror, group) (rt_inventory_group_partitions_without_position{<mirror>})",
            comparison=">",
            threshold=0,
            hold="30m",
            labels=_GROUP_LABELS,
            mirrors=with_checkpoints,
            summary="Group {{ $labels.group }} has no position in {{ $value | humanize }} partitions of the target",
            description="It has one at the source of mirror {{ $labels.mirror }} of {{ $labels.stack }}. After a "
            "failover without --exact its auto.offset.reset decides: everything again, or nothing of what is there.",
        ),
        Alert(
            name="GroupOffsetNotSynced",
            severity=Severity.WARNING,
            value=_UNSYNCED,
            comparison=">",
            threshold="group_unsynced_records",
            hold="30m",
            labels=_GROUP_LABELS,
            mirrors=with_checkpoints,
            summary="Group {{ $labels.group }} would read {{ $value | humanize }} records again",
            description="If mirror {{ $labels.mirror }} of {{ $labels.stack }} failed over now without --exact. The "
            "limit is <group_unsynced_records>.",
        ),
    ),
)
