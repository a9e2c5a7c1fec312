"""Reads few records of many partitions: the last verified ones, to be recognised by their digests."""

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from spark.clusters.cluster import Cluster, Partition
from spark.clusters.headers import UndecodableError, headers
from spark.state.model import TAIL_RECORDS, TailRecord

DEADLINE_S = 60.0
SPAN_MAX = 4096  # offsets looked back for TAIL_RECORDS records: transactions leave holes
SMALL_FETCHES = {"max.partition.fetch.bytes": 65_536, "queued.max.messages.kbytes": 4096, "queued.min.messages": 1}


def last_before(
    cluster: Cluster, ends: Mapping[Partition, int], starts: Mapping[Partition, int], isolation: str
) -> dict[Partition, tuple[TailRecord, ...]]:
    """Return the last TAIL_RECORDS records before each end, fewer where the log or SPAN_MAX offsets hold fewer."""
    found: dict[Partition, tuple[TailRecord, ...]] = {}
    span = TAIL_RECORDS
    wanted = {place: end for place, end in ends.items() if end > starts[place]}
    while wanted:
        ranges = {place: (max(starts[place], end - span), end) for place, end in wanted.items()}
        read = records(cluster, ranges, isolation)
        found |= {place: rows[-TAIL_RECORDS:] for place, rows in read.items()}
        wanted = {
            place: end
            for place, end in wanted.items()
            if place in read and len(read[place]) < TAIL_RECORDS and ranges[place][0] > starts[place]
        }
        span *= 16
        if span > SPAN_MAX:
            break
    return found


def records(
    cluster: Cluster, ranges: Mapping[Partition, tuple[int, int]], isolation: str, deadline_s: float = DEADLINE_S
) -> dict[Partition, tuple[TailRecord, ...]]:
    """Return offset and digest of the records in [first, end) of each partition.

    A partition that could not be read to its end within the deadline, or not at all, is left out.
    """
    rows: dict[Partition, list[TailRecord]] = {place: [] for place in ranges}
    wanted = {place: one for place, one in ranges.items() if one[1] > one[0]}
    config = {**SMALL_FETCHES, "auto.offset.reset": "error"}
    deadline = time.monotonic() + deadline_s
    refused: set[Partition] = set()
    for open_consumer in (cluster.consumer, cluster.raw_consumer):
        if not wanted:
            break
        failed, undecodable = _read(open_consumer(isolation, config), wanted, rows, deadline)
        refused |= failed
        wanted = {place: wanted[place] for place in undecodable}
        for place in undecodable:
            rows[place].clear()
    return {place: tuple(found) for place, found in rows.items() if place not in refused}


def _read(
    consumer: Any,
    ranges: Mapping[Partition, tuple[int, int]],
    rows: Mapping[Partition, list[TailRecord]],
    deadline: float,
) -> tuple[set[Partition], set[Partition]]:
    """Add the records to the rows and close the consumer; return the partitions that failed, and the undecodable ones.

    A partition is undecodable if this consumer cannot decode the headers of one of its records.
    """
    failed: set[Partition] = set()
    undecodable: set[Partition] = set()
    left = {place: end for place, (_, end) in ranges.items()}
    try:
        consumer.assign([TopicPartition(*place, ranges[place][0]) for place in left])
        while left and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                place = str(message.topic()), int(message.partition() or 0)
                offset = int(message.offset() or 0)
                if message.error() is not None:
                    failed.add(place)
                elif place in left and offset < left[place] and place not in undecodable:
                    try:
                        rows[place].append((offset, digest(message)))
                    except UndecodableError:
                        undecodable.add(place)
            done = {
                (part.topic, part.partition)
                for part in consumer.position([TopicPartition(*place) for place in left])
                if part.offset >= left[part.topic, part.partition]
            }
            if ended := done | ((failed | undecodable) & set(left)):
                consumer.incremental_unassign([TopicPartition(*place) for place in ended])
                left = {place: end for place, end in left.items() if place not in ended}
    except KafkaException:
        pass  # what is not read to its end is left out
    finally:
        consumer.close()
    return failed | set(left), undecodable - failed


def digest(message: Any) -> str:
    """Return the first 32 hexadecimal digits of the SHA-256 of a message's key, value, headers and timestamp.

    Each part carries its length, null has its own mark. It is not the comparison's digest: both sides' are made here.
    Raises UndecodableError for a name of a header that is not UTF-8.
    """
    parts = [message.key(), message.value(), str(message.timestamp()[1])]
    parts += [part for header in headers(message) or () for part in header]
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(b"N" if data is None else b"V%d:" % len(data))
        found.update(data or b"")
    return found.hexdigest()[:32]
