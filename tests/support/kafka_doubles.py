"""Stand-ins for Kafka clients: a log per partition, delivery reports and events in order, no network."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, KafkaException, TopicPartition


class Message:
    """A record or an event as confluent_kafka hands it over."""

    def __init__(
        self,
        partition: int,
        offset: int,
        value: bytes | None = b"",
        error: KafkaError | None = None,
        timestamp: tuple[int, int] = (TIMESTAMP_CREATE_TIME, 0),
    ) -> None:
        self._partition, self._offset, self._value, self._error = partition, offset, value, error
        self._timestamp = timestamp

    def timestamp(self) -> tuple[int, int]:
        return self._timestamp

    def key(self) -> bytes | None:
        return None if self._value is None else b"key"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> KafkaError | None:
        return self._error


class FakeConsumer:
    """Hands over `messages` in order; each partition of `ends` ends at its offset.

    An item of `messages` that is a function is called in the place of a poll: it stands for what another member does.
    """

    def __init__(
        self,
        messages: Sequence[Message | Callable[["FakeConsumer"], None]],
        ends: dict[int, int],
        refuse: int = 0,
        code: int = KafkaError.REBALANCE_IN_PROGRESS,
    ) -> None:
        self.code = code
        self.messages, self.ends, self.refuse = list(messages), ends, refuse
        self.committed: dict[int, int] = {}
        self.commits: list[dict[int, int]] = []
        self.closed = False
        self._assign: Callable[[], None] | None = None

    def subscribe(self, topics: list[str], *, on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        def parts(partitions: Iterable[int]) -> list[TopicPartition]:
            return [TopicPartition(topics[0], partition) for partition in partitions]

        self.assign: Callable[[], None] = lambda: on_assign(self, parts(self.ends))
        self._assign = self.assign
        self.revoke: Callable[..., None] = lambda *partitions: on_revoke(self, parts(partitions))
        self.lose: Callable[..., None] = lambda *partitions: on_lost(self, parts(partitions))

    def poll(self, timeout: float) -> Message | None:
        if self._assign is not None:
            self._assign()
            self._assign = None
            return None
        message = self.messages.pop(0) if self.messages else None
        if message is None or isinstance(message, Message):
            return message
        message(self)
        return None

    def get_watermark_offsets(self, partition: TopicPartition, *, timeout: float) -> tuple[int, int]:
        return 0, self.ends[partition.partition]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> Any:
        assert not asynchronous
        if self.refuse:
            self.refuse -= 1
            raise KafkaException(KafkaError(self.code))
        self.commits.append({part.partition: part.offset for part in offsets})
        self.committed |= self.commits[-1]

    def close(self) -> None:
        self.closed = True


class FakeProducer:
    """Delivers to partition 0 at once; keys in `refused` fail."""

    def __init__(self, refused: set[bytes] | None = None, queue_full_times: int = 0, lost: int = 0) -> None:
        self.refused = refused or set()
        self.queue_full_times = queue_full_times
        self.lost = lost
        self.sent: list[bytes] = []
        self.flushed = False

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
        self.flushed = True
        return self.lost
