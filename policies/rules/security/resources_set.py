"""Brokers, ZooKeeper, mirrors and Connect request CPU and memory and have a limit of memory.

Without requests Kubernetes places them where nothing is left for them, and evicts them first. Without a memory limit
one of them can take the memory of all others on its machine. Where only a limit is set, Kubernetes requests as much.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pulumi_policy import Severity

from policies.support.clusters import WITH_NODES, belongs, brokers, node_sets
from policies.support.connections import describe
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import CLUSTER, CONNECT, MIRROR, NODE_POOL, STRIMZI_V1, Props, each, if_known, mapping

_V1_POOL = f"kubernetes:{STRIMZI_V1}:KafkaNodePool"


@dataclass(frozen=True)
class _Nodes:
    """Pods that share one declaration, its path, and the cluster from which they inherit missing resources."""

    resource: Resource
    subject: str
    where: str
    declared: Props
    cluster: Resource | None = None


def violations(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """A finding for each set of pods that lacks something."""
    clusters = [resource for resource in resources if resource.type_ in CLUSTER]
    pools = [resource for resource in resources if resource.type_ in NODE_POOL]
    return each(resources, lambda resource: each(_nodes(resource, clusters, pools), _lacking))


def _nodes(resource: Resource, clusters: Sequence[Resource], pools: Sequence[Resource]) -> Iterator[_Nodes]:
    type_, props = resource.type_, resource.props
    if type_ in NODE_POOL:
        cluster = next((cluster for cluster in clusters if belongs(resource.props, cluster.props)), None)
        pool = mapping(props.get("spec"))
        # Before v1 a pool without resources inherits them from its Kafka resource, which may be none of this stack's.
        if cluster or type_ == _V1_POOL or if_known(pool, "resources"):
            yield _Nodes(resource, describe(type_, props), "spec", pool, cluster)
    elif type_ in WITH_NODES:
        embedded = [where for where, _ in node_sets(type_, props) if "nodePools" in where]
        pooled = embedded or any(belongs(pool.props, resource.props) for pool in pools)
        for where, declared in node_sets(type_, props):
            # Brokers of a cluster without replicas of its own are those of its pools.
            if where.endswith(".kafka") and (pooled or if_known(declared, "replicas") is None):
                continue
            yield _Nodes(resource, describe(type_, props), where, declared, resource if where in embedded else None)
    elif type_ not in CLUSTER:
        yield _Nodes(resource, describe(type_, props), "spec", mapping(props.get("spec")))


def _lacking(nodes: _Nodes) -> Iterator[Finding]:
    resources = mapping(nodes.declared.get("resources") or _inherited(nodes.cluster))
    requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
    missing = [f"requests.{unit}" for unit in ("cpu", "memory") if _absent(requests, unit) and _absent(limits, unit)]
    missing += ["limits.memory"] if _absent(limits, "memory") else []
    if missing:
        yield Finding(
            f"{nodes.subject}: {nodes.where}.resources must set requests of cpu and memory and a limit of memory "
            f"(got no {', '.join(missing)}). "
            "Otherwise the pods can starve, be evicted first, or take the memory of their neighbours.",
            nodes.resource,
        )


def _absent(amounts: Props, unit: str) -> bool:
    """An amount that is not known yet is there."""
    return str(if_known(amounts, unit, "")) == ""


def _inherited(cluster: Resource | None) -> Props:
    """Resources that a cluster hands on to its pools. In v1 it has none."""
    if cluster is None or cluster.type_ not in WITH_NODES:
        return {}
    return mapping(brokers(cluster.type_, cluster.props).get("resources"))


POLICY = stack_policy(
    name="resources-set",
    description="Brokers, ZooKeeper, mirrors and Connect have requests of CPU and memory and a limit of memory.",
    types=CLUSTER | NODE_POOL | MIRROR | CONNECT,
    violations=violations,
    severity=Severity.MEDIUM,
    remediation_steps="Set `resources.requests` of cpu and memory and `resources.limits.memory` where the pods are "
    "declared.",
)
