"""The Kafka cluster of a stack: one that this stack manages, or an external one that is only connected to."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from settings.event_streams import Components
from settings.model import (
    PINS,
    STAYS,
    TRAVELS,
    WITHIN,
    Config,
    Count,
    Model,
    Resources,
    Scalar,
    Seconds,
    SpecOverrides,
    empty,
    no_overrides,
)
from settings.names import Annotations, HostName, HostPort, Label, none
from settings.network_policy import NetworkPolicyPeer

FACTOR_MAX = 3  # more replicas than this are never a default
MIN_INSYNC = "min.insync.replicas"
FACTORS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
TRANSACTION_MIN_ISR = "transaction.state.log.min.isr"
SHARE_FACTOR = "share.coordinator.state.topic.replication.factor"
SHARE_MIN_ISR = "share.coordinator.state.topic.min.isr"
# org.apache.kafka.server.config and storage defaults
KAFKA_DEFAULTS: dict[str, Scalar] = {
    "default.replication.factor": 1,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    MIN_INSYNC: 1,
    TRANSACTION_MIN_ISR: 2,
}
SHARE_DEFAULTS: dict[str, Scalar] = {SHARE_FACTOR: 3, SHARE_MIN_ISR: 2}
"""Of brokers that have share groups: Kafka 4.2 and later, 4.1 as a preview."""
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
    """Number of the disk, its own in the pool."""
    size_gib: Count
    """Size in GiB."""
    storage_class: Label | None = None
    """StorageClass. Without it the default one."""
    delete_claim: bool = False
    """Whether the claim is deleted with the cluster."""


class Storage(Model):
    """Disk of each node. `sizeGib` and `storageClass` belong to persistent-claim, `volumes` to jbod."""

    type: Literal["ephemeral", "persistent-claim", "jbod"] = "ephemeral"
    """Gone with the pod, one disk, or several."""
    size_gib: Count | None = None
    """Size in GiB, for persistent-claim."""
    storage_class: Label | None = None
    """StorageClass, for persistent-claim. Without it the default one."""
    delete_claim: bool = False
    """Whether the claim is deleted with the cluster."""
    volumes: tuple[Volume, ...] = ()
    """Disks, for jbod."""


class NodePool(Model):
    """Nodes of the same kind: brokers, controllers, or both. Without a storage of its own it has the cluster's."""

    name: Label
    """Name of the pool, part of its pods' names."""
    roles: Annotated[tuple[Role, ...], Field(min_length=1)] = ("controller", "broker")
    """What its nodes do."""
    replicas: Count
    """Number of nodes."""
    storage: Storage | None = None
    """Disk of each node. Without it the cluster's."""
    resources: Resources = Field(default_factory=Resources)
    """CPU and memory of each node. Without them the cluster's."""
    annotations: Annotations = Field(default_factory=none)
    """Annotations of the pool's resource, beside the cluster's. Event Streams has none for pools."""


class Listener(Model):
    """One way into the cluster. `host` is what clients outside reach it by; brokers get `{nodeId}` in `hostTemplate`.

    The operator decides the address of a load balancer or a node port: `host` only names it ahead, for rendering.
    """

    name: Annotated[ListenerName, STAYS]
    """Name of the listener."""
    port: Annotated[ListenerPort, TRAVELS]
    """Port inside Kubernetes. 9404 and 9999 are kept for metrics."""
    type: Annotated[Literal["internal", "route", "loadbalancer", "nodeport", "ingress"], TRAVELS] = "internal"
    """How clients reach it."""
    tls: Annotated[bool, TRAVELS] = True
    """Whether connections are encrypted."""
    authentication: Annotated[ListenerAuthentication, TRAVELS] = "scram-sha-512"
    """How clients log in. Mirrors need one that is not none."""
    host: Annotated[HostName | None, STAYS] = None
    """Name by which clients outside reach it. Ingress needs it."""
    host_template: Annotated[str | None, STAYS] = None
    """The same for each broker, with `{nodeId}` in it. Ingress needs it."""
    ingress_class: Annotated[Label | None, STAYS] = None
    """Ingress class, for ingress."""
    node_port: Annotated[Annotated[int, Field(ge=30000, le=32767)] | None, STAYS] = None
    """Port of the nodes, for nodeport."""
    annotations: Annotated[Config, STAYS] = Field(default_factory=empty)
    """Annotations of the listener's Service, Route or Ingress."""
    network_policy_peers: Annotated[tuple[NetworkPolicyPeer, ...], STAYS] = ()
    """Who may connect, by the operator's NetworkPolicy. Without it everybody. Workers of mirrors must be among them."""


