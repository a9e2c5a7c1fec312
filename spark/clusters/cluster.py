"""Metadata of one cluster through librdkafka: topics, offsets, groups, small internal topics.

Never reads the records that are compared: Spark does.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from spark.errors import ClusterError
from spark.request.model import Side

CONNECT_DEADLINE_S = 20.0
CALL_DEADLINE_S = 20.0
Partition = tuple[str, int]
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the package has no types here
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the package has no types here


@dataclass(frozen=True)
class Topic:
    """Partitions with their number of replicas, and whether the topic is compacted."""

    name: str
    replicas: Mapping[int, int]
    compacted: bool


class Cluster:
    """Connection to one side; `connect` fails within CONNECT_DEADLINE_S with one message that says what to do."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._errors: list[KafkaError] = []
        quiet = logging.getLogger("spark.librdkafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        self._quiet = quiet
        self._config: dict[str, Any] = {**side.client_config, "socket.timeout.ms": 15_000}
        self._admin: AdminClient | None = None

    def connect(self) -> None:
        """Prove that the cluster answers this user; raises ClusterError."""
        try:
            config = {**self._config, "error_cb": self._errors.append}
            self._admin = AdminClient(config, logger=self._quiet)
        except KafkaException as error:
            self._refuse(f"the client configuration is refused: {_text(error)}", "Correct client_config.")
        deadline = time.monotonic() + CONNECT_DEADLINE_S
        while True:
            try:
                self.admin.list_topics(timeout=1.5)
            except KafkaException as error:
                self.admin.poll(0)
                self._judge(final=time.monotonic() >= deadline, last=error)
            else:
                return

    @property
    def admin(self) -> AdminClient:
        """The connected client."""
        if self._admin is None:
            raise ClusterError(f"{self.side.role} {self.side.alias}: is not connected")
        return self._admin

    def topics(self, wanted: Callable[[str], bool]) -> dict[str, Topic]:
        """Return the topics whose name is wanted and that this user may describe."""
        found = self._call("list topics", lambda: self.admin.list_topics(timeout=CALL_DEADLINE_S)).topics
        names = sorted(name for name in found if wanted(name) and found[name].error is None)
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        policies: dict[str, str] = {}
        for resource, future in self.admin.describe_configs(resources, request_timeout=CALL_DEADLINE_S).items():
            described = self._call(f"describe the configuration of topic {resource.name}", future.result)
            policies[resource.name] = str(described["cleanup.policy"].value)
        return {
            name: Topic(
                name=name,
                replicas={number: len(part.replicas) for number, part in found[name].partitions.items()},
                compacted="compact" in policies[name],
            )
            for name in names
        }

    def starts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the first offset that each log still holds (its log start)."""
        return self._offsets(partitions, _EARLIEST, "read_uncommitted")

    def ends(self, partitions: Iterable[Partition], isolation: str) -> dict[Partition, int]:
        """Return the offset after the last one readable: last stable offset for read_committed."""
        return self._offsets(partitions, _LATEST, isolation)

    def _offsets(self, partitions: Iterable[Partition], spec: OffsetSpec, isolation: str) -> dict[Partition, int]:
        wanted = {TopicPartition(topic, number): spec for topic, number in partitions}
        if not wanted:
            return {}
        level = IsolationLevel.READ_COMMITTED if isolation == "read_committed" else IsolationLevel.READ_UNCOMMITTED
        futures = self.admin.list_offsets(wanted, isolation_level=level, request_timeout=CALL_DEADLINE_S)
        return {
            (part.topic, part.partition): self._call(f"list offsets of topic {part.topic}", future.result).offset
            for part, future in futures.items()
        }

    def group_states(self) -> dict[str, str]:
        """Return the state of each consumer group, such as EMPTY or STABLE."""
        future = self.admin.list_consumer_groups(request_timeout=CALL_DEADLINE_S)
        listed = self._call("list consumer groups", future.result)
        return {group.group_id: group.state.name for group in listed.valid}

    def group_offsets(self, groups: Iterable[str]) -> dict[str, dict[Partition, int]]:
        """Return the committed offset of each group and partition; a group without commits maps to nothing."""
        found: dict[str, dict[Partition, int]] = {}
        for group in groups:
            asked = [ConsumerGroupTopicPartitions(group)]
            futures = self.admin.list_consumer_group_offsets(asked, request_timeout=CALL_DEADLINE_S)
            answer = self._call(f"read the offsets of group {group}", futures[group].result)
            found[group] = {
                (part.topic, part.partition): part.offset
                for part in answer.topic_partitions
                if part.error is None and part.offset >= 0
            }
        return found

    def tail(self, topic: str) -> "Tail":
        """Return a reader of a small topic that starts at its first record."""
        return Tail(self, topic)

    def has_records(self, partition: Partition, start: int, end: int, isolation: str) -> bool:
        """Whether any data record lies in [start, end): offsets may all belong to transaction markers."""
        consumer = self.consumer(isolation)
        try:
            consumer.assign([TopicPartition(*partition, start)])
            deadline = time.monotonic() + CALL_DEADLINE_S
            while time.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    return int(message.offset() or 0) < end
                if consumer.position([TopicPartition(*partition)])[0].offset >= end:
                    return False
            return True
        finally:
            consumer.close()

    def consumer(self, isolation: str, config: Mapping[str, Any] | None = None) -> Consumer:
        """Return a consumer that joins no group and commits nothing; `config` adds properties."""
        extra = {
            "group.id": "rt-inventory-verification",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "error_cb": lambda error: None,
        }
        return Consumer({**self._config, **extra, **(config or {})}, logger=self._quiet)

    def _call(self, what: str, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except KafkaException as error:
            code = error.args[0].code() if error.args and isinstance(error.args[0], KafkaError) else None
            denied = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)
            if code in (*denied, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
                self._refuse(f"the user may not {what}", "Grant the user the missing ACL.")
            self._refuse(f"cannot {what}: {_text(error)}", "Check that the brokers are up.")

    def _judge(self, *, final: bool, last: KafkaException) -> None:
        codes = {error.code(): error for error in self._errors}
        if KafkaError._AUTHENTICATION in codes:
            self._refuse("authentication failed", "Check sasl.username, sasl.password and sasl.mechanism.")
        if KafkaError._SSL in codes:
            hint = "Check ssl.ca.pem (the cluster CA certificate) and that the broker certificate names this host."
            self._refuse("the TLS connection failed: certificate verification or handshake", hint)
        if KafkaError._RESOLVE in codes and final:
            self._refuse("the host name cannot be resolved", "Check bootstrap.servers.")
        if final:
            hint = "Check bootstrap.servers, security.protocol and that the brokers are up."
            self._refuse(f"cannot be reached within {CONNECT_DEADLINE_S:.0f} s ({_text(last)})", hint)

    def _refuse(self, what: str, fix: str) -> NoReturn:
        servers = self.side.client_config.get("bootstrap.servers", "")
        message = f"{self.side.role} {self.side.alias} ({servers}, user {self.side.user}): {what}. {fix}"
        raise ClusterError(message) from None


class Tail:
    """Reads a small topic from its first record and goes on from there at each call."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        metadata = cluster.topics(lambda name: name == topic)
        self._partitions = [(topic, number) for number in metadata[topic].replicas] if topic in metadata else []
        self._consumer: Consumer | None = None
        if self._partitions:
            starts = cluster.starts(self._partitions)
            self._consumer = cluster.consumer("read_committed")
            self._consumer.assign([TopicPartition(*part, starts[part]) for part in self._partitions])
            self._next = dict(starts)

    @property
    def exists(self) -> bool:
        """Whether the topic is there and readable."""
        return self._consumer is not None

    def read(self, deadline_s: float = 15.0) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield key and value of what was added up to now; raises ClusterError after the deadline."""
        if self._consumer is None:
            return
        ends = self._cluster.ends(self._partitions, "read_committed")
        deadline = time.monotonic() + deadline_s
        while any(self._next[part] < ends[part] for part in self._partitions):
            for message in self._consumer.consume(1000, timeout=0.2):
                if message.error() is None:
                    yield _bytes(message.key()), _bytes(message.value())
            for place in self._consumer.position([TopicPartition(*part) for part in self._partitions]):
                if place.offset >= 0:
                    self._next[place.topic, place.partition] = place.offset
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{self._cluster.side.role} {self._cluster.side.alias}: topic {self._topic} could not be read "
                    f"within {deadline_s:.0f} s. Check that user {self._cluster.side.user} has READ on it."
                )

    def close(self) -> None:
        """Give the connection back."""
        if self._consumer is not None:
            self._consumer.close()


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _text(error: KafkaException) -> str:
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)
