"""Bootstrap servers: which hosts and clusters they are, and options that name hosts that a rule exempts."""

import re
from collections.abc import Iterable, Sequence

from .clusters import listeners
from .declaring import Option
from .values import Props, mapping, name, namespace, sequence, text, within


def hosts(bootstrap_servers: object) -> list[str]:
    """Hosts of a list `host:port,host:port`, in its order, in lower case and without brackets around IPv6.

    A login before the host is no part of it, and messages that name the host must not tell it.
    """
    addresses = [address.strip() for address in (text(bootstrap_servers) or "").split(",")]
    without_logins = [address.rpartition("@")[2] for address in addresses]
    return [re.sub(r":\d+$", "", address).strip("[]").lower() for address in without_logins if address]


def addresses(cluster: Props, props: Props) -> frozenset[str]:
    """Where a cluster listens, each address in one spelling; two with a common address are the same cluster.

    `props` is the resource that names it: a service without a namespace is one of the resource's own.
    """
    servers = (text(cluster.get("bootstrapServers")) or "").split(",")
    return frozenset(_in_one_spelling(server, props) for server in servers if server.strip())


def hosts_option(description: str) -> Option:
    """An option that is a list of regular expressions, none by default, each for whole hosts."""
    return {
        "type": "array",
        "items": {"type": "string", "format": "regex"},
        "default": [],
        "description": f"{description}; regular expressions, each of which must match a whole host",
    }


def all_match(names: Sequence[str], patterns: object) -> bool:
    """Whether there are hosts and each matches one of the patterns. A pattern that cannot be read matches none."""
    expressions = [*_read(str(pattern) for pattern in sequence(patterns))]
    return bool(names) and all(any(each.fullmatch(name) for each in expressions) for name in names)


def leads_to(host: str, origin: str, type_: str, cluster: Props) -> bool:
    """Whether a host, looked up from the namespace `origin`, is one of a cluster: a service of it, or declared by it.

    Routes and load balancers that Kubernetes names are not recognized: two Kubernetes clusters may use equal names.
    """
    brokers = f"{name(cluster)}-kafka-brokers"
    labels = host.split(".")
    if labels[1:2] == [brokers]:
        labels = labels[1:]  # a broker of its own, `<pod>.<service>`
    service, rest = labels[0], labels[1:]
    if re.fullmatch(rf"{re.escape(brokers)}|{re.escape(name(cluster))}-kafka(-[a-z0-9]+)?-bootstrap", service):
        within_kubernetes = len(rest) < 2 or rest[1] == "svc"
        if within_kubernetes and (rest[0] if rest else origin) == namespace(cluster):
            return True
    return host in _declared(type_, cluster)


def _declared(type_: str, cluster: Props) -> Iterable[str]:
    """Hosts by which the cluster's listeners say that they are reached."""
    for listener in listeners(type_, cluster):
        bootstrap = mapping(within(listener, "configuration", "bootstrap"))
        brokers = [mapping(broker) for broker in sequence(within(listener, "configuration", "brokers"))]
        names = [bootstrap.get("host"), *sequence(bootstrap.get("alternativeNames"))]
        names += [broker.get(key) for broker in brokers for key in ("host", "advertisedHost")]
        yield from (str(each).lower() for each in names if each)


def _in_one_spelling(server: str, props: Props) -> str:
    """`Kafka-bootstrap.ns.svc.cluster.local:9093` is `kafka-bootstrap.ns.svc`: a service belongs to one cluster."""
    host, _, port = server.strip().lower().partition(":")
    host = host.removesuffix(".").removesuffix(".cluster.local")
    if "." not in host:
        host = f"{host}.{namespace(props)}.svc"
    return host if host.endswith(".svc") else f"{host}:{port}"


def _read(patterns: Iterable[str]) -> Iterable[re.Pattern[str]]:
    for pattern in patterns:
        try:
            yield re.compile(pattern, re.IGNORECASE)
        except re.error:
            continue
