"""The Kafka cluster of a stack: one that this stack manages, or an external one that is only connected to."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from settings import spec_overrides
from settings.annotations import Annotations, none
from settings.cluster_components import Components
from settings.model import Config, Count, Model, Resources, Scalar, Seconds, empty
from settings.names import HostName, HostPort, Label
from settings.spec_overrides import SpecOverrides

FACTOR_MAX = 3  # more replicas than this are never a default
MIN_INSYNC = "min.insync.replicas"
FACTORS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
TRANSACTION_MIN_ISR = "transaction.state.log.min.isr"
# org.apache.kafka.server.config and storage defaults
KAFKA_DEFAULTS: dict[str, Scalar] = {
    "default.replication.factor": 1,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    MIN_INSYNC: 1,
    TRANSACTION_MIN_ISR: 2,
}
Role = Literal["broker", "controller"]
ListenerName = Annotated[str, Field(pattern=r"^[a-z0-9]{1,11}$")]
ListenerPort = Annotated[int, Field(ge=9092, le=65535)]
ListenerAuthentication = Literal["scram-sha-512", "tls", "none"]
ExposedType = Literal["route", "loadbalancer", "nodeport", "ingress"]
EXPOSED = "external"  # name of the listener that `expose` adds
RULES_KEY = "rules.yaml"  # key of a ConfigMap that the stack writes for the JMX exporter
CA_KEY = "ca.crt"  # key of a Secret that holds an authority


class Volume(Model):
    """One disk of a JBOD storage."""

    id: Annotated[int, Field(ge=0)]
    size_gib: Count
    storage_class: Label | None = None
    delete_claim: bool = False


class Storage(Model):
    """Disk of each node. `sizeGib` and `storageClass` belong to persistent-claim, `volumes` to jbod."""

    type: Literal["ephemeral", "persistent-claim", "jbod"] = "ephemeral"
    size_gib: Count | None = None
    storage_class: Label | None = None
    delete_claim: bool = False
    volumes: tuple[Volume, ...] = ()


class NodePool(Model):
    """Nodes of the same kind: brokers, controllers, or both. Without a storage of its own it has the cluster's."""

    name: Label
    roles: Annotated[tuple[Role, ...], Field(min_length=1)] = ("controller", "broker")
    replicas: Count
    storage: Storage | None = None
    resources: Resources = Field(default_factory=Resources)
    annotations: Annotations = Field(default_factory=none)


class Listener(Model):
    """One way into the cluster. `host` is what clients outside reach it by; brokers get `{nodeId}` in `hostTemplate`.

    The operator decides the address of a load balancer or a node port: `host` only says it ahead, for rendering.
    """

    name: ListenerName
    port: ListenerPort
    type: Literal["internal", "route", "loadbalancer", "nodeport", "ingress"] = "internal"
    tls: bool = True
    authentication: ListenerAuthentication = "scram-sha-512"
    host: HostName | None = None
    host_template: str | None = None
    ingress_class: Label | None = None
    node_port: Annotated[int, Field(ge=30000, le=32767)] | None = None
    annotations: Config = Field(default_factory=empty)


class Expose(Model):
    """How clients outside of this Kubernetes cluster reach it: by a listener `external` with the other's TLS and login.

    Other stacks' mirrors, commands and a verification beside Pulumi connect by it; what runs in this Kubernetes cluster
    connects by `listener`. A load balancer or route needs its type only. `nodeport` needs `host`, a name or address by
    which every node is reached; `ingress` needs `host` and `hostTemplate`, in which `{nodeId}` is the broker's.
    """

    type: ExposedType
    port: ListenerPort = 9094
    host: HostName | None = None
    host_template: str | None = None
    ingress_class: Label | None = None
    node_port: Annotated[int, Field(ge=30000, le=32767)] | None = None
    annotations: Config = Field(default_factory=empty)


class Rack(Model):
    """Label of the nodes by which replicas are spread over zones."""

    topology_key: str = "topology.kubernetes.io/zone"


class Metrics(Model):
    """How brokers or workers expose their metrics.

    The exporter reads its rules from a ConfigMap: the stack's own, or the one that is named. The reporter exposes what
    alerts and dashboards use, or what is listed.
    """

    type: Literal["jmxPrometheusExporter", "strimziMetricsReporter"] = "jmxPrometheusExporter"
    config_map: Label | None = None
    key: str | None = None
    allow_list: tuple[str, ...] = ()

    @property
    def has_own_rules(self) -> bool:
        """Whether the stack writes the ConfigMap that the exporter reads."""
        return self.type == "jmxPrometheusExporter" and self.config_map is None

    def rules(self, own: str) -> tuple[str, str]:
        """ConfigMap and key of the exporter's rules; `own` is the ConfigMap that the stack writes."""
        return (self.config_map or own, self.key or RULES_KEY)


class CertificateAuthority(Model):
    """Who signs an external cluster's certificates: a Secret in the mirror's namespace, or a PEM file."""

    secret: Label | None = None
    key: str = CA_KEY
    file: str | None = None


class External(Model):
    """A cluster that somebody else runs. Without `certificateAuthority` a public one signs its certificates."""

    bootstrap_servers: Annotated[tuple[HostPort, ...], Field(min_length=1)]
    tls: bool = True
    certificate_authority: CertificateAuthority | None = None
    brokers: Count = 3


