"""A real mirror under traffic with groups at known distances, and what each reads again when the source is gone."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # the package does not list what it re-exports

from benchmarks.clusters import SOURCE, Clusters
from benchmarks.follow import mirror
from ops.recovery import mirror_context
from ops.recovery.mirror_context import MirrorContext

PLAIN, TRANSACTIONAL = "plain", "transactional"
PARTITIONS, PREFILLED = 2, 2500
COMMIT_EVERY_S = 0.1
Position = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass
class Traffic:
    """Records with a number for each, and groups that follow so many records behind; nothing is read by them.

    All records have the timestamp `written_ms`: every third is equal, and none is so old that retention deletes it.
    `offsets` are the source offsets of each partition's records in their order, `commits` the time and the number of
    records in front of each offset that a group has committed.
    """

    client: dict[str, Any]
    groups: dict[str, int]
    per_second: int = 200
    written_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    offsets: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    commits: dict[Position, list[tuple[float, int]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _ending: threading.Event = field(default_factory=threading.Event)

    def prefill(self) -> None:
        """Write what the groups have read long ago, transactions of changing length among it."""
        for topic in (PLAIN, TRANSACTIONAL):
            producer = self._producer(topic)
            for start in range(0, PREFILLED, 50):
                self._write(producer, topic, range(start, start + 50))

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Write and commit while the block runs."""
        threads = [
            threading.Thread(target=self._produce, args=(topic,), daemon=True) for topic in (PLAIN, TRANSACTIONAL)
        ]
        threads.append(threading.Thread(target=self._commit, daemon=True))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ending.set()
            for thread in threads:
                thread.join(15)

    def end(self) -> None:
        """Stop to write and commit; what is on its way is not waited for."""
        self._ending.set()

    def _producer(self, topic: str) -> Producer:
        config = {**self.client, "linger.ms": 5, "log_level": 0}
        if topic == TRANSACTIONAL:
            producer = Producer({**config, "transactional.id": f"{topic}-{time.monotonic_ns()}"})
            producer.init_transactions(30)
            return producer
        return Producer(config)

    def _write(self, producer: Producer, topic: str, numbers: Sequence[int]) -> None:
        if topic == TRANSACTIONAL:
            producer.begin_transaction()
        for number in numbers:
            for partition in range(PARTITIONS):
                value = f"{number}" if number % 3 else "equal"
                producer.produce(
                    topic, value=value, partition=partition, timestamp=self.written_ms, on_delivery=self._written
                )
        producer.flush(20)
        if topic == TRANSACTIONAL:
            producer.commit_transaction(20)

    def _written(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.offsets.setdefault((message.topic(), message.partition()), []).append(message.offset())

    def _produce(self, topic: str) -> None:
        producer, number = self._producer(topic), PREFILLED
        chance = random.Random(topic)  # noqa: S311 - lengths of transactions, no secret
        try:
            while not self._ending.is_set():
                batch = chance.randint(1, 40)
                self._write(producer, topic, range(number, number + batch))
                number += batch
                self._ending.wait(batch / self.per_second)
        except (KafkaException, BufferError) as error:
            if not self._ending.is_set():
                self.problems.append(f"producer of {topic}: {error}")

    def _commit(self) -> None:
        consumers = {
            group: Consumer({**self.client, "group.id": group, "enable.auto.commit": False, "log_level": 0})
            for group in self.groups
        }
        try:
            while not self._ending.is_set():
                for group, behind in self.groups.items():
                    reached = {tp: max(0, len(offsets) - behind) for tp, offsets in list(self.offsets.items())}
                    wanted = [
                        TopicPartition(topic, number, self.offsets[topic, number][at - 1] + 1)
                        for (topic, number), at in reached.items()
                        if at
                    ]
                    consumers[group].commit(offsets=wanted, asynchronous=False)
                    for (topic, number), at in reached.items():
                        self.commits.setdefault((group, topic, number), []).append((time.monotonic(), at))
                self._ending.wait(COMMIT_EVERY_S)
        except KafkaException as error:
            if not self._ending.is_set():
                self.problems.append(f"commits: {error}")


@dataclass(frozen=True)
class Cost:
    """What a group would do in a partition: records that it skips, that it reads again, and that it read lately."""

    position: Position
    skipped: int
    repeated: int
    lately: int


def cost(position: Position, at: int, traffic: Traffic, copied: Sequence[int], read_at: float, lately_s: float) -> Cost:
    """Judge a target offset by the records: `copied` are the target offsets of the partition's records in order.

    `read_at` is when the source ended; `lately` are the records that the group has read in so many seconds before.
    """
    rows = traffic.commits[position]
    read = max(number for when, number in rows if when <= read_at)
    before = max((number for when, number in rows if when <= read_at - lately_s), default=0)
    ahead = sum(offset < at for offset in copied)
    return Cost(position, max(0, ahead - read), max(0, min(read, len(copied)) - ahead), read - before)


def values(client: dict[str, Any], topic: str, partition: int, within_s: float = 30.0) -> list[tuple[int, bytes]]:
    """Offset and value of each record of a partition."""
    config = {**client, "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer, found = Consumer(config), list[tuple[int, bytes]]()
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    until = time.monotonic() + within_s
    try:
        while time.monotonic() < until:
            for message in consumer.consume(500, timeout=0.2):
                if (error := message.error()) is None:
                    found.append((message.offset() or 0, message.value() or b""))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
    finally:
        consumer.close()
    raise AssertionError(f"{topic}-{partition}: must be read to its end within {within_s:.0f} s")


def start_mirror(clusters: Clusters, groups: Sequence[str]) -> None:
    """Make the topics and the connectors; MirrorMaker translates, but sets no group."""
    admin = clusters.admin(SOURCE)
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (PLAIN, TRANSACTIONAL)]).values():
        future.result(timeout=30)
    mirror.start_mirror(clusters, (PLAIN, TRANSACTIONAL), groups)


def known(clusters: Clusters) -> MirrorContext:
    """The mirror as a stack's outputs describe it."""
    outputs = mirror.outputs(clusters, (PLAIN, TRANSACTIONAL), (".*",))
    return mirror_context.of_outputs("stg", outputs, "mm2", {})
