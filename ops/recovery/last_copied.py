"""How far a lost mirror had copied: the last source offset of each partition whose record is on the target.

A mirror commits its position only now and then. The records that it had copied after its last commit are the last ones
on the target, in the same order; they are found by their content, so that they are not copied twice.

However far both sides are apart, at most `WINDOW` records of one partition are in memory, 20 bytes each: the source's
first ones after the commit. The target's are read one after the other and compared with them (Knuth, Morris, Pratt).
"""

import hashlib
import os
import time
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import islice

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Message
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.cluster import Cluster
from kafka.raw_consumer import headers_as_copied
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

SILENT_S = 60.0
WINDOW = 4 * 1024 * 1024
Record = tuple[int, int]
"""Offset and digest of content, 64 bits."""
Read = Callable[[int], Generator[Record]]
"""Yields a partition's records from an offset on."""
_KEY = os.urandom(16)  # nobody can write records whose digests are equal


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
        start, until = committed.get(tp, -1) + 1, boundary.get(tp, 0)
        length = min(end - start, until)
        if length <= 0:
            continue
        ahead, tail = partial(read_records, source, tp, end), partial(read_records, target, tp, until)
        last = last_common_offset(ahead, start, tail, until - length)
        if last is not None:
            found[tp] = last
    return found


def last_common_offset(
    ahead: Read, ahead_start: int, tail: Read, tail_start: int, window: int | None = None
) -> int | None:
    """Return the offset in `ahead` of the last record of the longest run that begins `ahead` and ends `tail`.

    None if they have no record in common. `window` is how many records of `ahead` are in memory, `WINDOW` if None.
    """
    with closing(ahead(ahead_start)) as records:
        begin = _Beginning(islice(records, window or WINDOW))
    matched = 0
    with closing(tail(tail_start)) as records:
        for offset, digest in records:
            matched = begin.advance(matched, digest)
            if matched == (window or WINDOW):
                last = _last_if_equal(ahead, begin.offsets[-1], tail, offset)
                if last is not None:
                    return last
    return begin.offsets[matched - 1] if matched else None


def _last_if_equal(ahead: Read, last: int, tail: Read, last_of_tail: int) -> int | None:
    """Return the last offset of `ahead` that `tail` has if all that follows in `tail` also follows in `ahead`."""
    with (
        closing(ahead(last + 1)) as following,
        closing(tail(last_of_tail + 1)) as rest,
    ):
        for _, digest in rest:
            offset, expected = next(following, (0, None))
            if expected != digest:
                return None
            last = offset
    return last


class _Beginning:
    """The first records of a log, against which the records of another one are compared as they come."""

    def __init__(self, records: Iterator[Record]) -> None:
        self.offsets, self._digests, self._borders = array("q"), array("Q"), array("I")
        matched = 0
        for offset, digest in records:
            if self._digests:
                matched = self.advance(matched, digest)
            self.offsets.append(offset)
            self._digests.append(digest)
            self._borders.append(matched)

    def advance(self, matched: int, digest: int) -> int:
        """Return how many of the first records match the last ones that came, the last of which has this digest.

        `matched` is what it returned for the one before.
        """
        digests, borders = self._digests, self._borders
        while matched and (matched == len(digests) or digests[matched] != digest):
            matched = borders[matched - 1]
        return matched + 1 if digests and digests[matched] == digest else 0


def read_records(side: Cluster, tp: TopicPartition, end: int, start: int) -> Generator[Record]:
    """Yield the records of [start, end), of aborted transactions none; raises OpsError if none come for a while."""
    consumer: Consumer = side.consumer("read_committed")
    try:
        consumer.assign([ClientTopicPartition(*tp, start)])
        deadline, count = time.monotonic() + SILENT_S, 0
        while time.monotonic() < deadline:
            read = [message for message in consumer.consume(1000, timeout=0.2) if message.error() is None]
            for message in read:
                offset = int(message.offset() or 0)
                if offset < end:
                    count += 1
                    yield offset, _digest(message)
            deadline = time.monotonic() + SILENT_S if read else deadline
            if consumer.position([ClientTopicPartition(*tp)])[0].offset >= end:
                return
        raise OpsError(
            f"{side.side.role} {side.side.alias}: {tp[0]}-{tp[1]} must be readable from {start} to {end} (got "
            f"{count} records, then none for {SILENT_S:.0f} s). Check the brokers, then run the command again."
        )
    finally:
        consumer.close()


def _digest(message: Message) -> int:
    kind, stamp = message.timestamp()
    named = headers_as_copied(message)
    parts = (message.key(), message.value(), named, stamp if kind == TIMESTAMP_CREATE_TIME else None)
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8, key=_KEY).digest(), "big")
