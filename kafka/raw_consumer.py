"""Headers of records as bytes, and a consumer that returns them so: librdkafka's own functions, called by ctypes.

Kafka's protocol says that a header's name is UTF-8, and no broker checks it: producers in C and Go write any bytes.
`Message.headers` of confluent-kafka 2.16.1 (the newest) leaves such a name out of its tuple, as a null pointer, and the
exception pending. Where the interpreter calls the method itself it notices neither, and the first use of the name is a
segmentation fault. `operator.methodcaller` calls it through `PyObject_VectorcallMethod`, which checks each result.

RawConsumer reads such a record from the library that confluent-kafka has loaded. It is slower than confluent-kafka's
consumer and offers only the calls that this project needs. A name ends at its first NUL byte, as in librdkafka. Source
of the declarations: librdkafka's rdkafka.h.
"""

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import methodcaller
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition, cimpl

Headers = Sequence[tuple[str | bytes, bytes | None]]
"""Names and values in their order. Names are bytes only where they were read without the client's decoding."""
REPLACED = "\ufffd"
"""What a Java client, and with it a mirror, puts in the place of bytes of a name that are not UTF-8."""
_headers = methodcaller("headers")


class UndecodableError(Exception):
    """A header of this record has a name that is not UTF-8: `RawConsumer` reads it."""


def headers(message: Any) -> Headers | None:
    """Return the headers of a message. Call it once for each message: a second call would return the broken list.

    Raises UndecodableError for a name that is not UTF-8.
    """
    try:
        found: Headers | None = _headers(message)
    except (SystemError, UnicodeDecodeError):
        raise UndecodableError from None
    return found


def headers_of(messages: Iterable[Any]) -> list[Headers | None]:
    """Return the headers of messages up to the first one with a name that is not UTF-8, as `headers` returns them."""
    found: list[Headers | None] = []
    with suppress(SystemError, UnicodeDecodeError):
        for one in map(_headers, messages):
            found.append(one)  # noqa: PERF402 - what came before an error is kept
    return found


def headers_as_copied(message: Any) -> Headers | None:
    """Return headers that are equal for a record and a mirror's copy of it; call it once for each message.

    All headers of which a name is not UTF-8, or was not before the copy, are the same here.
    """
    try:
        found = headers(message)
    except UndecodableError:
        return [(REPLACED, None)]
    replaced = any(isinstance(name, str) and REPLACED in name for name, _ in found or ())
    return [(REPLACED, None)] if replaced else found


_CONSUMER = 1  # RD_KAFKA_CONSUMER
_NO_HEADERS = -156  # RD_KAFKA_RESP_ERR__NOENT
_POINTER, _TEXT, _INT, _LONG, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # result, then arguments
    "rd_kafka_conf_new": (_POINTER,),
    "rd_kafka_conf_destroy": (None, _POINTER),
    "rd_kafka_conf_set": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, _SIZE),
    "rd_kafka_conf_set_log_cb": (None, _POINTER, _POINTER),
    "rd_kafka_new": (_POINTER, _INT, _POINTER, _TEXT, _SIZE),
    "rd_kafka_poll_set_consumer": (_INT, _POINTER),
    "rd_kafka_queue_get_consumer": (_POINTER, _POINTER),
    "rd_kafka_queue_destroy": (None, _POINTER),
    "rd_kafka_topic_partition_list_new": (_POINTER, _INT),
    "rd_kafka_topic_partition_list_add": (_POINTER, _POINTER, _TEXT, _INT),
    "rd_kafka_topic_partition_list_set_offset": (_INT, _POINTER, _TEXT, _INT, _LONG),
    "rd_kafka_topic_partition_list_find": (_POINTER, _POINTER, _TEXT, _INT),
    "rd_kafka_topic_partition_list_destroy": (None, _POINTER),
    "rd_kafka_assign": (_INT, _POINTER, _POINTER),
    "rd_kafka_incremental_unassign": (_POINTER, _POINTER, _POINTER),
    "rd_kafka_pause_partitions": (_INT, _POINTER, _POINTER),
    "rd_kafka_position": (_INT, _POINTER, _POINTER),
    "rd_kafka_error_code": (_INT, _POINTER),
    "rd_kafka_error_destroy": (None, _POINTER),
    "rd_kafka_consume_batch_queue": (ctypes.c_ssize_t, _POINTER, _INT, _POINTER, _SIZE),
    "rd_kafka_topic_name": (_TEXT, _POINTER),
    "rd_kafka_message_timestamp": (_LONG, _POINTER, _POINTER),
    "rd_kafka_message_headers": (_INT, _POINTER, _POINTER),
    "rd_kafka_header_get_all": (_INT, _POINTER, _SIZE, _POINTER, _POINTER, _POINTER),
    "rd_kafka_message_destroy": (None, _POINTER),
    "rd_kafka_consumer_close": (_INT, _POINTER),
    "rd_kafka_destroy": (None, _POINTER),
}


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_ = (
        ("error", _INT),
        ("topic", _POINTER),
        ("partition", ctypes.c_int32),
        ("value", _POINTER),
        ("value_size", _SIZE),
        ("key", _POINTER),
        ("key_size", _SIZE),
        ("offset", _LONG),
    )


