"""Kafka, EventStreams: a cluster must check what a client may do. Without authorization every user is a superuser."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import brokers, describe
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import CLUSTER, Props, text, within


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for a cluster whose brokers have no authorization."""
    kafka = brokers(type_, props)
    if kafka and not text(within(kafka, "authorization", "type")):
        yield (
            f"{describe(type_, props)}: authorization must be set (got nothing). Otherwise every client that reaches a "
            "listener reads, writes and deletes every topic, and no failover can refuse writes on a side."
        )


POLICY = resource_policy(
    name="cluster-authorization",
    description="Every cluster has authorization.",
    types=CLUSTER,
    violations=violations,
    severity=Severity.CRITICAL,
    remediation_steps="Set `authorization: {type: simple}` and give each client a KafkaUser with its rights.",
)
