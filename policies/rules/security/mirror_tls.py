"""KafkaMirrorMaker2: a mirror must talk TLS to both of its clusters.

`tls: {}` is TLS too, with the CAs that Java trusts; only without `tls` the mirror talks plain text. Strimzi hands the
connectors' configuration on as it is, so that a `security.protocol` there undoes `tls`.
"""

from collections.abc import Iterator, Mapping

from pulumi_policy import Severity

from policies.support.connections import Configuration, all_match, configurations, hosts, hosts_option, logins
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import MIRROR, Props, each, format_value, name, text

_PROTOCOL = "security.protocol"
_ENCRYPTED = ("SSL", "SASL_SSL")
_OTHERWISE = "Without TLS, records and the mirror's login can be read on their way."


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each cluster without TLS, and for each key that undoes it."""

    def check_end(end: tuple[str, Props]) -> Iterator[str]:
        where, cluster = end
        tls = cluster.get("tls") if cluster else {}
        if not isinstance(tls, Mapping):
            servers = hosts(cluster.get("bootstrapServers"))
            if not all_match(servers, config["plaintext"]):
                got = "nothing" if tls is None else format_value(tls)
                got += f" for {', '.join(servers)}" if servers else ""
                yield f"mirror {name(props)}: {where}tls must be set (got {got}). {_OTHERWISE}"

    def check_keys(configuration: Configuration) -> Iterator[str]:
        for key, value in configuration.values(_PROTOCOL):
            if (text(value) or "").upper() in _ENCRYPTED:
                continue
            if not all_match(configuration.hosts(key, _PROTOCOL), config["plaintext"]):
                yield (
                    f"mirror {name(props)}: {configuration.where} {key} must be SSL or SASL_SSL (got {value}). "
                    f"{_OTHERWISE}"
                )

    yield from each(logins(type_, props), check_end)
    yield from each(configurations(type_, props), check_keys)


POLICY = resource_policy(
    name="mirror-tls",
    description="Every mirror talks TLS to each of its clusters, except to hosts that `plaintext` names.",
    types=MIRROR,
    violations=violations,
    options={"plaintext": hosts_option("hosts of bootstrap servers to which a mirror may talk without TLS")},
    severity=Severity.CRITICAL,
    remediation_steps="Set `tls` of the named cluster: `trustedCertificates` with its CA, or `{}` if its CA is a "
    "public one. Point `bootstrapServers` at a listener with TLS.",
)
