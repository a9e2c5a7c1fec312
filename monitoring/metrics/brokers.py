"""Metrics of Kafka's brokers and controllers, and of any Java process."""

from collections.abc import Mapping

from monitoring.metrics.kinds import OF_KAFKA, Kind, Metric, Part, together

_TOPIC, _PARTITION = ("topic",), ("topic", "partition")


def _metrics(
    bean: str, told: Mapping[str, tuple[str, str]], labels: tuple[str, ...] = (), kind: Kind = Kind.GAUGE
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
        for name, (unit, text) in told.items()
    ]


BROKERS = together(
    _metrics(
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
    _metrics(
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
    _metrics(
        "kafka.server:type=BrokerTopicMetrics",
        {
            "MessagesInPerSec": ("records", "Records that were written; without a topic those of all."),
            "BytesInPerSec": ("bytes", "Bytes that were written by clients; without a topic those of all."),
            "BytesOutPerSec": ("bytes", "Bytes that were read by clients; without a topic those of all."),
        },
        _TOPIC,
        Kind.COUNTER,
    ),
    _metrics(
        "kafka.log:type=Log",
        {
            "LogEndOffset": ("offset", "Offset that the next record of a partition gets."),
            "LogStartOffset": ("offset", "First offset of a partition that is still there."),
            "Size": ("bytes", "Size of a partition's replica on this broker."),
        },
        _PARTITION,
    ),
    _metrics(
        "kafka.server:type=KafkaRequestHandlerPool",
        {"RequestHandlerAvgIdlePercent": ("ns", "Time that request handlers were idle, averaged over all of them.")},
        kind=Kind.COUNTER,
    ),
    _metrics(
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
        origin="the Java process, of brokers and workers alike",
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
