"""Topics of a running cluster through Kafka's admin client, and the role that a stack's outputs give each."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, OffsetSpec, ResourceType  # type: ignore[attr-defined]  # the package does not list what it re-exports

from contract.verification_request import Mirror
from ops.connection import CONTACT_TIMEOUT_S, ClientErrors, Connection, client_settings
from ops.errors import OpsError
from ops.pulumi.stack import typed_outputs
from ops.recovery import mirror_context

_TRY_S = 2.0
_CALL_S = 20.0
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the package has no types here
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the package has no types here


@dataclass(frozen=True, kw_only=True)
class Partition:
    """One topic partition: its brokers, its log start offset and its log end offset (None if not known)."""

    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None = None
    end: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the partition for a document."""
        return {
            "partition": self.number,
            "leader": self.leader,
            "replicas": [*self.replicas],
            "inSyncReplicas": [*self.in_sync],
            "logStartOffset": self.start,
            "logEndOffset": self.end,
        }


class TopicAdmin:
    """A cluster's topics as one user. Every method raises OpsError with the reason if Kafka refuses."""

    def __init__(self, connection: Connection) -> None:
        self._client_errors = ClientErrors(connection)
        self._name = connection.name
        self._admin = AdminClient(client_settings(connection, self._client_errors))

    def topics(self) -> dict[str, list[Partition]]:
        """Return the partitions of every topic that the user may describe."""
        end = time.monotonic() + CONTACT_TIMEOUT_S
        while True:
            try:
                found = self._admin.list_topics(timeout=_TRY_S).topics
            except KafkaException as error:
                self._admin.poll(0)
                if self._client_errors.final() or time.monotonic() >= end:
                    raise self._client_errors.error(error.args[0]) from None
            else:
                return {name: [_partition(one) for one in found[name].partitions.values()] for name in sorted(found)}

    def offsets(self, topic: str, partitions: Sequence[Partition]) -> list[Partition]:
        """Return the partitions in order with their offsets."""
        topic_partitions = [TopicPartition(topic, one.number) for one in partitions]
        starts, ends = (self._offsets(dict.fromkeys(topic_partitions, spec)) for spec in (_EARLIEST, _LATEST))
        return [
            Partition(
                number=one.number,
                leader=one.leader,
                replicas=one.replicas,
                in_sync=one.in_sync,
                start=starts[one.number],
                end=ends[one.number],
            )
            for one in sorted(partitions, key=lambda each: each.number)
        ]

    def settings(self, topic: str) -> dict[str, str]:
        """Return what is set for the topic itself; sensitive values are left out."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._call(self._admin.describe_configs([resource], request_timeout=_CALL_S)[resource])
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {
            name: str(entry.value)
            for name, entry in sorted(entries.items())
            if entry.source == own and not entry.is_sensitive
        }

    def delete(self, topics: Iterable[str]) -> dict[str, str]:
        """Delete topics with all their records; return why Kafka refused, by topic."""
        refused: dict[str, str] = {}
        for topic, future in self._admin.delete_topics([*topics], request_timeout=_CALL_S).items():
            try:
                future.result()
            except KafkaException as error:
                refused[topic] = str(error.args[0].str())
        return refused

    def _offsets(self, wanted: Mapping[TopicPartition, OffsetSpec]) -> dict[int, int]:
        found = self._admin.list_offsets(cast("dict[TopicPartition, OffsetSpec]", wanted), request_timeout=_CALL_S)
        return {tp.partition: self._call(future).offset for tp, future in found.items()}

    def _call(self, future: Any) -> Any:
        try:
            return future.result()
        except KafkaException as error:
            raise self._client_errors.error(error.args[0]) from None


def missing(name: str, topic: str, known: Iterable[str]) -> OpsError:
    """Return the error for a topic that the cluster does not show to this user."""
    shown = ", ".join(sorted(each for each in known if not each.startswith("__"))) or "none"
    return OpsError(f"cluster {name}: topic {topic} must exist and be open to the user (got none, allowed {shown}).")


def _partition(found: Any) -> Partition:
    return Partition(number=found.id, leader=found.leader, replicas=tuple(found.replicas), in_sync=tuple(found.isrs))


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
    """What a stack's outputs name: the topics that it declares, and the mirrors that write to its cluster."""

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
    declared = typed_outputs(stack, outputs)
    own = declared.cluster.name
    known = [
        mirror_context.of_outputs(stack, outputs, name, environment) for name in sorted(declared.verification_requests)
    ]
    # A mirror of the other direction, as during a failback, writes to the other cluster.
    mirrors = tuple(one.request.mirror for one in known if one.outputs.target_cluster in (None, own))
    return Inventory(declared=frozenset(declared.topics), mirrors=mirrors)


def _writes(mirror: Mirror, topic: str) -> bool:
    """Whether the mirror copies a topic of the source under this name."""
    prefix = mirror.target_topic("")
    return topic.startswith(prefix) and mirror.carries_topic(topic.removeprefix(prefix))
