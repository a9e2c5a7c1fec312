"""Typed verification request. Patterns are MirrorMaker's: Java regular expressions that must match a whole name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from spark.java_patterns import patterns as java_patterns

# How names of Connect's own topics may end, and since which release of Kafka a mirror copies topics of such names.
_INTERNAL, _INTERNAL_NAMES_SINCE = (".internal", "-internal"), (4, 0)
# org.apache.kafka.connect.mirror.DefaultTopicFilter and DefaultGroupFilter
TOPICS_EXCLUDE_DEFAULT = (r"mm2.*\.internal", r".*\.replica", r"__.*")
GROUPS_EXCLUDE_DEFAULT = (r"console-consumer-.*", r"connect-.*", r"__.*")
# org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter; patterns too: a dot matches any character
CONFIGS_EXCLUDE_DEFAULT = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)
RESOURCE_KINDS = {"KafkaMirrorMaker2": "kafkamirrormaker2s"}  # with the plural that addresses them
CHECK_NAMES = (
    "topics_present",
    "partitions_match",
    "replication_factor",
    "topic_config",
    "internal_topics",
    "acls_synced",
    "connectors_running",
    "lag",
    "canary_latency",
    "records_complete",
    "records_unique",
    "records_intact",
    "records_ordered",
    "records_foreign",
    "groups_synced",
    "groups_no_loss",
    "groups_reread_bounded",
    "checkpoints_consistent",
)
TOPIC_LENGTH_MAX = 249  # org.apache.kafka.common.internals.Topic
SECRET_KEYS = ("sasl.password", "ssl.key.pem", "ssl.key.password", "ssl.keystore.password")


@dataclass(frozen=True, kw_only=True)
class Side:
    """One cluster: its role (`source` or `target`), alias and librdkafka client configuration with secrets in it.

    `cluster`, `stack` and `namespace` say for readers of the report where it is declared; None: nobody said.
    """

    role: str
    alias: str
    client_config: Mapping[str, str] = field(repr=False)
    cluster: str | None = None
    stack: str | None = None
    namespace: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """What is known of where it is declared, by the report's keys."""
        known = {"cluster": self.cluster, "stack": self.stack, "namespace": self.namespace}
        return {key: name for key, name in known.items() if name}

    @property
    def user(self) -> str:
        """Name of the SASL user, or `no user` for connections without SASL."""
        return self.client_config.get("sasl.username", "no user")

    @property
    def secrets(self) -> list[str]:
        """Values that must never be shown."""
        return [self.client_config[key] for key in SECRET_KEYS if self.client_config.get(key)]


@dataclass(frozen=True, kw_only=True)
class TopicConfigs:
    """How the mirror copies topics' configuration: MirrorMaker's own properties of the same names.

    `filter_class` names a config property filter that is not MirrorMaker's default.
    """

    sync: bool = True
    exclude: tuple[str, ...] = CONFIGS_EXCLUDE_DEFAULT
    use_defaults_from: Literal["target", "source"] = "target"
    filter_class: str | None = None

    @property
    def judged(self) -> bool:
        """Whether it is known what a copy's configuration should be."""
        return self.sync and self.filter_class is None


@dataclass(frozen=True, kw_only=True)
class InternalTopic:
    """A topic that the mirror keeps for itself, with the least number of replicas that it should have."""

    name: str
    location: Literal["source", "target"] = "target"
    replication_factor: int | None = None
    required: bool = True


@dataclass(frozen=True, kw_only=True)
class Resource:
    """The mirror's custom resource in Kubernetes, and the kubeconfig's context of that cluster (None: the current)."""

    api_version: str
    kind: str
    namespace: str
    name: str
    context: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Canary:
    """Stamped records to send through a topic that the mirror carries; over all its partitions unless one is named."""

    topic: str
    records: int = 100
    partition: int | None = None


@dataclass(frozen=True, kw_only=True)
class OffsetSyncs:
    """Topic in which MirrorMaker pairs offsets of both sides, and the side that it is on."""

    name: str
    location: Literal["source", "target"]


@dataclass(frozen=True, kw_only=True)
class AskedPosition:
    """An offset of the next record to read on one side, to be translated to the other. Topics by the source's name."""

    side: Literal["source", "target"]
    topic: str
    partition: int
    offset: int


