"""How far a lost mirror had copied, and the offset syncs and checkpoints that a failback corrects.

A mirror commits its position only now and then. The records that it had copied after its last commit are the last ones
on the target, in the same order; they are found by their content, so that they are not copied twice. However far both
sides are apart, at most `WINDOW` records of one partition are in memory, 20 bytes each: the source's first ones after
the commit. The target's are read one after the other and compared with them (Knuth, Morris, Pratt). Where records are
equal, the `CONTEXT` records in front of the commit decide which of them was the last one that was copied.

Records that are copied back get new offsets at the source. For these the mirror's old offset syncs give wrong offsets
on the target, and a group would be set too far. MirrorMaker uses the last sync and checkpoint, so one correct one of
each replaces the old ones. Formats: OffsetSync and Checkpoint of connect-mirror.

Owns the comparison by content, and what is appended to MirrorMaker's own topics. Does not own the offsets of Connect
(`connector_offsets.py`), nor when a failback corrects which.
"""

import hashlib
import os
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from typing import NoReturn

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Mirror
from kafka.cluster import Cluster
from kafka.raw_consumer import headers_as_copied
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

SILENT_S = 60.0
WINDOW = 4 * 1024 * 1024
CONTEXT = 1000
Record = tuple[int, int]
"""Offset and digest of content, 64 bits."""
Read = Callable[[int], Generator[Record]]
"""Yields a partition's records from an offset on."""
_KEY = os.urandom(16)  # nobody can write records whose digests are equal
WRITTEN_WITHIN_S = 20.0
PERMISSION_EVERY = 1000
"""Mappings after which permission to write is asked for again: a million take longer than a Lease."""
_CHECKPOINT_VERSION = 0


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
        last = last_common_offset(ahead, start, tail, max(0, until - length))
        if last is not None:
            found[tp] = last
    return found


def last_common_offset(
    ahead: Read, ahead_start: int, tail: Read, tail_start: int, window: int | None = None
) -> int | None:
    """Return the offset in `ahead` of the last record of the run that begins `ahead` and ends `tail`.

    None if they have no such run. Where equal records allow several, it is the one that agrees longest when the
    comparison goes on with the `CONTEXT` records in front of both; if several agree in all of these, the shortest: it
    may repeat a record, and skips none. `window` is how many records of `ahead` are in memory, `WINDOW` if None.
    """
    with closing(ahead(max(0, ahead_start - CONTEXT))) as records:
        begin = _Beginning(records, ahead_start, window or WINDOW)
    run = _Run(begin)
    with closing(tail(max(0, tail_start - CONTEXT))) as records:
        for offset, digest in records:
            run.follow(digest)
            if run.length == (window or WINDOW):
                last = _last_if_equal(ahead, begin.offsets[-1], tail, offset)
                if last is not None:
                    return last
    length = run.in_context()
    return begin.offsets[length - 1] if length else None


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
    """The first records of a log from an offset on, and the last ones in front of it."""

    def __init__(self, records: Iterator[Record], start: int, window: int) -> None:
        self.offsets, self.digests, self.borders = array("q"), array("Q"), array("I")
        front = deque[int](maxlen=CONTEXT)
        matched = 0
        for offset, digest in records:
            if offset < start:
                front.append(digest)
                continue
            if self.digests:
                matched = self.advance(matched, digest)
            self.offsets.append(offset)
            self.digests.append(digest)
            self.borders.append(matched)
            if len(self.offsets) == window:
                break
        self.context = array("Q", front)

    def advance(self, matched: int, digest: int) -> int:
        """Return how many of the first records match the last ones that came, the last of which has this digest.

        `matched` is what it returned for the one before.
        """
        digests, borders = self.digests, self.borders
        while matched and (matched == len(digests) or digests[matched] != digest):
            matched = borders[matched - 1]
        return matched + 1 if digests and digests[matched] == digest else 0


class _Run:
    """The longest run of first records that another log ends with, and what that log has in front of it."""

    def __init__(self, begin: _Beginning) -> None:
        self._begin = begin
        self._front = deque[int](maxlen=CONTEXT)
        self.length = 0

    def follow(self, digest: int) -> None:
        """Take in the next record of the other log."""
        before, self.length = self.length, self._begin.advance(self.length, digest)
        left = before + 1 - self.length  # so many are in front of the run now
        self._front.extend(self._begin.digests[max(0, left - CONTEXT) : min(left, before)])
        if left > before:
            self._front.append(digest)

    def in_context(self) -> int:
        """Return how many records were copied: the length of the run that the records in front of both confirm."""
        lengths = array("I", [self.length])
        while lengths[-1]:
            lengths.append(self._begin.borders[lengths[-1] - 1])
        best, most = 0, 0
        for length in reversed(lengths):
            agreeing = self._agreeing(length)
            if agreeing == CONTEXT:
                return length
            if length + agreeing > most:
                best, most = length, length + agreeing
        return best

    def _agreeing(self, length: int) -> int:
        """How many records in front of a run of this length are those in front of the beginning."""
        between = self._begin.digests[max(0, self.length - length - CONTEXT) : self.length - length]
        front = chain(reversed(between), reversed(self._front))
        return sum(
            1
            for _ in takewhile(lambda pair: pair[0] == pair[1], zip(reversed(self._begin.context), front, strict=False))
        )


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
                    yield offset, record_digest(message)
            deadline = time.monotonic() + SILENT_S if read else deadline
            if consumer.position([ClientTopicPartition(*tp)])[0].offset >= end:
                return
        raise OpsError(
            f"{side.side.role} {side.side.alias}: {tp[0]}-{tp[1]} must be readable from {start} to {end} (got "
            f"{count} records, then none for {SILENT_S:.0f} s). Check the brokers, then run the command again."
        )
    finally:
        consumer.close()


