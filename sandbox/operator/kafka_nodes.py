"""The brokers of one Kafka cluster: nodes with their ports and files, and the configuration that Strimzi would render.

Nodes are decided at the first reconciliation, and kept from then on. Owns what a server.properties contains, and which
listeners Strimzi permits. Does not start or stop anything.
"""

import base64
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import pki, processes
from sandbox.network import BEHIND
from sandbox.operator import NotReadyError, metrics_config
from sandbox.state import read_json, write_json

CONTROL_PLANE = "controlplane-9090"
REPLICATION = "replication-9091"
METRICS = "metrics"  # the exporter's port, among those of the listeners
# Files of certificates in a cluster's folder: what is published, what brokers trust among themselves, what listeners
# with client certificates trust, and the authority that users get certificates of.
PUBLISHED, TRUSTED = "ca.crt", "trusted.crt"
CLIENTS, CLIENTS_ISSUER = "clients-ca.crt", "clients-ca-issuer.crt"


@dataclass(frozen=True)
class Node:
    """One broker process: its pool, its node id, and the port of every listener by Strimzi's listener name.

    Clients use these ports. Behind a network the broker listens on another one, which has the listener's name too.
    """

    pool: str
    id: int
    roles: tuple[str, ...]
    ports: dict[str, int]

    @property
    def bound(self) -> dict[str, int]:
        """The ports that the broker itself listens on."""
        return {key: self.ports.get(key + BEHIND, port) for key, port in self.ports.items() if not key.endswith(BEHIND)}


@dataclass(frozen=True)
class Layout:
    """The cluster's id, its nodes in order of id, and the folder that all of its files lie in."""

    namespace: str
    cluster: str
    cluster_id: str
    nodes: tuple[Node, ...]
    folder: Path

    def process(self, node: Node) -> str:
        """Name of the node's process in the registry."""
        return f"kafka.{self.namespace}.{self.cluster}.{node.id}"

    def pod(self, node: Node) -> str:
        """Name that Strimzi gives the node's pod."""
        return f"{self.cluster}-{node.pool}-{node.id}"

    def home(self, node: Node) -> Path:
        """Folder of the node's configuration, keys and data."""
        return self.folder / str(node.id)

    def addresses(self, listener: str) -> str:
        """Bootstrap servers of one listener: every node's loopback address, comma separated."""
        return ",".join(f"127.0.0.1:{node.ports[listener]}" for node in self.nodes)


def listener_key(name: str, port: int) -> str:
    """Strimzi's name of a client listener, in lower case, for example tls-9093."""
    return f"{name}-{port}".lower()


def plan(
    folder: Path,
    namespace: str,
    cluster: str,
    pools: list[dict[str, Any]],
    listeners: list[dict[str, Any]],
    *,
    metrics: bool = False,
    network: bool = False,
) -> Layout:
    """The cluster's layout: the stored one, with ports for new listeners; raises NotReadyError if it cannot be had.

    The number of nodes is fixed at creation: the nodes are controllers with a static quorum. With a network, what is
    exposed keeps its port, which a proxy takes over, and has another one behind it.
    """
    if not pools:
        raise NotReadyError(
            "NoNodePools",
            f"Kafka {cluster}: must have at least one KafkaNodePool labelled strimzi.io/cluster={cluster} (got none). "
            "Create one with the roles controller and broker.",
        )
    for pool in pools:
        roles = sorted(pool["spec"]["roles"])
        if roles != ["broker", "controller"]:
            raise NotReadyError(
                "UnsupportedRoles",
                f"KafkaNodePool {pool['metadata']['name']}: roles must be both controller and broker in the sandbox "
                f"(got {', '.join(roles)}). Use one pool with the two roles.",
            )
    stored = read_json(folder / "layout.json")
    wanted = {pool["metadata"]["name"]: int(pool["spec"]["replicas"]) for pool in pools}
    if stored:
        _refuse_scaling(stored, wanted)
    else:
        stored = _new(wanted)
    keys = [CONTROL_PLANE, REPLICATION, *(listener_key(entry["name"], entry["port"]) for entry in listeners)]
    keys += [METRICS] if metrics else []
    keys += [
        listener_key(entry["name"], entry["port"]) + BEHIND for entry in listeners if network and is_outside(entry)
    ]
    stored["network"] = network
    for node in stored["nodes"]:
        known = node["ports"]
        processes.reserve_ports(list(known.values()))
        node["ports"] = {key: known.get(key) or processes.free_port() for key in keys}
    write_json(folder / "layout.json", stored)
    return _layout(folder, namespace, cluster, stored)


