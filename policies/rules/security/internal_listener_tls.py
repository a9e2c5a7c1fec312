"""Kafka, EventStreams: what stays inside Kubernetes must be encrypted too.

A node that is taken over, or a network without encryption of its own, reads what brokers and clients send each other.
"""

from collections.abc import Iterator

from pulumi_policy import EnforcementLevel, Severity

from policies.support.clusters import describe, listeners
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import CLUSTER, Props, each, flag, format_value, sequence


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each internal listener without TLS that the option does not name."""
    allowed = sequence(config["plaintext"])

    def check(listener: Props) -> Iterator[str]:
        name = listener.get("name")
        if listener.get("type") == "internal" and not flag(listener.get("tls"), False) and name not in allowed:
            got = format_value(listener["tls"]) if listener.get("tls") is not None else "nothing"
            yield (
                f"{describe(type_, props)}: listener {name} tls must be true (got {got}, the type is internal). "
                "Without TLS, whoever is in the network of the pods can read records and logins."
            )

    return each(listeners(type_, props), check)


POLICY = resource_policy(
    name="internal-listener-tls",
    description="Every internal listener of a cluster has TLS, except those that `plaintext` names.",
    types=CLUSTER,
    violations=violations,
    options={
        "plaintext": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "names of internal listeners that may do without TLS",
        }
    },
    severity=Severity.MEDIUM,
    enforcement_level=EnforcementLevel.ADVISORY,
    remediation_steps="Set `tls: true` on the named listener and give its clients the cluster's CA. Where a service "
    "mesh encrypts the connections, add the listener to `plaintext`.",
)
