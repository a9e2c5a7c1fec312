"""Trouble of tasks that run."""

from tests.support.alert_cases.case import MIRROR, STACK, Case, Fired, of_worker

_CONNECTOR = "es-src->es-tgt.MirrorSourceConnector"
_OF = {"stack": STACK, "mirror": MIRROR, "connector": _CONNECTOR, "task": "0"}
_ERRORS = "kafka_connect_task_error_metrics_"


def _of_task(metric: str) -> str:
    return of_worker(metric, connector=_CONNECTOR, task="0")


_UNCOMMITTED = _of_task("kafka_connect_connector_task_metrics_offset_commit_failure_percentage")
_FAILURES, _SKIPPED = _of_task(f"{_ERRORS}total_record_failures"), _of_task(f"{_ERRORS}total_records_skipped")
_RETRIES = _of_task(f"{_ERRORS}total_retries")

TASK_CASES = (
    Case(
        alert="OffsetCommitFailures",
        name="one of seven fails",
        series={_UNCOMMITTED: "0.15x30"},
        at="20m",
        fires=(
            Fired(
                labels=_OF,
                severity="warning",
                summary=f"Task 0 of {_CONNECTOR} cannot commit its offsets",
                said=("15%",),
            ),
        ),
    ),
    Case(alert="OffsetCommitFailures", name="for a rebalance", series={_UNCOMMITTED: "0x5 1x5 0x30"}, at="11m"),
    Case(alert="OffsetCommitFailures", name="a few", series={_UNCOMMITTED: "0.07x30"}, at="20m"),
    Case(alert="OffsetCommitFailures", name="nothing but NaN", series={_UNCOMMITTED: "NaN " * 30}, at="20m"),
    Case(
        alert="TaskErrors",
        name="records fail",
        series={_FAILURES: "0x5 3x30"},
        at="10m",
        fires=(
            Fired(labels=_OF, severity="warning", summary=f"Task 0 of {_CONNECTOR} failed on records", said=("3",)),
        ),
    ),
    Case(alert="TaskErrors", name="they failed long ago", series={_FAILURES: "0x5 3x60"}, at="40m"),
    Case(
        alert="RecordsSkipped",
        name="records are left out",
        series={_SKIPPED: "0x5 2x60"},
        at="40m",
        fires=(
            Fired(labels=_OF, severity="critical", summary=f"Task 0 of {_CONNECTOR} left out records", said=("2",)),
        ),
    ),
    Case(alert="RecordsSkipped", name="none", series={_SKIPPED: "0x60"}, at="40m"),
    Case(
        alert="TaskRetries",
        name="again and again",
        series={_RETRIES: "0+1x60"},
        at="40m",
        fires=(
            Fired(labels=_OF, severity="info", summary=f"Task 0 of {_CONNECTOR} tries again and again", said=("15",)),
        ),
    ),
    Case(alert="TaskRetries", name="one now and then", series={_RETRIES: "0+0.5x60"}, at="40m"),
    Case(alert="TaskRetries", name="a few, then it works", series={_RETRIES: "0x5 0+4x5 20x60"}, at="20m"),
)
