"""Topics of a running cluster through Kafka's admin client: partitions, replicas, offsets, settings; deletion."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from ops.connection import Connection
from ops.errors import OpsError
from ops.reach import CONTACT_TIMEOUT_S, Troubles, client_settings

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
        self._troubles = Troubles(connection)
        self._name = connection.name
        self._admin = AdminClient(client_settings(connection, self._troubles))

    def topics(self) -> dict[str, list[Partition]]:
        """Return the partitions of every topic that the user may describe."""
        end = time.monotonic() + CONTACT_TIMEOUT_S
        while True:
            try:
                found = self._admin.list_topics(timeout=_TRY_S).topics
            except KafkaException as error:
                self._admin.poll(0)
                if self._troubles.final() or time.monotonic() >= end:
                    raise self._troubles.error(error.args[0]) from None
            else:
                return {name: [_partition(one) for one in found[name].partitions.values()] for name in sorted(found)}

    def offsets(self, topic: str, partitions: Sequence[Partition]) -> list[Partition]:
        """Return the partitions in order with their offsets."""
        places = [TopicPartition(topic, one.number) for one in partitions]
        starts, ends = (self._offsets(dict.fromkeys(places, spec)) for spec in (_EARLIEST, _LATEST))
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
        return {place.partition: self._call(future).offset for place, future in found.items()}

    def _call(self, future: Any) -> Any:
        try:
            return future.result()
        except KafkaException as error:
            raise self._troubles.error(error.args[0]) from None


def missing(name: str, topic: str, known: Iterable[str]) -> OpsError:
    """Return the error for a topic that the cluster does not show to this user."""
    shown = ", ".join(sorted(each for each in known if not each.startswith("__"))) or "none"
    return OpsError(f"cluster {name}: topic {topic} must exist and be open to the user (got none, allowed {shown}).")


def _partition(found: Any) -> Partition:
    return Partition(number=found.id, leader=found.leader, replicas=tuple(found.replicas), in_sync=tuple(found.isrs))
