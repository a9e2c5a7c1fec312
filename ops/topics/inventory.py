"""What a topic is to a stack: declared, a copy that a mirror writes, somebody's internal one, or none of these.

A stack's outputs name its topics and its mirrors. Owns who may not lose a topic; asks no cluster.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ops.recovery import pair
from spark.request.model import Mirror

# Kafka's own, Connect's, MirrorMaker's and schema registries' by their usual names, for what another stack declares.
_INTERNAL = re.compile(
    r"__.*|\..*|.*[.-]internal|mm2-offset-syncs.*|(.*\.)?heartbeats|_schemas|kafkasql-journal"
    r"|(.*[._-])?(mm2|mirror-?maker-?2|connect)([._-].*)?[._-](configs|offsets|status)",
    re.IGNORECASE,
)


class Role(StrEnum):
    """What a topic is to the stack."""

    DECLARED = "declared"
    MIRRORED = "mirrored"
    INTERNAL = "internal"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """Names by which a stack's topics are told apart. `mirrors` write to the stack's cluster."""

    declared: frozenset[str] = frozenset()
    mirrors: tuple[Mirror, ...] = ()

    def role(self, topic: str) -> Role:
        """Return what a topic of the stack's cluster is."""
        if self._internal(topic):
            return Role.INTERNAL
        if self.mirror_of(topic) is not None:
            return Role.MIRRORED
        return Role.DECLARED if topic in self.declared else Role.OTHER

    def mirror_of(self, topic: str) -> str | None:
        """Return the mirror that writes the topic, None if none does."""
        return next((mirror.name for mirror in self.mirrors if _writes(mirror, topic)), None)

    def _internal(self, topic: str) -> bool:
        own = {kept.name for mirror in self.mirrors for kept in mirror.internal_topics}
        storage = {mirror.offset_storage_topic for mirror in self.mirrors}
        return topic in own | storage or _INTERNAL.fullmatch(topic) is not None


def of_outputs(stack: str, outputs: Mapping[str, Any], environment: Mapping[str, str]) -> Inventory:
    """Return the inventory of a stack; raises OpsError if a mirror's request cannot be read."""
    own = (outputs.get("cluster") or {}).get("name")
    names = sorted(outputs.get("verificationRequests") or {})
    known = [pair.of_outputs(stack, outputs, name, environment) for name in names]
    # A mirror of the other direction, as during a failback, writes to the other cluster.
    mirrors = tuple(one.request.mirror for one in known if one.facts.get("targetCluster", own) == own)
    return Inventory(declared=frozenset(map(str, outputs.get("topics") or ())), mirrors=mirrors)


def _writes(mirror: Mirror, topic: str) -> bool:
    """Whether the mirror copies a topic of the source under this name."""
    prefix = mirror.target_topic("")
    return topic.startswith(prefix) and mirror.carries_topic(topic.removeprefix(prefix))