class Cluster(Model):
    """One Kafka cluster. `protect` keeps Pulumi from deleting it, its namespace, topics and users.

    With it a `pulumi destroy` of the stack is refused before anything is deleted: `pulumi state unprotect --all` first.
    `brokers` and `nodePool` describe one pool of nodes with both roles; `nodePools` describes any others.
    `listener` is the one by which mirrors and other stacks connect; `listeners` lists all if there are several. With
    `expose` it is for what runs in this Kubernetes cluster only: all others connect by the listener that this adds.
    With `configDefaults: false` nothing is added to `config`: Kafka's own defaults hold. `specOverrides` are fields of
    the resource's `spec` that no setting stands for, such as `kafka.template` (`strimziOverrides.kafka.template` on
    Event Streams).
    """

    name: Label
    namespace: Label
    create_namespace: bool = True
    external: External | None = None
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] | None = None
    brokers: Count = 3
    node_pool: Label = "dual"
    node_pools: tuple[NodePool, ...] = ()
    listener: ListenerName | None = None
    listener_port: ListenerPort = 9093
    listeners: tuple[Listener, ...] = ()
    expose: Expose | None = None
    authorization: Literal["simple", "none"] = "simple"
    super_users: tuple[str, ...] = ()
    storage: Storage = Field(default_factory=Storage)
    config: Config = Field(default_factory=empty)
    config_defaults: bool = True
    rack: Rack | None = None
    resources: Resources = Field(default_factory=Resources)
    metrics: Metrics | None = None
    components: Components | None = None
    spec_overrides: SpecOverrides = Field(default_factory=spec_overrides.none)
    annotations: Annotations = Field(default_factory=none)
    protect: bool = True
    ready_seconds: Seconds = 900

    @property
    def broker_count(self) -> int:
        """Number of nodes that hold records."""
        if self.external is not None:
            return self.external.brokers
        if self.node_pools:
            return sum(pool.replicas for pool in self.node_pools if "broker" in pool.roles)
        return self.brokers

    @property
    def all_node_pools(self) -> tuple[NodePool, ...]:
        """The pools, with the one that `brokers` and `nodePool` describe."""
        return self.node_pools or (NodePool(name=self.node_pool, replicas=self.brokers, resources=self.resources),)

    @property
    def all_listeners(self) -> tuple[Listener, ...]:
        """The listeners, with those that `listener` and `listenerPort`, and `expose`, describe. Raises KeyError."""
        return (*self._own_listeners, self.outside_listener) if self.expose is not None else self._own_listeners

    @property
    def client_listener(self) -> Listener:
        """The listener of what runs in this Kubernetes cluster: the named one, else the first. Raises KeyError."""
        by_name = {listener.name: listener for listener in self._own_listeners}
        return by_name[self.listener] if self.listener else self._own_listeners[0]

    @property
    def outside_listener(self) -> Listener:
        """The listener of other stacks, people and jobs beside Pulumi: the exposed one, if any. Raises KeyError."""
        inside, exposed = self.client_listener, self.expose
        if exposed is None:
            return inside
        # A node port is the broker's own on every node, so that one host serves them all.
        one_host = exposed.host if exposed.type == "nodeport" else None
        return Listener(
            name=EXPOSED,
            port=exposed.port,
            type=exposed.type,
            tls=inside.tls,
            authentication=inside.authentication,
            host=exposed.host,
            host_template=exposed.host_template or one_host,
            ingress_class=exposed.ingress_class,
            node_port=exposed.node_port,
            annotations=exposed.annotations,
        )

    @property
    def is_reached_from_outside(self) -> bool:
        """Whether clients outside of its Kubernetes cluster reach it."""
        return self.external is not None or self.outside_listener.type != "internal"

    @property
    def _own_listeners(self) -> tuple[Listener, ...]:
        return self.listeners or (Listener(name=self.listener or "tls", port=self.listener_port),)

    @property
    def metrics_rules(self) -> str:
        """ConfigMap of the exporter's rules if the stack writes them."""
        return f"{self.name}-kafka-metrics"

    @property
    def has_tls(self) -> bool:
        """Whether clients connect with TLS."""
        return self.external.tls if self.external is not None else self.client_listener.tls

    @property
    def ca_secret(self) -> tuple[str, str] | None:
        """Secret and key of the authority that clients must trust; None for a public one or without TLS."""
        if self.external is None:
            return (f"{self.name}-cluster-ca-cert", CA_KEY) if self.client_listener.tls else None
        return external_ca_secret(self.name, self.external)

    @property
    def kafka_config(self) -> Mapping[str, Scalar]:
        """Broker configuration as it takes effect: factors that fit the number of brokers, overridden by `config`."""
        if not self.config_defaults:
            return MappingProxyType(KAFKA_DEFAULTS | dict(self.config))
        factor = min(max(self.broker_count, 1), FACTOR_MAX)
        derived: dict[str, Scalar] = {
            **dict.fromkeys(FACTORS, factor),
            MIN_INSYNC: max(1, factor - 1),
            TRANSACTION_MIN_ISR: max(1, factor - 1),
            "auto.create.topics.enable": False,
        }
        return MappingProxyType(derived | dict(self.config))

    @property
    def declared_config(self) -> Mapping[str, Scalar]:
        """Broker configuration that is written into the resource."""
        return self.kafka_config if self.config_defaults else self.config


def external_ca_secret(name: str, external: External) -> tuple[str, str] | None:
    """Secret and key of an external cluster's authority: the one named, or the one that a file is put into."""
    authority = external.certificate_authority
    if not external.tls or authority is None:
        return None
    return (authority.secret or f"{name}-cluster-ca-cert", authority.key)
