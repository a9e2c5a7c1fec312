"""Metadata of one cluster through librdkafka: topics, offsets, groups, small internal topics.

Makes the consumers that others read records with. Does not read the records that are compared: `spark/` does.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
)
from confluent_kafka import (
    TopicPartition as ClientTopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclOperation,
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from contract.verification_request import ClusterConfig, may_exist
from kafka import connectivity, group_commits
from kafka.errors import DENIED, ClusterError, Refusals, code_of, passes, text_of
from kafka.raw_consumer import RawConsumer
from kafka.topic_partition import TopicPartition, topic_id

CONNECT_DEADLINE_S = 20.0
CALL_DEADLINE_S = 20.0
LEADER_DEADLINE_S = 10.0
RETRY_S = 0.5
READER_SILENT_S = 15.0
"""After which a reader of an internal topic gives up if nothing comes."""
READER_WITHIN_S = 600.0
"""How long reading an internal topic may take in all: compaction may be days behind."""
READER_WAIT_S = 0.02  # of a call for records, unless there are as many as it asks for
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the package has no types here
_NEEDED = {
    AclOperation.DESCRIBE: "Describe",
    AclOperation.READ: "Read",
    AclOperation.DESCRIBE_CONFIGS: "DescribeConfigs",
}
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the package has no types here


@dataclass(frozen=True)
class Topic:
    """Partitions with their number of replicas, whether it is compacted, and its id: another one if created again."""

    name: str
    replicas: Mapping[int, int]
    compacted: bool
    id: str | None = None


class Cluster:
    """Connection to one cluster; `connect` fails within its deadline with one message and its remedy."""

    call_within_s = CALL_DEADLINE_S  # of those calls that a follower makes

    def __init__(self, side: ClusterConfig) -> None:
        self.side = side
        self.refusals = Refusals(side)
        self.reports_rights = True
        """False once a topic was described without any right, which only brokers before Kafka 2.3 do (KIP-430)."""
        self._given_up = threading.Event()
        self._reached: set[connectivity.Broker] = set()
        quiet = logging.getLogger("kafka.librdkafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        self._quiet = quiet
        self._config: dict[str, Any] = {**side.client_config, "socket.timeout.ms": 15_000}
        self._admin: AdminClient | None = None

    def connect(self, within_s: float = CONNECT_DEADLINE_S) -> None:
        """Prove that the cluster answers this user; raises ClusterError, and keeps the client that there was."""
        self.refusals.begin()
        try:
            config = {**self._config, "error_cb": self.refusals.record}
            admin = AdminClient(config, logger=self._quiet)
        except KafkaException as error:
            self.refusals.reject(f"the client configuration is refused: {text_of(error)}", "Correct client_config.")
        deadline = time.monotonic() + within_s
        while True:
            try:
                admin.list_topics(timeout=1.5)
            except KafkaException as error:
                admin.poll(0)
                over = self._given_up.is_set() or time.monotonic() >= deadline
                self.refusals.connection(final=over, last=error, within_s=within_s)
            else:
                self._admin = admin
                return

    def give_up(self) -> None:
        """Let `connect` end soon: the run is over before its time."""
        self._given_up.set()

    @property
    def admin(self) -> AdminClient:
        """The connected client."""
        if self._admin is None:
            raise ClusterError(f"{self.side.role} {self.side.alias}: is not connected")
        return self._admin

    def topics(self, wanted: Callable[[str], bool], named: Iterable[str] = ()) -> dict[str, Topic]:
        """Return the topics whose name is wanted; raises one DeniedError with all rights on them that the user lacks.

        A topic that the user may not even describe is reported only when it is `named`: Kafka lists no such topics.
        """
        found, names = self._reach(wanted)
        ids = self._require_rights(sorted({*names, *named}))
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        policies: dict[str, str] = {}
        for resource, future in self.admin.describe_configs(resources, request_timeout=CALL_DEADLINE_S).items():
            right = ("DescribeConfigs", f"topic {resource.name}")
            described = self._call(f"describe the configuration of topic {resource.name}", future.result, right)
            policies[resource.name] = str(described["cleanup.policy"].value)
        return {
            name: Topic(
                name=name,
                replicas={number: len(part.replicas) for number, part in found[name].partitions.items()},
                compacted="compact" in policies[name],
                id=ids.get(name),
            )
            for name in names
        }

    def names(self, wanted: Callable[[str], bool]) -> list[str]:
        """Return the sorted names of the wanted topics that this user is shown: Describe is enough."""
        seen = self._call("list topics", lambda: self.admin.list_topics(timeout=self.call_within_s))
        return sorted(name for name, topic in seen.topics.items() if wanted(name) and topic.error is None)

    def _reach(self, wanted: Callable[[str], bool]) -> tuple[Mapping[str, Any], list[str]]:
        """Return all topics, and the names of the wanted ones; raises ClusterError when a leader cannot be reached."""
        deadline = time.monotonic() + LEADER_DEADLINE_S
        while True:
            seen = self._call("list topics", lambda: self.admin.list_topics(timeout=self.call_within_s))
            names = sorted(name for name, topic in seen.topics.items() if wanted(name) and topic.error is None)
            lost = connectivity.without_reachable_leader(connectivity.leaders(seen, names), self._reached)
            if not lost:
                return seen.topics, names
            if time.monotonic() >= deadline:
                self.refusals.leaders(lost)
            time.sleep(RETRY_S)

    def _require_rights(self, names: list[str]) -> dict[str, str | None]:
        """Return the ids of those that exist; raises a DeniedError that names every right on them that is lacking."""
        names = [name for name in names if may_exist(name)]
        if not names:
            return {}
        missing: list[tuple[str, str]] = []
        ids: dict[str, str | None] = {}
        asked = TopicCollection(names)
        futures = self.admin.describe_topics(asked, include_authorized_operations=True, request_timeout=CALL_DEADLINE_S)
        for name, future in futures.items():
            try:
                described = future.result()
            except KafkaException as error:
                if code_of(error) in DENIED:  # who may read may describe
                    missing += [("Describe", f"topic {name}"), ("Read", f"topic {name}")]
                elif code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    self.refusals.call(f"describe topic {name}", error, None)
                continue
            self.reports_rights &= bool(described.authorized_operations)
            granted, ids[name] = described.authorized_operations or _NEEDED, topic_id(described)
            missing += [(word, f"topic {name}") for right, word in _NEEDED.items() if right not in granted]
        if missing:
            self.refusals.deny(missing)
        return ids

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log start offset of each partition."""
        return self.offsets(partitions, _EARLIEST, "read_uncommitted")

    def ends(self, partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        """Return the high watermark of each partition, with read_committed its last stable offset."""
        return self.offsets(partitions, _LATEST, isolation)

    def offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, isolation: str
    ) -> dict[TopicPartition, int]:
        """Return the offset of `spec` (earliest, latest, a time) by partition; -1 for a time after all records."""
        left = list(partitions)
        level = IsolationLevel.READ_COMMITTED if isolation == "read_committed" else IsolationLevel.READ_UNCOMMITTED
        found: dict[TopicPartition, int] = {}
        deadline = time.monotonic() + self.call_within_s
        while left:
            wanted = {ClientTopicPartition(topic, number): spec for topic, number in left}
            rest = max(1.0, deadline - time.monotonic())
            left = []
            for part, future in self.admin.list_offsets(wanted, isolation_level=level, request_timeout=rest).items():
                try:
                    found[TopicPartition(part.topic, part.partition)] = future.result().offset
                except KafkaException as error:
                    if not passes(error):
                        right = ("Describe", f"topic {part.topic}")
                        self.refusals.call(f"list offsets of topic {part.topic}", error, right)
                    left.append(TopicPartition(part.topic, part.partition))
            if left and time.monotonic() >= deadline:
                self._no_leader(left)
            if left:
                time.sleep(RETRY_S)  # a leader that moves is found again with the next answer
        return found

    def _no_leader(self, partitions: list[TopicPartition]) -> NoReturn:
        """Raise which brokers keep these partitions from being read."""
        seen = self._call("list topics", lambda: self.admin.list_topics(timeout=self.call_within_s))
        led = connectivity.leaders(seen, {topic for topic, _ in partitions})
        self.refusals.leaders({tp: led.get(tp) for tp in partitions})

    def group_states(self, unlisted: dict[str, str] | None = None, *, leaders: bool = True) -> dict[str, str]:
        """Return the state of each consumer group, such as EMPTY or STABLE; arguments as of `group_commits.listed`."""
        return group_commits.states(self, group_commits.listed(self, unlisted, leaders=leaders))

    def hidden_groups(self, groups: Iterable[str]) -> set[str]:
        """Return those of the groups that this user may not describe, so that they are not listed if they exist."""
        described = self._call(
            "describe the cluster",
            self.admin.describe_cluster(include_authorized_operations=True, request_timeout=CALL_DEADLINE_S).result,
        )
        if AclOperation.DESCRIBE in (described.authorized_operations or []):
            return set()
        futures = self.admin.describe_consumer_groups(list(groups), request_timeout=CALL_DEADLINE_S)
        failed = {group: future.exception() for group, future in futures.items()}
        return {
            group for group, error in failed.items() if isinstance(error, KafkaException) and code_of(error) in DENIED
        }

    @property
    def unseen_groups(self) -> str:
        """The warning for a user to whom the cluster may not show some groups."""
        return self.refusals.denial([("Describe", "the cluster")], "or Describe on the mirrored groups")

    def group_offsets(
        self, groups: Iterable[str], unread: dict[str, ClusterError] | None = None
    ) -> dict[str, dict[TopicPartition, int]]:
        """Return the committed offset of each group and partition; a group without commits maps to nothing.

        A request takes one group, `IN_FLIGHT` of them at the same time. A group whose offsets cannot be read is left
        out, with the error in `unread`; without `unread`, or if nothing answers any more, the error is raised.
        """
        once: dict[TopicPartition, TopicPartition] = {}
        return {
            group: {once.setdefault(tp, tp): at.offset for tp, at in committed}
            for group, committed in group_commits.answers(self, groups, unread)
        }

    def topic_reader(self, topic: str) -> "TopicReader":
        """Return a reader of a small topic that starts at its first record."""
        return TopicReader(self, topic)

    def has_records(self, partition: TopicPartition, start: int, end: int, isolation: str) -> bool:
        """Whether any data record lies in [start, end): offsets may all belong to transaction markers."""
        consumer = self.consumer(isolation)
        try:
            consumer.assign([ClientTopicPartition(*partition, start)])
            deadline = time.monotonic() + CALL_DEADLINE_S
            while time.monotonic() < deadline:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    return int(message.offset() or 0) < end
                if consumer.position([ClientTopicPartition(*partition)])[0].offset >= end:
                    return False
            return True
        finally:
            consumer.close()

    def consumer(self, isolation: str, config: Mapping[str, Any] | None = None) -> Consumer:
        """Return a consumer that joins no group and commits nothing; `config` adds properties."""
        extra = {"error_cb": lambda error: None, **(config or {})}
        return Consumer({**self._reading(isolation), **extra}, logger=self._quiet)

    def raw_consumer(self, isolation: str, config: Mapping[str, Any] | None = None) -> RawConsumer:
        """Return a consumer of the same kind that hands out the names of headers as bytes, whatever they are."""
        return RawConsumer({**self._reading(isolation), **(config or {})})

    def _reading(self, isolation: str) -> dict[str, Any]:
        return self._config | {
            "group.id": "rt-inventory-verification",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            # How long the client fetches nothing once its queue is full: 1 s by default, in which a reader waits.
            "fetch.queue.backoff.ms": 10,
        }

    def producer(self, config: Mapping[str, Any]) -> Producer:
        """Return a producer that needs no right but Write on what it writes to."""
        extra = {"acks": "all", "enable.idempotence": False, "error_cb": lambda error: None}
        return Producer({**self._config, **extra, **config}, logger=self._quiet)

    def _call(self, what: str, action: Callable[[], Any], right: tuple[str, str] | None = None) -> Any:
        try:
            return action()
        except KafkaException as error:
            self.refusals.call(what, error, right)


