"""An internal topic is read as long as records come; what keeps it from its end is named."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka import cluster
from kafka.cluster import READER_SILENT_S, Cluster, Topic, TopicReader
from kafka.errors import ClusterError, DeniedError
from kafka.topic_partition import TopicPartition
from tests.support.recovery_pair import Clock, known

TOPIC = "mm2-offsets"


class Message:
    """A record, or an error in its place."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self._error = error

    def error(self) -> KafkaError | None:
        return self._error

    def key(self) -> bytes:
        return b"key"

    value = key

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 7


class Consumer:
    """Hands out what `answers` returns, each time `takes_s` later; `at` is the position, also past markers."""

    def __init__(self, clock: Clock, takes_s: float) -> None:
        self.clock, self.takes_s, self.at = clock, takes_s, 0
        self.answers: Callable[[], list[Message]] = self.one

    def one(self) -> list[Message]:
        self.at += 1
        return [Message()]

    def marker(self) -> list[Message]:
        self.at += 1
        return []

    def assign(self, _: Any) -> None:
        pass

    def consume(self, _: int, timeout: float) -> list[Message]:
        self.clock.sleep(self.takes_s)
        return self.answers()

    def position(self, asked: list[ClientTopicPartition]) -> list[ClientTopicPartition]:
        return [ClientTopicPartition(one.topic, one.partition, self.at) for one in asked]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep))
    return clock


def reader_of(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, records: int, takes_s: float
) -> tuple[TopicReader, Consumer]:
    consumer = Consumer(clock, takes_s)
    place = TopicPartition(TOPIC, 0)
    monkeypatch.setattr(Cluster, "topics", lambda *_: {TOPIC: Topic(TOPIC, {0: 1}, compacted=True)})
    monkeypatch.setattr(Cluster, "starts", lambda *_: {place: 0})
    monkeypatch.setattr(Cluster, "ends", lambda *_: {place: records})
    monkeypatch.setattr(Cluster, "consumer", lambda *_: consumer)
    return TopicReader(Cluster(known().request.target), TOPIC), consumer


def test_a_long_topic_is_read_to_its_end_while_records_come(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, _ = reader_of(clock, monkeypatch, 40, READER_SILENT_S - 1)
    assert len(list(reader.read())) == 40
    assert clock.now > 1000 + 15 * 30


def test_markers_of_transactions_are_progress(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, consumer = reader_of(clock, monkeypatch, 3, READER_SILENT_S - 1)
    consumer.answers = consumer.marker
    assert list(reader.with_timestamps()) == []


def test_a_topic_from_which_nothing_comes_is_given_up_soon_and_not_for_a_right(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, consumer = reader_of(clock, monkeypatch, 3, 1)
    consumer.answers = list
    with pytest.raises(ClusterError) as caught:
        list(reader.read())
    assert str(caught.value) == (
        "target es-tgt: topic mm2-offsets must be readable (nothing came for 15 s: see that its partitions have "
        "leaders; 3 offsets left)."
    )
    assert clock.now < 1000 + 2 * READER_SILENT_S


def test_a_topic_that_takes_too_long_in_all_is_not_taken_for_read_and_goes_on_later(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, consumer = reader_of(clock, monkeypatch, 100, 1)
    found: list[Any] = []
    with pytest.raises(ClusterError, match=r"not read to its end within 60 s, though records come; 39 offsets left"):
        found.extend(reader.read(60))
    assert len(list(reader.read(60))) == 39
    assert consumer.at == 100


def test_a_right_that_is_taken_away_is_named(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, consumer = reader_of(clock, monkeypatch, 3, 1)
    consumer.answers = lambda: [Message(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))]
    with pytest.raises(DeniedError, match=r"Read.*topic mm2-offsets"):
        list(reader.read())
