"""Nobody logs in by PLAIN, which hands the password itself to whatever answers. SCRAM proves that it is known.

Some services know nothing else, such as Event Streams on IBM Cloud with its API keys: the option `services` names them.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import listeners
from policies.support.connections import (
    Configuration,
    all_match,
    configurations,
    describe,
    hosts,
    hosts_option,
    logins,
)
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import (
    API_VERSIONS,
    BRIDGE,
    CLUSTER,
    CONNECT,
    CONNECTOR,
    MIRROR,
    STRIMZI_V1,
    Props,
    each,
    flag,
    mapping,
    text,
    within,
)

_MECHANISM = "sasl.mechanism"
_OTHERWISE = "PLAIN hands the password to whatever answers. Use scram-sha-512 or tls"
_WITH_OAUTH = tuple(f"kubernetes:{version}:" for version in API_VERSIONS if version != STRIMZI_V1)


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each login, key and listener that uses PLAIN towards anything but the named services."""
    object_ = describe(type_, props)

    def refused(field: str, must: str, got: object, servers: list[str]) -> Iterator[str]:
        if not all_match(servers, config["services"]):
            towards = f"{got} towards {', '.join(servers)}" if servers else got
            yield f"{object_}: {field} must {must} (got {towards}). {_OTHERWISE}, or name the service in `services`."

    def check_login(login: tuple[str, Props]) -> Iterator[str]:
        where, end = login
        kind = within(end, "authentication", "type")
        if kind == "plain":
            yield from refused(f"{where}authentication.type", "not be plain", kind, hosts(end.get("bootstrapServers")))

    def check_keys(configuration: Configuration) -> Iterator[str]:
        for key, value in configuration.values(_MECHANISM):
            if (text(value) or "").upper() == "PLAIN":
                servers = configuration.hosts(key, _MECHANISM)
                yield from refused(f"{configuration.where} {key}", "not be PLAIN", value, servers)

    def check_listener(listener: Props) -> Iterator[str]:
        got = _plain_of(type_, mapping(listener.get("authentication")))
        if got:
            yield (
                f"{object_}: listener {listener.get('name')} authentication must not accept PLAIN (got {got}). "
                f"{_OTHERWISE}."
            )

    yield from each(logins(type_, props), check_login)
    yield from each(configurations(type_, props), check_keys)
    if type_ in CLUSTER:
        yield from each(listeners(type_, props), check_listener)


def _plain_of(type_: str, authentication: Props) -> str:
    """The field by which a listener accepts PLAIN, without its value, which may contain passwords; else empty."""
    if authentication.get("type") == "custom":
        settings = mapping(authentication.get("listenerConfig"))
        mechanisms = (text(settings.get("sasl.enabled.mechanisms")) or "").upper()
        if "PLAIN" in [mechanism.strip() for mechanism in mechanisms.split(",")]:
            return f"listenerConfig sasl.enabled.mechanisms {mechanisms}"
        # Settings of one mechanism start with its name.
        return next((f"listenerConfig {key}" for key in settings if key.lower().startswith("plain.")), "")
    by_oauth = authentication.get("type") == "oauth" and type_.startswith(_WITH_OAUTH)
    return "enablePlain true" if by_oauth and flag(authentication.get("enablePlain"), False) else ""


POLICY = resource_policy(
    name="plain-authentication",
    description="No login, client or listener uses SASL PLAIN, except towards the hosts that `services` names.",
    types=MIRROR | CONNECT | CONNECTOR | BRIDGE | CLUSTER,
    violations=violations,
    options={"services": hosts_option("hosts of services that know no other authentication")},
    severity=Severity.HIGH,
    remediation_steps="Log in by `scram-sha-512` or `tls`. For a service that knows PLAIN only, add its hosts to "
    "`services`.",
)
