"""Reads a topic as a member of a consumer group and commits exactly the records that were processed."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ops.connection import ClientErrors, Connection, client_settings, partitions_of
from ops.demo_client import DeliveryLog, Each, nobody, record_id
from ops.errors import FINAL, OpsError

REBALANCE_S = 10.0
_REBALANCE_POLL_S = 0.2
# A member learns by polling which partitions it keeps; until then it can commit none.
_REBALANCING = frozenset(
    (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID)
)


class Committing(Protocol):
    """The part of confluent_kafka.Consumer that committing needs."""

    def poll(self, timeout: float) -> Any:
        """Return the next message or event, None if there is none in time."""

    def commit(self, *, offsets: list[TopicPartition], asynchronous: Literal[False]) -> Any:
        """Commit positions."""


@dataclass
class Positions:
    """The offset after the last record handed over, per partition: `committed` ones, and those that wait.

    A partition that another member reads now is none of this member's: committing it would set that one back.
    """

    client: Committing
    topic: str
    client_errors: ClientErrors
    committed: dict[int, int] = field(default_factory=dict)
    refused: int = 0
    _waiting: dict[int, int] = field(default_factory=dict)

    def passed(self, partition: int, next_offset: int) -> None:
        """Note that everything before `next_offset` was handed over."""
        self._waiting[partition] = next_offset

    def commit(self) -> None:
        """Commit what waits; raises OpsError if that fails. While the group rebalances it takes part, for a while."""
        end = time.monotonic() + REBALANCE_S

        def refuse(error: KafkaException) -> None:
            if error.args[0].code() in _REBALANCING and time.monotonic() < end:
                self.client.poll(_REBALANCE_POLL_S)  # a record that comes now is not handed over, so it comes again
                return
            self._waiting.clear()
            raise OpsError(
                f"cluster {self.client_errors.connection.name}: commit must succeed ({error.args[0].str()}). "
                "The records were handed over and will come again."
            ) from error

        while self._waiting:
            self._commit(self._waiting, refuse)

    def try_commit(self) -> None:
        """Commit what waits; if that fails for now it waits on. Raises OpsError for what no retry heals."""
        self._commit(self._waiting, self._bear)

    def give_back(self, partitions: Iterable[int]) -> None:
        """Commit what waits in partitions that another member is to read, and forget them."""
        self._commit({each: self._waiting[each] for each in partitions if each in self._waiting}, self._bear)
        self.lose(partitions)

    def lose(self, partitions: Iterable[int]) -> None:
        """Forget partitions that another member reads already; what waited there comes again, to that one."""
        for partition in partitions:
            self._waiting.pop(partition, None)

    def _commit(self, offsets: dict[int, int], fail: Callable[[KafkaException], None]) -> None:
        if not offsets:
            return
        found = [TopicPartition(self.topic, partition, offset) for partition, offset in sorted(offsets.items())]
        try:
            answer = self.client.commit(offsets=found, asynchronous=False)
            errors = [part.error for part in answer or () if part.error is not None]
            if errors:
                raise KafkaException(errors[0])
        except KafkaException as error:
            self.refused += 1
            fail(error)
            return
        self.committed |= offsets
        self.lose(list(offsets))

    def _bear(self, error: KafkaException) -> None:
        cause = error.args[0]
        if cause.code() in FINAL or cause.fatal():
            raise self.client_errors.error(cause) from error


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
    account: DeliveryLog = field(default_factory=DeliveryLog)
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
    """When to stop: after `maximum` records (None: no limit), at the end of when reading began, or when asked to.

    A wait of None has no end: who waits for ever is asked to stop.
    """

    maximum: int | None = None
    until_end: bool = False
    wait_s: float | None = WAIT_S
    stopped: Callable[[], bool] = lambda: False


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
        """Forget partitions that were taken away; which of them another member reads is known with an assignment."""
        self.assigned = False
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
        """Whether there is an assignment and nothing of it is left to read."""
        return self.assigned and not self._open


def connect(
    connection: Connection, topic: str, group: str, *, auto_commit: bool = False
) -> tuple[Consumer, ClientErrors]:
    """Return a consumer that has reached the cluster and has found the topic; it has not joined the group yet."""
    client_errors = ClientErrors(connection)
    consumer = Consumer(
        {
            **client_settings(connection, client_errors),
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
        partitions_of(consumer, topic, client_errors)
    except BaseException:
        consumer.close()
        raise
    return consumer, client_errors


def read(
    client: ConsumerClient,
    topic: str,
    group: str,
    goal: Goal,
    client_errors: ClientErrors,
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
    outcome, positions, ends = Read(topic, group, DeliveryLog(each)), Positions(client, topic, client_errors), _Ends()
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
                if client_errors.final():
                    raise client_errors.error()
                progress(outcome.account.total)
                continue
            if message.error() is not None:
                _handle(message, ends, client_errors)
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
    return goal.stopped() or (goal.until_end and ends.all_reached())


def _handle(message: Any, ends: _Ends, client_errors: ClientErrors) -> None:
    """Take an event that is no record: the end of a partition, or an error that ends the run."""
    error = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        ends.reached(message.partition())
    elif not error.retriable() and error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
        raise client_errors.error(error)
