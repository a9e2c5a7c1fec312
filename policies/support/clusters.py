"""Kafka clusters, whichever resource describes them, and the autoscalers of Kafka's resources.

`Kafka` has its brokers in `spec.kafka`, `EventStreams` the same fields in `spec.strimziOverrides.kafka` and, where its
release has them, its node pools in `spec.strimziOverrides.nodePools`. A `KafkaNodePool` has disks and replicas only.

An autoscaler is KEDA's ScaledObject or Kubernetes' HorizontalPodAutoscaler, read in the same way. KEDA makes a
HorizontalPodAutoscaler of a ScaledObject, with defaults of its own for the bounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from policies.support.policy_builder import Resource
from policies.support.resources import (
    API_VERSIONS,
    AUTOSCALER,
    CLUSTER,
    CLUSTER_LABELS,
    EVENT_STREAMS,
    NODE_POOL,
    SCALED_OBJECT,
    STRIMZI_V1,
    Props,
    each,
    format_value,
    if_known,
    kind_of,
    label,
    mapping,
    name,
    namespace,
    sequence,
    whole,
    within,
)

# Types that declare the number of nodes and their disks: in v1 only node pools do.
WITH_NODES = NODE_POOL | CLUSTER - {f"kubernetes:{STRIMZI_V1}:Kafka"}
# A number of replicas that leaves it to the brokers.
BROKERS_DECIDE = -1
EXTERNAL_LISTENERS = ("route", "tlsroute", "loadbalancer", "nodeport", "ingress", "cluster-ip")


def spec_of(type_: str, props: Props) -> Props:
    """The part of a cluster's spec that has `kafka`, `entityOperator` and, before KRaft, `zookeeper`."""
    spec = mapping(props.get("spec"))
    return mapping(spec.get("strimziOverrides")) if type_ == EVENT_STREAMS else spec


def brokers(type_: str, props: Props) -> Props:
    """A cluster's declaration of its brokers: `listeners`, `config`, `authorization`, `storage` and so on."""
    return mapping(spec_of(type_, props).get("kafka"))


def config_of(type_: str, props: Props) -> Props:
    """Kafka's own configuration of a cluster's brokers."""
    return mapping(brokers(type_, props).get("config"))


def listeners(type_: str, props: Props) -> list[Props]:
    """A cluster's listeners, each with `name`, `port`, `type`, `tls` and maybe `authentication`."""
    return [mapping(each) for each in sequence(brokers(type_, props).get("listeners"))]


def node_sets(type_: str, props: Props) -> Iterator[tuple[str, Props]]:
    """Everything that has `replicas`, `storage` and `resources`, with its place in the resource.

    The brokers (before node pools they have their own replicas and disks), ZooKeeper, Event Streams' own node pools,
    or a `KafkaNodePool` as a whole. What is not known yet is left out and hides nothing else.
    """
    spec, prefix = mapping(if_known(props, "spec")), "spec"
    if type_ in NODE_POOL:
        yield prefix, spec
        return
    if type_ == EVENT_STREAMS:
        spec, prefix = mapping(if_known(spec, "strimziOverrides")), "spec.strimziOverrides"
    for part in ("kafka", "zookeeper"):
        nodes = if_known(spec, part)
        if nodes is not None:
            yield f"{prefix}.{part}", mapping(nodes)
    for index, pool in enumerate(sequence(if_known(spec, "nodePools"))):
        yield f"{prefix}.nodePools[{_place(mapping(pool), 'name', index)}]", mapping(pool)


def disks(type_: str, props: Props) -> Iterator[tuple[str, Props]]:
    """Every disk of every node set with its place: the storage itself, or each volume of JBOD storage."""
    for where, nodes in node_sets(type_, props):
        yield from disks_of(where, nodes)


def disks_of(where: str, nodes: Props) -> Iterator[tuple[str, Props]]:
    """Every disk of one node set."""
    storage = mapping(if_known(nodes, "storage"))
    if if_known(storage, "type") == "jbod":
        for index, volume in enumerate(sequence(if_known(storage, "volumes"))):
            yield f"{where}.storage.volumes[{_place(mapping(volume), 'id', index)}]", mapping(volume)
    elif storage:
        yield f"{where}.storage", storage


def cluster_name(props: Props) -> str | None:
    """The cluster to which a topic, user or node pool belongs, by its label."""
    return label(props, CLUSTER_LABELS)


