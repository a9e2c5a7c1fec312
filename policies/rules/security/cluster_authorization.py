"""Kafka, EventStreams: a cluster must check what a client may do. Without authorization every user is a superuser.

`allow.everyone.if.no.acl.found` lets everybody use what no rule names. Strimzi passes it on to the brokers.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import brokers, config_of, describe
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import CLUSTER, Props, flag, text, within

_FOR_EVERYONE = "allow.everyone.if.no.acl.found"


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for a cluster whose brokers have no authorization, or one that lets everybody in."""
    kafka = brokers(type_, props)
    if kafka and not text(within(kafka, "authorization", "type")):
        yield (
            f"{describe(type_, props)}: authorization must be set (got nothing). Otherwise every client that reaches a "
            "listener reads, writes and deletes every topic, and no failover can refuse writes on a side."
        )
    elif flag(config_of(type_, props).get(_FOR_EVERYONE), False):
        yield (
            f"{describe(type_, props)}: {_FOR_EVERYONE} must not be true (got true). Otherwise every client that "
            "reaches a listener reads, writes and deletes each topic that no rule names."
        )


POLICY = resource_policy(
    name="cluster-authorization",
    description="Every cluster has authorization, which lets nobody in by default.",
    types=CLUSTER,
    violations=violations,
    severity=Severity.CRITICAL,
    remediation_steps="Set `authorization: {type: simple}` and give each client a KafkaUser with its rights; leave "
    "`allow.everyone.if.no.acl.found` out.",
)
