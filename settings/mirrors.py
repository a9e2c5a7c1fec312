r"""Mirrors: what is copied from where to where, how it is named, and how often it is synchronised.

Intervals are in seconds. Default exclusions are those of Kafka's DefaultTopicFilter and DefaultGroupFilter.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from settings import spec_overrides
from settings.annotations import Annotations, none
from settings.cluster import External, Metrics, Rack, external_ca_secret
from settings.model import Config, Count, Model, Resources, Seconds, empty, frozen
from settings.names import SEPARATOR, KafkaName, Label, Patterns, Separator
from settings.scaling import Scaling
from settings.spec_overrides import SpecOverrides
from settings.users import AnyAuthentication, ExistingSecret

TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", r"__.*")
GROUPS_EXCLUDE = (r"console-consumer-.*", r"connect-.*", r"__.*")
BROKERS_DECIDE = -1  # a replication factor: what the brokers' configuration says
# No topic's name holds a slash, so that nothing is copied.
NO_TOPIC = NO_GROUP = "nothing/yet"
# Environment variable with the mirror whose `active` a `pulumi up` may change: the commands set it, see ADR 0019.
SWITCH_VARIABLE = "RT_INVENTORY_SWITCH"
SomePatterns = Annotated[Patterns, Field(min_length=1)]
PartitionNumber = Annotated[str, Field(pattern=r"^\d+$")]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
Offsets = Annotated[Mapping[PartitionNumber, Annotated[int, Field(ge=0)]], AfterValidator(frozen)]


class ExternalSource(Model):
    """A source that no stack describes. Its Secrets lie in the mirror's namespace.

    With `authentication: none`, for a cluster that lets everybody in, there is no `secret` and no `username`.
    """

    name: Label
    cluster: External
    authentication: AnyAuthentication = "scram-sha-512"
    username: str | None = None
    secret: ExistingSecret | None = None

    @property
    def ca_secret(self) -> tuple[str, str] | None:
        """Secret and key of its authority; None for a public one or without TLS."""
        return external_ca_secret(self.name, self.cluster)


class Source(Model):
    """Where records come from: another stack of this project as one of its users, or an external cluster.

    `copySecrets: false` says that the mirror's namespace holds the source's Secrets already: both clusters share it.
    `required: false` leaves the mirror out while the source stack is not up: stacks that mirror each other begin so.
    """

    alias: Label
    stack: Label | None = None
    user: Label | None = None
    external: ExternalSource | None = None
    copy_secrets: bool = True
    required: bool = True


class Target(Model):
    """Where records go: this stack's cluster, as one of its users."""

    alias: Label
    user: Label


class Clients(Model):
    """The users as whom applications log in: one of the source stack while that side is active, else one of this stack.

    An external source has no user for applications: while it is active, they get nothing from here.
    """

    source: Label | None = None
    target: Label


class Reverse(Model):
    """What goes the other way round, from the target to the source, in a resource `<mirror>-reverse` beside it."""

    topics: SomePatterns
    topics_exclude: Patterns = TOPICS_EXCLUDE
    groups: SomePatterns = (".*",)
    groups_exclude: Patterns = GROUPS_EXCLUDE


class CountsFrom(Model):
    """Where the mirror's own records begin, on the target, in a topic that held others before.

    Either of them: `time` stands for the first record whose timestamp is not older, `offsets` are exact.
    """

    time: Time | None = None
    offsets: Offsets = Field(default_factory=lambda: frozen({}))


Starts = Annotated[Mapping[KafkaName, CountsFrom], AfterValidator(frozen)]


class AutoRestart(Model):
    """Whether the operator restarts failed connectors and tasks, at most `maxRestarts` times (None: for ever)."""

    enabled: bool = True
    max_restarts: Count | None = None


class Jvm(Model):
    """Heap of a worker, as Java writes it (`512m`, `2g`)."""

    xms: Annotated[str, Field(pattern=r"^\d+[mMgG]$")] | None = None
    xmx: Annotated[str, Field(pattern=r"^\d+[mMgG]$")] | None = None

    @property
    def options(self) -> dict[str, str]:
        """The options as the resource has them, those that are given."""
        return {f"-X{key}": value for key, value in (("ms", self.xms), ("mx", self.xmx)) if value}