class Expose(Model):
    """How clients outside of this Kubernetes cluster reach it: by a listener `external` with the other's TLS and login.

    Other stacks' mirrors, commands and a verification beside Pulumi connect by it; what runs in this Kubernetes cluster
    connects by `listener`. A load balancer or route needs its type only. `nodeport` needs `host`, a name or address by
    which every node is reached; `ingress` needs `host` and `hostTemplate`, in which `{nodeId}` is the broker's.
    """

    type: ExposedType
    """How clients reach it: `route` on OpenShift; `loadbalancer`, `nodeport` or `ingress` on Kubernetes."""
    port: ListenerPort = 9094
    """Port inside Kubernetes, and of a load balancer."""
    host: HostName | None = None
    """Name or address by which clients outside reach it. Node ports and ingress need it."""
    host_template: str | None = None
    """The same for each broker, with `{nodeId}` in it. Ingress needs it; node ports have `host` without it."""
    ingress_class: Label | None = None
    """Ingress class, for ingress."""
    node_port: Annotated[int, Field(ge=30000, le=32767)] | None = None
    """Port of the nodes for the first connection, for nodeport."""
    annotations: Config = Field(default_factory=empty)
    """Annotations of the Service, Route or Ingress for the first connection."""
    network_policy_peers: tuple[NetworkPolicyPeer, ...] = ()
    """Who may connect, as for a listener: the addresses that the brokers see, after any translation on the way."""


class Rack(Model):
    """Label of the nodes by which replicas are spread over zones."""

    topology_key: str = "topology.kubernetes.io/zone"
    """Label of the Kubernetes nodes that names their zone."""


class Metrics(Model):
    """How brokers or workers expose their metrics.

    The exporter reads its rules from a ConfigMap: the stack's own, or the one that is named. The reporter exposes what
    alerts and dashboards use, or what is listed.
    """

    type: Literal["jmxPrometheusExporter", "strimziMetricsReporter"] = "jmxPrometheusExporter"
    """What exposes them."""
    config_map: Label | None = None
    """ConfigMap with other rules for jmxPrometheusExporter; without it the stack writes its own."""
    key: str | None = None
    """Key of the rules in that ConfigMap."""
    allow_list: tuple[str, ...] = ()
    """Expressions of the metrics to expose, for strimziMetricsReporter; without it what the project uses."""

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
    """Secret with the certificate, in the mirror's namespace."""
    key: str = CA_KEY
    """Key of the certificate in the Secret."""
    file: str | None = None
    """PEM file with the certificate, instead of a Secret."""


