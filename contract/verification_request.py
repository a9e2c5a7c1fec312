"""Models of the verification request: `components` writes it, the job and `ops` read it.

A request that a document holds is read by `contract.documents`. One that a program builds keeps its values as
they are: references to secrets are not resolved. Patterns are MirrorMaker's: regular expressions of Java that must
match a whole name.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_serializer,
    model_validator,
)

from contract import fields, java_patterns
from contract.check_names import CHECK_NAMES, CheckName
from contract.fields import REDACTED, SECRET_KEYS, Document, Must

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
TOPIC_LENGTH_MAX = 249  # org.apache.kafka.common.internals.Topic
POSITIONS_MAX = 20_000
CANARY_RECORDS_MAX = 10_000
_NO_TOPICS = fields.default_patterns(*TOPICS_EXCLUDE_DEFAULT)
_NO_GROUPS = fields.default_patterns(*GROUPS_EXCLUDE_DEFAULT)
_NO_CONFIGS = fields.default_patterns(*CONFIGS_EXCLUDE_DEFAULT)
_NEEDED_TO_CARRY = {"topics", "topics_exclude", "naming", "separator", "version", "source_alias", "target_alias"}
Location = Annotated[Literal["source", "target"], Must("be source or target")]


def _positions(value: object, info: ValidationInfo) -> tuple["RequestedPosition", ...]:
    """Return the positions in their order; raises one error with the problems of all."""
    if not isinstance(value, list | tuple | None) or len(value or ()) > POSITIONS_MAX:
        got = f"{len(value)} positions" if isinstance(value, list | tuple) else fields.format_value(value)
        fields.refuse_value(f"must be a list of at most {POSITIONS_MAX} positions (got {got})")
    rule = "must be an object of a topic, a partition, an offset and perhaps a side, source or target"
    found: list[RequestedPosition] = []
    problems: list[tuple[tuple[int, ...], str]] = []
    for number, item in enumerate(value or ()):
        try:
            found.append(RequestedPosition.model_validate(item))
        except ValidationError:
            problems.append(((number,), f"{rule} (got {fields.format_value(item)})"))
    if set(info.data) >= _NEEDED_TO_CARRY:
        mirror = Mirror.model_construct(**info.data)
        problems += [
            ((), f"must be in topics that the mirror carries (got {topic}, topics {', '.join(mirror.topics)})")
            for topic in sorted({one.topic for one in found})
            if not mirror.carries_topic(topic)
        ]
    fields.refuse(problems)
    return tuple(found)


def _of_a_mirror(resource: "Resource") -> "Resource":
    if resource.kind not in RESOURCE_KINDS:
        got = fields.format_value(resource.kind)
        fields.refuse([(("kind",), f"must be {' or '.join(RESOURCE_KINDS)} (got {got})")])
    return resource


class ClusterConfig(Document):
    """One cluster: its role (`source` or `target`), alias and librdkafka client configuration with secrets in it.

    `cluster`, `stack` and `namespace` name for readers of the report where it is declared; None: unknown.
    """

    role: str = Field(exclude=True)
    alias: fields.Name
    cluster: fields.OptionalName = None
    stack: fields.OptionalName = None
    namespace: fields.OptionalName = None
    client_config: Annotated[Mapping[str, str], PlainValidator(fields.client_config)] = Field(repr=False)

    @field_serializer("client_config")
    def _without_secrets(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """References to secrets are written, their values are not."""
        return {
            key: REDACTED if key in SECRET_KEYS and isinstance(value, str) else value for key, value in config.items()
        }

    @property
    def names(self) -> dict[str, str]:
        """The names that are known of where it is declared, by the report's keys."""
        names = {"cluster": self.cluster, "stack": self.stack, "namespace": self.namespace}
        return {key: name for key, name in names.items() if name}

    @property
    def user(self) -> str:
        """Name of the SASL user, or `no user` for connections without SASL."""
        return self.client_config.get("sasl.username", "no user")

    @property
    def secrets(self) -> list[str]:
        """Values that must never be shown."""
        return [self.client_config[key] for key in SECRET_KEYS if self.client_config.get(key)]


class TopicConfigs(Document):
    """How the mirror copies topics' configuration: MirrorMaker's own properties of the same names.

    `filter_class` names a config property filter that is not MirrorMaker's default.
    """

    sync: fields.Flag = True
    exclude: Annotated[fields.Patterns, _NO_CONFIGS] = CONFIGS_EXCLUDE_DEFAULT
    use_defaults_from: Location = "target"
    filter_class: Annotated[str | None, Must("be text or null")] = None

    @property
    def judged(self) -> bool:
        """Whether it is known what the configuration of a remote topic should be."""
        return self.sync and self.filter_class is None


