"""Traffic of known content, and what is true of its mirror: the independent judge of the verification job.

Producers keep what the brokers acknowledged in a `Ledger`, groups read and commit, and a plain consumer reads both
sides. The judgement shares no code with the verification job. It is linear in the number of records, one partition at a
time.
"""

import itertools
import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition

from benchmarks.clusters import BenchmarkError

TopicPartition = tuple[str, int]  # not that of `kafka/`, with which the verification counts
Entry = tuple[int, bytes]  # offset and digest


def digest(
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, str | bytes | None]],
    timestamp_ms: int,
) -> bytes:
    """Return a digest of 16 bytes, in which null differs from empty and one header from two."""
    return blake2b(repr((key, value, list(headers), timestamp_ms)).encode(), digest_size=16).digest()


@dataclass
class Ledger:
    """The brokers' answers to the producers: the offset of each record, and whether its transaction was committed."""

    committed: dict[TopicPartition, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    aborted: dict[TopicPartition, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    unplaced: dict[TopicPartition, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """Acknowledged without an offset: the answer was lost, and the broker has known the record when it came again."""

    def add(self, tp: TopicPartition, offset: int | None, content: bytes, *, committed: bool = True) -> None:
        """Keep one acknowledged record whose transaction, if it had one, has ended."""
        if offset is not None or not committed:
            (self.committed if committed else self.aborted)[tp].append((-1 if offset is None else offset, content))
        else:
            self.unplaced[tp].append(content)

    def place(self, tp: TopicPartition, log: Callable[[], Sequence[Entry]]) -> int:
        """Give records without an offset one at which the log has them; return how many it does not have.

        `log` is read after it is known what was acknowledged.
        """
        waiting, self.unplaced[tp] = self.unplaced[tp], []
        if not waiting:
            return 0
        there = log()
        known = {offset for offset, _ in self.committed[tp]}
        free: dict[bytes, list[int]] = defaultdict(list)
        for offset, content in there:
            if offset not in known:
                free[content].append(offset)
        for content in waiting:
            if free[content]:
                self.committed[tp].append((free[content].pop(0), content))
            else:
                self.unplaced[tp].append(content)
        return len(self.unplaced[tp])

    @property
    def records(self) -> int:
        """Number of committed records."""
        return sum(len(entries) for entries in self.committed.values())


@dataclass(frozen=True)
class Truth:
    """What one run of the job must find in one partition."""

    source_records: int
    target_records: int
    found: Mapping[str, int]


@dataclass(frozen=True)
class Position:
    """The position of one group: exact range of target offsets, and what the synced offset skips and repeats."""

    lowest: int | None
    highest: int | None
    skipped: int
    repeated: int


def judge(committed: Sequence[Entry], aborted: Sequence[Entry], target: Sequence[Entry], cut: int) -> Truth:
    """Return what is true of one partition up to the cut.

    The n-th of several identical records is the n-th image, and their order is not judged. What the target holds behind
    the image of the cut, and is no image, is out of scope.
    """
    everything = sorted(committed)
    here, there = _offsets(everything), _offsets(target)
    images = [
        (got, sent)
        for content, offsets in here.items()
        for sent, got in zip(offsets, there.get(content, []), strict=False)
    ]
    end = min((got for got, sent in images if sent >= cut), default=None)
    has, are = {sent for _, sent in images}, {got for got, _ in images}
    dropped = Counter(content for _, content in aborted)
    found = Counter(lost=sum(offset < cut and offset not in has for offset, _ in everything))
    for offset, content in target:
        if offset in are or (end is not None and offset >= end):
            continue
        if dropped[content]:
            dropped[content] -= content in here
            found["aborted"] += 1
        else:
            found["doubled" if content in here else "foreign"] += 1
    alone = {offsets[0] for offsets in here.values() if len(offsets) == 1}
    furthest = -1
    for _, offset in sorted(image for image in images if image[1] in alone):
        found["out_of_order"] += offset < min(furthest, cut)
        furthest = max(furthest, offset)
    counts = {kind: number for kind, number in sorted(found.items()) if number}
    return Truth(sum(offset < cut for offset, _ in everything), len(target), counts)


def position(committed: Sequence[Entry], target: Sequence[Entry], cut: int, group_offset: int, synced: int) -> Position:
    """Return the position on the target of a group with this committed source offset.

    What was acknowledged after the cut counts as far as it has arrived.
    """
    here, there = _offsets(sorted(committed)), _offsets(target)
    first, last, ends, copied = [], [], [], []
    skipped = repeated = 0
    for content, every in here.items():
        images = there.get(content, [])
        if not images:
            continue
        before = sum(offset < cut for offset in every)
        offsets = every[: max(before, len(images))]
        read = sum(offset < group_offset for offset in offsets)
        unread = len(offsets) - read
        ahead = sum(offset >= synced for offset in images)
        skipped += max(min(unread, len(images)) - ahead, 0)
        repeated += max(ahead - unread, 0) if read else 0
        if unread:
            last.append(images[max(len(images) - unread, 0)])
        if unread and len(images) > read:
            first.append(images[read])
        ends.append(images[min(len(offsets), len(images)) - 1] + 1)
        copied.append(images[-1] + 1)
    lowest = min(first) if first else max(ends, default=None)
    highest = min(last) if last else max(copied, default=None)
    return Position(lowest, highest, skipped, repeated)


def _offsets(entries: Iterable[Entry]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for offset, content in entries:
        found[content].append(offset)
    return dict(found)


ORDERS, PAYMENTS, SIGNALS = "soak.orders", "soak.payments", "soak.signals"
PARTITIONS = {ORDERS: 4, PAYMENTS: 2, SIGNALS: 1}
GROUPS = {"soak-billing": (ORDERS, PAYMENTS), "soak-audit": (ORDERS, SIGNALS)}
ORDERS_PER_SECOND, SIGNALS_PER_SECOND, PAYMENTS_PER_TRANSACTION = 150, 20, 25
ABORTED_OF = 4  # one transaction of so many is aborted
_COMMIT_EVERY_S = 2.0
_READ_WITHIN_S = 60.0
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
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Let it flow; at the end everything sent is acknowledged."""
        jobs = [self._orders, self._signals, self._payments]
        threads = [threading.Thread(target=self._guarded, args=(job,)) for job in jobs]
        threads += [threading.Thread(target=self._guarded, args=(self._group, name)) for name in GROUPS]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(self.answer_s)

    def require_no_problems(self) -> None:
        """Raise BenchmarkError with the first problems if there were any."""
        if self.problems:
            raise BenchmarkError(f"traffic: must flow without errors (got {'; '.join(self.problems[:5])}).")

    def _guarded(self, job: Callable[..., None], *arguments: str) -> None:
        try:
            job(*arguments)
        except (KafkaException, BenchmarkError) as error:
            self.problems.append(f"{job.__name__.strip('_')}: {error}")

    def _orders(self) -> None:
        """Unique records, in turn on all partitions; one key in 500, one value in 50 is null."""
        producer = Producer({**self.client, "enable.idempotence": True, "linger.ms": 20})
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
        producer = Producer({**self.client, "enable.idempotence": True})
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
        """Send one record and keep it once it is acknowledged: in the ledger, or in `into` until a transaction ends."""
        content = digest(key, value, headers, timestamp)

        def keep(error: object, message: Any) -> None:
            if error is not None:
                self.problems.append(f"{tp[0]}-{tp[1]}: {error}")
            elif into is None:
                self.ledger.add(tp, message.offset(), content)
            else:
                into.append((tp, (message.offset(), content)))

        producer.produce(
            tp[0], partition=tp[1], key=key, value=value, headers=headers, timestamp=timestamp, on_delivery=keep
        )
        producer.poll(0)

    def _settled(self, producer: Producer) -> None:
        if left := producer.flush(self.answer_s):
            raise BenchmarkError(
                f"producer: every record must be acknowledged within {self.answer_s:.0f} s (left {left})."
            )

    def _group(self, name: str) -> None:
        """Read as a member of a group and commit now and then."""
        more = {"group.id": name, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = Consumer({**self.client, **more, "isolation.level": "read_committed"})
        try:
            consumer.subscribe(list(GROUPS[name]))
            last = time.monotonic()
            while not self._stop.is_set():
                read = [message for message in consumer.consume(500, timeout=0.5) if message.error() is None]
                if read and time.monotonic() - last >= _COMMIT_EVERY_S:
                    with suppress(KafkaException):  # of a broker that does not answer now: later, with what came since
                        consumer.commit(asynchronous=False)
                    last = time.monotonic()
        finally:
            consumer.close()

    def _paced(self, per_second: float) -> Iterator[int]:
        """Numbers from 0, so many a second, until stopped; what a busy machine delays is made up for."""
        began = time.monotonic()
        for number in itertools.count():
            if self._stop.wait(max(0.0, began + number / per_second - time.monotonic())):
                return
            yield number


class Reading:
    """A plain consumer's reading of all partitions of one side, which goes on where it stopped."""

    def __init__(self, client: Client) -> None:
        more = {"group.id": "soak-reading", "enable.auto.commit": False, "isolation.level": "read_committed"}
        self._client = {**client, **more, "auto.offset.reset": "earliest"}
        self._held: dict[TopicPartition, list[Entry]] = {}
        self._next: dict[TopicPartition, int] = {}

    def everything(self, tp: TopicPartition) -> list[Entry]:
        """Return the data records that the log has now; raises BenchmarkError."""
        consumer = Consumer(self._client)
        try:
            end = consumer.get_watermark_offsets(ClientTopicPartition(*tp), timeout=_READ_WITHIN_S)[1]
        finally:
            consumer.close()
        return self.up_to(tp, end)

    def up_to(self, tp: TopicPartition, end: int) -> list[Entry]:
        """Return the data records below an offset that the log has reached; raises BenchmarkError."""
        held = self._held.setdefault(tp, [])
        if self._next.get(tp, 0) < end:
            self._read(tp, end, held)
        return [entry for entry in held if entry[0] < end]

    def _read(self, tp: TopicPartition, end: int, held: list[Entry]) -> None:
        consumer = Consumer(self._client)
        until = time.monotonic() + _READ_WITHIN_S
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
                        held.append((message.offset(), digest(*parts)))
                position = consumer.position([ClientTopicPartition(*tp)])[0].offset
                if position >= 0:
                    self._next[tp] = position
        finally:
            consumer.close()


def _now_ms() -> int:
    return int(time.time() * 1000)
