"""Alerts on a mirror's workers, connectors and tasks, and on its readiness as the operator reports it."""

from monitoring.alerts.model import Alert, AlertGroup, Severity

_WORKERS = 'up{job="kafka-mirror-maker-2",<mirror>}'
_NOT_UNREADY = "unless on (stack, mirror) (<ready>) == 0"


def _running(status: str, from_ops: str, labels: str) -> str:
    """1 where something runs, else 0; `ops` is asked about what no worker knows, for instance if none has taken it."""
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
            "resource's conditions say why: a connector or task that failed, a Secret, a rolling update that hangs.",
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
            description="It is failed, paused, stopped or on no worker for 10 minutes, although the settings say that "
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
            summary=f"{_WHOSE} cannot note how far it is",
            description="{{ $value | humanizePercentage }} of its offset commits fail, in " + _WHERE + ". After a "
            "restart it copies again what it has not noted.",
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