class _TopicPartition(ctypes.Structure):
    """The beginning of rd_kafka_topic_partition_t."""

    _fields_ = (("topic", _TEXT), ("partition", ctypes.c_int32), ("offset", _LONG))


@dataclass(frozen=True)
class RawMessage:
    """A record, or an error in its place, with those methods of confluent-kafka's `Message` that readers use."""

    _topic: str | None
    _partition: int
    _offset: int
    _error: int = 0
    _key: bytes | None = None
    _value: bytes | None = None
    _headers: Headers | None = None
    _timestamp: tuple[int, int] = (0, -1)

    def topic(self) -> str | None:
        """Name of the topic, None for an error that is not about one."""
        return self._topic

    def partition(self) -> int:
        """Number of the partition."""
        return self._partition

    def offset(self) -> int:
        """Offset of the record."""
        return self._offset

    def error(self) -> KafkaError | None:
        """What is wrong, None for a record."""
        return KafkaError(self._error) if self._error else None

    def key(self) -> bytes | None:
        """Key of the record."""
        return self._key

    def value(self) -> bytes | None:
        """Value of the record."""
        return self._value

    def headers(self) -> Headers | None:
        """Headers of the record, their names as bytes; None if it has none."""
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        """Type and milliseconds of the timestamp."""
        return self._timestamp


