"""One Kafka cluster: brokers, partitions, throughput, disks, topics, and when its certificates expire."""

from grafana_foundation_sdk.builders import dashboard as build

from monitoring.dashboards import pages, panels, queries
from monitoring.dashboards.panels import Column, FieldConfig, Key, Panel, Series
from monitoring.dashboards.queries import OPS, TOPIC, of_cluster, selector

REPLICAS, CONTROLLER = "kafka_server_replicamanager_", "kafka_controller_kafkacontroller_"
PASSING = "kafka_server_brokertopicmetrics_"
UP = of_cluster("up", 'job="kafka"')
# Without a topic a meter counts all topics of its broker.
ALL_TOPICS, ONE_TOPIC = 'topic=""', ('topic!=""', TOPIC)
IDLE_NS = of_cluster("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total")
SIZE = of_cluster("kafka_log_log_size", TOPIC)
# The operator watches many stacks: a cluster is identified by namespace and name.
OPERATOR = 'resource_namespace=~"$namespace"'
READY = selector("strimzi_resource_state", OPERATOR)
FAILED, SUCCEEDED = (
    queries.growth(selector(f"strimzi_reconciliations_{outcome}_total", OPERATOR), "kind")
    for outcome in ("failed", "successful")
)
AUTHORITIES = selector("strimzi_certificate_expiration_timestamp_ms", OPERATOR, 'cluster=~"$cluster"')
CERTIFICATES = selector(f"{OPS}certificate_expiry_timestamp_seconds", 'stack=~"$stack"')
POD = "{{pod}}"


def page(runbook: str) -> build.Dashboard:
    """Return the dashboard; its runbook is found at the address."""
    found = pages.blank(
        pages.CLUSTER, "Kafka mirrors: cluster health", "Brokers, partitions, traffic and certificates of one cluster."
    )
    found.with_variable(pages.datasource()).with_variable(pages.runbook(runbook))
    found.with_variable(pages.choice("stack", "Stack", pages.CLUSTERS))
    found.with_variable(pages.choice("cluster", "Cluster", selector(pages.CLUSTERS, 'stack=~"$stack"')))
    found.with_variable(pages.hidden(pages.choice("namespace", "Namespace", of_cluster(pages.CLUSTERS))))
    topics = of_cluster(f"{PASSING}messagesinpersec_total", 'topic!=""')
    found.with_variable(pages.choice("topic", "Topic", topics, many=True))
    found.annotation(pages.alerts_drawn('stack=~"$stack"', 'cluster=~"($cluster)|"'))
    pages.section(found, "Now", _now())
    pages.section(found, "What passes", _traffic())
    pages.section(found, "Brokers", _brokers())
    pages.section(found, "Partitions over time", _partitions())
    pages.section(found, "Topics", _topics(), folded=True)
    pages.section(found, "Operator and certificates", _operator())
    return found


