"""A producer whose names of headers are any bytes, as producers in C and Go write them; confluent-kafka takes text.

It calls librdkafka as confluent-kafka has loaded it. A made-up broker of librdkafka serves tests without a cluster.
"""

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer

from kafka import raw_consumer

FLUSH_MS = 30_000
_PRODUCER, _COPY = 0, 2  # RD_KAFKA_PRODUCER, RD_KAFKA_MSG_F_COPY
# rd_kafka_vtype_t
_END, _TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP, _HEADERS = 0, 1, 3, 4, 5, 7, 8, 10
_POINTER, _TEXT, _INT, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # result, then arguments
    "rd_kafka_conf_new": (_POINTER,),
    "rd_kafka_conf_set": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, _SIZE),
    "rd_kafka_new": (_POINTER, _INT, _POINTER, _TEXT, _SIZE),
    "rd_kafka_headers_new": (_POINTER, _SIZE),
    "rd_kafka_header_add": (_INT, _POINTER, _TEXT, ctypes.c_ssize_t, _TEXT, ctypes.c_ssize_t),
    "rd_kafka_producev": (_INT, _POINTER),
    "rd_kafka_flush": (_INT, _POINTER, _INT),
    "rd_kafka_outq_len": (_INT, _POINTER),
    "rd_kafka_destroy": (None, _POINTER),
}


@contextmanager
def made_up_broker() -> Iterator[str]:
    """Yield the address of a broker inside this process, which takes and hands out records of any topic."""
    owner = Producer({"bootstrap.servers": "localhost:1", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = owner.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"
    owner.flush(1)


def write(client: Mapping[str, Any], topic: str, partition: int, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records to one partition, in their order; they have what `Producer.produce` takes, and all of it."""
    library = raw_consumer.library(_FUNCTIONS)
    said = ctypes.create_string_buffer(512)
    config = library.rd_kafka_conf_new()
    for name, value in {**client, "enable.idempotence": "true"}.items():
        assert not library.rd_kafka_conf_set(config, name.encode(), str(value).encode(), said, len(said)), said.value
    producer = library.rd_kafka_new(_PRODUCER, config, said, len(said))
    assert producer, said.value
    try:
        for record in records:
            _produce(library, producer, topic, partition, record)
        library.rd_kafka_flush(producer, FLUSH_MS)
        assert library.rd_kafka_outq_len(producer) == 0
    finally:
        library.rd_kafka_destroy(producer)


def _produce(library: Any, producer: int, topic: str, partition: int, record: Mapping[str, Any]) -> None:
    headers = library.rd_kafka_headers_new(len(record["headers"]))
    for name, value in record["headers"]:
        raw = name.encode() if isinstance(name, str) else name
        library.rd_kafka_header_add(headers, raw, len(raw), value, -1 if value is None else len(value))
    arguments = [_INT(_TOPIC), _TEXT(topic.encode()), _INT(_PARTITION), ctypes.c_int32(partition)]
    for kind, data in ((_VALUE, record["value"]), (_KEY, record["key"])):
        arguments += [_INT(kind), _TEXT(data), _SIZE(len(data or b""))]
    arguments += [_INT(_TIMESTAMP), ctypes.c_int64(record["timestamp"]), _INT(_FLAGS), _INT(_COPY)]
    arguments += [_INT(_HEADERS), _POINTER(headers), _INT(_END)]
    assert library.rd_kafka_producev(producer, *arguments) == 0