class RawConsumer:
    """Reads assigned partitions; `config` are librdkafka's properties, values of Python as confluent-kafka takes them.

    Raises KafkaException as confluent-kafka's consumer does.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._library = _library()
        said = ctypes.create_string_buffer(512)
        properties = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set_log_cb(properties, None)
        for name, value in config.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if self._library.rd_kafka_conf_set(properties, name.encode(), text.encode(), said, len(said)):
                self._library.rd_kafka_conf_destroy(properties)
                raise KafkaException(KafkaError(KafkaError._INVALID_ARG, said.value.decode(errors="replace")))
        self._client = self._library.rd_kafka_new(_CONSUMER, properties, said, len(said))
        if not self._client:
            self._library.rd_kafka_conf_destroy(properties)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, said.value.decode(errors="replace")))
        self._library.rd_kafka_poll_set_consumer(self._client)
        self._queue = self._library.rd_kafka_queue_get_consumer(self._client)

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions from their offsets on, and no other ones any more."""
        with _List(self._library, partitions) as places:
            _check(self._library.rd_kafka_assign(self._client, places))

    def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions no more."""
        with _List(self._library, partitions) as places:
            if error := self._library.rd_kafka_incremental_unassign(self._client, places):
                code = self._library.rd_kafka_error_code(error)
                self._library.rd_kafka_error_destroy(error)
                _check(code)

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Fetch nothing more of these partitions."""
        with _List(self._library, partitions) as places:
            _check(self._library.rd_kafka_pause_partitions(self._client, places))

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the offset behind the last record of each partition that was handed out."""
        with _List(self._library, partitions) as places:
            _check(self._library.rd_kafka_position(self._client, places))
            return [places.with_offset(one) for one in partitions]

    def consume(self, num_messages: int, timeout: float) -> list[RawMessage]:
        """Return up to so many messages that came within the timeout (seconds)."""
        held = (_POINTER * num_messages)()
        number = self._library.rd_kafka_consume_batch_queue(self._queue, int(timeout * 1000), held, num_messages)
        try:
            return [self._message(held[at] or 0) for at in range(number)]
        finally:
            for at in range(number):
                self._library.rd_kafka_message_destroy(held[at])

    def close(self) -> None:
        """Give the connections back."""
        self._library.rd_kafka_queue_destroy(self._queue)
        self._library.rd_kafka_consumer_close(self._client)
        self._library.rd_kafka_destroy(self._client)

    def _message(self, address: int) -> RawMessage:
        raw = _Message.from_address(address)
        topic = self._library.rd_kafka_topic_name(raw.topic).decode() if raw.topic else None
        if raw.error:
            return RawMessage(topic, raw.partition, raw.offset, raw.error)
        kind = _INT()
        stamp = self._library.rd_kafka_message_timestamp(address, ctypes.byref(kind))
        key, value = _bytes(raw.key, raw.key_size), _bytes(raw.value, raw.value_size)
        return RawMessage(
            topic, raw.partition, raw.offset, 0, key, value, self._headers_of(address), (kind.value, stamp)
        )

    def _headers_of(self, address: int) -> Headers | None:
        held = _POINTER()
        code = self._library.rd_kafka_message_headers(address, ctypes.byref(held))
        if code == _NO_HEADERS:
            return None
        _check(code)
        found: list[tuple[bytes, bytes | None]] = []
        name, value, size = _TEXT(), _POINTER(), _SIZE()
        slots = ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
        while not self._library.rd_kafka_header_get_all(held, len(found), *slots):
            found.append((name.value or b"", _bytes(value.value, size.value)))
        return found


class _List:
    """A rd_kafka_topic_partition_list_t for the time of a block; ctypes passes it as its pointer."""

    def __init__(self, functions: Any, partitions: Iterable[TopicPartition]) -> None:
        self._library = functions
        self._partitions = list(partitions)

    def __enter__(self) -> "_List":
        self._as_parameter_ = self._library.rd_kafka_topic_partition_list_new(len(self._partitions))
        for one in self._partitions:
            place = one.topic.encode(), one.partition
            self._library.rd_kafka_topic_partition_list_add(self, *place)
            self._library.rd_kafka_topic_partition_list_set_offset(self, *place, one.offset)
        return self

    def __exit__(self, *_: object) -> None:
        self._library.rd_kafka_topic_partition_list_destroy(self)

    def with_offset(self, one: TopicPartition) -> TopicPartition:
        """Return the partition with the offset that the list has for it now."""
        found = self._library.rd_kafka_topic_partition_list_find(self, one.topic.encode(), one.partition)
        return TopicPartition(one.topic, one.partition, _TopicPartition.from_address(found).offset)


def library(functions: Mapping[str, tuple[Any, ...]]) -> Any:
    """Return librdkafka as confluent-kafka has loaded it: the loader finds its symbols by the module that needs it.

    `functions` are those to call by their names: the type of the result, then those of the arguments.
    """
    found = ctypes.CDLL(cimpl.__file__)
    for name, (result, *arguments) in functions.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


@cache
def _library() -> Any:
    return library(_FUNCTIONS)


def _check(code: int) -> None:
    if code:
        raise KafkaException(KafkaError(code))


def _bytes(address: int | None, size: int) -> bytes | None:
    return None if address is None else ctypes.string_at(address, size)