def belongs(member: Props, cluster: Props) -> bool:
    """Whether a user or node pool is one of the cluster: by its label, in the same namespace."""
    return namespace(member) == namespace(cluster) and cluster_name(member) == name(cluster)


def describe(type_: str, props: Props) -> str:
    """Name of a cluster or a node pool in messages."""
    return f"node pool {name(props)}" if type_ in NODE_POOL else f"cluster {name(props)}"


def setting(config: Props, key: str, default: Any) -> tuple[Any, str]:
    """A key of Kafka's configuration: its value, and its text in messages. An absent key means Kafka's default."""
    value = config.get(key)
    return (default, f"nothing, which means {default}") if value is None else (value, format_value(value))


def topic_name(props: Props) -> str:
    """Name of a KafkaTopic in Kafka: `spec.topicName`, or else its own name."""
    return str(within(props, "spec", "topicName") or name(props))


def _place(member: Props, key: str, index: int) -> str:
    """A member of a list in messages: the value of the key that identifies it, or its index."""
    identity = if_known(member, key)
    return format_value(index if identity is None else identity)


# Of Kubernetes, in autoscaling/v2.
STABILIZATION_S = 300
_GROUPS = frozenset(version.partition("/")[0] for version in API_VERSIONS)
_BEHAVIOR = ("behavior", "scaleDown")
_OF_KEDA = ("advanced", "horizontalPodAutoscalerConfig", *_BEHAVIOR)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The fewest or the most of what is scaled: its path, its value, and the text of it in messages."""

    where: str
    value: int
    text: str


def scaled_kind(props: Props) -> str | None:
    """Kind of what is scaled if it is one of Kafka's custom resources, else None."""
    reference = mapping(within(props, "spec", "scaleTargetRef"))
    group = str(reference.get("apiVersion") or "").partition("/")[0]
    return str(reference.get("kind")) if group in _GROUPS else None


def scaled_name(props: Props) -> str:
    """Name of what is scaled."""
    return str(within(props, "spec", "scaleTargetRef", "name") or "(unnamed)")


def lower_bound(type_: str, props: Props) -> Bound:
    """The lower bound; a ScaledObject that sets none scales to nothing."""
    return _bound(props, *(("minReplicaCount", 0) if type_ in SCALED_OBJECT else ("minReplicas", 1)))


def upper_bound(type_: str, props: Props) -> Bound:
    """The upper bound; a HorizontalPodAutoscaler must set one."""
    return _bound(props, *(("maxReplicaCount", 100) if type_ in SCALED_OBJECT else ("maxReplicas", 0)))


def stabilization_window(type_: str, props: Props) -> tuple[str, int] | None:
    """Path and seconds of the window whose highest recommendation counts; None if replicas are never removed."""
    path = _OF_KEDA if type_ in SCALED_OBJECT else _BEHAVIOR
    down = mapping(within(props, "spec", *path))
    if down.get("selectPolicy") == "Disabled":
        return None
    seconds = whole(down.get("stabilizationWindowSeconds"))
    where = ".".join(("spec", *path, "stabilizationWindowSeconds"))
    return where, STABILIZATION_S if seconds is None else seconds


def describe_autoscaler(type_: str, props: Props) -> str:
    """Name of an autoscaler in messages."""
    return f"{kind_of(type_)} {name(props)}"


def scaled_pairs(resources: Sequence[Resource], targets: frozenset[str]) -> Iterator[tuple[Resource, Resource]]:
    """Every autoscaler of the stack with the resource of these types that it scales, if that is in the stack too."""

    def of(scaler: Resource) -> Iterator[tuple[Resource, Resource]]:
        kind, scaled = scaled_kind(scaler.props), scaled_name(scaler.props)
        for target in resources:
            beside = namespace(target.props) == namespace(scaler.props)
            if target.type_ in targets and kind_of(target.type_) == kind and beside and name(target.props) == scaled:
                yield scaler, target

    return each((resource for resource in resources if resource.type_ in AUTOSCALER), of)


def _bound(props: Props, key: str, default: int) -> Bound:
    value = whole(within(props, "spec", key))
    text = f"nothing, which means {default}" if value is None else str(value)
    return Bound(where=f"spec.{key}", value=default if value is None else value, text=text)
