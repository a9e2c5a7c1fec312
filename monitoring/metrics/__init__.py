"""The catalogue of metrics. Here is what it states of each (name, kind, unit, labels, exporter), and those of Kafka.

Metrics of Connect's workers, of brokers and controllers, and of any Java process are named by their MBeans.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

_PARTITION = ("source", "target", "topic", "partition")
_GROUP = ("source", "target", "group", "topic", "partition")
_CONNECTOR, _TASK = ("connector",), ("connector", "task")
_CONSUMER = ("source", "target", "client_id", "topic", "partition")
_DOTS = " Dots in the topic's name are underscores here."
_OF_TIME = {"": "Last", "-avg": "Average", "-min": "Least", "-max": "Greatest"}


class Kind(StrEnum):
    """How a value moves: up and down, only up, or always 1 with its content in its labels."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"


class Part(StrEnum):
    """What exposes a metric; each is another kind of scrape target."""

    WORKER = "worker"
    BROKER = "broker"
    OPERATOR = "operator"
    VERIFICATION = "verification"
    AUDIT = "audit"
    OPS = "ops"
    PROMETHEUS = "prometheus"


class Exporter(StrEnum):
    """What turns it into a series; the first two are values of `metrics.type`."""

    JMX = "jmxPrometheusExporter"
    REPORTER = "strimziMetricsReporter"
    OPERATOR = "the operator itself"
    VERIFICATION = "python -m spark"
    AUDIT = "python -m spark audit"
    OPS = "python -m ops"
    PROMETHEUS = "Prometheus itself"


OF_KAFKA = (Exporter.JMX, Exporter.REPORTER)
# What a scrape adds to every series of a target.
TARGET_LABELS: Mapping[Part, tuple[str, ...]] = {
    Part.WORKER: ("job", "stack", "namespace", "mirror", "pod"),
    Part.BROKER: ("job", "stack", "namespace", "cluster", "pod"),
    Part.OPERATOR: ("job",),
    Part.VERIFICATION: ("stack", "mirror"),
    Part.AUDIT: ("stack", "mirror"),
    Part.OPS: ("stack", "mirror"),
    Part.PROMETHEUS: ("job",),
}


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One series name as expressions use it.

    `labels` are its own, beside those of the target. `origin` is an MBean pattern and an attribute of it, or a program.
    `group` is how the names of an MBean's attributes begin. `always` is false for what a healthy system may not show.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...]
    part: Part
    origin: str
    exporters: tuple[Exporter, ...]
    group: str = ""
    always: bool = True

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Its own labels and those of its target."""
        return (*self.labels, *(label for label in TARGET_LABELS[self.part] if label not in self.labels))


def together(*groups: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the metrics of all groups; raises ValueError for a name that occurs twice."""
    found: dict[str, Metric] = {}
    for metric in (each for group in groups for each in group):
        if metric.name in found:
            raise ValueError(f"metric {metric.name}: must be in the catalogue once. Remove one of the two.")
        found[metric.name] = metric
    return tuple(found.values())


