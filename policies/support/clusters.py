"""Kafka clusters, whichever resource describes them.

`Kafka` has its brokers in `spec.kafka`, `EventStreams` the same fields in `spec.strimziOverrides.kafka` and, where its
release has them, its node pools in `spec.strimziOverrides.nodePools`. A `KafkaNodePool` has disks and replicas only.
"""

from collections.abc import Iterator
from typing import Any

from policies.support.resource_types import CLUSTER, CLUSTER_LABELS, EVENT_STREAMS, NODE_POOL, STRIMZI_V1
from policies.support.traversal import Props, format_value, if_known, label, mapping, name, namespace, sequence, within

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
    """How messages name a cluster or a node pool."""
    return f"node pool {name(props)}" if type_ in NODE_POOL else f"cluster {name(props)}"


def setting(config: Props, key: str, default: Any) -> tuple[Any, str]:
    """A key of Kafka's configuration: its value, and its text in messages. An absent key means Kafka's default."""
    value = config.get(key)
    return (default, f"nothing, which means {default}") if value is None else (value, format_value(value))


def topic_name(props: Props) -> str:
    """What a KafkaTopic is called in Kafka: `spec.topicName`, or else its own name."""
    return str(within(props, "spec", "topicName") or name(props))


def _place(member: Props, key: str, index: int) -> str:
    """How messages identify a member of a list: by what identifies it, or by its index."""
    identity = if_known(member, key)
    return format_value(index if identity is None else identity)