class Mirror(Model):
    """One KafkaMirrorMaker2. Names of Connect's group and topics start with the mirror's name unless they are set.

    `producer` and `consumer` override the clients that write to the target and read the source. `workerConfig`,
    `sourceConfig` and the `...ConnectorConfig` maps take any other key. With `configDefaults: false` only the maps are
    written, and settings that stand for their keys merely tell the verification what they say. `active` says which side
    applications use; `clients` as whom. `failback` is written by the command of that name: `settling` lets the mirror
    carry over what was left on the source although the target is active; `prepared` adds a stopped mirror
    `<mirror>-failback` the other way round; with `copying` it runs. `specOverrides` are fields of the resource's `spec`
    that no setting stands for, such as `image`, `template`, `jvmOptions` and `logging`.
    """

    name: Label
    namespace: Label | None = None
    source: Source
    target: Target
    reverse: Reverse | None = None
    active: Literal["source", "target"] = "source"
    clients: Clients | None = None
    failback: Literal["settling", "prepared", "copying"] | None = None
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] | None = None
    topics: SomePatterns
    topics_exclude: Patterns = TOPICS_EXCLUDE
    groups: SomePatterns = (".*",)
    groups_exclude: Patterns = GROUPS_EXCLUDE
    naming: Literal["identity", "prefixed"] = "identity"
    separator: Separator = SEPARATOR
    replicas: Count = 1
    scaling: Scaling | None = None
    source_tasks_max: Count = 1
    checkpoint_tasks_max: Count = 1
    state: Literal["running", "paused", "stopped"] = "running"
    auto_restart: AutoRestart | None = None
    heartbeats: bool = False
    exactly_once: bool = False
    replication_factor: Count = 3
    internal_topics: Literal["created", "declared"] = "created"
    offset_syncs_location: Literal["source", "target"] = "target"
    offset_lag_max: Annotated[int, Field(ge=0)] | None = None
    sync_topic_acls: bool = False
    sync_topic_configs: bool = True
    config_properties_exclude: tuple[str, ...] = ()
    emit_checkpoints: bool = True
    sync_group_offsets: bool = True
    refresh_topics_seconds: Seconds = 600
    refresh_groups_seconds: Seconds = 600
    emit_checkpoints_seconds: Seconds = 60
    sync_group_offsets_seconds: Seconds = 60
    sync_topic_configs_seconds: Seconds | None = None
    flush_offsets_seconds: Seconds | None = None
    group_id: KafkaName | None = None
    config_storage_topic: KafkaName | None = None
    offset_storage_topic: KafkaName | None = None
    status_storage_topic: KafkaName | None = None
    producer: Config = Field(default_factory=empty)
    consumer: Config = Field(default_factory=empty)
    worker_config: Config = Field(default_factory=empty)
    source_config: Config = Field(default_factory=empty)
    source_connector_config: Config = Field(default_factory=empty)
    checkpoint_connector_config: Config = Field(default_factory=empty)
    heartbeat_connector_config: Config = Field(default_factory=empty)
    config_defaults: bool = True
    resources: Resources = Field(default_factory=Resources)
    jvm: Jvm = Field(default_factory=Jvm)
    rack: Rack | None = None
    metrics: Metrics | None = None
    log_level: Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR"] | None = None
    spec_overrides: SpecOverrides = Field(default_factory=spec_overrides.none)
    annotations: Annotations = Field(default_factory=none)
    accept_rereplication: bool = False
    accept_switch: bool = False
    counts_from: Starts = Field(default_factory=lambda: frozen({}))
    ready_seconds: Seconds = 600

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
        if self.clients is None:
            return None
        return self.clients.target if self.active == "target" else self.clients.source

    @property
    def clients_secret(self) -> str | None:
        """Secret with the properties by which applications reach the active side; None if there is none."""
        return f"{self.name}-clients" if self.clients_user is not None else None

    @property
    def source_users(self) -> dict[str, str]:
        """Users of the source stack that are needed, by the setting that names each."""
        named = {"source.user": self.source.user, "clients.source": self.clients.source if self.clients else None}
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
        """Whether an `up` verifies it: not at rest, nor while something is brought back, which its command verifies."""
        return not self.is_at_rest and self.failback is None

    @property
    def brings_back(self) -> bool:
        """Whether a mirror the other way round exists for a failback."""
        return self.failback in ("prepared", "copying")

    @property
    def returning_name(self) -> str:
        """Name of the mirror that a failback makes the other way round."""
        return f"{self.name}-failback"

    def opposite(self) -> "Mirror":
        """The mirror that runs the other way round; raises ValueError without `reverse`.

        Who is active is said by the mirror itself only.
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

    def returning(self) -> "Mirror":
        """The mirror that brings back what was written on the target; raises ValueError unless there is one.

        Names are kept. Where it begins is set in Connect before it copies: until then it names no topic, for operators
        make a connector first and stop it then. Positions of groups are set by the command, configurations of topics
        and ACLs are declared at the source. Factors are left to the brokers there, which may be fewer.
        """
        if not self.brings_back:
            raise ValueError(f"mirror {self.name}: has no failback under way")
        copying = self.failback == "copying"
        return self.model_copy(
            update={
                "name": self.returning_name,
                "source": Source(alias=self.target.alias),
                "target": Target(alias=self.source.alias, user=self.source.user or self.name),
                "reverse": None,
                "active": "source",
                "clients": None,
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
                "group_id": None,
                "config_storage_topic": None,
                "offset_storage_topic": None,
                "status_storage_topic": None,
                "counts_from": {},
            }
        )
