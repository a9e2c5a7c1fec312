"""All offset syncs of a partition as a run-length map from source offsets to target offsets. Reads no topic.

MirrorMaker's own store keeps 64 syncs of a partition, so that its translation gets the coarser the further a group is
behind. This map keeps what all of them prove, in 24 bytes for each stretch in which both sides advance alike.

What a sync proves (MirrorSourceTask, OffsetSyncWriter): the record at `upstream` was written to `downstream`, so the
record after it follows that on the target too. Between two syncs the mirror writes none while both sides advance by
one; it may also delay one, or replace it by a later one under load. So offsets between two syncs are exact only where
both ends have the same distance. Where a gap of the source (marker of a transaction, compaction) and offsets that only
the target has (markers of the mirror's own transactions, records that a restarted mirror repeats) lie between the same
two syncs, equal distances prove nothing: a map of a target that advances by itself joins no syncs.
"""

import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from kafka.checkpoints import OffsetSync

STRETCHES_MAX = 4096
"""Stretches that are kept of a partition, 96 KiB; the oldest quarter is dropped when there are more."""
UNEVEN_SYNCS = 1000
"""Syncs that are not joined after two between which the target has advanced further than the source."""
UNSYNCED_MAX = 1000
"""Records behind a sync that a mirror may have copied without another one: `offset.lag.max` is 100 by default."""
_HEAD, _OFFSET, _VERSION = struct.Struct("<BBBI"), struct.Struct("<q"), 1
_REPEATS, _REPEATING_VERSION = struct.Struct("<qqI"), 2
"""With a repetition its bounds and the length of the columns follow the head, and its own map the columns."""
_UNBOUNDED = 1 << 62
_BOUNDS = 2  # pairs that a failback writes after a negative offset: they bound a log, and need not be of records


@dataclass(frozen=True, slots=True)
class OffsetImage:
    """Where a source offset lies on the target.

    With `proven` a group at the source offset goes on at `offset` and neither skips nor repeats a record, but for
    records that the mirror itself has repeated. Otherwise nothing is skipped there, and what lies between `anchor`,
    the last proven pair before the offset, and `following`, the next one, may be read again. `following` is None
    behind the newest sync.
    """

    offset: int
    proven: bool
    anchor: OffsetSync
    following: OffsetSync | None = None


