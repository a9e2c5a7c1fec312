"""Topics that a mirror keeps for itself: Connect's three, the offset syncs, the checkpoints, the heartbeats.

The one place that names them: mirrors, rights, the verification's request and hints ask here. Names follow Kafka's
DefaultReplicationPolicy, from which IdentityReplicationPolicy inherits them: since Kafka 3.1 (KIP-690) the separator is
part of them, since 3.6 (KIP-949) `replication.policy.internal.topic.separator.enabled: false` takes it out again.
Partitions are those of Kafka Connect's and MirrorMaker's own defaults.
"""

from dataclasses import dataclass
from typing import Literal

from settings.mirrors import Mirror
from settings.names import SEPARATOR

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


def checkpoints_name(alias: str, join: str) -> str:
    """Name of the topic with translated offsets; `alias` is the source's."""
    return f"{alias}{join}checkpoints{join}internal"


def separator(mirror: Mirror, kafka_version: str) -> str:
    """What joins the parts of an internal topic's name; the stack's version of Kafka counts if the mirror has none."""
    major, minor, *_ = (int(part) for part in (mirror.version or kafka_version).split("."))
    enabled = str(mirror.source_connector_config.get(_SEPARATOR_ENABLED, True)).lower() != "false"
    if (major, minor) < _SEPARATOR_SINCE or ((major, minor) >= _CHOICE_SINCE and not enabled):
        return SEPARATOR
    return mirror.separator


def possible_separators(of_mirror: str) -> tuple[str, ...]:
    """What may join the parts of names where only a mirror's separator is known, and not its version of Kafka."""
    return tuple(dict.fromkeys((of_mirror, SEPARATOR)))


def offset_syncs(mirror: Mirror, kafka_version: str) -> InternalTopic:
    """Pairs of source and target offsets; the topic is named after the other cluster than the one that it is on."""
    other = mirror.source.alias if mirror.offset_syncs_location == "target" else mirror.target.alias
    name = offset_syncs_name(other, separator(mirror, kafka_version))
    return InternalTopic(name=name, location=mirror.offset_syncs_location)


def checkpoints(mirror: Mirror, kafka_version: str) -> InternalTopic:
    """Translated offsets of the groups."""
    return InternalTopic(name=checkpoints_name(mirror.source.alias, separator(mirror, kafka_version)))


def all_of(mirror: Mirror, kafka_version: str) -> tuple[InternalTopic, ...]:
    """Every topic that the mirror needs before it can start where clusters do not create topics by themselves."""
    storage = mirror.storage_topics
    return (
        InternalTopic(name=storage["config"]),
        InternalTopic(name=storage["offset"], partitions=OFFSET_PARTITIONS),
        InternalTopic(name=storage["status"], partitions=STATUS_PARTITIONS),
        offset_syncs(mirror, kafka_version),
        checkpoints(mirror, kafka_version),
        *((InternalTopic(name=HEARTBEATS),) if mirror.heartbeats else ()),
    )
