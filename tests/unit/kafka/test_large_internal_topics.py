"""MirrorMaker's and Connect's internal topics with many records: what a command holds of them grows with their keys.

Compaction may be days behind, so the number of records says nothing about the number of keys.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka import checkpoints
from kafka.cluster import Cluster, Topic
from kafka.mirror_position import PositionReader
from kafka.topic_partition import TopicPartition
from ops.follow.follower import Follower
from tests.support.internal_topics import (
    CHECKPOINTS,
    KEYS,
    MIRROR,
    PAIR,
    POSITIONS,
    SYNCS,
    Made,
    checkpoint,
    position,
    read_checkpoints,
    read_positions,
    read_syncs,
    sync,
)

RECORDS = 14_000
HELD_MAX = 1_500_000
"""Bytes for 100 keys and one batch of records. All records of the topic take twice as much at least."""


class Message:
    """A record as a consumer hands it out."""

    __slots__ = ("_offset", "_record")

    def __init__(self, offset: int, record: tuple[bytes, bytes]) -> None:
        self._offset, self._record = offset, record

    def error(self) -> None:
        return None

    def key(self) -> bytes:
        return self._record[0]

    def value(self) -> bytes:
        return self._record[1]

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 1_790_000_000_000


class Consumer:
    """Hands out the records of a topic, each made when it is asked for."""

    def __init__(self, made: Made, records: int) -> None:
        self.made, self.left, self.at = made, iter(range(records)), 0

    def assign(self, _: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def consume(self, most: int, timeout: float) -> list[Message]:
        batch = [Message(number, self.made(number)) for number in islice(self.left, most)]
        self.at += len(batch)
        return batch

    def position(self, asked: list[ClientTopicPartition]) -> list[ClientTopicPartition]:
        return [ClientTopicPartition(one.topic, one.partition, self.at) for one in asked]


def cluster_with(made: Made, records: int, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster whose internal topics hold so many records of one kind."""

    def topics(_: Any, wanted: Callable[[str], bool], *__: Any) -> dict[str, Topic]:
        names = (CHECKPOINTS, SYNCS.name, POSITIONS)
        return {name: Topic(name, {0: 1}, compacted=True) for name in names if wanted(name)}

    consumer = Consumer(made, records)
    monkeypatch.setattr(Cluster, "topics", topics)
    monkeypatch.setattr(Cluster, "starts", lambda _, places: dict.fromkeys(places, 0))
    monkeypatch.setattr(Cluster, "ends", lambda _, places, __: dict.fromkeys(places, records))
    monkeypatch.setattr(Cluster, "consumer", lambda *_: consumer)
    return Cluster(PAIR.request.target)


def follow(cluster: Cluster) -> int:
    follower = Follower(PAIR, cluster, cluster, None)
    follower._read_syncs()
    return len(follower._maps)


READERS: dict[str, tuple[Callable[[Cluster], int], Made]] = {
    "checkpoints": (read_checkpoints, checkpoint),
    "offset syncs": (read_syncs, sync),
    "offsets of Connect": (read_positions, position),
    "offset syncs, followed": (follow, sync),
}


@pytest.fixture
def peak() -> Iterator[Callable[[], int]]:
    """The most bytes that were held since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.mark.parametrize("of", READERS)
def test_what_is_held_of_an_internal_topic_grows_with_its_keys_and_not_with_its_records(
    of: str, monkeypatch: pytest.MonkeyPatch, peak: Callable[[], int]
) -> None:
    read, made = READERS[of]
    cluster = cluster_with(made, RECORDS, monkeypatch)
    assert read(cluster) == KEYS
    assert peak() < HELD_MAX


def test_the_last_record_of_each_key_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checkpoints.read_checkpoints(cluster_with(checkpoint, 10_000, monkeypatch), MIRROR)
    last = found.last_checkpoint(("group-7", "items", 0))
    assert last is not None
    assert last.upstream == 9_907
    reader = PositionReader(PAIR.request, cluster_with(position, 10_000, monkeypatch).topic_reader(POSITIONS))
    assert reader.read()[TopicPartition("items", 7)] == 9_907
