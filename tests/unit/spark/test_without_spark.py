"""The comparison by this process alone, with consumers that hand out made-up logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, TopicPartition
from hypothesis import given

from kafka.cluster import Cluster
from kafka.errors import DeniedError, Refusals
from spark.comparison import reading
from spark.comparison.reading import OFFSET, ReadRange, SessionError, read_ranges
from spark.comparison.without_spark import WithoutSpark

from ...support import oracle
from ...support.compared_logs import COPY, TOPIC, Brokers, MadeUpSide, Sizes, found_without_spark
from ...support.generated_cases import cases
from ...support.oracle import Logs, Record
from .test_truth import World, faulty

NOTHING = Logs(source=[], target=[], cut=0)
MUTE = MadeUpSide("source", "dev", "reader", {"bootstrap.servers": "127.0.0.1:1"})


@dataclass(frozen=True)
class Message:
    """A record, or the error that librdkafka hands out in its place."""

    topic_partition: tuple[str, int]
    at: int = -1001
    record: Record | None = None
    code: int | None = None

    def topic(self) -> str:
        return self.topic_partition[0]

    def partition(self) -> int:
        return self.topic_partition[1]

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def key(self) -> bytes | None:
        return self._held.key

    def value(self) -> bytes | None:
        return self._held.value

    def headers(self) -> Any:
        return list(self._held.headers) or None

    def timestamp(self) -> tuple[int, int]:
        return 1, self._held.timestamp

    @property
    def _held(self) -> Record:
        assert self.record is not None
        return self.record


@dataclass
class MadeUpCluster:
    """One side; `refused` is the error code that its brokers answer with, `mute` says that they do not answer.

    `end` is where its logs end.
    """

    side: MadeUpSide
    brokers: Brokers = field(default_factory=lambda: Brokers({}))
    refused: int | None = None
    mute: bool = False
    end: int = 10**9
    reads: list[list[TopicPartition]] = field(default_factory=list)

    @property
    def refusals(self) -> Refusals:
        return Refusals(cast("Any", self.side))

    def consumer(self, isolation: str, config: Mapping[str, Any]) -> "MadeUpConsumer":
        assert config == {"enable.partition.eof": True}
        return MadeUpConsumer(self, isolation)


class MadeUpConsumer:
    """Hands out two messages of each partition at a time, then tells its end once."""

    def __init__(self, cluster: MadeUpCluster, isolation: str) -> None:
        self._cluster = cluster
        self._isolation = isolation
        self._left: dict[tuple[str, int], list[Message]] = {}
        self._paused: set[tuple[str, int]] = set()

    def assign(self, topic_partitions: Sequence[TopicPartition]) -> None:
        self._cluster.reads.append(list(topic_partitions))
        for one in topic_partitions:
            wanted = [ReadRange(one.topic, one.partition, one.offset, 10**9)]
            read = self._cluster.brokers.read(cast("Any", self._cluster.side), wanted, self._isolation, {})
            tp = one.topic, one.partition
            messages = [Message(tp, at, record) for _, at, record in read]
            self._left[tp] = [*messages, Message(tp, self._cluster.end, code=KafkaError._PARTITION_EOF)]

    def consume(self, _: int, timeout: float) -> list[Message]:
        if self._cluster.mute:
            return []
        if self._cluster.refused is not None:
            return [Message(tp, code=self._cluster.refused) for tp in self._left]
        found = []
        for tp, left in self._left.items():
            if tp not in self._paused:
                found += left[:2]
                del left[:2]
        return found

    def pause(self, topic_partitions: Sequence[TopicPartition]) -> None:
        self._paused |= {(one.topic, one.partition) for one in topic_partitions}

    def close(self) -> None:
        pass


def clusters(partitions: Mapping[int, Logs]) -> list[MadeUpCluster]:
    return [MadeUpCluster(MadeUpSide(role), Brokers(partitions)) for role in ("source", "target")]


def alone(*held: MadeUpCluster) -> WithoutSpark:
    return WithoutSpark(*(cast("Cluster", one) for one in held))


@cases(100)
@given(faulty(World(partitions=2, retention=True, tail=True)))
def test_it_finds_what_the_oracle_finds(partitions: dict[int, Logs]) -> None:
    results, _ = found_without_spark(partitions, Sizes(), engine=alone(*clusters(partitions)))
    truths = oracle.judge(partitions)
    for result in results:
        truth = truths[result.partition]
        assert dict(sorted((one.kind, one.count) for one in result.findings)) == truth.counts()
        assert result.compared == truth.compared


def test_each_range_is_read_once_whatever_is_asked_about_it() -> None:
    source = [(at, Record(None, b"%d" % at, (), at)) for at in range(6)]
    partitions = {0: Logs(source=source, target=[*source[:2], *source[3:]], cut=6)}
    held = clusters(partitions)
    ((result,), _) = found_without_spark(partitions, Sizes(), engine=alone(*held))
    assert [(one.kind, one.count) for one in result.findings] == [("lost", 1)]
    assert [[one.topic for one in read] for side in held for read in side.reads] == [[TOPIC], [COPY]]


def test_a_range_ends_with_the_log_or_where_a_later_record_is() -> None:
    source = [(at, Record(None, b"%d" % at, (), at)) for at in (0, 1, 7)]
    (held, _) = clusters({0: Logs(source=source, target=[], cut=8)})
    read = {
        end: read_ranges(cast("Cluster", held), "read_committed", [ReadRange(TOPIC, 0, 0, end)], lambda *_: None)[
            TOPIC, 0
        ][:, OFFSET].tolist()
        for end in (1, 2, 5, 7, 8, 12)
    }
    assert read == {1: [0], 2: [0, 1], 5: [0, 1], 7: [0, 1], 8: [0, 1, 7], 12: [0, 1, 7]}


def test_a_log_that_ends_in_front_of_the_range_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FETCH_S", 0.2)
    source = [(at, Record(None, b"%d" % at, (), at)) for at in (0, 1)]
    (held, _) = clusters({0: Logs(source=source, target=[], cut=5)})
    held.end = 2
    with pytest.raises(SessionError, match="no record came from offset 2 on"):
        read_ranges(cast("Cluster", held), "read_committed", [ReadRange(TOPIC, 0, 0, 5)], lambda *_: None)


def test_brokers_that_fall_silent_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FETCH_S", 0)
    mute = cast("Cluster", MadeUpCluster(MUTE, Brokers({3: NOTHING}), mute=True))
    with pytest.raises(SessionError) as caught:
        read_ranges(mute, "read_committed", [ReadRange("items", 3, 5, 9)], lambda *_: None)
    assert str(caught.value).startswith(
        "source dev (127.0.0.1:1, user reader): no record came from offset 5 on within 0 s (topic items, partition 3)."
    )


def test_a_right_that_is_missing_is_named() -> None:
    refusing = cast(
        "Cluster", MadeUpCluster(MUTE, Brokers({0: NOTHING}), refused=KafkaError.TOPIC_AUTHORIZATION_FAILED)
    )
    with pytest.raises(DeniedError, match="user reader may not Read topic items"):
        read_ranges(refusing, "read_committed", [ReadRange("items", 0, 0, 9)], lambda *_: None)
