r"""Mirrors: what is copied from where to where, how it is named, and how often it is synchronised.

Intervals are in seconds. Default exclusions are those of Kafka's DefaultTopicFilter and DefaultGroupFilter.
"""

from typing import Annotated, Literal

from pydantic import Field

from settings.cluster import Metrics, Rack
from settings.mirror_parts import (
    GROUPS_EXCLUDE,
    TOPICS_EXCLUDE,
    AutoRestart,
    Clients,
    ExactOffsets,
    FailedOver,
    Jvm,
    Reverse,
    Scaling,
    SomePatterns,
    Source,
    Starts,
    Target,
    clients_secret,
    syncs_groups,
)
from settings.model import (
    PINS,
    STAYS,
    TRAVELS,
    Config,
    Count,
    Model,
    Property,
    Reserved,
    Resources,
    Seconds,
    SpecOverrides,
    empty,
    frozen,
    no_overrides,
)
from settings.names import SEPARATOR, Annotations, KafkaName, Label, Patterns, Separator, none
from settings.platform import TAKES_OVER

# Free maps: fields beside which properties are written, see `Property`.
SOURCE, CHECKPOINT, HEARTBEAT = (
    ("source_connector_config",),
    ("checkpoint_connector_config",),
    ("heartbeat_connector_config",),
)
SOURCE_AND_CHECKPOINT = (*SOURCE, *CHECKPOINT)
CONNECTORS = (*SOURCE_AND_CHECKPOINT, *HEARTBEAT)
WORKERS, CONNECT = ("worker_config",), ("worker_config", "source_config")
BROKERS_DECIDE = -1  # a replication factor: what the brokers' configuration says
# No topic's name holds a slash, so that nothing is copied.
NO_TOPIC = NO_GROUP = "nothing/yet"
# Environment variable with the mirror whose `active` a `pulumi up` may change: the commands set it, see ADR 0019.
SWITCH_VARIABLE = "RT_INVENTORY_SWITCH"


