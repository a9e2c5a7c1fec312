"""Positions between two offset syncs, proven by the records: read on both sides from the last proven pair on.

The pair before a position is of the same record on both sides. As long as the records behind it are the same, one by
one, each is the counterpart of the other, also where several are equal. Where they differ (compaction), the last record
in front of the position counts if neither side has it twice between the two pairs.

Or the same is done from the next pair back to the position and beyond it: there is no pair before the first one,
compaction may have removed it, and of records that the mirror has repeated the last copies count. There other copies
may end where these begin, and equal records prove nothing: one that the source does not have twice must be the same.

Owns the comparison and the reading of the few records that it needs. Does not own which positions need it.
"""

import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.checkpoints import OffsetSync
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.recovery.mirror_offsets import record_digest

RECORDS_MAX = 5000
"""Records of a partition that are read at once, on each side."""
IN_FRONT = 100
"""Source offsets in front of those that are compared from the next pair back: is a record there twice?"""
REACH = RECORDS_MAX - IN_FRONT - 1
"""Source offsets in front of a pair that are compared at once, the record of the pair itself left out."""
READ_WITHIN_S = 5.0
_ALL = 1 << 62
_FETCH = {
    "fetch.message.max.bytes": 262_144,
    "queued.max.messages.kbytes": 16_384,
    "queued.min.messages": 1000,
    # The next partitions are asked for only when the broker has answered for the last ones.
    "fetch.wait.max.ms": 5,
}
_WAIT_S = 0.01
"""A call waits so long for records, unless there are as many as it asks for; how old positions are rests on that."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Where to compare: from a proven pair to the next one, or to where the logs end. `wanted`: the last position.

    Without an `anchor`: from the pair `following` back to `wanted`, which is the first position. Unless `whole`, up to
    `wanted` only.
    """

    source: TopicPartition
    target: TopicPartition
    anchor: OffsetSync | None
    following: OffsetSync | None
    wanted: int
    whole: bool = True

    @property
    def ranges(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first offset and the one behind the last, of both sides."""
        first, last = self.anchor, self.following
        if last is None:
            return (first.upstream if first else 0, self.wanted), (first.downstream if first else 0, _ALL)
        if first is not None and not self.whole:
            end = min(last.downstream, first.downstream + self.wanted - first.upstream)
            return (first.upstream, self.wanted), (first.downstream, end)
        start = max(0, (first.upstream if first else self.wanted) - IN_FRONT)
        # A mirror writes no more than it reads.
        on_target = first.downstream if first else max(0, last.downstream - (last.upstream - start))
        return (start, last.upstream + 1), (on_target, last.downstream + 1)


@dataclass(slots=True)
class Records:
    """Offsets and digests of the records of one side from the first pair on.

    `complete`: all up to the end of the range. `dropped`: there were more than are read at once.
    """

    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    digests: "array[int]" = field(default_factory=lambda: array("Q"))
    complete: bool = False
    dropped: bool = False

    def add(self, offset: int, digest: int) -> None:
        """Take in the next record."""
        self.offsets.append(offset)
        self.digests.append(digest)


@dataclass(frozen=True, slots=True)
class Proof:
    """Where a group goes on. Unless it is `exact`, nothing is skipped there, but records may be read again.

    `replicated`: all that the group has read and that is on the target lies in front of it; the mirror is behind.
    """

    offset: int
    exact: bool
    replicated: bool = False

    @property
    def state(self) -> str:
        """The state of a position that goes on there."""
        if self.exact:
            return "exact"
        return "behind" if self.replicated else "unproven"


def _equal(ones: Iterable[int], others: Iterable[int]) -> int:
    """Return how many of both are equal, one by one from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ones, others, strict=False)))


