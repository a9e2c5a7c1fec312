"""A managed Kafka cluster: its node pool, the Kafka resource, and what clients need to reach it.

Owns the wait until the brokers are ready. Does not own users, topics, or the operator that runs the brokers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.custom_resource import READY, CustomResource, Wait
from components.dialects import strimzi_v1
from settings.cluster import Cluster
from settings.platform import Platform


@dataclass(frozen=True, kw_only=True)
class KafkaClusterArgs:
    """The cluster's settings and the platform that runs it."""

    platform: Platform
    cluster: Cluster


class KafkaCluster(pulumi.ComponentResource):
    """A cluster that is ready."""

    bootstrap_servers: pulumi.Output[str]
    """`host:port,...` of the listener."""
    connection: pulumi.Output[Mapping[str, str]]
    """What clients need besides credentials: name, namespace, bootstrapServers, securityProtocol, saslMechanism."""
    ca_certificate: pulumi.Output[str]
    """PEM text of the authority that signs the brokers' certificates; a secret."""

    def __init__(self, name: str, args: KafkaClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create the node pool and the cluster and wait for it."""
        super().__init__("rt-inventory:kafka:KafkaCluster", name, None, opts)
        child = pulumi.ResourceOptions(parent=self, protect=args.cluster.protect)
        cluster, namespace = args.cluster, args.cluster.namespace
        pool = CustomResource(
            f"{name}-pool",
            api_version=args.platform.api_version,
            kind="KafkaNodePool",
            metadata={
                "name": cluster.node_pool,
                "namespace": namespace,
                "labels": {strimzi_v1.CLUSTER_LABEL: cluster.name},
            },
            spec=strimzi_v1.node_pool(cluster),
            opts=child,
        )
        kafka = CustomResource(
            f"{name}-kafka",
            api_version=args.platform.api_version,
            kind="Kafka",
            metadata={"name": cluster.name, "namespace": namespace},
            spec=strimzi_v1.kafka(cluster),
            wait=Wait(for_=READY, words=f"Kafka {cluster.name}: Ready", seconds=cluster.ready_seconds),
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[pool])),
        )
        listener = kafka.status.apply(lambda status: _listener(cluster, status))
        self.bootstrap_servers = listener.apply(lambda found: str(found["bootstrapServers"]))
        self.connection = self.bootstrap_servers.apply(lambda servers: _connection(cluster, servers))
        self.ca_certificate = pulumi.Output.secret(
            listener.apply(lambda found: "\n".join(text.strip() for text in found["certificates"]) + "\n")
        )
        self.register_outputs({"connection": self.connection, "caCertificate": self.ca_certificate})


def _connection(cluster: Cluster, servers: str) -> dict[str, str]:
    return {
        "name": cluster.name,
        "namespace": cluster.namespace,
        "bootstrapServers": servers,
        "securityProtocol": strimzi_v1.SECURITY_PROTOCOL,
        "saslMechanism": strimzi_v1.SASL_MECHANISM,
    }


def _listener(cluster: Cluster, status: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The listener's entry in the status; raises RunError if the cluster, though ready, does not publish it."""
    for entry in (status or {}).get("listeners") or []:
        if entry.get("name") == cluster.listener and entry.get("bootstrapServers") and entry.get("certificates"):
            found: Mapping[str, Any] = entry
            return found
    raise pulumi.RunError(
        f"Kafka {cluster.name}: status.listeners must hold {cluster.listener} with bootstrapServers and certificates "
        f"(got none). Look at it: kubectl get kafka {cluster.name} -n {cluster.namespace} -o yaml."
    )
