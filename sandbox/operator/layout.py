"""Nodes of one Kafka cluster with their ports and files: decided at the first reconciliation, kept from then on."""

import base64
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import processes
from sandbox.operator import NotReadyError
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
    """One broker process: its pool, its node id, and the port of every listener by Strimzi's listener name."""

    pool: str
    id: int
    roles: tuple[str, ...]
    ports: dict[str, int]


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
) -> Layout:
    """The cluster's layout: the stored one, with ports for new listeners; raises NotReadyError if it cannot be had.

    The number of nodes is fixed at creation: the nodes are controllers with a static quorum.
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
