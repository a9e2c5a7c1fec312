"""Stand-ins for Kafka clients: a log per partition, delivery reports and events in order, no network."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, TopicPartition


class Message:
    """A record or an event as confluent_kafka hands it over."""

    def __init__(self, partition: int, offset: int, value: bytes | None = b"", error: KafkaError | None = None) -> None:
        self._partition, self._offset, self._value, self._error = partition, offset, value, error

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> KafkaError | None:
        return self._error


class FakeConsumer:
    """Hands over `messages` in order; each partition of `ends` ends at its offset."""

    def __init__(self, messages: list[Message], ends: dict[int, int]) -> None:
        self.messages, self.ends = list(messages), ends
        self.committed: dict[int, int] = {}
        self.closed = False
        self._assign: Callable[[], None] | None = None

    def subscribe(self, topics: list[str], *, on_assign: Any, on_revoke: Any) -> None:
        parts = [TopicPartition(topics[0], partition) for partition in self.ends]
        self._assign = lambda: on_assign(self, parts)

    def poll(self, timeout: float) -> Message | None:
        if self._assign is not None:
            self._assign()
            self._assign = None
            return None
        return self.messages.pop(0) if self.messages else None

    def get_watermark_offsets(self, partition: TopicPartition, *, timeout: float) -> tuple[int, int]:
        return 0, self.ends[partition.partition]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> Any:
        assert not asynchronous
        self.committed = {part.partition: part.offset for part in offsets}

    def close(self) -> None:
        self.closed = True


class FakeProducer:
    """Delivers to partition 0 at once; keys in `refused` fail."""

    def __init__(self, refused: set[bytes] | None = None, queue_full_times: int = 0, lost: int = 0) -> None:
        self.refused = refused or set()
        self.queue_full_times = queue_full_times
        self.lost = lost
        self.sent: list[bytes] = []

    def produce(self, topic: str, *, key: bytes, value: bytes, on_delivery: Any) -> None:
        if self.queue_full_times:
            self.queue_full_times -= 1
            raise BufferError("queue full")
        if key in self.refused:
            on_delivery(KafkaError(KafkaError.NOT_ENOUGH_REPLICAS), None)
            return
        on_delivery(None, Message(0, len(self.sent), value))
        self.sent.append(value)

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self, timeout: float) -> int:
        return self.lost
