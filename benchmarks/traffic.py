"""Traffic of known content: what the verification job is judged by.

Producers keep what the brokers acknowledged in a `Ledger`, groups read and commit, and a plain consumer reads both
sides.
"""

import itertools
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition

from benchmarks import tables
from benchmarks.clusters import BenchmarkError
from benchmarks.truth import Entry, Ledger, TopicPartition, digest

ORDERS, PAYMENTS, SIGNALS = "soak.orders", "soak.payments", "soak.signals"
PARTITIONS = {ORDERS: 4, PAYMENTS: 2, SIGNALS: 1}
GROUPS = {"soak-billing": (ORDERS, PAYMENTS), "soak-audit": (ORDERS, SIGNALS)}
ORDERS_PER_SECOND, SIGNALS_PER_SECOND, PAYMENTS_PER_TRANSACTION = 150, 20, 25
ABORTED_OF = 4  # one transaction of so many is aborted
_COMMIT_EVERY_S, _LEAVES_WITHIN_S = 2.0, 30.0
_READ_WITHIN_S, _FEW_S = 60.0, 0.1
_TRANSACTION_MS = 300_000  # no fault lasts so long
Client = dict[str, Any]
Headers = list[tuple[str, str | bytes | None]]


@dataclass
class Traffic:
    """The producers and groups of the source, each in a thread, until stopped. `problems` are those of threads.

    Brokers may take `answer_s` to answer, while a fault keeps them from it.
    """

    client: Client
    answer_s: float = 30.0
    ledger: Ledger = field(default_factory=Ledger)
    problems: list[str] = field(default_factory=list)
    topics: Mapping[str, int] = field(default_factory=lambda: dict(PARTITIONS))
    """Number of partitions of each topic at the beginning."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(GROUPS))
    share_groups: tuple[str, ...] = ()
    """Groups of the same topics that have no positions to carry (KIP-932)."""
    batches: Mapping[str, Any] = field(default_factory=lambda: {"linger.ms": 20})
    """How the producers of single records collect them."""
    fetches: Mapping[str, Any] = field(default_factory=dict)
    """How members collect what they fetch."""
    read: dict[str, dict[TopicPartition, set[int]]] = field(init=False)
    """Offsets that the members of each group were given. All have one from the beginning: of two members that each make
    the one of their group at the same time, what the first is given would be kept in one that nobody looks at."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.read = {name: defaultdict(set) for name in (*self.groups, *self.share_groups)}

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Let it flow; at the end everything sent is acknowledged. What has not ended in time is a problem."""
        threads = [
            threading.Thread(target=self._guarded, args=job, name=f"{job[0].__name__}{job[1:]}", daemon=True)
            for job in self.jobs()
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            end = time.monotonic() + self.answer_s
            for thread in threads:
                thread.join(max(0.0, end - time.monotonic()))
            if late := [thread.name for thread in threads if thread.is_alive()]:
                self.problems.append(f"threads: must end within {self.answer_s:.0f} s (left {', '.join(late)})")

    def jobs(self) -> list[tuple[Any, ...]]:
        """The function of each thread, and its arguments."""
        return [(self._orders,), (self._signals,), (self._payments,), *((self._group, name) for name in GROUPS)]

    @property
    def group_patterns(self) -> list[str]:
        """What the mirror carries of groups: those with positions, by name."""
        return list(self.groups)

    def require_no_problems(self) -> None:
        """Raise BenchmarkError with the first problems if there were any."""
        if self.problems:
            raise BenchmarkError(f"traffic: must flow without errors (got {'; '.join(self.problems[:5])}).")

    def _guarded(self, job: Callable[..., None], *arguments: str) -> None:
        try:
            job(*arguments)
        except Exception as error:  # a thread's end must not pass for silence
            self.problems.append(f"{job.__name__.strip('_')}: {error!r}")

    def _orders(self) -> None:
        """Unique records, in turn on all partitions; one key in 500, one value in 50 is null."""
        producer = self.producer()
        for number in self._paced(ORDERS_PER_SECOND):
            key = None if number % 500 == 7 else b"order-%d" % (number % 1000)
            value = None if number % 50 == 9 else json.dumps({"order": number, "text": "x" * (number % 300)}).encode()
            headers: Headers = [("number", b"%d" % number)]
            if number % 3:
                headers.append(("empty", None))
            self._send(producer, (ORDERS, number % PARTITIONS[ORDERS]), key, value, headers, _now_ms())
        self._settled(producer)

    def _signals(self) -> None:
        """Identical records, several within the same second of their timestamps."""
        producer = self.producer()
        for number in self._paced(SIGNALS_PER_SECOND):
            self._send(producer, (SIGNALS, 0), None, b"on" if number % 2 else b"", [], _now_ms() // 1000 * 1000)
        self._settled(producer)

    def _payments(self) -> None:
        """Transactions over both partitions; of some the records are on the broker and then aborted."""
        producer = Producer(
            {**self.client, "transactional.id": "soak-payments", "transaction.timeout.ms": _TRANSACTION_MS}
        )
        producer.init_transactions(self.answer_s)
        numbers = itertools.count()
        dice = random.Random(6)  # noqa: S311 - made-up payments, not a secret
        for turn in self._paced(2):
            sent: list[tuple[TopicPartition, Entry]] = []
            producer.begin_transaction()
            for number in itertools.islice(numbers, PAYMENTS_PER_TRANSACTION):
                value = json.dumps({"payment": number, "cents": dice.randrange(10**6)}).encode()
                tp = (PAYMENTS, number % PARTITIONS[PAYMENTS])
                self._send(producer, tp, b"payer-%d" % (number % 97), value, [], _now_ms(), into=sent)
            # What is not on the broker yet would be dropped by an abort.
            self._settled(producer)
            committed = turn % ABORTED_OF != ABORTED_OF - 1
            end = producer.commit_transaction if committed else producer.abort_transaction
            end(self.answer_s)
            for tp, (offset, content) in sent:
                self.ledger.add(tp, offset, content, committed=committed)

    def _send(
        self,
        producer: Producer,
        tp: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        into: list[tuple[TopicPartition, Entry]] | None = None,
    ) -> None:
        """Send one record and keep it once it is acknowledged: in the ledger, or in `into` until a transaction ends.

        The partition -1 is one that the producer chooses by the key.
        """
        content = digest(key, value, headers, timestamp)

        def keep(error: Any, message: Any) -> None:
            where = tp[0], message.partition()
            if error is not None:
                self.refused(where, error, content)
            elif into is None:
                self.ledger.add(where, message.offset(), content)
            else:
                into.append((where, (message.offset(), content)))

        producer.produce(
            tp[0], partition=tp[1], key=key, value=value, headers=headers, timestamp=timestamp, on_delivery=keep
        )
        producer.poll(0)

    def refused(self, where: TopicPartition, error: Any, content: bytes) -> None:
        """Note that a record with this digest was not acknowledged."""
        self.problems.append(f"{where[0]}-{where[1]}: {error}")

    def _settled(self, producer: Producer) -> None:
        if left := producer.flush(self.answer_s):
            raise BenchmarkError(
                f"producer: every record must be acknowledged within {self.answer_s:.0f} s (left {left})."
            )

    def producer(self, **config: Any) -> Producer:
        """A producer that repeats nothing, without transactions."""
        return Producer({**self.client, "enable.idempotence": True, **self.batches, **config})

    def _group(self, name: str) -> None:
        """Read as a member of a group and commit now and then."""
        with self.member(name) as member:
            while not self._stop.is_set():
                member.take()

    @contextmanager
    def member(self, name: str, **config: Any) -> Iterator["Member"]:
        """A member of a group that is subscribed to its topics."""
        more = {"group.id": name, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = Consumer({**self.client, **self.fetches, **more, "isolation.level": "read_committed", **config})
        try:
            consumer.subscribe(list(self.groups[name]))
            yield Member(consumer, self.read[name])
        finally:
            self.leave(name, consumer.close)

    def leave(self, name: str, close: Callable[[], None]) -> None:
        """Close a member's client within some time, or leave it behind, as that of an application that is killed.

        Where its broker was killed with a commit that it had received, the client waits for the answer for ever, and so
        does its close (librdkafka's issue 3740).
        """

        def closes() -> None:
            with suppress(KafkaException):  # of a broker that does not answer now
                close()

        closing = threading.Thread(target=self._guarded, args=(closes,), daemon=True)
        closing.start()
        closing.join(_LEAVES_WITHIN_S)
        if closing.is_alive():
            tables.log(f"{name}: a member has not left within {_LEAVES_WITHIN_S:.0f} s, and is left behind")

    def _paced(self, per_second: float) -> Iterator[int]:
        """Numbers from 0, so many a second, a few at a time, until stopped; what is late is made up for."""
        began = time.monotonic()
        for number in itertools.count():
            early_s = began + number / per_second - time.monotonic()
            if self._stop.wait(max(early_s, _FEW_S) if early_s > 0 else 0):
                return
            yield number


@dataclass
class Member:
    """A member of a group, which keeps the offsets that it was given."""

    consumer: Consumer
    read: dict[TopicPartition, set[int]]
    _committed_at: float = field(default_factory=time.monotonic)

    def take(self, seconds: float = 0.5) -> None:
        """Read for so long at most, and commit if it is time."""
        messages: list[Any] = [one for one in self.consumer.consume(500, timeout=seconds) if one.error() is None]
        for message in messages:
            self.read[message.topic(), message.partition()].add(message.offset())
        if messages and time.monotonic() - self._committed_at >= _COMMIT_EVERY_S:
            with suppress(KafkaException):  # of a broker that does not answer now: later, with what came since
                self.consumer.commit(asynchronous=True)  # one that waits for its answer may never return
            self._committed_at = time.monotonic()


class Reading:
    """A plain consumer's reading of all partitions of one side, which goes on where it stopped."""

    def __init__(self, client: Client, isolation: str = "read_committed") -> None:
        more = {"group.id": "soak-reading", "enable.auto.commit": False, "isolation.level": isolation}
        self._client = {**client, **more, "auto.offset.reset": "earliest", "log_level": 0}
        self._consumer: Consumer | None = None
        self._held: dict[TopicPartition, list[Entry]] = {}
        self._next: dict[TopicPartition, int] = {}
        self.stamps: dict[bytes, int] = {}
        """Timestamp in ms of each content that was read."""

    def everything(self, tp: TopicPartition) -> list[Entry]:
        """Return the data records that the log has now; raises BenchmarkError."""
        end = self._connected().get_watermark_offsets(ClientTopicPartition(*tp), timeout=_READ_WITHIN_S)[1]
        return self.up_to(tp, end)

    def up_to(self, tp: TopicPartition, end: int) -> list[Entry]:
        """Return the data records below an offset that the log has reached; raises BenchmarkError."""
        held = self._held.setdefault(tp, [])
        if self._next.get(tp, 0) < end:
            self._read(tp, end, held)
        return [entry for entry in held if entry[0] < end]

    def forget(self, topic: str) -> None:
        """Read a topic from its beginning the next time."""
        for kept in (self._held, self._next):
            for tp in [one for one in kept if one[0] == topic]:
                del kept[tp]
        self.disconnect()

    def disconnect(self) -> None:
        """Close the client: that of the next reading knows topics and partitions as they are then."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _connected(self) -> Consumer:
        """The client of all partitions: one for each would connect to the broker twice for each of them."""
        if self._consumer is None:
            self._consumer = Consumer(self._client)
        return self._consumer

    def _read(self, tp: TopicPartition, end: int, held: list[Entry]) -> None:
        consumer, until = self._connected(), time.monotonic() + _READ_WITHIN_S
        try:
            consumer.assign([ClientTopicPartition(*tp, self._next.get(tp, 0))])
            while self._next.get(tp, 0) < end:
                if time.monotonic() > until:
                    at = self._next.get(tp, 0)
                    raise BenchmarkError(f"{tp[0]}-{tp[1]}: must be read up to offset {end} (got to {at}).")
                messages: list[Any] = consumer.consume(1000, timeout=0.2)
                for message in messages:
                    if message.error() is None:
                        parts = (message.key(), message.value(), message.headers() or [], message.timestamp()[1])
                        content = digest(*parts)
                        self.stamps[content] = parts[-1]
                        held.append((message.offset(), content))
                position = consumer.position([ClientTopicPartition(*tp)])[0].offset
                if position >= 0:
                    self._next[tp] = position
        finally:
            consumer.unassign()


def _now_ms() -> int:
    return int(time.time() * 1000)
