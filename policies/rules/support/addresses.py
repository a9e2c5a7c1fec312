"""Bootstrap servers: which hosts and clusters they are, and options that name hosts that a rule exempts."""

import re
from collections.abc import Iterable, Sequence

from .clusters import listeners
from .declaring import Option
from .expressions import any_matches
from .values import Props, mapping, name, namespace, sequence, text, within


def hosts(bootstrap_servers: object) -> list[str]:
    """Hosts of a list `host:port,host:port`, in its order, in lower case and without brackets around IPv6."""
    return [_host_and_port(server)[0].strip("[]") for server in _servers(bootstrap_servers)]


def addresses(cluster: Props, props: Props) -> frozenset[str]:
    """Where a cluster listens, each address in one spelling; two with a common address are the same cluster.

    `props` is the resource that names it: a service without a namespace is one of the resource's own.
    """
    return frozenset(_in_one_spelling(server, props) for server in _servers(cluster.get("bootstrapServers")))


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
    return bool(names) and all(any_matches(patterns, name) for name in names)


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


def _servers(bootstrap_servers: object) -> list[str]:
    """The servers of a list, without what Kafka skips: `SASL_SSL://`, and a login, which no message may tell."""
    listed = [server.strip() for server in (text(bootstrap_servers) or "").split(",")]
    return [re.sub(r".*(?:://|@)", "", server) for server in listed if server]


def _host_and_port(server: str) -> tuple[str, str]:
    host, _, port = server.lower().rpartition(":")
    return (host, port) if port.isdigit() else (server.lower(), "")


def _in_one_spelling(server: str, props: Props) -> str:
    """`Kafka-bootstrap.ns.svc.cluster.local:9093` is `kafka-bootstrap.ns.svc`: a service belongs to one cluster."""
    host, port = _host_and_port(server)
    host = host.removesuffix(".").removesuffix(".cluster.local")
    if not re.search(r"[.:]", host):
        host = f"{host}.{namespace(props)}.svc"
    return host if host.endswith(".svc") else f"{host}:{port}"