class InternalTopic(Document):
    """A topic that the mirror keeps for itself, with the least number of replicas that it should have."""

    name: fields.Name
    location: Location = "target"
    replication_factor: Annotated[
        fields.Replicas | None, Must(f"be a number from 1 to {fields.REPLICAS_MAX} or null")
    ] = None
    required: fields.Flag = True


class Resource(Document):
    """The mirror's custom resource in Kubernetes, and the kubeconfig's context of that cluster (None: the current)."""

    api_version: Annotated[str, Field(pattern=r"^[^/]+/[^/]+$"), Must("be a group and a version, as in group/v1")]
    kind: fields.Name = next(iter(RESOURCE_KINDS))
    namespace: fields.Name
    name: fields.Name
    context: Annotated[str | None, Field(min_length=1), Must("be a context of the kubeconfig or null")] = None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Canary(Document):
    """Stamped records to send through a topic that the mirror carries; over all its partitions unless one is named."""

    topic: fields.Name
    records: Annotated[
        fields.Whole, Field(ge=1, le=CANARY_RECORDS_MAX), Must(f"be a number from 1 to {CANARY_RECORDS_MAX}")
    ] = 100
    partition: Annotated[fields.Partition | None, Must(f"be a number from 0 to {fields.PARTITION_MAX} or null")] = None


class OffsetSyncs(Document):
    """Topic in which MirrorMaker pairs offsets of both sides, and the side that it is on."""

    name: fields.Name
    location: Location = "source"


class RequestedPosition(Document):
    """An offset of the next record to read on one side, to be translated to the other. Topics by the source's name."""

    side: Literal["source", "target"] = "source"
    topic: str
    partition: fields.Partition
    offset: fields.Offset


CountsFrom = datetime | Mapping[int, int]
"""Where on the target the mirror's own records begin in a topic: a time, or an offset of each partition."""