class Mirror(Model):
    """One KafkaMirrorMaker2. Names of Connect's group and topics start with the mirror's name unless they are set.

    `producer` and `consumer` override the clients that write to the target and read the source. `workerConfig`,
    `sourceConfig` and the `...ConnectorConfig` maps take any other key. With `configDefaults: false` only the maps are
    written, and settings that stand for their keys only inform the verification. `active` says which side
    applications use; `clients` as whom. `failback` is written by the command of that name: `settling` lets the mirror
    carry over what was left on the source although the target is active; `prepared` adds a stopped mirror
    `<mirror>-failback` in the other direction; with `copying` it runs. `specOverrides` are fields of the resource's
    `spec` that no setting stands for, such as `image`, `template`, `jvmOptions` and `logging`.
    """

    name: Annotated[Label, STAYS]
    """Name of the KafkaMirrorMaker2, and beginning of its internal names."""
    namespace: Annotated[Label | None, STAYS] = None
    """Namespace of the mirror. Without it the cluster's."""
    source: Annotated[Source, STAYS]
    """Where records come from."""
    target: Annotated[Target, STAYS]
    """This stack's cluster, as one of its users."""
    reverse: Annotated[Reverse | None, STAYS] = None
    """A second mirror from the target to the source, in a resource `<name>-reverse` beside it."""
    active: Annotated[Literal["source", "target"], STAYS] = "source"
    """The side that applications use. While it is `target` and names are kept, `state` must be `stopped`."""
    standby: Annotated[Literal["read-only", "open"], STAYS] = "read-only"
    """Whether applications may write remote topics: `read-only` denies it, see docs/mirrors.md. `open` as adopted."""
    clients: Annotated[Clients | None, STAYS] = None
    """Users whose properties applications read, in a Secret `<name>-clients`. Without it none is written."""
    failback: Annotated[Literal["settling", "prepared", "copying"] | None, STAYS] = None
    """How far a failback has come. Written by `python -m ops failback`, never by hand."""
    failed_over: Annotated[FailedOver | None, STAYS] = None
    """Topics that are failed over already. Written by `python -m ops failover --topic`, never by hand."""
    version: Annotated[Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] | None, PINS] = None
    """Version of Kafka of the workers. Without it the cluster's."""
    topics: Annotated[SomePatterns, TRAVELS, Reserved(SOURCE, "topics")]
    """Topics to copy."""
    topics_exclude: Annotated[Patterns, TRAVELS, Reserved(SOURCE, "topics.exclude")] = TOPICS_EXCLUDE
    """Topics not to copy."""
    groups: Annotated[SomePatterns, TRAVELS, Reserved(CHECKPOINT, "groups")] = (".*",)
    """Groups whose offsets are translated."""
    groups_exclude: Annotated[Patterns, TRAVELS, Reserved(CHECKPOINT, "groups.exclude")] = GROUPS_EXCLUDE
    """Groups whose offsets are not translated."""
    naming: Annotated[
        Literal["identity", "prefixed"], STAYS, Reserved(CONNECTORS, "replication.policy.", by="naming or separator")
    ] = "identity"
    """Whether remote topics keep their names or are prefixed with the source's alias. Changing it copies all again."""
    separator: Annotated[
        Separator,
        STAYS,
        Property(
            CONNECTORS,
            "replication.policy.separator",
            omit=SEPARATOR,
            kafka_default=SEPARATOR,
            by="naming or separator",
        ),
    ] = SEPARATOR
    """What joins the parts of names that MirrorMaker makes."""
    replicas: Annotated[Count, STAYS] = 1
    """Number of workers. With `scaling`, of a mirror that is new."""
    scaling: Annotated[Scaling | None, STAYS] = None
    """Lets the number of workers follow the lag. Without it there are always `replicas`."""
    source_tasks_max: Annotated[Count, STAYS, Reserved(SOURCE, "tasks.max")] = 1
    """Tasks that copy records."""
    checkpoint_tasks_max: Annotated[Count, STAYS, Reserved(CHECKPOINT, "tasks.max")] = 1
    """Tasks that translate offsets."""
    state: Annotated[Literal["running", "paused", "stopped"], STAYS] = "running"
    """Whether the connectors run."""
    auto_restart: Annotated[AutoRestart | None, TRAVELS] = None
    """Whether the operator restarts what failed."""
    heartbeats: Annotated[bool, TRAVELS, Reserved(HEARTBEAT, "tasks.max")] = False
    """Whether heartbeats are emitted. The v1 API has no place for them."""
    exactly_once: Annotated[
        bool,
        TRAVELS,
        Property(WORKERS, "exactly.once.source.support", when_true="enabled"),
        Property(SOURCE, "exactly.once.support", when_true="required"),
    ] = False
    """Whether records are copied in transactions."""
    replication_factor: Annotated[
        Count,
        STAYS,
        Property(
            WORKERS,
            "config.storage.replication.factor",
            "offset.storage.replication.factor",
            "status.storage.replication.factor",
        ),
        Reserved(WORKERS, "config.storage.", "offset.storage.", "status.storage."),
        Property(SOURCE, "replication.factor", kafka_default=2),
        Property(SOURCE, "offset-syncs.topic.replication.factor"),
        Property(CHECKPOINT, "checkpoints.topic.replication.factor"),
        Property(HEARTBEAT, "heartbeats.topic.replication.factor"),
        Reserved(SOURCE_AND_CHECKPOINT, "offset-syncs.topic."),
        Reserved(CHECKPOINT, "checkpoints.topic."),
    ] = 3
    """Replicas of what the mirror creates on the target."""
    internal_topics: Annotated[Literal["created", "declared"], STAYS] = "created"
    """Whether the mirror creates its own topics, or this stack declares them before it starts."""
    offset_syncs_location: Annotated[
        Literal["source", "target"],
        STAYS,
        Property(SOURCE_AND_CHECKPOINT, "offset-syncs.topic.location", omit="source", kafka_default="source"),
    ] = "target"
    """Cluster that holds the offset-syncs topic. At the source the user there must write it."""
    offset_lag_max: Annotated[
        Annotated[int, Field(ge=0)] | None,
        TRAVELS,
        Property(SOURCE, "offset.lag.max"),
        Reserved(CHECKPOINT, "offset.lag.max"),
    ] = None
    """How many records may lie between two offset syncs (`offset.lag.max`)."""
    sync_topic_acls: Annotated[bool, TRAVELS, Property(SOURCE, "sync.topic.acls.enabled", kafka_default=True)] = False
    """Whether ACLs of topics are copied."""
    sync_topic_configs: Annotated[bool, TRAVELS, Property(SOURCE, "sync.topic.configs.enabled", omit=True)] = True
    """Whether options of topics are copied."""
    config_properties_exclude: Annotated[tuple[str, ...], TRAVELS, Property(SOURCE, "config.properties.exclude")] = ()
    """Options of topics that are not copied."""
    emit_checkpoints: Annotated[bool, TRAVELS, Property(CHECKPOINT, "emit.checkpoints.enabled", kafka_default=True)] = (
        True
    )
    """Whether offsets are translated."""
    exact_offsets: Annotated[ExactOffsets | None, STAYS] = None
    """A pod that commits exact offsets on the target, in place of MirrorMaker."""
    sync_group_offsets: Annotated[
        bool, TRAVELS, Property(CHECKPOINT, "sync.group.offsets.enabled", kafka_default=False)
    ] = Field(default_factory=syncs_groups)
    """Whether MirrorMaker commits translated offsets on the target. False with `exactOffsets`."""
    refresh_topics_seconds: Annotated[Seconds, TRAVELS, Property(SOURCE, "refresh.topics.interval.seconds")] = 600
    """Seconds between checks for new topics."""
    refresh_groups_seconds: Annotated[Seconds, TRAVELS, Property(CHECKPOINT, "refresh.groups.interval.seconds")] = 600
    """Seconds between checks for new groups."""
    emit_checkpoints_seconds: Annotated[Seconds, TRAVELS, Property(CHECKPOINT, "emit.checkpoints.interval.seconds")] = (
        60
    )
    """How often offsets are translated."""
    sync_group_offsets_seconds: Annotated[
        Seconds, TRAVELS, Property(CHECKPOINT, "sync.group.offsets.interval.seconds")
    ] = 60
    """How often offsets are committed on the target."""
    sync_topic_configs_seconds: Annotated[
        Seconds | None, TRAVELS, Property(SOURCE, "sync.topic.configs.interval.seconds")
    ] = None
    """How often options of topics are copied. Without it MirrorMaker's default."""
    flush_offsets_seconds: Annotated[
        Seconds | None, TRAVELS, Property(WORKERS, "offset.flush.interval.ms", times=1000)
    ] = None
    """How often Connect commits its own offsets. Without it Connect's default."""
    group_id: Annotated[KafkaName | None, STAYS, Reserved(CONNECT, "group.id")] = None
    """Group id of the workers. Without it the mirror's name. Changing it copies everything again."""
    config_storage_topic: Annotated[KafkaName | None, STAYS, Reserved(CONNECT, "config.storage.topic")] = None
    """Connect's topic for configuration. Without it `<name>-configs`."""
    offset_storage_topic: Annotated[KafkaName | None, STAYS, Reserved(CONNECT, "offset.storage.topic")] = None
    """Connect's topic for offsets. Without it `<name>-offsets`."""
    status_storage_topic: Annotated[KafkaName | None, STAYS, Reserved(CONNECT, "status.storage.topic")] = None
    """Connect's topic for status. Without it `<name>-status`."""
    producer: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Options of the client that writes to the target."""
    consumer: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Options of the client that reads the source."""
    worker_config: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Further options of the workers."""
    source_config: Annotated[Config, STAYS] = Field(default_factory=empty)
    """Further options of the connection to the source."""
    source_connector_config: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Further options of the source connector."""
    checkpoint_connector_config: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Further options of the checkpoint connector."""
    heartbeat_connector_config: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Further options of the heartbeat connector."""
    config_defaults: Annotated[bool, TRAVELS] = True
    """Whether settings that stand for keys are written; else the free maps are all there is."""
    resources: Annotated[Resources, STAYS] = Field(default_factory=Resources)
    """CPU and memory of each worker."""
    jvm: Annotated[Jvm, STAYS] = Field(default_factory=Jvm)
    """Heap of each worker."""
    rack: Annotated[Rack | None, STAYS] = None
    """Lets workers read from brokers in their own zone."""
    metrics: Annotated[Metrics | None, STAYS] = None
    """How workers expose metrics."""
    log_level: Annotated[Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR"] | None, STAYS] = None
    """Level of the workers' log."""
    spec_overrides: Annotated[SpecOverrides, STAYS] = Field(default_factory=no_overrides)
    """Fields of the resource's `spec` that no setting stands for. What a setting decides is refused."""
    annotations: Annotated[Annotations, STAYS] = Field(default_factory=none)
    """Annotations of the mirror's resource, of its reverse, and of internal topics that are declared."""
    accept_rereplication: Annotated[bool, STAYS] = False
    """Accepts a change after which everything is copied again."""
    accept_switch: Annotated[bool, STAYS] = False
    """Accepts another `active` than before in one `pulumi up` that no command runs."""
    counts_from: Annotated[Starts, STAYS] = Field(default_factory=lambda: frozen({}))
    """Topics that held records on the target before the mirror; what is older than this is not judged."""
    ready_seconds: Annotated[Seconds, STAYS] = 600
    """How long to wait for the mirror."""

    @property
    def connect_group(self) -> str:
        """Group id of the Connect workers."""
        return self.group_id or self.name

    @property
    def storage_topics(self) -> dict[str, str]:
        """Connect's three topics by what they hold: config, offset and status."""
        return {
            "config": self.config_storage_topic or f"{self.name}-configs",
            "offset": self.offset_storage_topic or f"{self.name}-offsets",
            "status": self.status_storage_topic or f"{self.name}-status",
        }

    @property
    def connectors(self) -> dict[str, str]:
        """Names that the operator gives to the mirror's connectors, by kind."""
        pair = f"{self.source.alias}->{self.target.alias}"
        kinds = ("source", "checkpoint", *(("heartbeat",) if self.heartbeats else ()))
        return {kind: f"{pair}.Mirror{kind.capitalize()}Connector" for kind in kinds}

    @property
    def connector_offsets(self) -> str:
        """ConfigMap through which the operator lists and alters the source connector's offsets."""
        return f"{self.name}-connector-offsets"

    @property
    def metrics_rules(self) -> str:
        """ConfigMap of the exporter's rules if the stack writes them."""
        return f"{self.name}-mirrormaker2-metrics"

    @property
    def clients_user(self) -> str | None:
        """The user of the active side as whom applications log in; None if they get nothing from here."""
        return self.clients.user_of(self.active) if self.clients is not None else None

    @property
    def clients_secret(self) -> str | None:
        """Secret with the properties by which applications reach the active side; None if there is none."""
        return clients_secret(self.name) if self.clients_user is not None else None

    @property
    def source_users(self) -> dict[str, str]:
        """Users of the source stack that are needed, by the setting that names each."""
        named = {"source.user": self.source.user}
        if self.clients is not None:
            named["clients.login" if self.clients.login else "clients.source"] = self.clients.user_of("source")
        return {field: user for field, user in named.items() if user is not None}

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is copied on purpose; after a switch `paused` is all that some operators can do."""
        return self.state == "stopped" or (self.state == "paused" and self.active == "target")

    def home(self, cluster_namespace: str) -> str:
        """Namespace of the resource and of the Secrets that it refers to."""
        return self.namespace or cluster_namespace

    @property
    def is_verified(self) -> bool:
        """Whether an `up` verifies it: not at rest, nor while a command moves something, which verifies it itself."""
        moving = self.failback is not None or (self.failed_over is not None and bool(self.failed_over.pending))
        return not self.is_at_rest and not moving

    @property
    def has_failback_mirror(self) -> bool:
        """Whether a mirror in the other direction exists for a failback."""
        return self.failback in ("prepared", "copying")

    @property
    def failback_mirror_name(self) -> str:
        """Name of the mirror that a failback makes in the other direction."""
        return f"{self.name}-failback"

    def reverse_mirror(self) -> "Mirror":
        """The mirror in the other direction; raises ValueError without `reverse`.

        Its `active` has no meaning: only that of the mirror itself counts.
        """
        if self.reverse is None:
            raise ValueError(f"mirror {self.name}: has no reverse")
        return self.model_copy(
            update={
                "name": f"{self.name}-reverse",
                "source": Source(alias=self.target.alias),
                "target": Target(alias=self.source.alias, user=self.source.user or self.name),
                "reverse": None,
                "active": "source",
                "clients": None,
                "failback": None,
                "failed_over": None,
                "scaling": None,
                "topics": self.reverse.topics,
                "topics_exclude": self.reverse.topics_exclude,
                "groups": self.reverse.groups,
                "groups_exclude": self.reverse.groups_exclude,
                "group_id": None,
                "config_storage_topic": None,
                "offset_storage_topic": None,
                "status_storage_topic": None,
                "counts_from": {},
            }
        )

    def failback_mirror(self) -> "Mirror":
        """The mirror that brings back what was written on the target; raises ValueError unless there is one.

        Names are kept. Where it begins is set in Connect before it copies: until then it names no topic, for operators
        make a connector first and stop it then. Positions of groups are set by the command, configurations of topics
        and ACLs are declared at the source. Factors are left to the brokers there, which may be fewer. An `up` that was
        killed before it had noted the mirror leaves one that nobody else made: the next takes its fields over.
        """
        if not self.has_failback_mirror:
            raise ValueError(f"mirror {self.name}: has no failback under way")
        copying = self.failback == "copying"
        return self.model_copy(
            update={
                "name": self.failback_mirror_name,
                "source": Source(alias=self.target.alias),
                "target": Target(alias=self.source.alias, user=self.source.user or self.name),
                "reverse": None,
                "active": "source",
                "clients": None,
                "failed_over": None,
                "scaling": None,
                "topics": self.topics if copying else (NO_TOPIC,),
                "state": "running" if copying else "stopped",
                "replication_factor": BROKERS_DECIDE,
                "internal_topics": "created",
                "heartbeats": False,
                "heartbeat_connector_config": {},
                "sync_topic_acls": False,
                "sync_topic_configs": False,
                "sync_topic_configs_seconds": None,
                "sync_group_offsets": False,
                "exact_offsets": None,
                **dict.fromkeys(("group_id", "config_storage_topic", "offset_storage_topic", "status_storage_topic")),
                "annotations": {**self.annotations, **TAKES_OVER},
                "counts_from": {},
            }
        )
