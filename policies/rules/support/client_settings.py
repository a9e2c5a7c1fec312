"""Configuration of Kafka's clients and brokers, wherever a resource holds it, and the hosts that a key is about."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from . import clusters
from .addresses import hosts
from .kinds import BRIDGE, CLUSTER, CONNECT, CONNECTOR, MIRROR, NODE_POOL
from .mirror_makers import ends, flows
from .values import Props, items, mapping, name, within

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
        yield from ((f"{where} ", end) for where, end in ends(type_, props))
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
        for flow in flows(type_, props):
            for connector in flow.connectors:
                yield Configuration(
                    where=f"{flow.where}.{connector} config",
                    holder=flow.mirror,
                    path=(connector, "config"),
                    source=flow.source,
                    target=flow.target,
                )


def described(type_: str, props: Props) -> str:
    """How messages name a resource that runs something."""
    if type_ in CLUSTER | NODE_POOL:
        return clusters.described(type_, props)
    noun = next((noun for noun, types in _NOUNS.items() if type_ in types), "resource")
    return f"{noun} {name(props)}"
