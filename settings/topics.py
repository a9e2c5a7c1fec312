"""Topics: declared ones, the internal ones that a mirror makes and names itself, and the demo clients that use one.

Other topics that a mirror creates on its target are declared nowhere. Names of internal topics follow Kafka's
DefaultReplicationPolicy, by the aliases and the separator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from settings.mirrors import Mirror
from settings.model import STAYS, TRAVELS, Config, Count, Model, Resources, Scalar, Seconds, empty
from settings.names import SEPARATOR, Annotations, KafkaName, Label, SecretName, none, resource_name
from settings.verification import Image


class Topic(Model):
    """One topic with its partitions, replicas and configuration."""

    name: Annotated[KafkaName, STAYS]
    """Name of the topic in Kafka."""
    resource: Annotated[SecretName | None, STAYS] = None
    """Name of the topic's resource. Without it the topic's name as Kubernetes can write it."""
    partitions: Annotated[Count, TRAVELS]
    """Number of partitions."""
    replicas: Annotated[Count, STAYS]
    """Number of replicas, at most the number of brokers."""
    config: Annotated[Config, TRAVELS] = Field(default_factory=empty)
    """Topic options. `min.insync.replicas` must leave room for one broker to restart."""
    annotations: Annotated[Annotations, STAYS] = Field(default_factory=none)
    """Annotations of the topic's resource, such as exceptions of the policy pack."""
    ready_seconds: Annotated[Seconds, STAYS] = 300
    """How long to wait for the topic."""

    @property
    def resource_name(self) -> str:
        """Name of the custom resource: the one that is set, else the topic's as Kubernetes can write it."""
        return self.resource or resource_name(self.name)


OFFSET_PARTITIONS, STATUS_PARTITIONS = 25, 5
HEARTBEATS = "heartbeats"
_SEPARATOR_SINCE, _CHOICE_SINCE = (3, 1), (3, 6)
_SEPARATOR_ENABLED = "replication.policy.internal.topic.separator.enabled"


@dataclass(frozen=True, kw_only=True)
class InternalTopic:
    """One topic; all are compacted. `location` says which of the two clusters it is on."""

    name: str
    partitions: int = 1
    location: Literal["source", "target"] = "target"


def offset_syncs_name(alias: str, join: str) -> str:
    """Name of the topic with pairs of offsets; `alias` is that of the cluster that it is not on."""
    return f"mm2-offset-syncs{join}{alias}{join}internal"


def follow_topic(alias: str) -> str:
    """Name of the topic with what offset syncs have proven; `alias` is the source's. No mirror copies it, by its name.

    The follower makes it, not MirrorMaker.
    """
    return f"mm2-follow.{alias}.internal"


def checkpoints_topic_name(alias: str, join: str) -> str:
    """Name of the topic with translated offsets; `alias` is the source's."""
    return f"{alias}{join}checkpoints{join}internal"


def internal_topic_separator(mirror: Mirror, kafka_version: str) -> str:
    """What joins the parts of an internal topic's name; the stack's version of Kafka counts if the mirror has none."""
    major, minor, *_ = (int(part) for part in (mirror.version or kafka_version).split("."))
    enabled = str(mirror.source_connector_config.get(_SEPARATOR_ENABLED, True)).lower() != "false"
    if (major, minor) < _SEPARATOR_SINCE or ((major, minor) >= _CHOICE_SINCE and not enabled):
        return SEPARATOR
    return mirror.separator


def possible_separators(of_mirror: str) -> tuple[str, ...]:
    """What may join the parts of names where only a mirror's separator is known, and not its version of Kafka."""
    return tuple(dict.fromkeys((of_mirror, SEPARATOR)))


def offset_syncs_topic(mirror: Mirror, kafka_version: str) -> InternalTopic:
    """Pairs of source and target offsets; the topic is named after the other cluster than the one that it is on."""
    other = mirror.source.alias if mirror.offset_syncs_location == "target" else mirror.target.alias
    name = offset_syncs_name(other, internal_topic_separator(mirror, kafka_version))
    return InternalTopic(name=name, location=mirror.offset_syncs_location)


def checkpoints_topic(mirror: Mirror, kafka_version: str) -> InternalTopic:
    """Translated offsets of the groups."""
    return InternalTopic(
        name=checkpoints_topic_name(mirror.source.alias, internal_topic_separator(mirror, kafka_version))
    )


def internal_topics_of(mirror: Mirror, kafka_version: str) -> tuple[InternalTopic, ...]:
    """Every topic that the mirror needs before it can start where clusters do not create topics by themselves."""
    storage = mirror.storage_topics
    return (
        InternalTopic(name=storage["config"]),
        InternalTopic(name=storage["offset"], partitions=OFFSET_PARTITIONS),
        InternalTopic(name=storage["status"], partitions=STATUS_PARTITIONS),
        offset_syncs_topic(mirror, kafka_version),
        checkpoints_topic(mirror, kafka_version),
        *((InternalTopic(name=HEARTBEATS),) if mirror.heartbeats else ()),
    )


_REQUESTS: Mapping[str, Scalar] = MappingProxyType({"cpu": "50m", "memory": "128Mi"})
_LIMITS: Mapping[str, Scalar] = MappingProxyType({"memory": "128Mi"})
Replicas = Annotated[int, Field(ge=0, le=100)]


def _small() -> Resources:
    return Resources(requests=_REQUESTS, limits=_LIMITS)


class DemoClients(Model):
    """Two Deployments beside the stack's cluster, each of which may have no pod at all.

    They log in as `user`, or by what `secret` holds, so that whoever writes it decides which cluster they use.
    """

    image: Image
    """Image of the clients, built from `images/demo-clients`, with a digest or a tag that does not move."""
    image_pull_secrets: tuple[SecretName, ...] = ()
    """Secrets with which the image is pulled."""
    user: Label | None = None
    """User of this stack as which they log in. Not with `secret`."""
    secret: SecretName | None = None
    """Secret beside the cluster that binds applications to Kafka, with the keys `bootstrapServers`, `securityProtocol`
    and those of a login. Not with `user`.
    """
    topic: KafkaName
    """Topic that they write and read."""
    kind: Literal["items", "products"] = "items"
    """Inventory movements, or products."""
    group: KafkaName = "demo-clients"
    """Consumer group of all consumers."""
    rate: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Records a second that each producer sends."""
    producers: Replicas = 1
    """How many pods produce. 0 stops them."""
    consumers: Replicas = 1
    """How many pods consume. 0 stops them."""
    print_records: bool = True
    """Whether the consumers' log shows each record."""
    resources: Resources = Field(default_factory=_small)
    """CPU and memory of each pod. Without them 50m of CPU and 128Mi of memory."""