def _worker_metrics(
    prefix: str, bean: str, labels: tuple[str, ...], definitions: dict[str, tuple[str, str]], *, always: bool = True
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
        for attribute, (unit, text) in definitions.items()
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
    _worker_metrics(
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
    _worker_metrics(
        "kafka_connect_mirror_mirrorcheckpointconnector",
        "kafka.connect.mirror:type=MirrorCheckpointConnector,*",
        _GROUP,
        _times("checkpoint-latency-ms", "time from a checkpoint's making until it was written at the target."),
    ),
    _worker_metrics(
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
    _worker_metrics(
        "kafka_connect_connect_worker_rebalance_metrics",
        "kafka.connect:type=connect-worker-rebalance-metrics",
        (),
        {
            "completed-rebalances-total": ("rebalances", "Rebalances that the worker has been through."),
            "rebalancing": ("", "1 while the worker takes part in a rebalance, else 0."),
            "time-since-last-rebalance-ms": ("ms", "Time since the last rebalance ended."),
        },
    ),
    _worker_metrics(
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
    _worker_metrics(
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
    _worker_metrics(
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
    _worker_metrics(
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
    _worker_metrics(
        "kafka_consumer_consumer_fetch_manager_metrics",
        "kafka.consumer:type=consumer-fetch-manager-metrics,*",
        _CONSUMER,
        {
            "records-lag": ("records", f"Records that a source task has yet to read.{_DOTS}"),
            "records-lag-max": ("records", f"Most records that were yet to be read.{_DOTS}"),
        },
    ),
)


_TOPIC, _TOPIC_PARTITION = ("topic",), ("topic", "partition")


def _broker_metrics(
    bean: str, definitions: Mapping[str, tuple[str, str]], labels: tuple[str, ...] = (), kind: Kind = Kind.GAUGE
) -> list[Metric]:
    """Metrics of `domain:type=Type`: unit and help by the MBean's `name`. Meters are counters."""
    domain, type_ = bean.split(":type=")
    group, counts = f"{domain.replace('.', '_')}_{type_}".lower(), kind is Kind.COUNTER
    return [
        Metric(
            name=f"{group}_{name.lower()}{'_total' if counts else ''}",
            kind=kind,
            unit=unit,
            help=text,
            labels=labels,
            part=Part.BROKER,
            origin=f"{bean},name={name}{',*' if labels else ''} {'Count' if counts else 'Value'}",
            exporters=OF_KAFKA,
            group=group,
        )
        for name, (unit, text) in definitions.items()
    ]


BROKERS = together(
    _broker_metrics(
        "kafka.server:type=ReplicaManager",
        {
            "UnderReplicatedPartitions": ("partitions", "Partitions led here of which a replica is behind."),
            "UnderMinIsrPartitionCount": ("partitions", "Partitions led here with fewer replicas than must agree."),
            "AtMinIsrPartitionCount": ("partitions", "Partitions led here with just as many replicas as must agree."),
            "OfflineReplicaCount": ("replicas", "Replicas on this broker that are offline."),
            "PartitionCount": ("partitions", "Partitions that have a replica on this broker."),
            "LeaderCount": ("partitions", "Partitions that this broker leads."),
        },
    ),
    _broker_metrics(
        "kafka.controller:type=KafkaController",
        {
            "ActiveControllerCount": ("controllers", "1 on the controller that is active, else 0."),
            "OfflinePartitionsCount": ("partitions", "Partitions without a leader, as the controller sees them."),
            "ActiveBrokerCount": ("brokers", "Brokers that are registered and not fenced."),
            "FencedBrokerCount": ("brokers", "Brokers that are registered and fenced."),
            "GlobalTopicCount": ("topics", "Topics of the cluster."),
            "GlobalPartitionCount": ("partitions", "Partitions of the cluster."),
        },
    ),
    _broker_metrics(
        "kafka.server:type=BrokerTopicMetrics",
        {
            "MessagesInPerSec": ("records", "Records that were written; without a topic those of all."),
            "BytesInPerSec": ("bytes", "Bytes that were written by clients; without a topic those of all."),
            "BytesOutPerSec": ("bytes", "Bytes that were read by clients; without a topic those of all."),
        },
        _TOPIC,
        Kind.COUNTER,
    ),
    _broker_metrics(
        "kafka.log:type=Log",
        {
            "LogEndOffset": ("offset", "Offset that the next record of a partition gets."),
            "LogStartOffset": ("offset", "First offset of a partition that is still there."),
            "Size": ("bytes", "Size of a partition's replica on this broker."),
        },
        _TOPIC_PARTITION,
    ),
    _broker_metrics(
        "kafka.server:type=KafkaRequestHandlerPool",
        {"RequestHandlerAvgIdlePercent": ("ns", "Time that request handlers were idle, averaged over all of them.")},
        kind=Kind.COUNTER,
    ),
    _broker_metrics(
        "kafka.network:type=SocketServer",
        {"NetworkProcessorAvgIdlePercent": ("ratio", "Share of time that network threads were idle.")},
    ),
)


def _java(name: str, kind: Kind, unit: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(
        name=name,
        kind=kind,
        unit=unit,
        help=text,
        labels=labels,
        part=Part.BROKER,
        origin="the Java process, of brokers and of workers",
        exporters=OF_KAFKA,
    )


PROCESSES = (
    _java("jvm_memory_used_bytes", Kind.GAUGE, "bytes", "Memory in use, by area: heap or nonheap.", ("area",)),
    _java("jvm_memory_max_bytes", Kind.GAUGE, "bytes", "Memory that may be used, by area; -1 for no limit.", ("area",)),
    _java("jvm_gc_collection_seconds_sum", Kind.COUNTER, "seconds", "Time that the collector spent.", ("gc",)),
    _java("process_cpu_seconds_total", Kind.COUNTER, "seconds", "Processor time that the process has used."),
    _java("process_resident_memory_bytes", Kind.GAUGE, "bytes", "Memory that the process holds."),
    _java("process_start_time_seconds", Kind.GAUGE, "seconds", "When the process started, since 1970."),
)