def load(folder: Path, namespace: str, cluster: str) -> Layout | None:
    """The stored layout, None if the cluster was never planned."""
    stored = read_json(folder / "layout.json")
    return _layout(folder, namespace, cluster, stored) if stored else None


def _new(wanted: dict[str, int]) -> dict[str, Any]:
    nodes = [pool for pool, replicas in sorted(wanted.items()) for _ in range(replicas)]
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return {
        # A leading dash would read as an option on the formatter's command line.
        "cluster_id": cluster_id.replace("-", "A", 1) if cluster_id.startswith("-") else cluster_id,
        "nodes": [{"pool": pool, "id": number, "ports": {}} for number, pool in enumerate(nodes)],
    }


def _refuse_scaling(stored: dict[str, Any], wanted: dict[str, int]) -> None:
    have: dict[str, int] = {}
    for node in stored["nodes"]:
        have[node["pool"]] = have.get(node["pool"], 0) + 1
    for pool in sorted(have.keys() | wanted.keys()):
        if have.get(pool, 0) != wanted.get(pool, 0):
            raise NotReadyError(
                "ScalingNotSupported",
                f"KafkaNodePool {pool}: replicas must stay {have.get(pool, 0)} in the sandbox "
                f"(got {wanted.get(pool, 0)}). Its nodes are controllers with a static quorum: set it back, or delete "
                "the Kafka resource and create it again with the new number.",
                retry_s=10,
            )


def _layout(folder: Path, namespace: str, cluster: str, stored: dict[str, Any]) -> Layout:
    nodes = tuple(
        Node(pool=node["pool"], id=node["id"], roles=("controller", "broker"), ports=dict(node["ports"]))
        for node in stored["nodes"]
    )
    return Layout(namespace, cluster, stored["cluster_id"], nodes, folder)


# Strimzi ignores options that it manages itself, wherever they come from.
MANAGED_PREFIXES = (
    "listeners", "advertised.", "broker.", "listener.", "host.name", "port", "inter.broker.listener.name", "sasl.",
    "ssl.", "security.", "password.", "log.dir", "authorizer.", "super.user", "node.id", "process.roles",
    "controller.quorum", "controller.listener", "principal.builder.class",
)  # fmt: skip

