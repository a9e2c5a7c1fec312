"""Metrics of Kafka Connect's workers: what MirrorMaker 2 copies, and how its connectors and tasks do."""

from monitoring.metrics.kinds import OF_KAFKA, Kind, Metric, Part, together

_PARTITION = ("source", "target", "topic", "partition")
_GROUP = ("source", "target", "group", "topic", "partition")
_CONNECTOR, _TASK = ("connector",), ("connector", "task")
_CONSUMER = ("source", "target", "client_id", "topic", "partition")
_DOTS = " Dots in the topic's name are underscores here."
_OF_TIME = {"": "Last", "-avg": "Average", "-min": "Least", "-max": "Greatest"}


def _metrics(
    prefix: str, bean: str, labels: tuple[str, ...], told: dict[str, tuple[str, str]], *, always: bool = True
) -> list[Metric]:
    """Gauges of one kind of MBean: unit and help by the attribute's name. Kafka counts with gauges."""
    return [
        Metric(
            name=f"{prefix}_{attribute.removesuffix('-total').replace('-', '_')}",
            kind=Kind.GAUGE,
            unit=unit,
            help=text,
            labels=labels,
            part=Part.WORKER,
            origin=f"{bean} {attribute}",
            exporters=OF_KAFKA,
            group=prefix,
            always=always,
        )
        for attribute, (unit, text) in told.items()
    ]


def _times(name: str, text: str) -> dict[str, tuple[str, str]]:
    return {f"{name}{suffix}": ("ms", f"{word} {text}") for suffix, word in _OF_TIME.items()}


def _status(kind: str, labels: tuple[str, ...], what: str) -> Metric:
    group = f"kafka_connect_{kind.replace('-', '_')}"
    return Metric(
        name=f"{group}_status",
        kind=Kind.INFO,
        unit="",
        help=f"State of a {what}, in the label status: running, paused, stopped, failed, unassigned, restarting or "
        "destroyed.",
        labels=(*labels, "status"),
        part=Part.WORKER,
        origin=f"kafka.connect:type={kind},* status",
        exporters=OF_KAFKA,
        group=group,
    )


WORKERS = together(
    _metrics(
        "kafka_connect_mirror_mirrorsourceconnector",
        "kafka.connect.mirror:type=MirrorSourceConnector,*",
        _PARTITION,
        {
            "record-count": ("records", "Records that were copied since the task started; a counter."),
            "record-rate": ("records/s", "Records that are copied in a second."),
            "byte-count": ("bytes", "Bytes that were copied since the task started; a counter."),
            "byte-rate": ("bytes/s", "Bytes that are copied in a second."),
            **_times("record-age-ms", "age of a record, by its timestamp, when it was read at the source."),
            **_times("replication-latency-ms", "time from a record's timestamp until it was written at the target."),
        },
    ),
    _metrics(
        "kafka_connect_mirror_mirrorcheckpointconnector",
        "kafka.connect.mirror:type=MirrorCheckpointConnector,*",
        _GROUP,
        _times("checkpoint-latency-ms", "time from a checkpoint's making until it was written at the target."),
    ),
    _metrics(
        "kafka_connect_connect_worker_metrics",
        "kafka.connect:type=connect-worker-metrics",
        (),
        {
            "connector-count": ("connectors", "Connectors that run on the worker."),
            "task-count": ("tasks", "Tasks that run on the worker."),
            "connector-startup-failure-total": ("connectors", "Starts of connectors that failed."),
            "task-startup-failure-total": ("tasks", "Starts of tasks that failed."),
        },
    ),
    _metrics(
        "kafka_connect_connect_worker_rebalance_metrics",
        "kafka.connect:type=connect-worker-rebalance-metrics",
        (),
        {
            "completed-rebalances-total": ("rebalances", "Rebalances that the worker has been through."),
            "rebalancing": ("", "1 while the worker takes part in a rebalance, else 0."),
            "time-since-last-rebalance-ms": ("ms", "Time since the last rebalance ended."),
        },
    ),
    _metrics(
        "kafka_connect_connect_worker_rebalance_metrics",
        "kafka.connect:type=connect-worker-rebalance-metrics",
        (),
        {
            "rebalance-avg-time-ms": ("ms", "Average time of the last rebalances."),
            "rebalance-max-time-ms": ("ms", "Longest time of the last rebalances."),
        },
        always=False,
    ),
    [_status("connector-metrics", _CONNECTOR, "connector"), _status("connector-task-metrics", _TASK, "task")],
    _metrics(
        "kafka_connect_connector_task_metrics",
        "kafka.connect:type=connector-task-metrics,*",
        _TASK,
        {
            "running-ratio": ("ratio", "Share of time that the task was running."),
            "pause-ratio": ("ratio", "Share of time that the task was paused."),
            "offset-commit-success-percentage": ("ratio", "Share of offset commits that succeeded."),
            "offset-commit-failure-percentage": ("ratio", "Share of offset commits that failed."),
            "offset-commit-avg-time-ms": ("ms", "Average time of an offset commit."),
            "offset-commit-max-time-ms": ("ms", "Longest time of an offset commit."),
            "batch-size-avg": ("records", "Average number of records in a batch."),
        },
    ),
    _metrics(
        "kafka_connect_source_task_metrics",
        "kafka.connect:type=source-task-metrics,*",
        _TASK,
        {
            "source-record-poll-total": ("records", "Records that the task has read; a counter."),
            "source-record-write-total": ("records", "Records that the task has handed to its producer; a counter."),
            "source-record-write-rate": ("records/s", "Records that the task hands to its producer in a second."),
            "source-record-active-count": ("records", "Records that were read and are not written yet."),
            "poll-batch-avg-time-ms": ("ms", "Average time that reading a batch takes."),
        },
    ),
    _metrics(
        "kafka_connect_task_error_metrics",
        "kafka.connect:type=task-error-metrics,*",
        _TASK,
        {
            "total-record-errors": ("records", "Failed attempts with a record; a counter."),
            "total-record-failures": ("records", "Records that failed for good; a counter."),
            "total-records-skipped": ("records", "Records that were left out because of errors; a counter."),
            "total-retries": ("attempts", "Attempts that were repeated; a counter."),
            "total-errors-logged": ("errors", "Errors that were written to the log; a counter."),
            "last-error-timestamp": ("ms", "When the last error was, in milliseconds since 1970; 0 for never."),
        },
    ),
    _metrics(
        "kafka_consumer_consumer_fetch_manager_metrics",
        "kafka.consumer:type=consumer-fetch-manager-metrics,*",
        _CONSUMER,
        {
            "records-lag": ("records", f"Records that a source task has yet to read.{_DOTS}"),
            "records-lag-max": ("records", f"Most records that were yet to be read.{_DOTS}"),
        },
    ),
)
