"""How many replicas of partitions a broker must carry. Each costs memory and files, and time when a broker starts."""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import BROKERS_DECIDE, WITH_NODES, belongs, cluster_name, config_of, spec_of
from policies.support.policy_builder import Config, Finding, Resource, count, count_option, stack_policy
from policies.support.resources import (
    CLUSTER,
    NODE_POOL,
    TOPIC,
    each,
    mapping,
    name,
    namespace,
    sequence,
    whole,
    within,
)


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """At most one finding for each cluster whose number of brokers the stack declares."""
    maximum = count(config, "maximum")
    topics = [one for one in resources if one.type_ in TOPIC]

    def check(cluster: Resource) -> Iterator[Finding]:
        brokers = _brokers(cluster, resources)
        replicas = sum(each(topics, lambda topic: [_replicas(topic, cluster)] if _owns(cluster, topic) else []))
        if brokers and replicas > maximum * brokers:
            yield Finding(
                f"cluster {name(cluster.props)}: replicas of partitions per broker must be <= {maximum} "
                f"(got {-(-replicas // brokers)}: {replicas} on {brokers} brokers). "
                "Lower the topics' partitions, or add brokers.",
                cluster,
            )

    return each((one for one in resources if one.type_ in CLUSTER), check)


def _brokers(cluster: Resource, resources: Sequence[Resource]) -> int:
    """Nodes with the role broker; 0 if the stack does not declare them. If there are node pools, they alone count."""
    spec = spec_of(cluster.type_, cluster.props)
    pools = [
        mapping(pool.props.get("spec"))
        for pool in resources
        if pool.type_ in NODE_POOL and belongs(pool.props, cluster.props)
    ]
    pools += [mapping(pool) for pool in sequence(spec.get("nodePools"))]
    if pools:
        return sum(whole(pool.get("replicas")) or 0 for pool in pools if "broker" in sequence(pool.get("roles")))
    return whole(within(spec, "kafka", "replicas")) or 0 if cluster.type_ in WITH_NODES else 0


def _owns(cluster: Resource, topic: Resource) -> bool:
    """Whether a topic's label names the cluster, in its namespace or in the namespace that it watches for topics."""
    watched = within(spec_of(cluster.type_, cluster.props), "entityOperator", "topicOperator", "watchedNamespace")
    of_elsewhere = namespace(topic.props) == watched and cluster_name(topic.props) == name(cluster.props)
    return belongs(topic.props, cluster.props) or of_elsewhere


def _replicas(topic: Resource, cluster: Resource) -> int:
    """Partitions times replicas; what the topic leaves open is the cluster's default, or else Kafka's, which is 1."""
    spec, defaults = mapping(topic.props.get("spec")), config_of(cluster.type_, cluster.props)
    factors = []
    for key, default in (("partitions", "num.partitions"), ("replicas", "default.replication.factor")):
        own = whole(spec.get(key))
        factors.append(whole(defaults.get(default)) or 1 if own in (None, BROKERS_DECIDE) else own or 0)
    return factors[0] * factors[1]


POLICY = stack_policy(
    name="partitions-per-broker",
    description="The topics of a cluster put at most `maximum` replicas of partitions on each broker.",
    types=CLUSTER | NODE_POOL | TOPIC,
    violations=violations,
    options={"maximum": count_option(4000, "most replicas of partitions per broker")},
    severity=Severity.MEDIUM,
    remediation_steps="Lower `partitions` of topics that are not made yet, or add brokers.",
)