class Mirror(Document):
    """What the mirror should carry, and where its own state is found. `version` is its workers' release of Kafka.

    `active` is the side that applications use; None: it is not known, and the other one is not judged. They use the
    topics of `failed_over` at the target by themselves: `topics_exclude` has these, so nothing of them is judged.
    """

    name: fields.Text = "mirror"
    topics: fields.SomePatterns
    topics_exclude: Annotated[fields.Patterns, fields.default_patterns(*TOPICS_EXCLUDE_DEFAULT)] = (
        TOPICS_EXCLUDE_DEFAULT
    )
    groups: Annotated[fields.Patterns, fields.default_patterns(".*")] = (".*",)
    groups_exclude: Annotated[fields.Patterns, fields.default_patterns(*GROUPS_EXCLUDE_DEFAULT)] = (
        GROUPS_EXCLUDE_DEFAULT
    )
    naming: Annotated[Literal["identity", "prefixed"], Must("be identity or prefixed")] = "identity"
    separator: fields.Text = "."
    version: fields.OptionalText = None
    source_alias: fields.Text
    target_alias: fields.Text
    replication_factor: Annotated[fields.Replicas | None, Must(f"be a number from 1 to {fields.REPLICAS_MAX}")] = None
    connect_url: fields.OptionalURL = None
    connectors: fields.Names = ()
    offset_storage_topic: fields.OptionalText = None
    checkpoints_topic: fields.OptionalText = None
    offset_syncs_topic: OffsetSyncs | None = None
    canary: Canary | None = None
    counts_from: Annotated[Mapping[str, CountsFrom], PlainValidator(fields.counts_from), PlainSerializer(dict)] = {}
    topic_configs: Annotated[TopicConfigs, BeforeValidator(lambda value: {} if value is None else value)] = (
        TopicConfigs()
    )
    active: Annotated[Literal["source", "target"] | None, Must("be source, target or null")] = None
    failed_over: fields.Names = ()
    sync_topic_acls: fields.Flag = False
    sync_group_offsets: fields.Flag = True
    exact_offsets: fields.Flag = False
    internal_topics: Annotated[tuple[InternalTopic, ...], Field(strict=False), fields.Items] = ()
    resource: Annotated[Resource, AfterValidator(_of_a_mirror)] | None = None
    positions: Annotated[tuple[RequestedPosition, ...], PlainValidator(_positions)] = ()

    @model_validator(mode="after")
    def _names_topics_that_it_carries(self) -> Self:
        rule, topics = "that the mirror carries", ", ".join(self.topics)
        problems: list[tuple[tuple[str, ...], str]] = [
            (("counts_from",), f"must name topics {rule} (got {topic}, topics {topics})")
            for topic in self.counts_from
            if not self.carries_topic(topic)
        ]
        if self.canary is not None and not self.carries_topic(self.canary.topic):
            got = f"(got {self.canary.topic}, topics {topics})"
            problems.append((("canary", "topic"), f"must be one {rule} {got}. Its records would never arrive."))
        fields.refuse(problems)
        return self

    @property
    def sets_groups(self) -> bool:
        """Whether groups are set on the target: by MirrorMaker, or by a follower (`exact_offsets`)."""
        return self.sync_group_offsets or self.exact_offsets

    @property
    def locates_position(self) -> bool:
        """Whether the request says where the source connector's committed position is found."""
        return self.connect_url is not None or self.offset_storage_topic is not None

    @property
    def source_connector(self) -> str:
        """Name of the connector that copies records."""
        names = [name for name in self._declared_connectors if name.endswith("MirrorSourceConnector")]
        return names[0] if names else f"{self.source_alias}->{self.target_alias}.MirrorSourceConnector"

    @property
    def connector_names(self) -> tuple[str, ...]:
        """Names of the connectors that the request declares, at least the source connector's."""
        return self._declared_connectors or (self.source_connector,)

    @property
    def _declared_connectors(self) -> tuple[str, ...]:
        return tuple(self.connectors.values() if isinstance(self.connectors, Mapping) else self.connectors)

    @property
    def checkpoints_name(self) -> str:
        """Topic on the target with the translated group offsets: the given one, else as the separator names it."""
        return self.checkpoints_topic or f"{self.source_alias}{self.separator}checkpoints{self.separator}internal"

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
        """Whether it is unknown if a topic of the source is to be mirrored: it depends on a release that is unknown.

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
        suffix = self.checkpoints_name.removeprefix(self.source_alias)
        return topic.endswith(suffix) or (topic.startswith("mm2") and topic.endswith(f"{self._join}internal"))

    @property
    def _join(self) -> str:
        """What joins the parts of the checkpoints' name."""
        return self.checkpoints_name.removeprefix(self.source_alias).partition("checkpoints")[0]

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


class Limits(Document):
    """Bounds of the verdict. Durations in seconds unless named otherwise, the rest in records; None: no bound."""

    mirror_wait_seconds: fields.Seconds = 120
    deadline_seconds: fields.SomeSeconds = 900
    reread_records_max: fields.Count = 50_000
    duplicates_max: fields.Count = 0
    lag_records_max: fields.Bound = None
    lag_seconds_max: fields.Bound = None
    canary_p99_ms_max: fields.Bound = None
    allow_unknown: Annotated[
        tuple[CheckName, ...], Field(strict=False), Must(f"be a list of check names (allowed {', '.join(CHECK_NAMES)})")
    ] = ()
    isolation: Annotated[
        Literal["read_committed", "read_uncommitted"], Must("be read_committed or read_uncommitted")
    ] = "read_committed"


class Request(Document):
    """One verification: two clusters, the mirror between them, and the limits.

    `stack` is the Pulumi stack that declares the mirror, as a label of the run's report; None: unknown.
    """

    stack: fields.OptionalName = None
    source: ClusterConfig
    target: ClusterConfig
    mirror: Mirror
    limits: Limits = Limits()

    def document(self) -> dict[str, Any]:
        """Return the JSON document: the keys that were given, in the order of the fields."""
        return self.model_dump(mode="json", exclude_unset=True)

    @property
    def secrets(self) -> list[str]:
        """Values that must never be shown."""
        return self.source.secrets + self.target.secrets


def may_exist(topic: str) -> bool:
    """Whether Kafka takes a topic of this length. To ask for a longer one is an error of the whole call."""
    return len(topic) <= TOPIC_LENGTH_MAX


def _plain(pattern: str) -> str | None:
    """Return the one name that a pattern matches, None for a pattern of several. A dot counts as a dot."""
    name = re.sub(r"\\([.-])", r"\1", pattern)
    return name if re.fullmatch(r"[A-Za-z0-9._-]+", name) else None


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return java_patterns.matches(patterns, name)
