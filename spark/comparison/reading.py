"""Reads ranges of partitions with a consumer of this process; of a record only its hashes are kept.

A record's digest is the same words as the Spark expressions of `record_rows`. Spark's XXH64 of several columns takes
each as the seed of the next, and passes over nulls. `hashes` computes the digest of one record and says what it is;
`hashes_of` computes those of many at once, and calls only C functions per record.
Imports neither Spark nor Arrow: processes that do nothing but read start with this module.
"""

import struct
import time
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition
from xxhash import xxh64_intdigest

from contract.fields import VerificationError
from kafka.cluster import Cluster
from kafka.errors import PASSING
from kafka.raw_consumer import Headers, headers_of
from kafka.topic_partition import TopicPartition

SEED = 42  # Spark's
SECOND = 7_046_029_254_386_353_131  # any constant: it seeds the second word
NULL = "\0null-dd1c2b4f5a7e\0"  # any text that is no header's value
_LONG, _INT = struct.Struct("<q"), struct.Struct("<i")
_WORD, _SIGN = 2**64, 2**63
_STAMP_MAX = (_SIGN - 1) // 1000  # milliseconds that are microseconds of 64 bits
_SECOND_SEED = xxh64_intdigest(_LONG.pack(SECOND), SEED)
# XXH64's primes, see its specification
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_Words = npt.NDArray[np.uint64]
Hashes = tuple[int, int, int | None, int | None, int, int]
"""Words a and b, key, value, headers, timestamp in milliseconds: as columns of `record_rows.words` and `hashes`."""
BATCH = 1000  # messages at most that are hashed together; a poll's time bounds what they hold
POLL_S = 0.1  # a poll lasts that long if fewer records come than it waits for
FETCH_S = 30  # for the next records to come; a broker that is gone ends the run by this
OFFSET, A, B, KEY, VALUE, HEADERS, TIMESTAMP, NULLS = range(8)
COLUMNS = 8
NULL_KEY, NULL_VALUE = 1, 2  # bits of NULLS: the hash of what is null is 0 in its column
Log = npt.NDArray[np.int64]
"""Records in the order of their offsets, each once: rows of COLUMNS numbers."""
_Rows = dict[TopicPartition, "array[int]"]


def hashes(key: bytes | None, value: bytes | None, headers: Headers | None, timestamp: int) -> Hashes:
    """Return the words of a record's digest and the hashes of its parts, signed 64-bit numbers; timestamp in ms."""
    signed = _headers(headers)
    stamp = _microseconds(timestamp)
    a = _content(SEED, key, value, value, signed, stamp)
    crc = None if value is None else _LONG.pack(zlib.crc32(value))
    b = _content(_SECOND_SEED, key, value, crc, signed, stamp)
    parts = (None if part is None else _signed(xxh64_intdigest(part, SEED)) for part in (key, value))
    hashed_key, hashed_value = parts
    return _signed(a), _signed(b), hashed_key, hashed_value, signed, timestamp


def hashes_of(
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers | None],
    timestamps: Sequence[int],
) -> npt.NDArray[np.int64]:
    """Return a row with the `hashes` of each record; the hash of a null is 0."""
    stamps = np.array(timestamps, dtype=np.int64)
    signed = np.zeros(len(stamps), dtype=np.int64)
    if any(headers):
        signed[:] = [_headers(one) for one in headers]
    # Both words at once: they begin with different seeds, and differ in what they take of the value.
    words = _hash_of_long((stamps * 1000).view(np.uint64), np.array([[SEED], [_SECOND_SEED]], dtype=np.uint64))
    held, at, nulls = _not_null(keys)
    words = _hash_of_int(nulls, words)
    hashed_keys = np.zeros_like(nulls)
    hashed_keys[at] = _hashes_of_bytes(held, repeat(SEED))
    for word in words:
        word[at] = _hashes_of_bytes(held, word[at].tolist())
    held, at, nulls = _not_null(values)
    words = _hash_of_int(nulls, words)
    hashed_values = np.zeros_like(nulls)
    hashed_values[at] = _hashes_of_bytes(held, repeat(SEED))
    words[0, at] = _hashes_of_bytes(held, words[0, at].tolist())
    words[1, at] = _hash_of_long(np.fromiter(map(zlib.crc32, held), np.uint64, len(held)), words[1, at])
    words = _hash_of_long(signed.view(np.uint64), words)
    columns = (*words.view(np.int64), hashed_keys.view(np.int64), hashed_values.view(np.int64), signed, stamps)
    found = np.stack(columns, axis=1)
    for at in np.flatnonzero((stamps > _STAMP_MAX) | (stamps < -_STAMP_MAX)).tolist():
        found[at] = [one or 0 for one in hashes(keys[at], values[at], headers[at], timestamps[at])]
    return found


