"""How far a lost mirror had copied: the last source offset of each partition whose record is on the target.

A mirror commits its position only now and then. The records that it had copied after its last commit are the last ones
on the target, in the same order; they are found by their content, so that they are not copied twice.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Message
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.cluster import Cluster
from kafka.raw_consumer import headers_as_copied
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

SILENT_S = 60.0
Record = tuple[int, bytes]
"""Offset and digest of content."""


def last_copied_offsets(
    source: Cluster,
    target: Cluster,
    committed: Mapping[TopicPartition, int],
    source_ends: Mapping[TopicPartition, int],
    boundary: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return the last source offset that is on the target, for partitions where that is more than was committed.

    `committed` is the last offset whose copying the mirror has committed, `boundary` where the target ended when the
    mirror was stopped. Names are the same on both sides.
    """
    found: dict[TopicPartition, int] = {}
    for tp, end in sorted(source_ends.items()):
        start = committed.get(tp, -1) + 1
        length = min(end - start, boundary.get(tp, 0))
        if length <= 0:
            continue
        ahead = _read(source, tp, start, end)
        tail = _read(target, tp, max(0, boundary[tp] - length), boundary[tp])
        common = overlap([digest for _, digest in ahead], [digest for _, digest in tail])
        if common:
            found[tp] = ahead[common - 1][0]
    return found


def overlap(ahead: Sequence[bytes], tail: Sequence[bytes]) -> int:
    """Return how many of the first of `ahead` are the last of `tail`, as many as possible."""
    borders: list[int] = []
    length = 0
    for item in ahead:
        while borders and length and (length == len(ahead) or ahead[length] != item):
            length = borders[length - 1]
        length = length + 1 if borders and ahead[length] == item else 0
        borders.append(length)
    length = 0
    for item in tail:
        while length and (length == len(ahead) or ahead[length] != item):
            length = borders[length - 1]
        if ahead and ahead[length] == item:
            length += 1
    return length


def _read(side: Cluster, tp: TopicPartition, start: int, end: int) -> list[Record]:
    """Records of [start, end), of aborted transactions none."""
    consumer: Consumer = side.consumer("read_committed")
    found: list[Record] = []
    try:
        consumer.assign([ClientTopicPartition(*tp, start)])
        deadline = time.monotonic() + SILENT_S
        while time.monotonic() < deadline:
            read = [message for message in consumer.consume(1000, timeout=0.2) if message.error() is None]
            within = [(int(message.offset() or 0), message) for message in read]
            found += [(offset, _digest(message)) for offset, message in within if offset < end]
            deadline = time.monotonic() + SILENT_S if read else deadline
            if consumer.position([ClientTopicPartition(*tp)])[0].offset >= end:
                return found
        raise OpsError(
            f"{side.side.role} {side.side.alias}: {tp[0]}-{tp[1]} must be readable from {start} to {end} (got "
            f"{len(found)} records, then none for {SILENT_S:.0f} s). Check the brokers, then run the command again."
        )
    finally:
        consumer.close()


def _digest(message: Message) -> bytes:
    kind, stamp = message.timestamp()
    named = headers_as_copied(message)
    parts = (message.key(), message.value(), named, stamp if kind == TIMESTAMP_CREATE_TIME else None)
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()
