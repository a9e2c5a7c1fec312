"""The role of a topic of a site by the stack's outputs, and which topics are not deleted.

Owns both; asks nothing of a cluster.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from contract.verification_request import Mirror
from ops.pulumi.stack import typed_outputs
from ops.recovery import mirror_context

# Kafka's own, Connect's, MirrorMaker's and schema registries' by their usual names, for what another stack declares.
_INTERNAL = re.compile(
    r"__.*|\..*|.*[.-]internal|mm2-offset-syncs.*|(.*\.)?heartbeats|_schemas|kafkasql-journal"
    r"|(.*[._-])?(mm2|mirror-?maker-?2|connect)([._-].*)?[._-](configs|offsets|status)",
    re.IGNORECASE,
)


class Role(StrEnum):
    """Role of a topic in the stack."""

    DECLARED = "declared"
    MIRRORED = "mirrored"
    INTERNAL = "internal"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """What the role of a topic depends on: topics that the stack declares, and mirrors that write to its cluster.

    `in_use` names the mirrors whose target is active: applications work with the remote topics.
    """

    declared: frozenset[str] = frozenset()
    mirrors: tuple[Mirror, ...] = ()
    in_use: frozenset[str] = frozenset()

    def role(self, topic: str) -> Role:
        """Return the role of a topic of the stack's cluster."""
        if self._internal(topic):
            return Role.INTERNAL
        if self.mirror_of(topic) is not None:
            return Role.MIRRORED
        return Role.DECLARED if topic in self.declared else Role.OTHER

    def mirror_of(self, topic: str) -> str | None:
        """Return the mirror that writes the topic, None if none does."""
        return next((mirror.name for mirror in self.mirrors if _writes(mirror, topic)), None)

    def failed_over(self, topics: Iterable[str]) -> dict[str, list[str]]:
        """Return those of the topics that applications use by themselves after `failover --topic`, by their mirror."""
        chosen = list(topics)
        found = {mirror.name: [one for one in chosen if _has_failed_over(mirror, one)] for mirror in self.mirrors}
        return {mirror: names for mirror, names in found.items() if names}

    def _internal(self, topic: str) -> bool:
        own = {kept.name for mirror in self.mirrors for kept in mirror.internal_topics}
        storage = {mirror.offset_storage_topic for mirror in self.mirrors}
        return topic in own | storage or _INTERNAL.fullmatch(topic) is not None


def inventory_of(stack: str, outputs: Mapping[str, Any], environment: Mapping[str, str]) -> Inventory:
    """Return the inventory of a stack from its outputs.

    Args:
        stack: name of the stack.
        outputs: its outputs, secrets included.
        environment: variables that the mirrors' verification requests name.

    Raises:
        OpsError: a mirror's request cannot be read.
    """
    declared = typed_outputs(stack, outputs)
    own = declared.cluster.name
    contexts = [
        mirror_context.of_outputs(stack, outputs, name, environment) for name in sorted(declared.verification_requests)
    ]
    # A mirror of the other direction, as during a failback, writes to the other cluster.
    mirrors = tuple(one.request.mirror for one in contexts if one.outputs.target_cluster in (None, own))
    in_use = frozenset(one.mirror for one in contexts if one.active == "target")
    return Inventory(declared=frozenset(declared.topics), mirrors=mirrors, in_use=in_use)


def _writes(mirror: Mirror, topic: str) -> bool:
    """Whether the mirror copies a topic of the source under this name, or did until that failed over by itself."""
    prefix = mirror.target_topic("")
    copies = topic.startswith(prefix) and mirror.carries_topic(topic.removeprefix(prefix))
    return copies or _has_failed_over(mirror, topic)


def _has_failed_over(mirror: Mirror, topic: str) -> bool:
    """Whether a topic of the stack's cluster has failed over, or is about to, while the mirror copies the rest."""
    return topic in map(mirror.target_topic, mirror.failed_over)


def refusals(topics: Sequence[str], inventory: Inventory, stack: str, *, mirrored: bool) -> list[str]:
    """Why topics are not deleted; an empty list if all may be."""
    failed_over = inventory.failed_over(topics)
    moved = {topic for names in failed_over.values() for topic in names}
    refused = [
        reason
        for topic in topics
        if topic not in moved and (reason := _refusal(topic, inventory, stack, mirrored=mirrored))
    ]
    refused += [
        f"topics {', '.join(names)}: must not be in use (they fail over from mirror {mirror} alone, or have done so): "
        "the source may lack their records. Finish that failover, fail over the rest of the mirror, then fail back "
        "(docs/topic-failover.md): afterwards --mirrored deletes them."
        for mirror, names in failed_over.items()
    ]
    return refused


def _refusal(topic: str, inventory: Inventory, stack: str, *, mirrored: bool) -> str | None:
    """Why a topic is not deleted, None if it may be."""
    role = inventory.role(topic)
    if role is Role.INTERNAL:
        return (
            f"topic {topic}: must not be internal to Kafka, Connect or MirrorMaker (got an internal topic). Without it "
            "positions are lost and records are copied again. Leave it."
        )
    if topic in inventory.declared:
        return (
            f"topic {topic}: must not be declared (stack {stack} declares it, and its operator would make it again). "
            f"Take it out of rt-inventory:topics in Pulumi.{stack}.yaml and run `pulumi up -s {stack}`."
        )
    if role is Role.MIRRORED and (mirror := inventory.mirror_of(topic)) in inventory.in_use:
        return (
            f"topic {topic}: must not be in use (the target of mirror {mirror} is active): the source may lack its "
            "records. To begin again from this side: docs/runbook.md#mirror-everything-again."
        )
    if role is Role.MIRRORED and not mirrored:
        return (
            f"topic {topic}: must not be written by a mirror (got mirror {inventory.mirror_of(topic)}). Applications "
            "need it after a failover, and while the original is there the mirror makes it again without the records "
            "that it has passed. If that is meant: --mirrored."
        )
    return None