class TopicReader:
    """Reads a small topic from its first record and goes on from there at each call."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        metadata = cluster.topics(lambda name: name == topic)
        self._partitions = (
            [TopicPartition(topic, number) for number in metadata[topic].replicas] if topic in metadata else []
        )
        self._consumer: Consumer | None = None
        if self._partitions:
            starts = cluster.starts(self._partitions)
            self._consumer = cluster.consumer("read_committed")
            self._consumer.assign([ClientTopicPartition(*part, starts[part]) for part in self._partitions])
            self._next = dict(starts)

    @property
    def exists(self) -> bool:
        """Whether the topic is there and readable."""
        return self._consumer is not None

    def start_at(self, offset: int) -> None:
        """Begin with this offset in each partition instead of the log's start, if the log has not passed it."""
        if self._consumer is not None:
            self._next = {part: max(offset, start) for part, start in self._next.items()}
            self._consumer.assign([ClientTopicPartition(*part, at) for part, at in self._next.items()])

    def read(self, within_s: float = READER_WITHIN_S) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield key and value of what was added up to now; raises as `with_timestamps` does."""
        return ((key, value) for key, value, _ in self.with_timestamps(within_s))

    def with_timestamps(
        self, within_s: float = READER_WITHIN_S
    ) -> Iterator[tuple[bytes | None, bytes | None, int | None]]:
        """Yield the same with the timestamp (ms) of each record, None where it has none.

        Raises DeniedError if the user may not read the topic, and ClusterError if no record comes for
        `READER_SILENT_S`, or if not all has come within the time. The next call then goes on from there.
        """
        for message in self.messages(within_s):
            kind, stamp = message.timestamp()
            written = int(stamp) if kind != TIMESTAMP_NOT_AVAILABLE else None
            yield _bytes(message.key()), _bytes(message.value()), written

    def messages(self, within_s: float = READER_WITHIN_S) -> Iterator[Message]:
        """Yield the records themselves; raises the same."""
        if self._consumer is None:
            return
        ends = self._cluster.ends(self._partitions, "read_committed")
        began = came = time.monotonic()
        while any(self._next[part] < ends[part] for part in self._partitions):
            now = time.monotonic()
            if now - came > READER_SILENT_S:
                self._too_slow(f"nothing came for {READER_SILENT_S:.0f} s: see that its partitions have leaders", ends)
            if now - began > within_s:
                self._too_slow(f"it is not read to its end within {within_s:.0f} s, though records come", ends)
            for message in self._consumer.consume(1000, timeout=READER_WAIT_S):
                if (error := message.error()) is None:
                    yield message
                elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:  # it needs no right on a group
                    self._cluster.refusals.deny([("Read", f"topic {self._topic}")])
            before = dict(self._next)
            for tp in self._consumer.position([ClientTopicPartition(*part) for part in self._partitions]):
                if tp.offset >= 0:
                    self._next[TopicPartition(tp.topic, tp.partition)] = tp.offset
            came = time.monotonic() if self._next != before else came  # also past markers of transactions

    def _too_slow(self, why: str, ends: Mapping[TopicPartition, int]) -> NoReturn:
        left = sum(max(0, end - self._next[part]) for part, end in ends.items())
        side = self._cluster.side
        raise ClusterError(
            f"{side.role} {side.alias}: topic {self._topic} must be readable ({why}; {left} offsets left)."
        )

    def close(self) -> None:
        """Give the connection back."""
        if self._consumer is not None:
            self._consumer.close()


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