def _now() -> list[Panel]:
    must_be_none = FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED)
    return [
        panels.number(
            "Pods scraped",
            "Pods, brokers and controllers, whose metrics Prometheus could scrape the last time. No colour means that "
            "none is missing: the alert BrokerDown compares with the number that there should be.",
            Series(f"sum({UP})", "pods"),
            FieldConfig(unit=panels.NUMBER, steps=panels.SOME),
            wide=3,
        ),
        panels.number(
            "Brokers active",
            "Brokers that are registered and not fenced, as the active controller sees them.",
            Series(queries.largest(of_cluster(f"{CONTROLLER}activebrokercount")), "brokers"),
            FieldConfig(unit=panels.NUMBER, steps=panels.SOME),
            wide=3,
        ),
        panels.number(
            "Brokers fenced",
            "Brokers that are registered and may not serve: they start, stop, or have lost the controller.",
            Series(queries.largest(of_cluster(f"{CONTROLLER}fencedbrokercount")), "brokers"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
            wide=3,
        ),
        panels.number(
            "Active controllers",
            "Exactly one controller must be active.",
            Series(queries.total(of_cluster(f"{CONTROLLER}activecontrollercount")), "controllers"),
            FieldConfig(unit=panels.NUMBER, steps=panels.ONE_EXACTLY),
            wide=3,
        ),
        panels.number(
            "Offline partitions",
            "Partitions without a leader: nobody can write to them or read them.",
            Series(queries.largest(of_cluster(f"{CONTROLLER}offlinepartitionscount")), "partitions"),
            must_be_none,
            wide=3,
        ),
        panels.number(
            "Under min ISR",
            "Partitions with fewer replicas in sync than must confirm a write: acks=all fails.",
            Series(queries.total(of_cluster(f"{REPLICAS}underminisrpartitioncount")), "partitions"),
            must_be_none,
            wide=3,
        ),
        panels.number(
            "Under-replicated",
            "Partitions of which a replica is behind. Ordinary while a broker restarts.",
            Series(queries.total(of_cluster(f"{REPLICAS}underreplicatedpartitions")), "partitions"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
            wide=3,
        ),
        panels.number(
            "Offline replicas",
            "Replicas whose log directory failed.",
            Series(queries.total(of_cluster(f"{REPLICAS}offlinereplicacount")), "replicas"),
            must_be_none,
            wide=3,
        ),
    ]


def _traffic() -> list[Panel]:
    meters = {
        "Records in": ("messagesinpersec", "Records that clients write in a second.", panels.RECORDS_PER_SECOND),
        "Bytes in": ("bytesinpersec", "Bytes that clients write in a second.", panels.BYTES_PER_SECOND),
        "Bytes out": ("bytesoutpersec", "Bytes that clients read in a second.", panels.BYTES_PER_SECOND),
    }
    return [
        panels.graph(
            f"{title}, by broker",
            about,
            [Series(queries.rate(of_cluster(f"{PASSING}{name}_total", ALL_TOPICS), "pod"), POD)],
            FieldConfig(unit=unit),
            wide=8,
            stacked=True,
        )
        for title, (name, about, unit) in meters.items()
    ]


def _brokers() -> list[Panel]:
    network = of_cluster("kafka_network_socketserver_networkprocessoravgidlepercent")
    heap = (of_cluster(f"jvm_memory_{what}_bytes", 'area="heap"') for what in ("used", "max"))
    return [
        panels.states(
            "Scraped",
            "Whether Prometheus could get the metrics of each pod.",
            Series(f"min by (pod) ({UP})", POD),
            panels.UP,
            wide=8,
        ),
        panels.graph(
            "Request handlers idle",
            "Share of time that the threads that serve requests are idle. Near none: requests wait.",
            [Series(f"{queries.rate(IDLE_NS, 'pod')} / 1e9", POD)],
            FieldConfig(unit=panels.FRACTION, steps=panels.IDLE),
            wide=8,
        ),
        panels.graph(
            "Network threads idle",
            "Share of time that the threads that read and write connections are idle.",
            [Series(queries.smallest(network, "pod"), POD)],
            FieldConfig(unit=panels.FRACTION, steps=panels.IDLE),
            wide=8,
        ),
        panels.graph(
            "Partitions led, by broker",
            "Partitions that each broker leads. One that leads none has just come back, or does not take part.",
            [Series(queries.largest(of_cluster(f"{REPLICAS}leadercount"), "pod"), POD)],
            FieldConfig(unit=panels.NUMBER),
            wide=8,
            stacked=True,
        ),
        panels.graph(
            "Size of logs, by broker",
            "Bytes that the replicas of the chosen topics take on each broker.",
            [Series(queries.total(SIZE, "pod"), POD)],
            FieldConfig(unit=panels.BYTES),
            wide=8,
            stacked=True,
        ),
        panels.graph(
            "Heap in use",
            "Share of each broker's heap that is in use.",
            [Series(f"max by (pod) ({' / '.join(heap)})", POD)],
            FieldConfig(unit=panels.FRACTION, steps=panels.MEMORY),
            wide=8,
        ),
    ]


def _partitions() -> list[Panel]:
    kinds = {
        "under-replicated": queries.total(of_cluster(f"{REPLICAS}underreplicatedpartitions")),
        "at min ISR": queries.total(of_cluster(f"{REPLICAS}atminisrpartitioncount")),
        "under min ISR": queries.total(of_cluster(f"{REPLICAS}underminisrpartitioncount")),
        "offline": queries.largest(of_cluster(f"{CONTROLLER}offlinepartitionscount")),
    }
    replicas = queries.largest(of_cluster(f"{REPLICAS}partitioncount"), "pod")
    return [
        panels.graph(
            "Under-replicated and offline partitions",
            "Partitions by how much they lack, from a replica that is behind to a leader that is gone.",
            [Series(expression, legend) for legend, expression in kinds.items()],
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
        ),
        panels.graph(
            "Replicas, by broker",
            "Partitions that have a replica on each broker.",
            [Series(replicas, POD)],
            FieldConfig(unit=panels.NUMBER),
            stacked=True,
        ),
    ]


def _topics() -> list[Panel]:
    newest, oldest = (of_cluster(f"kafka_log_log_{what}", TOPIC) for what in ("logendoffset", "logstartoffset"))
    held = (queries.largest(series, "topic", "partition") for series in (newest, oldest))
    return [
        panels.graph(
            "Records in, by topic",
            "Records that are written to each chosen topic in a second, by clients and by mirrors.",
            [Series(queries.rate(of_cluster(f"{PASSING}messagesinpersec_total", *ONE_TOPIC), "topic"), "{{topic}}")],
            FieldConfig(unit=panels.RECORDS_PER_SECOND),
            wide=8,
        ),
        panels.graph(
            "Size, by topic",
            "Bytes that a topic takes on all brokers together, copies included.",
            [Series(queries.total(SIZE, "topic"), "{{topic}}")],
            FieldConfig(unit=panels.BYTES),
            wide=8,
        ),
        panels.graph(
            "Offsets held, by topic",
            "Offsets from the first one that is still there to the end, over all partitions. Transactions and "
            "compaction leave gaps, so that there may be fewer records.",
            [Series(f"sum by (topic) ({' - '.join(held)})", "{{topic}}")],
            FieldConfig(unit=panels.RECORDS),
            wide=8,
        ),
    ]


def _operator() -> list[Panel]:
    expiry = FieldConfig(unit=panels.SECONDS, steps=panels.EXPIRY_SECONDS)
    return [
        panels.states(
            "Resources, as the operator sees them",
            "Whether each Kafka and KafkaMirrorMaker2 of the namespace is ready, and what else an operator reports.",
            Series(queries.smallest(READY, "kind", "name"), "{{kind}} {{name}}"),
            panels.READY,
        ),
        panels.graph(
            "Reconciliations that failed",
            "Attempts of the operator that failed around each point, by the kind of resource. It tries again.",
            # Of a kind that never failed there is no count.
            [Series(f"{FAILED} or 0 * {SUCCEEDED}", "{{kind}}")],
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
        ),
        panels.listing(
            "Authorities",
            "Time until an authority of the cluster ends, by the operator. It renews its own in time.",
            [Key("type", "Authority")],
            [Column("Ends in", f"{queries.smallest(AUTHORITIES, 'type')} / 1000 - time()", expiry)],
            wide=12,
            high=6,
        ),
        panels.listing(
            "Certificates",
            "Time until a certificate that the stack's mirrors meet ends: of brokers, clients and authorities.",
            [Key("mirror", "Mirror"), Key("certificate", "Certificate")],
            [Column("Ends in", f"{queries.smallest(CERTIFICATES, 'mirror', 'certificate')} - time()", expiry)],
            wide=12,
            high=6,
        ),
    ]