@dataclass(frozen=True)
class ComparedRecords:
    """Both sides of a stretch, from the pair `anchor` to the pair `following`; at least one of them is proven."""

    anchor: OffsetSync | None
    source: Records
    target: Records
    following: OffsetSync | None = None
    whole: bool = True

    @cached_property
    def same(self) -> int:
        """How many records from the first pair on are the same on both sides; 0 if a side does not hold it any more."""
        start = self._start
        ends = (*self.source.offsets[start : start + 1], *self.target.offsets[:1])
        if self.anchor is None or ends != (self.anchor.upstream, self.anchor.downstream):
            return 0
        return _equal(self.source.digests[start:], self.target.digests)

    @cached_property
    def same_behind(self) -> int:
        """How many records up to the last pair are the same on both sides; 0 if a side does not hold it."""
        ends = (*self.source.offsets[-1:], *self.target.offsets[-1:])
        if self.following is None or ends != (self.following.upstream, self.following.downstream):
            return 0
        return _equal(reversed(self.source.digests), reversed(self.target.digests))

    @property
    def source_is_copied(self) -> bool:
        """Whether all of the stretch at the source is on the target, and nothing else in between."""
        return self.source.complete and self.same == len(self.source.offsets) - self._start > 0

    def last_pair(self) -> OffsetSync | None:
        """Return the last record that is proven to be the same on both sides."""
        if self.same == 0:
            return None
        return OffsetSync(self.source.offsets[self._start + self.same - 1], self.target.offsets[self.same - 1])

    def position(self, offset: int) -> Proof | None:
        """Return where a group at a source offset goes on; None if nothing is proven."""
        return self._from_behind(offset) or self._from_before(offset)

    def first_pair(self) -> OffsetSync | None:
        """Return the first record that is proven from behind to be the same on both sides."""
        number = len(self.source.digests)
        for at in range(number - self.same_behind, number - 1):
            if self._times[self.source.digests[at]] == 1:
                return OffsetSync(self.source.offsets[at], self.target.offsets[at - number])
        return None

    def _from_behind(self, offset: int) -> Proof | None:
        read, number = bisect_left(self.source.offsets, offset), len(self.source.offsets)
        first = number - self.same_behind
        if read == number or all(self._times[digest] > 1 for digest in self.source.digests[first : read + 1]):
            return None
        if read > first:
            return Proof(self.target.offsets[read - 1 - number] + 1, exact=True)
        # Of what the source has removed in front of that record the target may still have a copy.
        return Proof(self.target.offsets[read - number], exact=True) if self.source.offsets[read] == offset else None

    def _from_before(self, offset: int) -> Proof | None:
        at, same = bisect_left(self.source.offsets, offset), self.same
        reached, read = self.source.complete or at < len(self.source.offsets), at - self._start
        if same == 0 or read <= 0:
            return None
        if read <= same and reached:
            return Proof(self.target.offsets[read - 1] + 1, exact=True)
        proven = self.target.offsets[same - 1] + 1
        if same == len(self.target.offsets):
            return Proof(proven, exact=False, replicated=self.target.complete and self.following is None)
        last, source = self.source.digests[at - 1], self.source.digests[self._start :]
        whole = self.whole and self.following is not None and self.source.complete and self.target.complete
        if whole and source.count(last) == 1 == self.target.digests.count(last):
            return Proof(self.target.offsets[self.target.digests.index(last)] + 1, exact=True)
        return Proof(proven, exact=False)

    @cached_property
    def _start(self) -> int:
        """Where the first pair is among the source's records; those in front of it show only what is there twice."""
        return 0 if self.anchor is None else bisect_left(self.source.offsets, self.anchor.upstream)

    @cached_property
    def _times(self) -> "Counter[int]":
        return Counter(self.source.digests)


class RecordComparison:
    """Reads stretches of both sides; connections stay open from one round to the next."""

    def __init__(self, source: Cluster, target: Cluster, isolation: str) -> None:
        self._source, self._target, self._isolation = source, target, isolation
        self._consumers: dict[str, Consumer] = {}

    def compare(self, stretches: Iterable[Stretch]) -> dict[TopicPartition, ComparedRecords]:
        """Return the records of each stretch, by its partition of the source; at most one stretch a partition.

        Both sides are read at the same time: how old a position on the target is rests on how long that takes.
        """
        chosen = list(stretches)
        at_source = {one.source: one.ranges[0] for one in chosen}
        on_target = {one.target: one.ranges[1] for one in chosen}
        with ThreadPoolExecutor(2) as pool:
            source, target = pool.map(self._up_to_the_end, (self._source, self._target), (at_source, on_target))
        return {
            one.source: ComparedRecords(one.anchor, source[one.source], target[one.target], one.following, one.whole)
            for one in chosen
        }

    def close(self) -> None:
        """Give the connections back."""
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()

    def _up_to_the_end(
        self, side: Cluster, wanted: Mapping[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, Records]:
        places = list(wanted)
        # A consumer in front of the log's start gets neither a record nor a position as long as nothing is written.
        starts, ends = side.starts(places), side.ends(places, self._isolation)
        held = {tp: (max(start, starts.get(tp, 0)), min(end, ends.get(tp, 0))) for tp, (start, end) in wanted.items()}
        found = self._read(side, held)
        for tp, (_, end) in wanted.items():
            # An open transaction ends the log early, or it does not reach so far any more.
            found[tp].complete = found[tp].complete and (end == _ALL or end <= ends.get(tp, 0))
        return found

    def _read(self, side: Cluster, wanted: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, Records]:
        found = {tp: Records() for tp in wanted}
        left = {tp for tp, (start, end) in wanted.items() if start < end}
        for tp in wanted.keys() - left:
            found[tp].complete = True
        if not left:
            return found
        role = side.side.role
        if role not in self._consumers:
            self._consumers[role] = side.consumer(self._isolation, _FETCH)
        consumer = self._consumers[role]
        consumer.assign([ClientTopicPartition(*tp, wanted[tp][0]) for tp in left])
        until, has_waited = time.monotonic() + READ_WITHIN_S, False
        while left and time.monotonic() < until:
            messages = consumer.consume(500, timeout=_WAIT_S)
            if not messages and not has_waited:  # positions may still be those of the last assignment
                has_waited = True
                continue
            for message in messages:
                tp = TopicPartition(message.topic() or "", message.partition() or 0)
                if message.error() is None and tp in left:
                    self._take(found[tp], message.offset() or 0, wanted[tp][1], record_digest(message))
            for at in consumer.position([ClientTopicPartition(*tp) for tp in left]):
                tp = TopicPartition(at.topic, at.partition)
                found[tp].complete = at.offset >= wanted[tp][1] and not found[tp].dropped
                if found[tp].complete or len(found[tp].offsets) >= RECORDS_MAX:
                    left.discard(tp)
                    consumer.incremental_unassign([ClientTopicPartition(*tp)])
        consumer.unassign()
        return found

    @staticmethod
    def _take(records: Records, offset: int, end: int, digest: int) -> None:
        if offset >= end:
            return
        if len(records.offsets) < RECORDS_MAX:
            records.add(offset, digest)
        else:
            records.dropped = True
