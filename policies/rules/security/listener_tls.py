"""Kafka, EventStreams: what comes from outside Kubernetes must be encrypted, and the cluster must prove who it is."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import EXTERNAL_LISTENERS, describe, listeners
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import CLUSTER, Props, each, flag, format_value


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each external listener without TLS."""

    def check(listener: Props) -> Iterator[str]:
        if listener.get("type") in EXTERNAL_LISTENERS and not flag(listener.get("tls"), False):
            got = format_value(listener["tls"]) if listener.get("tls") is not None else "nothing"
            yield (
                f"{describe(type_, props)}: listener {listener.get('name')} tls must be true (got {got}, the type is "
                f"{listener['type']}). Without TLS, records and logins can be read on their way."
            )

    return each(listeners(type_, props), check)


POLICY = resource_policy(
    name="listener-tls",
    description="Every external listener of a cluster has TLS.",
    types=CLUSTER,
    violations=violations,
    severity=Severity.CRITICAL,
    remediation_steps="Set `tls: true` on the named listener and give its clients the cluster's CA.",
)
