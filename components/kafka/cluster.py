"""The stack's Kafka cluster with its topics: a managed one with node pools, or an external one that is only described.

Owns the wait until brokers and topics are ready, and the internal topics that are declared before their mirrors start.
Does not own users, topics that a mirror creates, or the operator that runs the brokers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components import endpoint
from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Manifest, dialect
from components.dialects import topic as topic_spec
from components.monitoring import broker_rules
from contract.stack_outputs import ClusterOutputs, SecretKey
from settings.client_properties import security
from settings.cluster import Cluster, Listener
from settings.model import Scalar
from settings.stack import Stack
from settings.topics import Topic, internal_topics_of
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


@dataclass(frozen=True, kw_only=True)
class KafkaTopicsArgs:
    """The topics, and the settings with the cluster that they lie on."""

    settings: Stack
    topics: Sequence[Topic]


class KafkaTopics(pulumi.ComponentResource):
    """Topics that exist."""

    names: list[str]
    """Names in Kafka."""

    def __init__(self, name: str, args: KafkaTopicsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each topic and wait until the cluster has it."""
        super().__init__("rt-inventory:kafka:KafkaTopics", name, None, opts)
        cluster, platform = args.settings.cluster, args.settings.platform
        child = pulumi.ResourceOptions(parent=self, protect=cluster.protect)
        labels = {dialect(platform).LABEL: cluster.name}
        for each in args.topics:
            CustomResource(
                f"{name}-{each.name}",
                api_version=platform.api,
                manifest=Manifest(
                    kind="KafkaTopic",
                    name=each.resource_name,
                    labels=labels,
                    annotations=each.annotations,
                    spec=topic_spec(each),
                ),
                namespace=cluster.namespace,
                wait=Wait(for_=READY, words=f"KafkaTopic {each.name}: Ready", seconds=each.ready_seconds),
                opts=child,
            )
        self.names = [each.name for each in args.topics]
        self.register_outputs({"names": self.names})


_SEGMENT_MS = 6 * 3600 * 1000
# Only closed segments are compacted: by Kafka's default a busy topic holds a week of offsets, all of which are read.
_COMPACTED: dict[str, Scalar] = {"cleanup.policy": "compact", "segment.ms": _SEGMENT_MS}


def internal_topics(settings: Stack) -> list[Topic]:
    """Return the internal topics on this stack's cluster, each once, for mirrors with `internalTopics: declared`."""
    found: dict[str, Topic] = {}
    for mirror in settings.mirrors:
        if mirror.internal_topics != "declared":
            continue
        for topic in internal_topics_of(mirror, settings.mirror_version(mirror)):
            if topic.location == "target":
                earlier = found[topic.name].annotations if topic.name in found else {}
                found[topic.name] = Topic(
                    name=topic.name,
                    partitions=topic.partitions,
                    replicas=mirror.replication_factor,
                    config=_COMPACTED,
                    annotations={**earlier, **mirror.annotations},
                )
    return list(found.values())
