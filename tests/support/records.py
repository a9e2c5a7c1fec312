"""Records in the tests' topics: written, read back by content, counted; and what a user is refused."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.support.producers import RaisingProducer
from tests.support.waiting import wait_until

Client = dict[str, Any]
TIMEOUT_S = 10.0
SILENT_POLLS = 2  # of a second each, after which a group has read all
# A new cluster has no coordinator of groups for a moment.
COORDINATOR_COMES = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


def write(client: Client, topic: str, values: Iterable[str]) -> None:
    """Write a record for each value and wait until the brokers have all."""
    producer = RaisingProducer(client | {"message.timeout.ms": 15_000, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, key=value, value=value)
    producer.deliver()


def read(client: Client, topic: str, group: str = "reader") -> list[str]:
    """The values of all records of a topic, none if the topic does not exist; raises KafkaException if refused.

    The user must be allowed to see the group, which joins nothing and commits nothing.
    """
    consumer = Consumer(client | {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True})
    try:
        found = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        if found.error is not None:
            if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return []
            raise KafkaException(found.error)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in found.partitions])
        return _until_the_end(consumer, len(found.partitions))
    finally:
        consumer.close()


def read_on(client: Client, topic: str, group: str) -> list[str]:
    """The values of the records of a topic that its group has not read; it joins nothing and commits nothing."""
    consumer = Consumer(client | {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True})
    try:
        numbers = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        found = committed_by(consumer, [TopicPartition(topic, number) for number in numbers])
        starts = [one.offset if one.offset >= 0 else OFFSET_BEGINNING for one in found]
        consumer.assign([TopicPartition(topic, one.partition, at) for one, at in zip(found, starts, strict=True)])
        return _until_the_end(consumer, len(found))
    finally:
        consumer.close()


def admits(client: Client) -> bool:
    """Whether the cluster lets a client in."""
    try:
        topics(client)
    except KafkaException:
        return False
    return True


def topics(client: Client) -> set[str]:
    """Names of all topics that the user may see."""
    return set(AdminClient(client).list_topics(timeout=TIMEOUT_S).topics)


def groups(client: Client) -> set[str]:
    """Names of all groups that the user may see."""
    admin = AdminClient(client)  # must outlive the answer
    found = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result(TIMEOUT_S * 2)
    return {group.group_id for group in found.valid}


def refusal(action: Callable[..., Any], *arguments: Any) -> str:
    """Name of the Kafka error with which a call is refused; fails the test if it is not."""
    try:
        got = action(*arguments)
    except KafkaException as error:
        return str(error.args[0].name())
    raise AssertionError(f"must be refused (got {got!r})")


def committed(client: Client, group: str) -> dict[str, int]:
    """Offsets of a group by topic, summed over partitions; raises KafkaException if refused."""
    admin = AdminClient(client)  # must outlive the answer
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=TIMEOUT_S)
    result: dict[str, int] = {}
    for partition in asked[group].result(TIMEOUT_S * 2).topic_partitions:
        result[partition.topic] = result.get(partition.topic, 0) + partition.offset
    return result


def forget(client: Client, group: str) -> None:
    """Delete a group without members."""
    admin = AdminClient(client)  # must outlive the answer
    admin.delete_consumer_groups([group], request_timeout=TIMEOUT_S)[group].result(TIMEOUT_S * 2)


def consume(client: Client, topic: str, group: str) -> None:
    """Read a topic to its end as a member of the group and commit; raises KafkaException if refused."""
    consumer = Consumer(client | {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        end = time.monotonic() + TIMEOUT_S * 2
        seen, silent = False, 0
        while time.monotonic() < end:
            message = consumer.poll(1.0)
            if message is None:
                silent += seen
                if silent == SILENT_POLLS:
                    consumer.commit(asynchronous=False)
                    return
                continue
            if message.error():
                raise KafkaException(message.error())
            seen, silent = True, 0
        raise AssertionError(f"group {group}: read nothing of {topic} in time")
    finally:
        consumer.close()


def _until_the_end(consumer: Consumer, partitions: int) -> list[str]:
    values: list[str] = []
    end = time.monotonic() + TIMEOUT_S * 3
    while partitions:
        assert time.monotonic() < end, "the end of a topic was not reached in time"
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.append((message.value() or b"").decode())
        elif error.code() == KafkaError._PARTITION_EOF:
            partitions -= 1
        else:
            raise KafkaException(error)
    return values


def commit(consumer: Consumer, positions: list[TopicPartition]) -> None:
    """Commit offsets, once the group's coordinator is ready."""
    _once_ready("take its offsets", lambda: consumer.commit(offsets=positions, asynchronous=False))


def committed_by(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Return what a consumer's group has committed, once its coordinator is ready; a negative offset is none."""
    found: list[TopicPartition] = _once_ready("know its offsets", lambda: consumer.committed(partitions, timeout=10))
    return found


def _once_ready(what: str, call: Callable[[], Any]) -> Any:
    """Return what a call of a group's coordinator returns, which must not be empty."""

    def called() -> Any:
        try:
            return call()
        except KafkaException as error:
            if error.args[0].code() not in COORDINATOR_COMES:
                raise
            return None

    return wait_until(f"the group's coordinator to {what}", called, 30)
