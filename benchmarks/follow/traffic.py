"""Producers of known records, and groups that read them at a given distance: what each has read is recorded.

A record's value has the number of its topic's incarnation and its own number in its partition. Groups are consumers
that read and commit, at most so far that a number of acknowledged records lies in front of them. Owns what was written
and read. Does not own the follower, nor what is right on the target.
"""

import itertools
import random
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition

from benchmarks.clusters import BenchmarkError

Place = tuple[str, int]
"""Topic and partition."""
TRANSACTIONAL, COMPACTED = "transactional", "compacted"
DISTANCES = {"behind-7": 7, "behind-1000": 1000, "behind-100000": 100_000}
PREFILLED, PREFILLED_AT_ONCE = 101_000, 1000
READ_BEFORE = 500
"""Records that a group reads to come to its distance, when it is there for the first time."""
COMMIT_EVERY_S, LOOK_S, LOOK_AGAIN_S = 0.1, 0.02, 0.5
ANSWER_S = 60.0
ABORTED_OF = 5
"""One transaction of so many is aborted."""
KEYS = 20_000
"""Of a compacted topic: each record of it replaces the one with the same key."""
HELD, HELD_LEAST = 4000, 1000
_UNKNOWN = -1


@dataclass
class Log:
    """A partition of the source: the offsets of its acknowledged and committed records, and each record's by number."""

    incarnation: int = 0
    visible: "array[int]" = field(default_factory=lambda: array("q"))
    offset_of: "array[int]" = field(default_factory=lambda: array("q"))

    def next_number(self) -> int:
        """Return the number of the next record."""
        self.offset_of.append(_UNKNOWN)
        return len(self.offset_of) - 1

    def learn(self, number: int, offset: int) -> None:
        """Take in where a record lies that was acknowledged or read."""
        self.offset_of[number] = offset

    def last_number(self) -> int:
        """Return the number of the last record that is known to be readable."""
        return next(number for number in range(len(self.offset_of) - 1, -1, -1) if self.offset_of[number] >= 0)

    def readable_up_to(self, distance: int) -> int:
        """Return the first offset that a group may not read so that `distance` records lie in front of it."""
        return self.visible[-distance - 1] + 1 if len(self.visible) > distance else 0


@dataclass(frozen=True)
class Rates:
    """Records a second of each partition that is written to; the others of the topic are idle."""

    of: Mapping[Place, float]

    @classmethod
    def of_seed(cls, chance: random.Random, topics: Mapping[str, int]) -> "Rates":
        """Return rates by chance: of each topic at least one partition is written to."""
        found: dict[Place, float] = {}
        for topic, partitions in topics.items():
            written = chance.sample(range(partitions), chance.randint(1, partitions))
            found |= {(topic, number): float(chance.randint(20, 300)) for number in written}
        return cls(found)


