"""Kafka, EventStreams: a listener that is reached from outside Kubernetes must ask its clients who they are.

Load balancers and node ports are often open to whole networks. A `custom` authentication asks nobody unless it turns
SASL on or requires client certificates.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import EXTERNAL_LISTENERS, describe, listeners
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import CLUSTER, Props, each, flag, mapping, sequence, text, within


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each listener of the option's types that lets in whoever reaches it."""
    types = sequence(config["types"])

    def check(listener: Props) -> Iterator[str]:
        if listener.get("type") not in types:
            return
        missing = _missing(mapping(listener.get("authentication")))
        if missing:
            yield (
                f"{describe(type_, props)}: listener {listener.get('name')} authentication must be set (got {missing}"
                f", the type is {listener['type']}). Otherwise it lets in whoever reaches it."
            )

    return each(listeners(type_, props), check)


def _missing(authentication: Props) -> str:
    """The value that requires no authentication, as a message writes it; empty if authentication is required."""
    kind = text(authentication.get("type"))
    if not kind:
        return "nothing"
    if kind != "custom" or flag(authentication.get("sasl"), False):
        return ""
    certificates = text(within(authentication, "listenerConfig", "ssl.client.auth"))
    return "" if certificates == "required" else "custom with neither sasl nor ssl.client.auth: required"


POLICY = resource_policy(
    name="listener-authentication",
    description="Every external listener of a cluster has authentication.",
    types=CLUSTER,
    violations=violations,
    options={
        "types": {
            "type": "array",
            "items": {"type": "string", "enum": ["internal", *EXTERNAL_LISTENERS]},
            "default": [*EXTERNAL_LISTENERS],
            "description": "types of listeners that must have authentication",
        }
    },
    severity=Severity.CRITICAL,
    remediation_steps="Give the named listener `authentication: {type: scram-sha-512}` or `tls`, and its clients a "
    "KafkaUser each.",
)
