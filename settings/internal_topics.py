"""Topics that a mirror keeps for itself: Connect's three, the offset syncs, the checkpoints, the heartbeats.

Names follow Kafka's ReplicationPolicy (KIP-690: since Kafka 3.1 the separator is part of them), partitions those of
Kafka Connect's and MirrorMaker's own defaults.
"""

from dataclasses import dataclass
from typing import Literal

from settings.mirrors import SEPARATOR, Mirror

OFFSET_PARTITIONS, STATUS_PARTITIONS = 25, 5
HEARTBEATS = "heartbeats"
_SEPARATOR_SINCE = (3, 1)


@dataclass(frozen=True, kw_only=True)
class InternalTopic:
    """One topic; all are compacted. `location` says which of the two clusters it is on."""

    name: str
    partitions: int = 1
    location: Literal["source", "target"] = "target"


def separator(mirror: Mirror, kafka_version: str) -> str:
    """What joins the parts of an internal topic's name."""
    major, minor, *_ = (int(part) for part in kafka_version.split("."))
    return mirror.separator if (major, minor) >= _SEPARATOR_SINCE else SEPARATOR


def offset_syncs(mirror: Mirror, kafka_version: str) -> InternalTopic:
    """Pairs of source and target offsets; the topic is named after the other cluster than the one that it is on."""
    other = mirror.source.alias if mirror.offset_syncs_location == "target" else mirror.target.alias
    join = separator(mirror, kafka_version)
    return InternalTopic(name=f"mm2-offset-syncs{join}{other}{join}internal", location=mirror.offset_syncs_location)


def checkpoints(mirror: Mirror, kafka_version: str) -> InternalTopic:
    """Translated offsets of the groups."""
    join = separator(mirror, kafka_version)
    return InternalTopic(name=f"{mirror.source.alias}{join}checkpoints{join}internal")


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
