"""Traffic of the nemesis: that of the soak, keyed records, a topic that is created again, and groups of every kind.

Topics change while brokers are stopped and killed, so each change is asked for again until it is seen.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, ShareConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from benchmarks.clusters import BenchmarkError
from benchmarks.traffic import GROUPS, PARTITIONS, PAYMENTS, Traffic
from benchmarks.truth import TopicPartition

KEYED, RECREATED = "nemesis.keyed", "nemesis.recreated"
TOPICS = {KEYED: 2, RECREATED: 2}
RECREATED_GROUP = "nemesis-recreated"
_CLASSIC = {"session.timeout.ms": 10_000}
STATIC = "nemesis-static"
GROUP_KINDS: Mapping[str, Mapping[str, Any]] = {
    "nemesis-eager": {**_CLASSIC, "partition.assignment.strategy": "range"},
    "nemesis-cooperative": {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    STATIC: _CLASSIC,
    "nemesis-consumer": {"group.protocol": "consumer"},
}
"""Configuration of the members of each group, two in each."""
SHARE = "nemesis-share"
"""A share group (KIP-932), by the same pattern as the others."""
SKEW_MS = 3_600_000
_KEYED_PER_SECOND, _KEYS, _RECREATED_PER_SECOND = 50, 200, 20
_TIMED_OUT_MS = 100_000  # less than a producer is given to settle
_UNASSIGNED, _ASK_EVERY_S, _ANSWER_S, _SHARE_ANSWER_MS = -1, 0.5, 5, 10_000


def begin_at_first(read: Mapping[Any, set[int]]) -> None:
    """Count as given what lies in front of the first record that a group was given, in each partition.

    Where the broker is killed while it deletes a topic, the group's commits outlive the topic: it goes on there when
    the topic is created again, at the source too.
    """
    for offsets in list(read.values()):
        offsets.update(range(min(offsets, default=0)))


@dataclass
class NemesisTraffic(Traffic):
    """Traffic whose topics, members and clock change while it flows."""

    topics: Mapping[str, int] = field(default_factory=lambda: {**PARTITIONS, **TOPICS})
    groups: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {
            **GROUPS,
            **dict.fromkeys(GROUP_KINDS, (KEYED, PAYMENTS)),
            RECREATED_GROUP: (RECREATED,),
        }
    )
    share_groups: tuple[str, ...] = (SHARE,)
    batches: Mapping[str, Any] = field(default_factory=lambda: {"linger.ms": 1000, "message.timeout.ms": _TIMED_OUT_MS})
    fetches: Mapping[str, Any] = field(default_factory=lambda: {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 1500})
    renewals: int = 0
    """How often the clients' certificate was renewed: keyed records' producer and members connect again with it."""
    skew_ms: int = 0
    """How far the clock of the keyed records' producer is ahead."""
    away: set[str] = field(default_factory=set)
    """Groups whose second member is away."""
    partitions: int = TOPICS[KEYED]
    """How many partitions the topic of keyed records is to have."""
    recreations: int = 0
    """How often the other topic is to have been created again."""
    _partitions_there: int = TOPICS[KEYED]
    _recreated_there: int = 0

    def jobs(self) -> list[tuple[Any, ...]]:
        """Those of the soak, and the nemesis's own."""
        members = [(self._member, name, number) for name in GROUP_KINDS for number in range(2)]
        sharing = [(self._share_member, number) for number in range(2)]
        return [*super().jobs(), (self._keyed,), (self._recreated,), *members, *sharing]

    @property
    def group_patterns(self) -> list[str]:
        """The nemesis's own by a pattern, so that it fits the share group too."""
        return [*GROUPS, "nemesis-.*"]

    def renew(self, client: Mapping[str, Any]) -> None:
        """Let clients connect again with this configuration."""
        self.client = dict(client)
        self.renewals += 1

    def refused(self, where: TopicPartition, error: Any, content: bytes) -> None:
        """Keep a record whose time is over: whether it is in the log is not known, and nobody was promised it.

        librdkafka keeps records of some partitions back for minutes after its broker has come back, at times.
        """
        if error.code() == KafkaError._MSG_TIMED_OUT:
            self.ledger.timed_out[where].append(content)
        else:
            super().refused(where, error, content)

    @property
    def changed(self) -> bool:
        """Whether the topics are as they are to be."""
        return (self._partitions_there, self._recreated_there) == (self.partitions, self.recreations)

    def _keyed(self) -> None:
        """Records whose partition the producer chooses by the key, of a clock that may be wrong."""
        metadata = {"topic.metadata.refresh.interval.ms": 1000}
        renewals, producer = self.renewals, self.producer(**metadata)
        for number in self._paced(_KEYED_PER_SECOND):
            if renewals != self.renewals:
                self._settled(producer)
                renewals, producer = self.renewals, self.producer(**metadata)
            if (wanted := self.partitions) > self._partitions_there:
                self._add_partitions(wanted)
            value, now = json.dumps({"change": number}).encode(), int(time.time() * 1000) + self.skew_ms
            self._send(producer, (KEYED, _UNASSIGNED), b"customer-%d" % (number % _KEYS), value, [], now)
        self._settled(producer)

    def _add_partitions(self, count: int) -> None:
        admin = AdminClient(self.client)
        self._ask(
            f"{KEYED} has {count} partitions",
            lambda: admin.create_partitions([NewPartitions(KEYED, count)])[KEYED].result(_ANSWER_S),
            lambda: len(admin.list_topics(timeout=_ANSWER_S).topics[KEYED].partitions) == count,
        )
        self._partitions_there = count

    def _recreated(self) -> None:
        """Unique records and the group that reads them; both stop while the topic is deleted and created again."""
        numbers = 0
        while not self._stop.is_set():
            producer = self.producer()
            with self.member(RECREATED_GROUP) as member:
                for number in self._paced(_RECREATED_PER_SECOND):
                    value, tp = b"%d" % (numbers + number), (RECREATED, number % TOPICS[RECREATED])
                    self._send(producer, tp, None, value, [], int(time.time() * 1000))
                    if number % 10 == 0:
                        member.take(0.1)
                        begin_at_first(self.read[RECREATED_GROUP])
                    if self.recreations > self._recreated_there:
                        numbers += number + 1
                        break
                self._settled(producer)
            if (wanted := self.recreations) > self._recreated_there:
                self._recreate()
                self._recreated_there = wanted

    def _recreate(self) -> None:
        admin = AdminClient(self.client)
        self._ask(
            f"{RECREATED} is deleted",
            lambda: admin.delete_topics([RECREATED])[RECREATED].result(_ANSWER_S),
            lambda: RECREATED not in admin.list_topics(timeout=_ANSWER_S).topics,
        )
        self.ledger.forget(RECREATED)
        self.read[RECREATED_GROUP].clear()
        self._ask(
            f"{RECREATED} is created again",
            lambda: admin.create_topics([NewTopic(RECREATED, TOPICS[RECREATED], 1)])[RECREATED].result(_ANSWER_S),
            lambda: RECREATED in admin.list_topics(timeout=_ANSWER_S).topics,
        )

    def _ask(self, what: str, action: Callable[[], object], is_done: Callable[[], bool]) -> None:
        """Ask until it is so: an answer may have been lost. Raises BenchmarkError."""
        end = time.monotonic() + self.answer_s
        while True:
            with suppress(KafkaException, TimeoutError):
                action()
            with suppress(KafkaException):
                if is_done():
                    return
            if time.monotonic() > end:
                raise BenchmarkError(f"topics: must be so within {self.answer_s:.0f} s: {what}.")
            time.sleep(_ASK_EVERY_S)

    def _member(self, group: str, number: int) -> None:
        """A member that reads and commits."""
        instance = {"group.instance.id": f"{group}-{number}"} if group == STATIC else {}
        for is_here in self._stays(group, number):
            with self.member(group, **GROUP_KINDS[group], **instance) as member:
                while is_here():
                    member.take()

    def _share_member(self, number: int) -> None:
        """A member of the share group, which accepts what it is given."""
        for is_here in self._stays(SHARE, number):
            more = {**self.fetches, "group.id": SHARE, "socket.timeout.ms": _SHARE_ANSWER_MS}
            consumer = ShareConsumer({**self.client, **more})
            try:
                consumer.subscribe([KEYED, PAYMENTS])
                while is_here():
                    with suppress(KafkaException):  # of a broker that does not answer now
                        messages: Iterable[Any] = consumer.poll(_ASK_EVERY_S)
                        for message in messages:
                            if message.error() is None:
                                self.read[SHARE][message.topic(), message.partition()].add(message.offset())
            finally:
                self.leave(SHARE, consumer.close)

    def _stays(self, group: str, number: int) -> Iterator[Callable[[], bool]]:
        """Yield for each stay of a member whether it goes on."""
        while not self._stop.wait(_ASK_EVERY_S):
            goes_on = partial(self._goes_on, group, number, self.renewals)
            if goes_on():
                yield goes_on

    def _goes_on(self, group: str, number: int, renewals: int) -> bool:
        """The second member leaves while its group is one that it is away from; all do to show a new certificate."""
        is_here = number == 0 or group not in self.away
        return is_here and renewals == self.renewals and not self._stop.is_set()
