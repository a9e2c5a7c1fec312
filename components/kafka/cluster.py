"""The stack's Kafka cluster: a managed one with its node pools, or an external one that is only described.

Owns the wait until the brokers are ready. Does not own users, topics, or the operator that runs the brokers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components import endpoint
from components.custom_resource import CustomResource, Wait
from components.dialects import dialect
from components.monitoring import broker_rules
from contract.stack_outputs import ClusterOutputs, SecretKey
from settings.client_properties import security
from settings.cluster import Cluster, Listener
from settings.stack import Stack
from settings.users import Authentication


@dataclass(frozen=True, kw_only=True)
class KafkaClusterArgs:
    """The stack's settings: its cluster and the platform that runs it. `context` is the kubeconfig's, if one is set."""

    settings: Stack
    context: str | None = None


class KafkaCluster(pulumi.ComponentResource):
    """A cluster that is ready."""

    bootstrap_servers: pulumi.Output[str]
    """`host:port,...` of the listener for clients outside of its Kubernetes cluster."""
    internal_bootstrap_servers: pulumi.Output[str]
    """`host:port,...` of the listener for what runs in its Kubernetes cluster; the same unless one is exposed."""
    connection: pulumi.Output[Mapping[str, Any]]
    """What clients need besides credentials: names, address, protocol, SASL mechanism, the authority's Secret."""
    ca_certificate: pulumi.Output[str | None]
    """PEM text of the authority that signs the brokers' certificates, None for a public one; a secret."""

    def __init__(self, name: str, args: KafkaClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create the cluster and wait for it, or describe the external one."""
        super().__init__("rt-inventory:kafka:KafkaCluster", name, None, opts)
        cluster = args.settings.cluster
        if cluster.external is not None:
            self.bootstrap_servers = pulumi.Output.from_input(",".join(cluster.external.bootstrap_servers))
            self.internal_bootstrap_servers = self.bootstrap_servers
            authority = cluster.external.certificate_authority
            file = authority.file if authority else None
            self.ca_certificate = endpoint.certificate(
                f"{name}-authority", cluster.ca_secret, file, cluster.namespace, self
            )
        else:
            kind, made = self._managed(name, args.settings)
            listener = made.status.apply(lambda status: _listener(cluster, cluster.outside_listener, kind, status))
            inside = made.status.apply(lambda status: _listener(cluster, cluster.client_listener, kind, status))
            self.bootstrap_servers = listener.apply(lambda found: str(found["bootstrapServers"]))
            self.internal_bootstrap_servers = inside.apply(lambda found: str(found["bootstrapServers"]))
            self.ca_certificate = pulumi.Output.secret(listener.apply(_authority))
        self.connection = pulumi.Output.all(self.bootstrap_servers, self.internal_bootstrap_servers).apply(
            lambda servers: _connection(args, *servers)
        )
        self.register_outputs({"connection": self.connection, "caCertificate": self.ca_certificate})

    def _managed(self, name: str, settings: Stack) -> tuple[str, CustomResource]:
        cluster, platform = settings.cluster, settings.platform
        child = pulumi.ResourceOptions(parent=self, protect=cluster.protect)
        rules = broker_rules(cluster, self)
        *pools, main = dialect(platform).cluster(cluster, settings.kafka_version, platform)
        made = [
            CustomResource(
                f"{name}-pool-{pool.name}" if cluster.node_pools else f"{name}-pool",
                api_version=platform.api,
                manifest=pool,
                namespace=cluster.namespace,
                opts=child,
            )
            for pool in pools
        ]
        return main.kind, CustomResource(
            f"{name}-{main.kind.lower()}",
            api_version=platform.api,
            manifest=main,
            namespace=cluster.namespace,
            wait=Wait(
                for_=dialect(platform).RUNNING, words=f"{main.kind} {main.name}: Ready", seconds=cluster.ready_seconds
            ),
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[*made, *rules])),
        )


def client_authentication(settings: Stack) -> Authentication | None:
    """How clients log in: as the listener demands, or as the first user of an external cluster does."""
    if settings.cluster.external is not None:
        return settings.users[0].authentication if settings.users else None
    demanded = settings.cluster.client_listener.authentication
    return None if demanded == "none" else demanded


def _connection(args: KafkaClusterArgs, servers: str, internal_servers: str) -> dict[str, Any]:
    settings = args.settings
    cluster = settings.cluster
    protocol, mechanism = security(client_authentication(settings), tls=cluster.has_tls)
    outputs = ClusterOutputs(
        name=cluster.name,
        namespace=cluster.namespace,
        context=args.context,
        bootstrap_servers=servers,
        internal_bootstrap_servers=internal_servers,
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        ca_secret=SecretKey(name=cluster.ca_secret[0], key=cluster.ca_secret[1]) if cluster.ca_secret else None,
    )
    return outputs.document()


def _listener(
    cluster: Cluster, wanted: Listener, kind: str, status: Mapping[str, Any] | None
) -> pulumi.Input[Mapping[str, Any]]:
    """A listener's entry in the status; raises RunError if the cluster, though ready, does not publish it.

    Unknown in the preview of a listener that is yet to be made.
    """
    found = status or {}
    for entry in found.get("listeners") or found.get("kafkaListeners") or []:
        published = entry.get("bootstrapServers") and (entry.get("certificates") or not wanted.tls)
        if entry.get("name", entry.get("type")) == wanted.name and published:
            listener: Mapping[str, Any] = entry
            return listener
    if pulumi.runtime.is_dry_run():
        unknown: pulumi.Output[Any] = pulumi.Output.from_input(pulumi.UNKNOWN)
        return unknown
    what = "bootstrapServers and certificates" if wanted.tls else "bootstrapServers"
    raise pulumi.RunError(
        f"{kind} {cluster.name}: status must hold listener {wanted.name} with {what} (got none). "
        f"Look at it: kubectl describe -n {cluster.namespace} {kind.lower()} {cluster.name}."
    )


def _authority(listener: Mapping[str, Any]) -> str | None:
    certificates = listener.get("certificates") or []
    return "\n".join(text.strip() for text in certificates) + "\n" if certificates else None