class External(Model):
    """A cluster that somebody else runs. Without `certificateAuthority` a public one signs its certificates."""

    bootstrap_servers: Annotated[tuple[HostPort, ...], Field(min_length=1)]
    """Addresses of the brokers."""
    tls: bool = True
    """Whether connections are encrypted."""
    certificate_authority: CertificateAuthority | None = None
    """Who signs its certificates. Without it a public authority."""
    brokers: Count = 3
    """Number of its brokers, for what replication factors are held against."""


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

    name: Annotated[Label, STAYS]
    """Name of the cluster and beginning of its Services."""
    namespace: Annotated[Label, STAYS]
    """Namespace of the cluster, its users and topics."""
    create_namespace: Annotated[bool, STAYS] = True
    """Whether this stack makes the namespace."""
    external: Annotated[External | None, STAYS] = None
    """A cluster of somebody else's, to which mirrors only connect."""
    version: Annotated[Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] | None, PINS] = None
    """Version of Kafka. Without it the platform's usual one."""
    brokers: Annotated[Count, STAYS] = 3
    """Number of nodes with both roles, in one pool."""
    node_pool: Annotated[Label, STAYS] = "dual"
    """Name of that pool."""
    node_pools: Annotated[tuple[NodePool, ...], STAYS] = ()
    """Pools of nodes instead of `brokers` and `nodePool`."""
    listener: Annotated[ListenerName | None, STAYS] = None
    """Listener by which mirrors and other stacks connect. Without it `tls`, or the first of `listeners`."""
    listener_port: Annotated[ListenerPort, TRAVELS] = 9093
    """Port of the only listener, if `listeners` are not given."""
    listeners: Annotated[tuple[Listener, ...], WITHIN] = ()
    """All listeners. Without them one inside Kubernetes with TLS and SCRAM."""
    expose: Annotated[Expose | None, STAYS] = None
    """How clients outside of this Kubernetes cluster reach it: another site's mirror, a verification beside Pulumi, a
    laptop.
    """
    authorization: Annotated[Literal["simple", "none"], TRAVELS] = "simple"
    """Whether ACLs decide who may do what."""
    super_users: Annotated[tuple[str, ...], STAYS] = ()
    """Principals to which everything is allowed."""
    storage: Annotated[Storage, STAYS] = Field(default_factory=Storage)
    """Disk of each node."""
    config: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Broker options. Factors follow the number of brokers unless they are set."""
    config_defaults: Annotated[bool, TRAVELS] = True
    """Whether factors that fit the brokers are added to `config`."""
    rack: Annotated[Rack | None, STAYS] = None
    """Spreads replicas over zones."""
    resources: Annotated[Resources, STAYS] = Field(default_factory=Resources)
    """CPU and memory of each node, ZooKeeper's too."""
    metrics: Annotated[Metrics | None, STAYS] = None
    """How brokers expose metrics."""
    components: Annotated[Components | None, STAYS] = None
    """Parts of Event Streams beside the brokers. Without it there is none of them."""
    spec_overrides: Annotated[SpecOverrides, STAYS] = Field(default_factory=no_overrides)
    """Fields of the resource's `spec` that no setting stands for. What a setting decides is refused."""
    annotations: Annotated[Annotations, STAYS] = Field(default_factory=none)
    """Annotations of the cluster's resource and of its node pools, such as exceptions of the policy pack."""
    protect: Annotated[bool, STAYS] = True
    """Keeps Pulumi from deleting the cluster, its namespace, topics and users."""
    ready_seconds: Annotated[Seconds, STAYS] = 900
    """How long to wait for the cluster."""

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
            network_policy_peers=exposed.network_policy_peers,
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
        if factor < FACTOR_MAX:  # with three brokers Kafka's own fit, and nothing is added that would roll them
            derived |= {SHARE_FACTOR: factor, SHARE_MIN_ISR: max(1, factor - 1)}
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


_OUTSIDE_PORT = {"route": 443, "ingress": 443}


def bootstrap_servers(cluster: Cluster) -> str | None:
    """Return `host:port,...` for clients outside; None if only the running cluster knows it (no `host` is given)."""
    if cluster.external is not None:
        return ",".join(cluster.external.bootstrap_servers)
    return listener_address(cluster, cluster.outside_listener)


def listener_address(cluster: Cluster, listener: Listener) -> str | None:
    """Return `host:port` of one listener of a managed cluster; None if only the running cluster knows it."""
    if listener.type == "internal":
        return f"{cluster.name}-kafka-bootstrap.{cluster.namespace}.svc:{listener.port}"
    if listener.host is None:
        return None
    return f"{listener.host}:{_OUTSIDE_PORT.get(listener.type, listener.node_port or listener.port)}"
