"""Types of resources as Pulumi names them, in every API version in which the pack knows them.

`kafka.strimzi.io/v1` and `v1beta2` are Strimzi's, `eventstreams.ibm.com/v1beta2` is IBM Event Streams' copy of the
latter. A Kafka cluster is a `Kafka` or an `EventStreams`, which wraps the same fields in `strimziOverrides`.
"""

STRIMZI_V1 = "kafka.strimzi.io/v1"
STRIMZI_V1BETA2 = "kafka.strimzi.io/v1beta2"
EVENT_STREAMS_V1BETA2 = "eventstreams.ibm.com/v1beta2"
API_VERSIONS = (STRIMZI_V1, STRIMZI_V1BETA2, EVENT_STREAMS_V1BETA2)
CLUSTER_LABELS = ("strimzi.io/cluster", "eventstreams.ibm.com/cluster")


def kafka(kind: str) -> frozenset[str]:
    """Types of a custom resource that every API version has."""
    return frozenset(f"kubernetes:{version}:{kind}" for version in API_VERSIONS)


EVENT_STREAMS = f"kubernetes:{EVENT_STREAMS_V1BETA2}:EventStreams"
CLUSTER = kafka("Kafka") | {EVENT_STREAMS}
NODE_POOL = kafka("KafkaNodePool")
TOPIC = kafka("KafkaTopic")
USER = kafka("KafkaUser")
MIRROR = kafka("KafkaMirrorMaker2")
CONNECT = kafka("KafkaConnect")
CONNECTOR = kafka("KafkaConnector")
BRIDGE = kafka("KafkaBridge")
NAMESPACE = frozenset({"kubernetes:core/v1:Namespace"})
SECRET = frozenset({"kubernetes:core/v1:Secret"})
CONFIG_MAP = frozenset({"kubernetes:core/v1:ConfigMap"})
VOLUME_CLAIM = frozenset({"kubernetes:core/v1:PersistentVolumeClaim"})
SUBSCRIPTION = frozenset({"kubernetes:operators.coreos.com/v1alpha1:Subscription"})
CATALOG_SOURCE = frozenset({"kubernetes:operators.coreos.com/v1alpha1:CatalogSource"})
SCALED_OBJECT = frozenset({"kubernetes:keda.sh/v1alpha1:ScaledObject"})
AUTOSCALER = SCALED_OBJECT | {
    f"kubernetes:autoscaling/{version}:HorizontalPodAutoscaler" for version in ("v1", "v2", "v2beta1", "v2beta2")
}
_SPARK_OPERATOR = "sparkoperator.k8s.io/v1beta2"
# Everything that runs containers beside the operators' own resources.
WORKLOADS = frozenset(
    {
        "kubernetes:apps/v1:Deployment",
        "kubernetes:apps/v1:StatefulSet",
        "kubernetes:apps/v1:DaemonSet",
        "kubernetes:batch/v1:Job",
        "kubernetes:batch/v1:CronJob",
        "kubernetes:core/v1:Pod",
        f"kubernetes:{_SPARK_OPERATOR}:SparkApplication",
        f"kubernetes:{_SPARK_OPERATOR}:ScheduledSparkApplication",
    }
)
ANY_KAFKA = CLUSTER | NODE_POOL | TOPIC | USER | MIRROR | CONNECT | CONNECTOR | BRIDGE


def is_v1(type_: str) -> bool:
    """Whether the type is of Strimzi's v1, whose shape differs from that of both v1beta2."""
    return type_.startswith(f"kubernetes:{STRIMZI_V1}:")


def kind_of(type_: str) -> str:
    """Last part of a type: `KafkaTopic`."""
    return type_.rpartition(":")[2]


# Everything that some rule reads, and that can therefore carry an exception.
EVERY = (
    ANY_KAFKA | NAMESPACE | SECRET | CONFIG_MAP | VOLUME_CLAIM | SUBSCRIPTION | CATALOG_SOURCE | WORKLOADS | AUTOSCALER
)
