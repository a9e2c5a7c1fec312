"""Reads ranges of partitions with a consumer of this process; of a record only its hashes are kept.

Imports neither Spark nor Arrow: processes that do nothing but read start with this module.
"""

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.fields import VerificationError
from kafka.cluster import Cluster
from kafka.errors import PASSING
from kafka.raw_consumer import Headers, headers_of
from kafka.topic_partition import TopicPartition
from spark.comparison.hashing import hashes_of

BATCH = 1000  # messages at most that are hashed together; a poll's time bounds what they hold
POLL_S = 0.1  # a poll lasts that long if fewer records come than it waits for
FETCH_S = 30  # for the next records to come; a broker that is gone ends the run by this
OFFSET, A, B, KEY, VALUE, HEADERS, TIMESTAMP, NULLS = range(8)
COLUMNS = 8
NULL_KEY, NULL_VALUE = 1, 2  # bits of NULLS: the hash of what is null is 0 in its column
Log = npt.NDArray[np.int64]
"""Records in the order of their offsets, each once: rows of COLUMNS numbers."""
_Rows = dict[TopicPartition, "array[int]"]


class SessionError(VerificationError):
    """Spark cannot be started, or cannot read the clusters."""


@dataclass(frozen=True)
class ReadRange:
    """Offsets [start, end) of one partition of one cluster's topic."""

    topic: str
    partition: int
    start: int
    end: int


def read_ranges(
    cluster: Cluster,
    isolation: str,
    ranges: Sequence[ReadRange],
    advance: Callable[[int, int], None],
    config: Mapping[str, Any] | None = None,
) -> dict[TopicPartition, Log]:
    """Return the data records of these ranges, one of each partition; `config` adds properties of the consumer.

    From a record with a header whose name is not UTF-8 on, a partition is read by a `RawConsumer`.
    Raises ClusterError for what the user may not read, SessionError when no record comes for FETCH_S.
    """
    found: _Rows = {TopicPartition(one.topic, one.partition): array("q") for one in ranges}
    eof = {"enable.partition.eof": True, **(config or {})}
    if undecodable := _read(cluster, cluster.consumer(isolation, eof), ranges, found, advance):
        _read(cluster, cluster.raw_consumer(isolation, eof), undecodable, found, advance)
    return {tp: in_order(np.frombuffer(rows, dtype=np.int64).reshape(-1, COLUMNS)) for tp, rows in found.items()}


def in_order(log: Log) -> Log:
    """Return the rows in the order of their offsets, each once."""
    if np.all(log[1:, OFFSET] > log[:-1, OFFSET]):
        return log
    _, first = np.unique(log[:, OFFSET], return_index=True)
    return log[first]


def _read(
    cluster: Cluster,
    consumer: Any,
    ranges: Sequence[ReadRange],
    found: _Rows,
    advance: Callable[[int, int], None],
) -> list[ReadRange]:
    """Read these ranges and close the consumer; return what is left from records on that it cannot decode."""
    wanted = {TopicPartition(one.topic, one.partition): one for one in ranges}
    undecodable: list[ReadRange] = []
    try:
        consumer.assign([ClientTopicPartition(one.topic, one.partition, one.start) for one in ranges])
        heard = time.monotonic()
        rest = sum(one.end - one.start for one in ranges)
        while wanted:
            messages = consumer.consume(max(1, min(BATCH, rest)), timeout=POLL_S)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > FETCH_S:
                raise SessionError(_silence(cluster, wanted.values(), found))
            before = len(wanted)
            left = len(undecodable)
            read = _take(cluster, consumer, messages, wanted, found, undecodable)
            rest -= read
            advance(before - len(wanted) - (len(undecodable) - left), read)
    finally:
        consumer.close()
    return undecodable


