"""Configuration of one broker: the properties that Strimzi would render, on loopback ports.

Owns what a server.properties says. Does not start or stop anything.
"""

from typing import Any

from . import listeners, metrics_config, pki
from .errors import NotReadyError
from .layout import CONTROL_PLANE, REPLICATION, Layout, Node, listener_key

# Strimzi ignores options that it manages itself, wherever they come from.
MANAGED_PREFIXES = (
    "listeners", "advertised.", "broker.", "listener.", "host.name", "port", "inter.broker.listener.name", "sasl.",
    "ssl.", "security.", "password.", "log.dir", "authorizer.", "super.user", "node.id", "process.roles",
    "controller.quorum", "controller.listener", "principal.builder.class", "allow.everyone",
)  # fmt: skip

# Defaults of the sandbox where the resource says nothing: small buffers, few internal partitions, and brokers that do
# little while nothing happens (Kafka's 500 ms for both intervals cost 1 % of a core each and broker).
SMALL = {
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 4,
    "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    "offsets.topic.num.partitions": 10,
    "transaction.state.log.num.partitions": 5,
    "share.coordinator.state.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 500,
    "metadata.max.idle.interval.ms": 5000,
    "replica.fetch.wait.max.ms": 2000,
}


def check_spec(cluster: str, spec: dict[str, Any], kafka_version: str) -> None:
    """Raise NotReadyError if the sandbox cannot run what `spec.kafka` asks for."""
    version = spec.get("version")
    if version and version != kafka_version:
        raise NotReadyError(
            "UnsupportedKafkaVersion",
            f"Kafka {cluster}: spec.kafka.version must be one that is installed (got {version}, allowed "
            f"{kafka_version}). Set it to {kafka_version} or leave it out.",
            retry_s=30,
        )
    listeners.check(cluster, spec["listeners"])
    authorization = (spec.get("authorization") or {}).get("type")
    if authorization not in (None, "simple"):
        raise NotReadyError(
            "UnsupportedAuthorization",
            f"Kafka {cluster}: spec.kafka.authorization.type must be simple (got {authorization}). Change it.",
            retry_s=30,
        )
    if metrics_config.is_reporter(spec):
        raise NotReadyError(
            "UnsupportedMetrics",
            f"Kafka {cluster}: spec.kafka.metricsConfig.type must be {metrics_config.JMX} in the sandbox (got "
            f"{metrics_config.REPORTER}, whose part for brokers is not published as jars). Change it, or leave it out.",
            retry_s=30,
        )


def ignored_options(spec: dict[str, Any]) -> list[str]:
    """Options of `spec.kafka.config` that have no effect, because the operator manages them."""
    return sorted(key for key in spec.get("config") or {} if key.startswith(MANAGED_PREFIXES))


def server_properties(layout: Layout, node: Node, spec: dict[str, Any]) -> dict[str, object]:
    """All properties of one node; both internal listeners demand a certificate of the cluster's own authority."""
    home = layout.home(node)
    clients = {listener_key(entry["name"], entry["port"]): entry for entry in spec["listeners"]}
    internal = [CONTROL_PLANE, REPLICATION]
    result: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": node.id,
        "controller.quorum.voters": ",".join(
            f"{other.id}@127.0.0.1:{other.ports[CONTROL_PLANE]}" for other in layout.nodes
        ),
        "listeners": ",".join(f"{key.upper()}://127.0.0.1:{node.ports[key]}" for key in [*internal, *clients]),
        "advertised.listeners": ",".join(
            f"{key.upper()}://127.0.0.1:{node.ports[key]}" for key in [*internal[1:], *clients]
        ),
        "listener.security.protocol.map": ",".join(
            [f"{key.upper()}:SSL" for key in internal]
            + [f"{key.upper()}:{listeners.protocol(entry)}" for key, entry in clients.items()]
        ),
        "controller.listener.names": CONTROL_PLANE.upper(),
        "inter.broker.listener.name": REPLICATION.upper(),
        "log.dirs": home / "data",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.enabled.protocols": "TLSv1.3,TLSv1.2",
    }
    for key in internal:
        result |= listeners.internal_properties(layout, node, key)
    for entry in spec["listeners"]:
        result |= listeners.client_properties(layout, node, entry)
    result["sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
    if (spec.get("authorization") or {}).get("type") == "simple":
        own = [pki.principal(pki.broker_name(layout.cluster)), pki.principal(pki.operator_name(layout.cluster))]
        extra = [f"User:{name}" for name in spec["authorization"].get("superUsers") or []]
        result["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        result["super.users"] = ";".join([*own, *extra])
        result["allow.everyone.if.no.acl.found"] = False
    own_config = {key: value for key, value in (spec.get("config") or {}).items() if key not in ignored_options(spec)}
    return result | SMALL | own_config
