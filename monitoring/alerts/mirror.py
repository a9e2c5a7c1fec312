"""The mirror as a whole: its workers, its connectors and tasks, and what its operator says."""

from monitoring.alerts.model import Alert, AlertGroup, Severity

_WORKERS = 'up{job="kafka-mirror-maker-2",<mirror>}'
_NOT_UNREADY = "unless on (stack, mirror) (<ready>) == 0"


def _running(status: str, told: str, labels: str) -> str:
    """1 where something runs, else 0; `ops` is asked about what no worker knows, for instance if none has taken it."""
    return (
        f'max by ({labels}) ({status}{{<mirror>,status="running"}} == 1'
        f" or on ({labels}) 0 * {status}{{<mirror>}} or on ({labels}) {told}{{<mirror>}})"
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
