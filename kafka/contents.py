"""Reads single records by their offsets, for the samples of a report, if the request asks for them."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.cluster import Cluster
from kafka.raw_consumer import UndecodableError, headers
from kafka.topic_partition import TopicPartition

SHOWN_MAX = 500  # characters of a key, a value or a header
RECORD_WITHIN_S = 5.0
ALL_WITHIN_S = 60.0
RecordOffset = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass(frozen=True)
class Content:
    """Key, value and headers as text (bytes that are no text as hexadecimal digits), timestamp in milliseconds."""

    key: str | None
    value: str | None
    headers: tuple[tuple[str, str | None], ...]
    timestamp: int

    def document(self) -> dict[str, Any]:
        """Return the content as JSON values."""
        headers = [list(header) for header in self.headers]
        return {"key": self.key, "value": self.value, "headers": headers, "timestamp": self.timestamp}


def contents(cluster: Cluster, wanted: Mapping[TopicPartition, Iterable[int]]) -> dict[RecordOffset, Content]:
    """Return the records at these offsets; those that are gone, or do not come in time, are left out."""
    deadline = time.monotonic() + ALL_WITHIN_S
    found, undecodable = _read(cluster.consumer("read_uncommitted"), wanted, deadline)
    if undecodable:
        found |= _read(cluster.raw_consumer("read_uncommitted"), undecodable, deadline)[0]
    return found


def _read(
    consumer: Any, wanted: Mapping[TopicPartition, Iterable[int]], deadline: float
) -> tuple[dict[RecordOffset, Content], dict[TopicPartition, list[int]]]:
    """Read with this consumer and close it; return what came, and the offsets of what it cannot decode."""
    found: dict[RecordOffset, Content] = {}
    undecodable: dict[TopicPartition, list[int]] = {}
    try:
        for (topic, partition), offsets in wanted.items():
            for offset in sorted(set(offsets)):
                if time.monotonic() > deadline:
                    return found, undecodable
                consumer.assign([ClientTopicPartition(topic, partition, offset)])
                for message in consumer.consume(1, RECORD_WITHIN_S):
                    if message.error() is not None or message.offset() != offset:
                        continue
                    try:
                        found[topic, partition, offset] = content(message)
                    except UndecodableError:
                        undecodable.setdefault(TopicPartition(topic, partition), []).append(offset)
    finally:
        consumer.close()
    return found, undecodable


def content(message: Any) -> Content:
    """Return what a record holds, in a form that can be shown; raises UndecodableError for a name of a header."""
    named = tuple((text(name) or "", text(value)) for name, value in headers(message) or ())
    return Content(text(message.key()), text(message.value()), named, message.timestamp()[1])


def text(data: str | bytes | None) -> str | None:
    """Return bytes as text, cut to SHOWN_MAX characters; None stays None."""
    if data is None:
        return None
    try:
        shown = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        shown = "0x" + bytes(data).hex()  # type: ignore[arg-type]  # a str was no bytes to decode
    return shown if len(shown) <= SHOWN_MAX else shown[:SHOWN_MAX] + "…"