@dataclass(slots=True)
class OffsetMap:
    """What the offset syncs of one partition prove; add them in the order of their topic.

    `linear` is whether equal distances count as a proof between two syncs: not while the mirror writes transactions.
    """

    linear: bool = True
    stretches_max: int = STRETCHES_MAX
    _first: "array[int]" = field(default_factory=lambda: array("q"))
    _last: "array[int]" = field(default_factory=lambda: array("q"))
    _target: "array[int]" = field(default_factory=lambda: array("q"))
    _interrupted: bool = False
    _uneven: int = 0
    _bounds: int = 0
    _again: "OffsetMap | None" = None
    _from: int = 0
    _until: int = 0

    def add(self, upstream: int, downstream: int) -> bool:
        """Take in the next sync; return whether proven images are others now.

        A source offset that goes back is that of a restarted mirror, which repeats records: what was proven in front
        of it stays, and the first copies count until all of them are there once more. A target offset that goes back
        belongs to a log that is not there any more: all is forgotten. So it is by a negative offset, which a failback
        writes in front of two pairs that are left out.
        """
        if upstream < 0 or downstream < 0:
            self.clear()
            self._bounds = _BOUNDS
            return True
        if self._bounds:
            self._bounds -= 1
            return False
        last = self._end()
        if last is not None and downstream > last.downstream and self._is_repeated(last, upstream, downstream):
            return self._repeat(last, upstream, downstream)
        forgotten = last is not None and self._is_of_another_log(last, upstream, downstream)
        if forgotten:
            self.clear()
        self._again = None
        self._cut(upstream)
        last = self._end()
        if last is not None and downstream <= last.downstream:
            self.clear()
            forgotten = True
        elif last is not None:
            step, target_step = upstream - last.upstream, downstream - last.downstream
            self._uneven = UNEVEN_SYNCS if target_step > step else max(0, self._uneven - 1)
            if step == target_step and (step == 1 or (self.linear and not self._uneven and not self._interrupted)):
                self._last[-1] = upstream
                self._interrupted = False
                return False
        self._interrupted = False
        self._append(upstream, upstream, downstream)
        return forgotten

    def interrupt(self) -> None:
        """Note that syncs may be missing between the last one and the next: these two are not joined."""
        self._interrupted = True
        if self._again is not None:
            self._again.interrupt()

    @property
    def first(self) -> OffsetSync | None:
        """The first pair that is known; the records in front of it may prove more."""
        return OffsetSync(self._first[0], self._target[0]) if self._first else None

    @property
    def repeated(self) -> tuple[OffsetSync, int] | None:
        """While first copies count: the last pair of the newest ones, and the last record that may be there twice."""
        if (held := self.held_back) is None:
            return None
        again, end = held
        later = again.repeated  # the mirror has restarted once more
        return (end, self._until) if later is None else (later[0], max(self._until, later[1]))

    @property
    def is_unbounded(self) -> bool:
        """Whether first copies count until `repeats_before` is called: nobody knows how far they reach."""
        return self._again is not None and (self._until == _UNBOUNDED or self._again.is_unbounded)

    @property
    def held_back(self) -> "tuple[OffsetMap, OffsetSync] | None":
        """While first copies count: what the syncs since the source offset went back prove, and their last pair."""
        end = self._again._end() if self._again is not None else None
        return None if self._again is None or end is None else (self._again, end)

    def repeats_before(self, source_end: int) -> bool:
        """Take in where the source ended after the repetition began; return as `add`.

        Nothing behind that is on the target twice. The syncs alone do not say how far first copies reach: they count
        offsets of the target, and the source's log has gaps.
        """
        if self._again is None:
            return False
        later = self._again.repeats_before(source_end)
        self._until = min(self._until, source_end - 1)
        return self._take_over() or later

    def has_repeated(self) -> None:
        """Take in that all that is there twice has its second copy: the records behind the last sync are the same."""
        if self._again is not None:
            self._again.has_repeated()
            self._until = 0
            self._take_over()

    def add_in_front(self, pair: OffsetSync) -> bool:
        """Take in a pair in front of the first one, which the records have proven; return whether it was taken.

        A full map takes none.
        """
        if not self._first or pair.upstream >= self._first[0] or len(self) >= self.stretches_max:
            return False
        self._first.insert(0, pair.upstream)
        self._last.insert(0, pair.upstream)
        self._target.insert(0, pair.downstream)
        return True

    def clear(self) -> None:
        """Forget everything: the topic was created again on one of the sides."""
        del self._first[:], self._last[:], self._target[:]
        self._interrupted, self._uneven, self._bounds, self._again = False, 0, 0, None

    def image(self, offset: int) -> OffsetImage | None:
        """Return where a source offset lies on the target; None if it lies before all that is known."""
        at = bisect_right(self._first, offset) - 1
        if at < 0:
            return None if self._again is None else self._again.image(offset)
        anchor = OffsetSync(self._last[at], self._target[at] + self._last[at] - self._first[at])
        if offset <= anchor.upstream + 1:  # what follows a record lies behind it on the target too
            return OffsetImage(self._target[at] + offset - self._first[at], True, anchor)
        following = OffsetSync(self._first[at + 1], self._target[at + 1]) if at + 1 < len(self._first) else None
        return OffsetImage(anchor.downstream + 1, False, anchor, following)

    def stretches(self) -> Iterator[tuple[int, int, int]]:
        """Yield the first and the last source offset of each stretch, and the target offset of the first one."""
        return zip(self._first, self._last, self._target, strict=True)

    def pack(self) -> bytes:
        """Return all that is known, in a few bytes a stretch."""
        columns = (*self._first, *self._last, *self._target)
        body = zlib.compress(struct.pack(f"<{len(columns)}q", *columns))
        version = _VERSION if self._again is None else _REPEATING_VERSION
        head = _HEAD.pack(version, self._interrupted, self._bounds, self._uneven)
        if self._again is None:
            return head + body
        return head + _REPEATS.pack(self._from, self._until, len(body)) + body + self._again.pack()

    @classmethod
    def unpack(cls, data: bytes, *, linear: bool = True) -> Self:
        """Return the map of `pack`; raises ValueError for anything else."""
        made = cls(linear=linear)
        again = b""
        try:
            version, interrupted, made._bounds, made._uneven = _HEAD.unpack_from(data)
            body = data[_HEAD.size :]
            if version == _REPEATING_VERSION:
                made._from, made._until, length = _REPEATS.unpack_from(body)
                body, again = body[_REPEATS.size :][:length], body[_REPEATS.size + length :]
            body = zlib.decompress(body)
        except (struct.error, zlib.error) as error:
            raise ValueError(f"a map of offset syncs must be whole (got {error})") from None
        number = len(body) // _OFFSET.size
        if version not in (_VERSION, _REPEATING_VERSION) or len(body) % _OFFSET.size or number % 3:
            wanted = f"{_VERSION} or {_REPEATING_VERSION}"
            raise ValueError(f"a map of offset syncs must be of version {wanted} (got {version}, {len(body)} bytes)")
        columns = struct.unpack(f"<{number}q", body)
        made._interrupted = bool(interrupted)
        for at, column in enumerate((made._first, made._last, made._target)):
            column.extend(columns[at * number // 3 : (at + 1) * number // 3])
        if version == _REPEATING_VERSION:
            made._again = cls.unpack(again, linear=linear)
        return made

    def __len__(self) -> int:
        return len(self._first)

    def _end(self) -> OffsetSync | None:
        if not self._first:
            return None
        return OffsetSync(self._last[-1], self._target[-1] + self._last[-1] - self._first[-1])

    def _is_repeated(self, last: OffsetSync, upstream: int, downstream: int) -> bool:
        """Whether the target may hold a copy of this record, or of one behind it, in front of this one.

        A mirror without transactions writes more than the source holds only if it repeats. It may begin with one of
        the few records that it had copied behind `last`.
        """
        target_step = downstream - last.downstream
        ahead = upstream - last.upstream < target_step <= UNSYNCED_MAX and self.linear and not self._interrupted
        return self._again is not None or upstream <= last.upstream or ahead

    def _is_of_another_log(self, last: OffsetSync, upstream: int, downstream: int) -> bool:
        """Whether the target has advanced so much further that the topic may have been created again in between.

        So it looks, too, if a mirror has repeated thousands of records and no sync among them was sent.
        """
        ahead = (downstream - last.downstream) - (upstream - last.upstream)
        return self.linear and upstream > last.upstream and ahead > UNSYNCED_MAX

    def _repeat(self, last: OffsetSync, upstream: int, downstream: int) -> bool:
        """Hold back a sync of records that are on the target already; take over the held ones once all are repeated.

        Until then a group that goes on at a second copy would skip those of which the target has the first one only.
        How far first copies reach behind `last` is not known before `repeats_before`. In front of the first sync of a
        second copy there are at most as many others as the target has offsets since `last`: of those records the syncs
        prove nothing any more.
        """
        if self._again is None:
            self._again = type(self)(self.linear, self.stretches_max, _uneven=UNEVEN_SYNCS)
            self._from, self._until = upstream - (downstream - last.downstream - 1), _UNBOUNDED
        forgotten = self._again.add(upstream, downstream)
        return self._take_over() or forgotten

    def _take_over(self) -> bool:
        """Let the second copies count if all records are repeated; return whether they are."""
        again = self._again
        end = again._end() if again is not None else None
        if again is None or end is None or end.upstream < self._until:
            return False
        self._cut(min(again._first[0], max(self._from, self._first[0] + 1)))
        self._again, self._from, self._until = again._again, again._from, again._until
        for stretch in again.stretches():
            self._append(*stretch)
        self._interrupted, self._uneven = again._interrupted, again._uneven
        return True

    def _cut(self, upstream: int) -> None:
        """Forget what is known of this source offset and all behind it."""
        while self._first and self._first[-1] >= upstream:
            del self._first[-1], self._last[-1], self._target[-1]
        if self._last and self._last[-1] >= upstream:
            self._last[-1] = upstream - 1

    def _append(self, first: int, last: int, target: int) -> None:
        if len(self._first) >= self.stretches_max:
            dropped = max(1, self.stretches_max // 4)
            del self._first[:dropped], self._last[:dropped], self._target[:dropped]
        self._first.append(first)
        self._last.append(last)
        self._target.append(target)