@dataclass
class Traffic:
    """What flows over the source: logs and read offsets stay, the clients are those of one seed.

    `read` is the time and the end offset of each batch that a group has read in a partition, and how many records;
    `committed` the time and the offset of each commit that the source has acknowledged.
    """

    client: Mapping[str, Any]
    logs: dict[Place, Log] = field(default_factory=dict)
    read: dict[tuple[str, Place], list[tuple[float, int, int]]] = field(default_factory=dict)
    committed: dict[tuple[str, Place], list[tuple[float, int]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    _ending: threading.Event = field(default_factory=threading.Event)

    def prefill(self, topics: Mapping[str, int], records: int = PREFILLED, *, again: bool = False) -> None:
        """Write so many records to each partition; `again`: the topics were deleted and created."""
        self._ending.clear()
        for topic, partitions in topics.items():
            places = [(topic, number) for number in range(partitions)]
            for place in places:
                self.logs[place] = Log(self.logs[place].incarnation + 1 if again else 0)
                for group in DISTANCES:
                    self.read.pop((group, place), None)
                    self.committed.pop((group, place), None)
            writer = _Writer(self, topic)
            while min(len(self.logs[place].visible) for place in places) < records:
                number = min(PREFILLED_AT_ONCE, records)
                writer.write([place for place in places for _ in range(number)], unique_keys=True)
                writer.settle()

    @contextmanager
    def flowing(self, rates: Rates, topics: Mapping[str, int], chance: random.Random) -> Iterator[None]:
        """Write and read while the block runs, or until `end`."""
        self._ending.clear()
        self.problems.clear()
        places = [(topic, number) for topic, partitions in topics.items() for number in range(partitions)]
        for rows in self.read.values():
            del rows[:-1]
        for commits in self.committed.values():
            del commits[:-1]
        works: list[tuple[Any, ...]] = [(self._produce, topic, rates, chance.random()) for topic in topics]
        works += [(self._read, group, distance, places) for group, distance in DISTANCES.items()]
        threads = [threading.Thread(target=self._guarded, args=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.end()
            for thread in threads:
                thread.join(ANSWER_S)

    def end(self) -> None:
        """Stop writing and reading; what is on its way is not waited for."""
        self._ending.set()

    @property
    def ended(self) -> bool:
        """Whether nothing flows any more."""
        return self._ending.is_set()

    def require_no_problems(self) -> None:
        """Raise BenchmarkError if a producer or a group has failed while the source was there."""
        if self.problems:
            raise BenchmarkError(f"traffic: must flow without errors (got {'; '.join(self.problems[:3])}).")

    def are_at_distance(self, places: Sequence[Place]) -> bool:
        """Whether each group has read up to its distance since the traffic flows."""
        return all(
            self.read_up_to(group, place) >= self.logs[place].readable_up_to(distance + READ_BEFORE)
            for group, distance in DISTANCES.items()
            for place in places
        )

    def read_up_to(self, group: str, place: Place, until: float | None = None) -> int:
        """Return the source offset behind all that a group has read, until a time; 0 if it has read nothing."""
        rows = self.read.get((group, place), [])
        return max((end for when, end, _ in list(rows) if until is None or when <= until), default=0)

    def committed_before(self, group: str, place: Place, until: float) -> int:
        """Return the last offset whose commit was acknowledged before a time; 0 if there is none."""
        return max((at for when, at in self.committed.get((group, place), []) if when < until), default=0)

    def read_from(self, group: str, place: Place, offset: int, until: float) -> int:
        """Return how many records behind an offset a group has read until a time, in whole batches."""
        rows = self.read.get((group, place), [])
        return sum(number for when, end, number in rows if end > offset and when <= until)

    def read_between(self, group: str, place: Place, since: float, until: float) -> int:
        """Return how many records a group has read between two times."""
        return sum(number for when, _, number in self.read.get((group, place), []) if since < when <= until)

    def _guarded(self, work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except (KafkaException, BufferError, BenchmarkError) as error:
            if not self._ending.is_set():
                self.problems.append(f"{arguments[0]}: {error}")

    def _produce(self, topic: str, rates: Rates, seed: float) -> None:
        chance, writer = random.Random(seed), _Writer(self, topic)  # noqa: S311 - lengths of batches, no secret
        share = {place: rate for place, rate in rates.of.items() if place[0] == topic}
        began, written = time.monotonic(), 0
        try:
            while not self._ending.is_set():
                number = chance.randint(1, 40)
                writer.write(chance.choices(list(share), list(share.values()), k=number))
                written += number
                self._ending.wait(max(0.0, began + written / sum(share.values()) - time.monotonic()))
        finally:
            writer.close()

    def _read(self, group: str, distance: int, places: Sequence[Place]) -> None:
        commits = Commits(
            lambda place, at: self.committed.setdefault((group, place), []).append((time.monotonic(), at))
        )
        config = {**self.client, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        more = {"log_level": 0, "queued.max.messages.kbytes": 4096, "on_commit": commits.answered}
        consumer = Consumer({**config, **more})
        try:
            self._read_as(consumer, commits, group, distance, places)
        finally:
            if not self._ending.is_set():
                consumer.close()

    def _read_as(
        self, consumer: Consumer, commits: "Commits", group: str, distance: int, places: Sequence[Place]
    ) -> None:
        commits.waiting = {place: self._start(group, place, distance) for place in places}
        consumer.assign([ClientTopicPartition(*place, end) for place, end in commits.waiting.items()])
        held: dict[Place, deque[Any]] = {place: deque() for place in places}
        paused = set[Place]()
        committed_at = time.monotonic()
        while not self._ending.is_set():
            messages: list[Any] = consumer.consume(1000, timeout=LOOK_S)
            for message in messages:
                if message.error() is None:
                    held[message.topic(), message.partition()].append(message)
            for place, waiting in held.items():
                end = self._take(group, place, waiting, self.logs[place].readable_up_to(distance))
                if end is not None:
                    commits.waiting[place] = end
                if len(waiting) > HELD and place not in paused:
                    consumer.pause([ClientTopicPartition(*place)])
                    paused.add(place)
                elif len(waiting) < HELD_LEAST and place in paused:
                    consumer.resume([ClientTopicPartition(*place)])
                    paused.discard(place)
            if time.monotonic() - committed_at >= COMMIT_EVERY_S and (offsets := commits.taken()):
                committed_at = time.monotonic()
                consumer.commit(offsets=offsets)

    def _start(self, group: str, place: Place, distance: int) -> int:
        """Return where a group begins: behind what it has read, or a little in front of its distance."""
        known = self.read_up_to(group, place)
        return known or self.logs[place].readable_up_to(distance + READ_BEFORE)

    def _take(self, group: str, place: Place, waiting: "deque[Any]", up_to: int) -> int | None:
        """Read what may be read; return the offset behind it. It is recorded before it can be committed."""
        end, number, log = None, 0, self.logs[place]
        while waiting and waiting[0].offset() < up_to:
            message = waiting.popleft()
            end, number = message.offset() + 1, number + 1
            log.learn(numbers_of(message.value())[1], message.offset())
        if end is not None:
            self.read.setdefault((group, place), []).append((time.monotonic(), end, number))
        return end


@dataclass
class Commits:
    """Offsets of a group that are to be committed: one request at a time, and again what was refused.

    Of two requests on their way the first may come last, and a partition in which no more is read would stay there.
    """

    note: Callable[[Place, int], object]
    waiting: dict[Place, int] = field(default_factory=dict)
    _sent: dict[Place, int] = field(default_factory=dict)

    def taken(self) -> list[ClientTopicPartition]:
        """Return what the next request has; nothing while one has no answer."""
        if self._sent:
            return []
        self._sent, self.waiting = self.waiting, {}
        return [ClientTopicPartition(*place, end) for place, end in self._sent.items()]

    def answered(self, error: KafkaError | None, offsets: Sequence[ClientTopicPartition]) -> None:
        """Take in the answer to the request."""
        refused = dict(self._sent) if error is not None else {}
        for at in offsets if error is None else ():
            place = at.topic, at.partition
            if at.error is None:
                self.note(place, at.offset)
            elif place in self._sent:
                refused[place] = self._sent[place]
        self.waiting, self._sent = refused | self.waiting, {}


def numbers_of(value: bytes) -> tuple[int, int]:
    """Return the incarnation and the number that a record's value has."""
    incarnation, _, number = value.partition(b" ")
    return int(incarnation), int(number)


class _Writer:
    """Writes numbered records to a topic, in transactions if it is a transactional one."""

    def __init__(self, traffic: Traffic, topic: str) -> None:
        config: dict[str, Any] = {**traffic.client, "linger.ms": 5, "log_level": 0, "enable.idempotence": True}
        self._traffic, self._topic = traffic, topic
        self._transactional, self._compacted = TRANSACTIONAL in topic, COMPACTED in topic
        self._turns = itertools.count(1)
        self._sent: list[tuple[Place, int, int]] = []
        if self._transactional:
            config["transactional.id"] = f"follow-{topic}"
        self._producer = Producer(config)
        if self._transactional:
            self._producer.init_transactions(ANSWER_S)

    def write(self, places: Sequence[Place], *, unique_keys: bool = False) -> None:
        """Write a record to each of these partitions, in this order."""
        if self._transactional:
            self._producer.begin_transaction()
        for topic, partition in places:
            log = self._traffic.logs[topic, partition]
            number = log.next_number()
            key = None
            if self._compacted:
                key = b"%d" % (number if unique_keys else number * 7919 % KEYS)
            value = b"%d %d" % (log.incarnation, number)
            while True:
                try:
                    self._producer.produce(topic, value, key, partition, on_delivery=self._delivered)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)
        if self._transactional:
            self.settle()
            if next(self._turns) % ABORTED_OF:
                self._end_transaction(self._producer.commit_transaction)
                self._keep()
            else:
                self._end_transaction(self._producer.abort_transaction)
                self._sent.clear()

    def settle(self) -> None:
        """Wait until all is acknowledged, at most as long as the traffic flows."""
        until = time.monotonic() + ANSWER_S
        while self._producer.flush(LOOK_AGAIN_S):
            self._require_answer(until)

    def close(self) -> None:
        """Drop what is on its way."""
        self._producer.purge()

    def _end_transaction(self, end: Callable[[float], object]) -> None:
        until = time.monotonic() + ANSWER_S
        while True:
            try:
                end(LOOK_AGAIN_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._require_answer(until)
            else:
                return

    def _require_answer(self, until: float) -> None:
        if self._traffic.ended or time.monotonic() > until:
            raise BenchmarkError(f"topic {self._topic}: the source must answer within {ANSWER_S:.0f} s.")

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None or message.offset() is None or message.offset() < 0:
            return  # not acknowledged, or without its offset, which is learned where the record is read
        place = message.topic(), message.partition()
        self._sent.append((place, numbers_of(message.value())[1], message.offset()))
        if not self._transactional:
            self._keep()

    def _keep(self) -> None:
        for place, number, offset in self._sent:
            log = self._traffic.logs[place]
            log.learn(number, offset)
            log.visible.append(offset)
        self._sent.clear()
