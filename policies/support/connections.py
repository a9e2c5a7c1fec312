"""Connections of clients: bootstrap servers and the clusters behind them, logins, and Kafka's client configuration.

A rule exempts hosts by an option that `hosts_option` makes.

Also who a login is to Kafka, and what makes a superuser of somebody. A principal is written as Strimzi's `superUsers`
has it, without the `User:` that Kafka puts in front.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from policies.support import clusters
from policies.support.clusters import brokers, listeners, spec_of
from policies.support.mirror_makers import cluster_endpoints, replication_flows
from policies.support.policy_builder import Option, any_matches
from policies.support.resources import (
    BRIDGE,
    CLUSTER,
    CONNECT,
    CONNECTOR,
    MIRROR,
    NODE_POOL,
    Props,
    each,
    is_v1,
    items,
    mapping,
    name,
    namespace,
    sequence,
    text,
    within,
)


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
    """Whether a host, resolved from the namespace `origin`, is one of a cluster: a service of it, or declared by it.

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


# Services that Strimzi makes for a cluster: one for each listener, and one behind which each broker has a name.
_OF_STRIMZI = re.compile(
    r"(?:([^.:]+)-kafka(?:-[a-z0-9]+)?-bootstrap|(?:[^.:]+\.)?([^.:]+)-kafka-brokers)(?:\.([^.:]+)(?:\.svc)?)?"
)


def _in_one_spelling(server: str, props: Props) -> str:
    """`Kafka-bootstrap.ns.svc.cluster.local:9093` is `kafka-bootstrap.ns.svc`: a service belongs to one cluster.

    A cluster of Strimzi's has several, and is `<cluster>-kafka-bootstrap` by each of them.
    """
    host, port = _host_and_port(server)
    host = host.removesuffix(".").removesuffix(".cluster.local")
    of_strimzi = _OF_STRIMZI.fullmatch(host)
    if of_strimzi:
        cluster = of_strimzi[1] or of_strimzi[2]
        return f"{cluster}-kafka-bootstrap.{of_strimzi[3] or namespace(props)}.svc"
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


# Who may change ACLs can take every right, who may change brokers' configuration can open a door, and who acts as a
# broker reads every record.
_TAKE_OVER = ("All", "Alter", "AlterConfigs", "ClusterAction")
_EVERY_NAME = {("literal", "*"), ("prefix", "")}
# What `All` means for a topic.
_ON_TOPICS = ("Read", "Write", "Create", "Delete", "Alter", "Describe", "AlterConfigs", "DescribeConfigs")


def superuser_rights(type_: str, props: Props) -> list[str]:
    """Rights of a KafkaUser that make it a superuser, such as `All on topic *`.

    They are `All` on every topic, group or transactional ID, on topics also if spelled out, and on the cluster whatever
    lets the user take over. Denials are not set off against them.
    """
    granted = dict.fromkeys(each(sequence(within(props, "spec", "authorization", "acls")), lambda acl: _of(type_, acl)))
    found = [f"{operation} on {resource}" for operation, resource in granted if _suffices(operation, resource)]
    every = dict.fromkeys(resource for _, resource in granted if resource.startswith("topic "))
    spelled = (resource for resource in every if all((operation, resource) in granted for operation in _ON_TOPICS))
    return found + [f"{', '.join(_ON_TOPICS)} on {resource}" for resource in spelled]


def principal_of_user(props: Props) -> str:
    """Principal of a KafkaUser."""
    certified = within(props, "spec", "authentication", "type") in ("tls", "tls-external")
    return f"CN={name(props)}" if certified else name(props)


def principal_of_login(login: Props) -> str | None:
    """Principal that an `authentication` of a client logs in as; None if that is not known.

    A certificate is taken for that of the user after whom its Secret is named, as the User Operator names it.
    """
    authentication = mapping(login.get("authentication"))
    kind = text(authentication.get("type"))
    if kind is None:
        return "ANONYMOUS"
    if kind == "tls":
        secret = text(within(authentication, "certificateAndKey", "secretName"))
        return f"CN={secret}" if secret else None
    return text(authentication.get("username")) if kind.startswith("scram-") or kind == "plain" else None


def secret_of_login(login: Props) -> str | None:
    """Name of the Secret that has the password or the certificate of a client."""
    authentication = mapping(login.get("authentication"))
    part = "certificateAndKey" if authentication.get("type") == "tls" else "passwordSecret"
    return text(within(authentication, part, "secretName"))


def secret_prefix(type_: str, props: Props) -> str:
    """What the User Operator of a cluster puts before the names of users to name their Secrets."""
    return str(within(spec_of(type_, props), "entityOperator", "userOperator", "secretPrefix") or "")


def super_users(type_: str, props: Props) -> list[str]:
    """Principals that a cluster lists as superusers."""
    return [bare(listed) for listed in sequence(within(brokers(type_, props), "authorization", "superUsers"))]


def bare(principal: object) -> str:
    """A principal without `User:`."""
    return str(principal).strip().removeprefix("User:")


def _of(type_: str, acl: object) -> Iterator[tuple[str, str]]:
    """Operation and resource of each right that an ACL grants on every name of a type, or on the cluster."""
    if within(acl, "type") not in (None, "allow"):
        return
    resource = mapping(within(acl, "resource"))
    kind, pattern = str(resource.get("type")), str(resource.get("patternType") or "literal")
    if kind == "cluster":
        granted_on = "the cluster"
    elif (pattern, str(resource.get("name"))) in _EVERY_NAME:
        granted_on = f"{kind} {resource['name'] or 'with an empty prefix'}"
    else:
        return
    yield from ((str(operation), granted_on) for operation in sequence(within(acl, "operations")))
    # v1 has the list only.
    if not is_v1(type_) and within(acl, "operation") is not None:
        yield str(within(acl, "operation")), granted_on


def _suffices(operation: str, resource: str) -> bool:
    return operation in (_TAKE_OVER if resource == "the cluster" else ("All",))
