"""Connections of clients: bootstrap servers and the clusters behind them, logins, and Kafka's client configuration.

A rule exempts hosts by an option that `hosts_option` makes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from policies.support import clusters
from policies.support.clusters import listeners
from policies.support.mirror_makers import cluster_endpoints, replication_flows
from policies.support.option_patterns import any_matches
from policies.support.policy_builder import Option
from policies.support.resource_types import BRIDGE, CLUSTER, CONNECT, CONNECTOR, MIRROR, NODE_POOL
from policies.support.traversal import Props, items, mapping, name, namespace, sequence, text, within


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
    """Hosts that the cluster's listeners declare for clients."""
    for listener in listeners(type_, cluster):
        bootstrap = mapping(within(listener, "configuration", "bootstrap"))
        brokers = [mapping(broker) for broker in sequence(within(listener, "configuration", "brokers"))]
        names = [bootstrap.get("host"), *sequence(bootstrap.get("alternativeNames"))]
        names += [broker.get(key) for broker in brokers for key in ("host", "advertisedHost")]
        yield from (str(each).lower() for each in names if each)


def _servers(bootstrap_servers: object) -> list[str]:
    """The servers of a list, without what Kafka skips: `SASL_SSL://`, and a login, which no message may contain."""
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


_NOUNS = {"mirror": MIRROR, "Connect cluster": CONNECT, "connector": CONNECTOR, "bridge": BRIDGE}
_OF_BRIDGES = [("producer", "config"), ("consumer", "config"), ("adminClient", "config")]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One configuration: its place, and where its keys lead to.

    `holder` is read late, because its values may not be known yet. `source` and `target` have the `bootstrapServers` of
    the two clusters of a mirror's connector; in any other configuration they are the same, and empty if another
    resource has them.
    """

    where: str
    holder: Props
    path: tuple[str, ...]
    source: Props = field(default_factory=dict)
    target: Props = field(default_factory=dict)

    def values(self, setting: str) -> Iterator[tuple[str, object]]:
        """Every key that is this setting, alone or after a prefix such as `target.cluster.`, with its value."""
        for key, value in items(within(self.holder, *self.path)):
            if value is not None and (key == setting or key.endswith(f".{setting}")):
                yield key, value

    def hosts(self, key: str, setting: str) -> list[str]:
        """Hosts to which this key of the setting applies; of both clusters where the prefix decides for none."""
        prefix = key.removesuffix(setting)
        own = hosts(within(self.holder, *self.path, f"{prefix}bootstrap.servers"))
        if own:
            return own
        if prefix.startswith("source."):
            return hosts(self.source.get("bootstrapServers"))
        # Connect itself makes the clients whose configuration is overridden, and they go to its own cluster.
        if prefix.startswith("target.") or prefix.endswith(".override."):
            return hosts(self.target.get("bootstrapServers"))
        both = (hosts(end.get("bootstrapServers")) for end in (self.source, self.target))
        return list(dict.fromkeys(host for end in both for host in end))


def logins(type_: str, props: Props) -> Iterator[tuple[str, Props]]:
    """Everything that has `bootstrapServers`, `tls` and `authentication`, with its place, which ends with a blank."""
    if type_ in MIRROR:
        yield from ((f"{where} ", end) for where, end in cluster_endpoints(type_, props))
    elif type_ in CONNECT | BRIDGE:
        yield "", mapping(props.get("spec"))


def configurations(type_: str, props: Props) -> Iterator[Configuration]:
    """Every configuration of the resource: of logins, clients, connectors, or brokers."""
    spec = mapping(props.get("spec"))
    if type_ in CLUSTER:
        yield Configuration(where="config", holder=clusters.brokers(type_, props), path=("config",))
    if type_ in CONNECTOR:
        yield Configuration(where="config", holder=spec, path=("config",))
    for where, login in logins(type_, props):
        for path in [("authentication", "config"), *(_OF_BRIDGES if type_ in BRIDGE else [("config",)])]:
            yield Configuration(where=where + ".".join(path), holder=login, path=path, source=login, target=login)
    if type_ in MIRROR:
        for flow in replication_flows(type_, props):
            for connector in flow.connectors:
                yield Configuration(
                    where=f"{flow.where}.{connector} config",
                    holder=flow.mirror,
                    path=(connector, "config"),
                    source=flow.source,
                    target=flow.target,
                )


def describe(type_: str, props: Props) -> str:
    """How messages name a resource that runs something."""
    if type_ in CLUSTER | NODE_POOL:
        return clusters.describe(type_, props)
    noun = next((noun for noun, types in _NOUNS.items() if type_ in types), "resource")
    return f"{noun} {name(props)}"