def digest_of(a: int, b: int) -> str:
    """Both words as 32 hexadecimal digits, as `record_rows.digest` writes them."""
    return f"{a % _WORD:016x}{b % _WORD:016x}"


def log_number(log: str, topic: str, partition: int) -> int:
    """Return the even number that stands for a partition of a named log: Spark's XXH64 of all three, times two."""
    seed = SEED
    for part in (log.encode(), topic.encode(), _INT.pack(partition)):
        seed = xxh64_intdigest(part, seed)
    return _signed(seed * 2 % _WORD)


def _content(seed: int, key: bytes | None, value: bytes | None, taken: bytes | None, headers: int, stamp: bytes) -> int:
    seed = xxh64_intdigest(stamp, seed)
    seed = xxh64_intdigest(_INT.pack(key is None), seed)
    if key is not None:
        seed = xxh64_intdigest(key, seed)
    seed = xxh64_intdigest(_INT.pack(value is None), seed)
    if taken is not None:
        seed = xxh64_intdigest(taken, seed)
    return xxh64_intdigest(_LONG.pack(headers), seed)


def _not_null(parts: Sequence[bytes | None]) -> tuple[Sequence[bytes], Any, _Words]:
    """Return what is not null, the index that selects it, and 1 for each null among the parts, 0 for the others."""
    nulls = np.zeros(len(parts), dtype=np.uint64)
    if parts.count(None) == 0:
        return cast("Sequence[bytes]", parts), slice(None), nulls
    nulls[:] = [part is None for part in parts]
    return [part for part in parts if part is not None], np.flatnonzero(nulls == 0), nulls


def _hashes_of_bytes(parts: Sequence[bytes], seeds: Iterable[int]) -> _Words:
    return np.fromiter(map(xxh64_intdigest, parts, seeds), np.uint64, len(parts))


def _hash_of_long(numbers: _Words, seeds: _Words) -> _Words:
    """XXH64 of 8 bytes; the seeds may have more dimensions."""
    word = (seeds + (_P5 + np.uint64(8))) ^ (_rotated(numbers * _P2, 31) * _P1)
    return _avalanche(_rotated(word, 27) * _P1 + _P4)


def _hash_of_int(numbers: _Words, seeds: _Words) -> _Words:
    """XXH64 of 4 bytes."""
    word = (seeds + (_P5 + np.uint64(4))) ^ (numbers * _P1)
    return _avalanche(_rotated(word, 23) * _P2 + _P3)


def _rotated(words: _Words, bits: int) -> _Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _avalanche(words: _Words) -> _Words:
    words = (words ^ (words >> np.uint64(33))) * _P2
    words = (words ^ (words >> np.uint64(29))) * _P3
    return words ^ (words >> np.uint64(32))


def _microseconds(timestamp: int) -> bytes:
    """The timestamp as Spark hashes it; one that Spark cannot hold in another form, which none of the others has."""
    try:
        return _LONG.pack(timestamp * 1000)
    except struct.error:
        return _LONG.pack(timestamp) + _LONG.pack(0)


def _headers(headers: Headers | None) -> int:
    if not headers:
        return 0
    seed = SEED
    for name, value in headers:
        seed = xxh64_intdigest(name.encode() if isinstance(name, str) else name, seed)
        if value is not None:
            seed = xxh64_intdigest(value, seed)
    seed = xxh64_intdigest(_INT.pack(len(headers)), seed)
    joined = b",".join(NULL.encode() if value is None else value for _, value in headers)
    return _signed(xxh64_intdigest(joined, seed))


def _signed(word: int) -> int:
    return word - _WORD if word >= _SIGN else word


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