# Defaults of the sandbox where the resource sets nothing: small buffers, few internal partitions, and brokers that do
# little while nothing happens (Kafka's 500 ms for both intervals cost 1 % of a core each and broker).
SMALL = {
    "num.network.threads": 1,
    "num.io.threads": 2,
    "background.threads": 2,
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
    check_listeners(cluster, spec["listeners"])
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
        "listeners": ",".join(f"{key.upper()}://127.0.0.1:{node.bound[key]}" for key in [*internal, *clients]),
        "advertised.listeners": ",".join(
            f"{key.upper()}://127.0.0.1:{node.ports[key]}" for key in [*internal[1:], *clients]
        ),
        "listener.security.protocol.map": ",".join(
            [f"{key.upper()}:SSL" for key in internal]
            + [f"{key.upper()}:{listener_protocol(entry)}" for key, entry in clients.items()]
        ),
        "controller.listener.names": CONTROL_PLANE.upper(),
        "inter.broker.listener.name": REPLICATION.upper(),
        "log.dirs": home / "data",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.enabled.protocols": "TLSv1.3,TLSv1.2",
    }
    for key in internal:
        result |= internal_properties(layout, node, key)
    for entry in spec["listeners"]:
        result |= client_properties(layout, node, entry)
    result["sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
    if (spec.get("authorization") or {}).get("type") == "simple":
        own = [pki.principal(pki.broker_name(layout.cluster)), pki.principal(pki.operator_name(layout.cluster))]
        extra = [f"User:{name}" for name in spec["authorization"].get("superUsers") or []]
        result["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        result["super.users"] = ";".join([*own, *extra])
        result["allow.everyone.if.no.acl.found"] = False
    own_config = {key: value for key, value in (spec.get("config") or {}).items() if key not in ignored_options(spec)}
    return result | SMALL | own_config


INTERNAL = ("internal", "cluster-ip")
NEED_TLS = ("route", "tlsroute", "ingress")
SCRAM, CERTIFICATE = "scram-sha-512", "tls"
_TAKEN_PORTS = (9404, 9999)


def check_listeners(cluster: str, entries: list[dict[str, Any]]) -> None:
    """Raise NotReadyError for the first listener that Strimzi would refuse or that the sandbox cannot serve."""
    for field in ("name", "port"):
        values = [entry[field] for entry in entries]
        if twice := sorted({str(value) for value in values if values.count(value) > 1}):
            raise _invalid(f"Kafka {cluster}: listeners must have different {field}s (got {', '.join(twice)} twice).")
    for entry in entries:
        subject = f"Kafka {cluster}: listener {entry['name']}"
        kind, tls = authentication(entry), bool(entry.get("tls"))
        if kind not in (None, SCRAM, CERTIFICATE):
            raise NotReadyError(
                "UnsupportedListener",
                f"{subject} must have authentication {SCRAM}, {CERTIFICATE} or none in the sandbox (got {kind}). "
                "Change the listener.",
                retry_s=30,
            )
        if kind == CERTIFICATE and not tls:
            raise _invalid(f"{subject} must have tls true with authentication {CERTIFICATE} (got tls false).")
        if entry.get("type") in NEED_TLS and not tls:
            raise _invalid(f"{subject} must have tls true with type {entry['type']} (got tls false).")
        host = ((entry.get("configuration") or {}).get("bootstrap") or {}).get("host")
        if entry.get("type") == "ingress" and not host:
            raise _invalid(f"{subject} must have configuration.bootstrap.host with type ingress (got none).")
        if entry["port"] in _TAKEN_PORTS:
            raise _invalid(f"{subject} must have a port that Kafka's pods have free (got {entry['port']}).")


def listener_warnings(cluster: str, entries: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Reason and message if a listener is open to the outside elsewhere and only to this machine here."""
    outside = [f"{entry['name']} ({entry['type']})" for entry in entries if is_outside(entry)]
    if not outside:
        return []
    return [("ServedOnLoopback", f"Kafka {cluster}: {', '.join(outside)} on 127.0.0.1 only: this is the sandbox.")]


def is_outside(entry: dict[str, Any]) -> bool:
    """Whether a listener is open to other sites."""
    return entry.get("type") not in INTERNAL


def authentication(entry: dict[str, Any]) -> str | None:
    """Type of a listener's authentication."""
    kind = (entry.get("authentication") or {}).get("type")
    return str(kind) if kind else None


def listener_protocol(entry: dict[str, Any]) -> str:
    """Kafka's security protocol of a listener."""
    transport = "SSL" if entry.get("tls") else "PLAINTEXT"
    return f"SASL_{transport}" if authentication(entry) == SCRAM else transport


def client_properties(layout: Layout, node: Node, entry: dict[str, Any]) -> dict[str, object]:
    """Properties of one client listener on one node."""
    prefix = f"listener.name.{listener_key(entry['name'], entry['port'])}."
    result: dict[str, object] = {}
    if entry.get("tls"):
        demanded = authentication(entry) == CERTIFICATE
        result |= _tls(prefix, layout, node, "required" if demanded else "none", CLIENTS if demanded else TRUSTED)
    if authentication(entry) == SCRAM:
        result[prefix + "sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
        result[prefix + "scram-sha-512.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
    return result


def internal_properties(layout: Layout, node: Node, key: str) -> dict[str, object]:
    """Properties of a listener between brokers: only certificates of the cluster's own authority open it."""
    return _tls(f"listener.name.{key}.", layout, node, "required", TRUSTED)


def _tls(prefix: str, layout: Layout, node: Node, client_auth: str, truststore: str) -> dict[str, object]:
    return {
        prefix + "ssl.keystore.type": "PEM",
        prefix + "ssl.keystore.location": layout.home(node) / "keystore.pem",
        prefix + "ssl.truststore.type": "PEM",
        prefix + "ssl.truststore.location": layout.folder / truststore,
        prefix + "ssl.client.auth": client_auth,
    }


def _invalid(message: str) -> NotReadyError:
    return NotReadyError("InvalidListener", f"{message} Strimzi refuses it; change the listener.", retry_s=30)
