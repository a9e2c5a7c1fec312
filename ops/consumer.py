"""Read a topic as a member of a consumer group and commit exactly what was handed over."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ops.accounting import Account, Each, nobody
from ops.connection import Connection
from ops.events import record_id
from ops.positions import Committing, Positions
from ops.reach import Troubles, client_settings, partitions_of

WAIT_S = 30.0
COMMIT_S = 5.0  # between two commits of a reader without end, as Kafka's own clients have it
# What was fetched ahead must fit into a small pod.
_PREFETCH_KIB = 16_384
_POLL_S = 0.5
# Short, so that a killed reader does not keep its partitions for long; librdkafka allows no less than the broker's 6 s.
_SESSION_TIMEOUT_MS = 10_000


class ConsumerClient(Committing, Protocol):
    """The part of confluent_kafka.Consumer that reading needs."""

    def subscribe(
        self,
        topics: list[str],
        *,
        on_assign: Callable[[Any, list[TopicPartition]], None],
        on_revoke: Callable[[Any, list[TopicPartition]], None],
        on_lost: Callable[[Any, list[TopicPartition]], None],
    ) -> None:
        """Join the group."""

    def get_watermark_offsets(self, partition: TopicPartition, *, timeout: float) -> tuple[int, int]:
        """Return a partition's low and high offsets."""

    def close(self) -> None:
        """Leave the group."""


@dataclass
class Read:
    """The outcome of a run. `complete` is false when the wait ended before the goal was reached."""

    topic: str
    group: str
    account: Account = field(default_factory=Account)
    complete: bool = False
    committed: dict[int, int] = field(default_factory=dict)
    refused_commits: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return {
            "topic": self.topic,
            "group": self.group,
            "records": self.account.total,
            "complete": self.complete,
            "partitions": self.account.as_json(),
            "committed": {str(partition): offset for partition, offset in sorted(self.committed.items())},
            "refusedCommits": self.refused_commits,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, kw_only=True)
class Goal:
    """When to stop: after `maximum` records (None: no limit), at the end that was the end when reading began, or told.

    A wait of None has no end: who waits for ever is told when to stop.
    """

    maximum: int | None = None
    until_end: bool = False
    wait_s: float | None = WAIT_S
    told: Callable[[], bool] = lambda: False


class _Ends:
    """Which of the assigned partitions have been read up to the end they had when they were assigned."""

    def __init__(self) -> None:
        self._open: dict[int, int | None] = {}
        self.assigned = False

    def assign(self, client: ConsumerClient, partitions: list[TopicPartition]) -> None:
        """Note where each partition ends now; a partition without that answer ends where the broker says so."""
        self.assigned = True
        for part in partitions:
            try:
                self._open[part.partition] = client.get_watermark_offsets(part, timeout=10)[1]
            except KafkaException:
                self._open[part.partition] = None

    def revoke(self, partitions: list[TopicPartition]) -> None:
        """Forget partitions that another member reads now."""
        for part in partitions:
            self._open.pop(part.partition, None)

    def passed(self, partition: int, next_offset: int) -> None:
        """Note that everything before `next_offset` was read."""
        end = self._open.get(partition)
        if end is not None and next_offset >= end:
            self._open.pop(partition)

    def reached(self, partition: int) -> None:
        """Note that the broker has nothing more in a partition."""
        self._open.pop(partition, None)

    def all_reached(self) -> bool:
        """Whether a first assignment came and nothing of it is left to read."""
        return self.assigned and not self._open


def connect(connection: Connection, topic: str, group: str, *, auto_commit: bool = False) -> tuple[Consumer, Troubles]:
    """Return a consumer that has reached the cluster and has found the topic; it has not joined the group yet."""
    troubles = Troubles(connection)
    consumer = Consumer(
        {
            **client_settings(connection, troubles),
            "group.id": group,
            "enable.auto.commit": auto_commit,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": _PREFETCH_KIB,
            "session.timeout.ms": _SESSION_TIMEOUT_MS,
        }
    )
    try:
        partitions_of(consumer, topic, troubles)
    except BaseException:
        consumer.close()
        raise
    return consumer, troubles


def read(
    client: ConsumerClient,
    topic: str,
    group: str,
    goal: Goal,
    troubles: Troubles,
    *,
    commit: bool = True,
    commit_s: float | None = None,
    store: Callable[[Any], None] | None = None,
    hand_over: Callable[[Any], None] = lambda _: None,
    each: Each = nobody,
    progress: Callable[[int], None] = lambda _: None,
) -> Read:
    """Hand over records until the goal or until nothing came for `goal.wait_s` seconds; leave the group at the end.

    With `commit` the offsets after the last record handed over are committed in the end, also after an interruption,
    before partitions go to another member, and every `commit_s` seconds if that is given. `store` is for automatic
    commits: it marks one record as handed over. `hand_over` sees each record first; if it raises, that record is
    neither counted nor committed. `each` sees every record as it is counted; `progress` gets the number of records so
    far.
    """
    outcome, positions, ends = Read(topic, group, Account(each)), Positions(client, topic, troubles), _Ends()
    started = last_record = last_commit = time.monotonic()

    def revoked(partitions: list[TopicPartition]) -> None:
        positions.give_back([part.partition for part in partitions])
        ends.revoke(partitions)

    def lost(partitions: list[TopicPartition]) -> None:
        positions.lose([part.partition for part in partitions])
        ends.revoke(partitions)

    client.subscribe(
        [topic],
        on_assign=lambda _, partitions: ends.assign(client, partitions),
        on_revoke=lambda _, partitions: revoked(partitions),
        on_lost=lambda _, partitions: lost(partitions),
    )
    try:
        while True:
            if _reached(goal, outcome.account.total, ends):
                outcome.complete = True
                break
            now = time.monotonic()
            if goal.wait_s is not None and now - last_record > goal.wait_s:
                break
            if commit_s is not None and now - last_commit >= commit_s:
                positions.try_commit()
                last_commit = now
            message = client.poll(_POLL_S)
            if message is None:
                if troubles.final():
                    raise troubles.error()
                progress(outcome.account.total)
                continue
            if message.error() is not None:
                _handle(message, ends, troubles)
                continue
            hand_over(message)
            outcome.account.add(message.partition(), message.offset(), record_id(message.value()))
            if store is not None:
                store(message)
            if commit:
                positions.passed(message.partition(), message.offset() + 1)
            ends.passed(message.partition(), message.offset() + 1)
            progress(outcome.account.total)
            last_record = time.monotonic()
    finally:
        try:
            positions.commit()
        finally:
            client.close()
        outcome.committed, outcome.refused_commits = positions.committed, positions.refused
        outcome.seconds = time.monotonic() - started
    return outcome


def _reached(goal: Goal, records: int, ends: _Ends) -> bool:
    if goal.maximum is not None and records >= goal.maximum:
        return True
    return goal.told() or (goal.until_end and ends.all_reached())


def _handle(message: Any, ends: _Ends, troubles: Troubles) -> None:
    """Take an event that is no record: the end of a partition, or an error that ends the run."""
    error = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        ends.reached(message.partition())
    elif not error.retriable() and error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
        raise troubles.error(error)