def _take(
    cluster: Cluster,
    consumer: Any,
    messages: Iterable[Any],
    wanted: dict[TopicPartition, ReadRange],
    found: _Rows,
    undecodable: list[ReadRange],
) -> int:
    """Keep the hashes of the records that are wanted, and end the ranges that are read; return how many were kept.

    A range with a record that cannot be decoded ends too, and what is left of it is added to `undecodable`.
    """
    records: dict[tuple[str, int], list[Any]] = defaultdict(list)  # plain tuples: one is made for each record
    errors = []
    for message in messages:
        if message.error() is None:
            records[message.topic(), message.partition()].append(message)
        else:
            errors.append(message)
    kept: list[Any] = []
    offsets: list[int] = []
    named: list[Headers | None] = []
    counts: dict[TopicPartition, int] = {}
    for (topic, partition), held in records.items():
        tp = TopicPartition(topic, partition)
        part = wanted.get(tp)
        if part is None:
            continue
        at = [message.offset() for message in held]
        if (last := max(at)) >= part.end:
            held = [message for message, offset in zip(held, at, strict=True) if offset < part.end]
            at = [offset for offset in at if offset < part.end]
        decoded = headers_of(held)
        if len(decoded) < len(at):
            undecodable.append(replace(part, start=at[len(decoded)]))
            del at[len(decoded) :]
            _end(consumer, tp, wanted)
        elif last >= part.end - 1:
            _end(consumer, tp, wanted)
        kept += held[: len(at)]
        offsets += at
        named += decoded
        counts[tp] = len(at)
    _keep(kept, offsets, named, counts, found)
    for message in errors:
        _hear(cluster, consumer, message, wanted)
    return len(kept)


def _keep(
    messages: Sequence[Any],
    offsets: Sequence[int],
    named: Sequence[Headers | None],
    counts: Mapping[TopicPartition, int],
    found: _Rows,
) -> None:
    """Hash records, so many of each partition one after the other, and keep the hashes."""
    keys = [message.key() for message in messages]
    values = [message.value() for message in messages]
    rows = np.empty((len(messages), COLUMNS), dtype=np.int64)
    rows[:, OFFSET] = offsets
    rows[:, A:NULLS] = hashes_of(keys, values, named, [message.timestamp()[1] for message in messages])
    rows[:, NULLS] = 0
    for parts, bit in ((keys, NULL_KEY), (values, NULL_VALUE)):
        if None in parts:
            rows[:, NULLS] |= [bit if part is None else 0 for part in parts]
    start = 0
    for tp, count in counts.items():
        found[tp].frombytes(rows[start : start + count].tobytes())
        start += count


def _hear(cluster: Cluster, consumer: Any, message: Any, wanted: dict[TopicPartition, ReadRange]) -> None:
    """End a range whose log ends, behind its records of the same batch; raises ClusterError for what is refused."""
    tp = TopicPartition(message.topic(), message.partition())
    error, part = message.error(), wanted.get(tp)
    if part is None:
        return
    if error.code() == KafkaError._PARTITION_EOF:
        # A log that ends in front of the range lost its leader and comes back, or falls silent.
        if message.offset() >= part.end:
            _end(consumer, tp, wanted)
    elif error.code() not in PASSING:
        what = f"read topic {part.topic}"
        cluster.refusals.call(what, KafkaException(error), ("Read", f"topic {part.topic}"))


def _end(consumer: Any, tp: TopicPartition, wanted: dict[TopicPartition, ReadRange]) -> None:
    consumer.pause([ClientTopicPartition(*tp)])
    del wanted[tp]


def _silence(cluster: Cluster, ranges: Iterable[ReadRange], found: _Rows) -> str:
    one = min(ranges, key=lambda part: (part.topic, part.partition))
    read = found[TopicPartition(one.topic, one.partition)]
    at = max(read[OFFSET::COLUMNS], default=one.start - 1) + 1
    what = f"no record came from offset {at} on within {FETCH_S} s (topic {one.topic}, partition {one.partition})"
    fix = "Check that its brokers stay up and that their advertised listeners can be reached from here."
    return cluster.refusals.message(what, fix)
