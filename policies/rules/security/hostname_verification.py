"""Clients must check that the host to which they talk is the one that its certificate names.

Since Kafka 2.0 they do unless `ssl.endpoint.identification.algorithm` is set to nothing. Then every holder of any
certificate of the same CA can stand in for the brokers. Strimzi does not pass the key on from a cluster's own `config`;
it is judged there all the same, because it shows what was meant.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.connections import Configuration, configurations, describe
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import BRIDGE, CLUSTER, CONNECT, CONNECTOR, MIRROR, Props, each, text

_SETTING = "ssl.endpoint.identification.algorithm"


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each such key, with any prefix, that is blank. An absent one means https."""

    def check(configuration: Configuration) -> Iterator[str]:
        for key, value in configuration.values(_SETTING):
            if not text(value):
                yield (
                    f"{describe(type_, props)}: {configuration.where} {key} must not be blank (got {value!r}, allowed "
                    "https). Blank lets any holder of a certificate of the same CA pose as the server."
                )

    return each(configurations(type_, props), check)


POLICY = resource_policy(
    name="hostname-verification",
    description="No `ssl.endpoint.identification.algorithm` is blank, under whatever prefix it stands.",
    types=MIRROR | CONNECT | CONNECTOR | BRIDGE | CLUSTER,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Remove the key or set it to `https`. If the host is not in the certificate, add it to the "
    "listener's `alternativeNames` or connect by a name that is.",
)
