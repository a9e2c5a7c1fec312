"""Internal topics with ten million records on a real broker: they are read whole, in memory of their keys."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from sandbox.state import PROJECT
from sandbox.toolchain import Tools
from tests.support.waiting import at_most

from ...support import guarded_brokers as guarded
from ...support import internal_topics as internal
from ...support.guarded_brokers import Guarded
from ...support.producers import RaisingProducer

pytestmark = [pytest.mark.sandbox, pytest.mark.nightly]

RECORDS, HELD_MAX_MIB = 10_000_000, 100
"""Records, and what a process may need for them beside what it needs for a few; they take more than 500 MiB."""
POLLED_EVERY, WRITTEN_WITHIN_S, READ_WITHIN_S = 10_000, 120, at_most(240)
MADE = {
    internal.CHECKPOINTS: internal.checkpoint,
    internal.SYNCS.name: internal.sync,
    internal.POSITIONS: internal.position,
}


@pytest.fixture(scope="module")
def brokers(tools: Tools) -> Iterator[Guarded]:
    with guarded.running(tools) as made:
        yield made


def write(brokers: Guarded, topic: str, begin: int, end: int) -> None:
    settings = {"bootstrap.servers": brokers.bootstrap("OPEN"), "log_level": 0, "linger.ms": 50, "batch.size": 10**6}
    queue = {"queue.buffering.max.messages": RECORDS, "delivery.report.only.error": True}
    producer = RaisingProducer(settings | queue)
    for number in range(begin, end):
        key, value = MADE[topic](number)
        producer.produce(topic, key=key, value=value)
        if not number % POLLED_EVERY:
            producer.poll(0)
    producer.deliver(WRITTEN_WITHIN_S)


def begins_with(brokers: Guarded, topic: str, count: int) -> bool:
    """Whether the first records of a topic are all there."""
    settings = {"bootstrap.servers": brokers.bootstrap("OPEN"), "group.id": "first-records", "log_level": 0}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [one.offset() for one in consumer.consume(count, timeout=READ_WITHIN_S)] == list(range(count))
    finally:
        consumer.close()


def read(brokers: Guarded, topic: str) -> tuple[int, int]:
    """The keys that a process of its own finds, and the most MiB that it has."""
    command = [sys.executable, "-m", "tests.support.internal_topics", brokers.bootstrap("OPEN"), topic]
    found = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=READ_WITHIN_S, check=True)
    keys, mib = map(int, found.stdout.split())
    return keys, mib


@pytest.mark.parametrize("topic", MADE)
def test_ten_million_records_of_an_internal_topic_are_read_in_the_memory_of_their_keys(
    brokers: Guarded, topic: str
) -> None:
    # Else the broker compacts it while it is written, and there is little to read.
    config = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(24 * 3600 * 1000)}
    wanted = NewTopic(topic, num_partitions=1, replica_assignment=[[1]], config=config)
    brokers.admin.create_topics([wanted])[topic].result(20)
    write(brokers, topic, 0, internal.KEYS)
    keys, least = read(brokers, topic)
    assert keys == internal.KEYS
    write(brokers, topic, internal.KEYS, RECORDS)
    assert begins_with(brokers, topic, POLLED_EVERY), "it is not compacted, which begins with the oldest records"
    keys, mib = read(brokers, topic)
    assert keys == internal.KEYS
    assert mib - least < HELD_MAX_MIB
