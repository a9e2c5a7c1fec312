"""What tasks have trouble with although they run."""

from monitoring.alerts.model import Alert, AlertGroup, Severity

_LABELS = ("stack", "mirror", "connector", "task")
_BY = ", ".join(_LABELS)
_ERRORS = "kafka_connect_task_error_metrics"
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
            labels=_LABELS,
            summary=f"{_WHOSE} cannot note how far it is",
            description="{{ $value | humanizePercentage }} of its offset commits fail, in " + _WHERE + ". After a "
            "restart it copies again what it has not noted.",
        ),
        Alert(
            name="TaskErrors",
            severity=Severity.WARNING,
            value=f"sum by ({_BY}) (increase({_ERRORS}_total_record_failures{{<mirror>}}[15m]))",
            comparison=">",
            threshold=0,
            hold="0m",
            labels=_LABELS,
            summary=f"{_WHOSE} failed on records",
            description="About {{ $value | humanize }} records failed in 15 minutes, in " + _WHERE + ".",
        ),
        Alert(
            name="RecordsSkipped",
            severity=Severity.CRITICAL,
            value=f"sum by ({_BY}) (increase({_ERRORS}_total_records_skipped{{<mirror>}}[1h]))",
            comparison=">",
            threshold=0,
            hold="0m",
            labels=_LABELS,
            summary=f"{_WHOSE} left out records",
            description="About {{ $value | humanize }} records were left out within an hour, in " + _WHERE + ": they "
            "are not on the target and will not come. Somebody has set `errors.tolerance`.",
        ),
        Alert(
            name="TaskRetries",
            severity=Severity.INFO,
            value=f"sum by ({_BY}) (increase({_ERRORS}_total_retries{{<mirror>}}[15m]))",
            comparison=">",
            threshold="task_retries",
            hold="15m",
            labels=_LABELS,
            summary=f"{_WHOSE} tries again and again",
            description="{{ $value | humanize }} attempts in 15 minutes, more than <task_retries>, in " + _WHERE + ".",
        ),
    ),
)