CountsFrom = datetime | Mapping[int, int]
"""Where on the target the mirror's own records begin in a topic: a time, or an offset of each partition."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """What the mirror should carry, and where its own state is found. `version` is its workers' release of Kafka."""

    name: str
    source_alias: str
    target_alias: str
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...] = TOPICS_EXCLUDE_DEFAULT
    groups: tuple[str, ...] = (".*",)
    groups_exclude: tuple[str, ...] = GROUPS_EXCLUDE_DEFAULT
    naming: Literal["identity", "prefixed"] = "identity"
    separator: str = "."
    version: str | None = None
    replication_factor: int | None = None
    connect_url: str | None = None
    connectors: tuple[str, ...] = ()
    offset_storage_topic: str | None = None
    checkpoints: str | None = None
    topic_configs: TopicConfigs = TopicConfigs()
    sync_topic_acls: bool = False
    sync_group_offsets: bool = True
    internal_topics: tuple[InternalTopic, ...] = ()
    resource: Resource | None = None
    offset_syncs: OffsetSyncs | None = None
    canary: Canary | None = None
    counts_from: Mapping[str, CountsFrom] = field(default_factory=dict)
    positions: tuple[AskedPosition, ...] = ()

    @property
    def tells_position(self) -> bool:
        """Whether the request says where the source connector's committed position is found."""
        return self.connect_url is not None or self.offset_storage_topic is not None

    @property
    def source_connector(self) -> str:
        """Name of the connector that copies records."""
        named = [name for name in self.connectors if name.endswith("MirrorSourceConnector")]
        return named[0] if named else f"{self.source_alias}->{self.target_alias}.MirrorSourceConnector"

    @property
    def checkpoints_topic(self) -> str:
        """Topic on the target with the translated group offsets: the given one, else as the separator names it."""
        return self.checkpoints or f"{self.source_alias}{self.separator}checkpoints{self.separator}internal"

    @property
    def named_topics(self) -> list[str]:
        """Topics that the mirror is asked for by their plain name, not by a pattern."""
        return [name for name in map(_plain, self.topics) if name is not None and self.carries_topic(name)]

    @property
    def named_groups(self) -> list[str]:
        """Groups that the mirror is asked for by their plain name, not by a pattern."""
        return [name for name in map(_plain, self.groups) if name is not None and self.carries_group(name)]

    def keeps(self, topic: str) -> bool:
        """Whether the mirror keeps an internal topic, as far as the request says."""
        return not any(one.name == topic and not one.required for one in self.internal_topics)

    def carries_topic(self, topic: str) -> bool:
        """Whether a topic of the source is to be mirrored (ReplicationPolicy.isInternalTopic)."""
        return self._carries(topic) and (self._copies_internal_names is True or not topic.endswith(self._internal))

    def is_doubtful(self, topic: str) -> bool:
        """Whether nobody can say if a topic of the source is to be mirrored: releases differ, and this one is unknown.

        Up to Kafka 3.9 every topic is internal that ends like Connect's own; later only MirrorMaker's.
        """
        return self._copies_internal_names is None and topic.endswith(self._internal) and self._carries(topic)

    def _carries(self, topic: str) -> bool:
        wanted = _matches(topic, self.topics) and not _matches(topic, self.topics_exclude)
        return wanted and not (topic.startswith(("__", ".")) or self._is_mirror_makers(topic) or self.is_cycle(topic))

    @property
    def _copies_internal_names(self) -> bool | None:
        known = re.match(r"(\d+)\.(\d+)", self.version or "")
        return (int(known[1]), int(known[2])) >= _INTERNAL_NAMES_SINCE if known else None

    def _is_mirror_makers(self, topic: str) -> bool:
        """Whether it is a mirror's own topic, by the separator in the checkpoints' name (DefaultReplicationPolicy)."""
        suffix = self.checkpoints_topic.removeprefix(self.source_alias)
        return topic.endswith(suffix) or (topic.startswith("mm2") and topic.endswith(f"{self._join}internal"))

    @property
    def _join(self) -> str:
        """What joins the parts of the checkpoints' name."""
        return self.checkpoints_topic.removeprefix(self.source_alias).partition("checkpoints")[0]

    @property
    def _internal(self) -> tuple[str, ...]:
        """How names end that are internal to all mirrors up to Kafka 3.9."""
        return (*_INTERNAL, f"{self._join}internal")

    def is_cycle(self, topic: str) -> bool:
        """Whether a topic of the source came from the target, by its prefixes (MirrorSourceConnector.isCycle)."""
        prefixed = self.naming == "prefixed" and bool(self.separator)
        return prefixed and self.target_alias in topic.split(self.separator)[:-1]

    def is_loop(self, topic: str) -> bool:
        """Whether a topic of the target was mirrored back to where it came from."""
        prefix = f"{self.source_alias}{self.separator}"
        return topic.startswith(prefix) and self.is_cycle(topic.removeprefix(prefix))

    def carries_group(self, group: str) -> bool:
        """Whether a consumer group's offsets are to be synced."""
        return _matches(group, self.groups) and not _matches(group, self.groups_exclude)

    def target_topic(self, topic: str) -> str:
        """Name on the target of a topic of the source."""
        return topic if self.naming == "identity" else f"{self.source_alias}{self.separator}{topic}"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of the verdict. Durations in seconds unless named otherwise, the rest in records; None: no bound."""

    mirror_wait_seconds: float = 120
    deadline_seconds: float = 900
    reread_records_max: int = 50_000
    duplicates_max: int = 0
    lag_records_max: int | None = None
    lag_seconds_max: int | None = None
    canary_p99_ms_max: int | None = None
    allow_unknown: tuple[str, ...] = ()
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One verification: two clusters, the mirror between them, and the limits.

    `stack` is the Pulumi stack that declares the mirror, as a label of what is told of the run; None: nobody said.
    """

    source: Side
    target: Side
    mirror: Mirror
    limits: Limits
    stack: str | None = None

    @property
    def secrets(self) -> list[str]:
        """Values that must never be shown."""
        return self.source.secrets + self.target.secrets


def may_exist(topic: str) -> bool:
    """Whether Kafka takes a topic of this length. To ask for a longer one is an error of the whole call."""
    return len(topic) <= TOPIC_LENGTH_MAX


def _plain(pattern: str) -> str | None:
    """Return the one name that a pattern stands for, None for a pattern of several. A dot counts as a dot."""
    name = re.sub(r"\\([.-])", r"\1", pattern)
    return name if re.fullmatch(r"[A-Za-z0-9._-]+", name) else None


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return java_patterns.matches(patterns, name)