def record_digest(message: Message) -> int:
    """Return 64 bits of what a record is: key, value, headers, and the time that its producer gave it."""
    kind, stamp = message.timestamp()
    named = headers_as_copied(message)
    parts = (message.key(), message.value(), named, stamp if kind == TIMESTAMP_CREATE_TIME else None)
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8, key=_KEY).digest(), "big")


@dataclass(frozen=True, kw_only=True, slots=True)
class OffsetMapping:
    """The target offset `downstream` that corresponds to the source offset `upstream`: the same record comes next.

    With a `group` it is a checkpoint of the group, without one an offset sync of the partition.
    """

    topic_partition: TopicPartition
    upstream: int
    downstream: int
    group: str | None = None


def of_partitions(
    topic_partitions: Iterable[TopicPartition],
    source: tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]],
    target: tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]],
) -> list[OffsetMapping]:
    """Return offset syncs that map the log start and end offsets of partitions with the same records on both sides.

    The first one of a partition is older than all others, so that MirrorMaker clears its store
    (OffsetSyncStore.updateSyncArray).

    Args:
        topic_partitions: Source partitions.
        source: Log start offsets and log end offsets on the source.
        target: The same on the target.
    """
    found = []
    for tp in sorted(topic_partitions):
        ends = source[1].get(tp, 0), target[1].get(tp, 0)
        starts = source[0].get(tp, 0), target[0].get(tp, 0)
        pairs = ((-1, starts[1] - 1), starts, ends)
        found += [
            OffsetMapping(topic_partition=tp, upstream=upstream, downstream=downstream)
            for upstream, downstream in pairs
        ]
    return found


def of_groups(
    topic_partitions: Iterable[TopicPartition],
    source: Mapping[str, Mapping[TopicPartition, int]],
    target: Mapping[str, Mapping[TopicPartition, int]],
) -> Iterator[OffsetMapping]:
    """Yield a checkpoint for each group's committed offset in these partitions."""
    wanted = set(topic_partitions)
    for group, positions in sorted(source.items()):
        for tp, upstream in sorted(positions.items()):
            if tp in wanted and tp in target.get(group, {}):
                yield OffsetMapping(topic_partition=tp, upstream=upstream, downstream=target[group][tp], group=group)


def write(
    mappings: Iterable[OffsetMapping],
    mirror: Mirror,
    source: Cluster,
    target: Cluster,
    require_permission: Callable[[], None] = lambda: None,
) -> int:
    """Append the mappings to MirrorMaker's own topics, and return how many; raises OpsError. Idempotent.

    The mirror must be stopped. Each mapping is taken when it is written: there may be a million. `require_permission`
    is called before the first one and after each `PERMISSION_EVERY`, and raises if nothing more must be written.
    """
    syncs, number = mirror.offset_syncs_topic, 0
    of_groups, of_places = _Appender(target, mirror.checkpoints_name), None
    if syncs is not None:
        of_places = _Appender(source if syncs.location == "source" else target, syncs.name)
    for mapping in mappings:
        if number % PERMISSION_EVERY == 0:
            require_permission()
        number += 1
        if mapping.group is not None:
            of_groups.append(*_checkpoint(mapping, mirror))
        elif of_places is not None:
            of_places.append(*_sync(mapping))
    of_groups.finish()
    if of_places is not None:
        of_places.finish()
    return number


def _sync(mapping: OffsetMapping) -> tuple[bytes, bytes]:
    topic, partition = mapping.topic_partition
    return _string(topic) + struct.pack(">i", partition), struct.pack(">qq", mapping.upstream, mapping.downstream)


def _checkpoint(mapping: OffsetMapping, mirror: Mirror) -> tuple[bytes, bytes]:
    topic, partition = mapping.topic_partition
    key = _string(str(mapping.group)) + _string(mirror.target_topic(topic)) + struct.pack(">i", partition)
    value = struct.pack(">hqq", _CHECKPOINT_VERSION, mapping.upstream, mapping.downstream) + _string("")
    return key, value


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


class _Appender:
    """Appends records to one topic; the client holds so many of them as its queue takes."""

    def __init__(self, side: Cluster, topic: str) -> None:
        self._side = side
        self._topic = topic
        self._problems: list[str] = []
        self._producer: Producer | None = None

    def append(self, key: bytes, value: bytes) -> None:
        """Append a record; raises OpsError once one was refused, or if for `WRITTEN_WITHIN_S` none is taken."""
        if self._producer is None:
            self._producer = self._side.producer({"message.timeout.ms": int(WRITTEN_WITHIN_S * 1000)})
        while True:
            try:
                self._producer.produce(self._topic, key=key, value=value, on_delivery=self._delivered)
            except BufferError:  # the queue is full
                if not self._producer.poll(WRITTEN_WITHIN_S + 5):
                    self._refuse()
            else:
                break
        self._producer.poll(0)
        if self._problems:
            self._refuse()

    def finish(self) -> None:
        """Wait until all records are written; raises OpsError if one is not."""
        if self._producer is not None and (self._producer.flush(WRITTEN_WITHIN_S + 5) or self._problems):
            self._refuse()

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self._problems.append(error.str())

    def _refuse(self) -> NoReturn:
        side, got = self._side.side, self._problems[0] if self._problems else "no answer"
        raise OpsError(
            f"cluster {side.alias}: topic {self._topic} must accept the offset mappings (got {got}). Give user "
            f"{side.user} Write on it and run this again."
        )
