"""What both sides hold of a partition and a span of time, and what that shows.

A bucket is a span of record timestamps of one partition. Each side's records of it are added up as they are read: how
many they are, and the sums of the two words of their digests (`comparison.record_rows.words`), modulo 2**64. Sums do
not depend on order or on how often a process was restarted, and a record that is there twice is added twice.

Owns the arithmetic and the verdict. Does not own reading (`stream.py`) nor keeping (`store.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

WORD = 2**64


class State(StrEnum):
    """The verdict on a bucket. Only `complete` and `late` say that everything arrived."""

    OPEN = "open"
    COMPLETE = "complete"
    LATE = "late"
    MISSING = "missing"
    EXTRA = "extra"
    ALTERED = "altered"
    UNKNOWN = "unknown"


CLOSED_WELL = frozenset({State.COMPLETE, State.LATE})
FAULTS = frozenset({State.MISSING, State.EXTRA, State.ALTERED})


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """A bucket: the source's topic, the partition, and where its time begins, in milliseconds since 1970."""

    topic: str
    partition: int
    start_ms: int


@dataclass(frozen=True, slots=True)
class Sums:
    """Records of one side in one bucket.

    `a` and `b` are sums of the digests' words modulo 2**64. `read_ms` is when the newest of them was read, and
    `after_ms` up to when the side had been read before, when it was not there; milliseconds since 1970. `appended` are
    those whose timestamp is the broker's own, `inexact` those of which Spark may hold another form than Kafka does.
    They lie from `start` to before `end` in the side's log, among records of other buckets; of none both are 0.
    """

    count: int = 0
    a: int = 0
    b: int = 0
    read_ms: int = 0
    appended: int = 0
    inexact: int = 0
    after_ms: int = 0
    start: int = 0
    end: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.count + other.count,
            (self.a + other.a) % WORD,
            (self.b + other.b) % WORD,
            max(self.read_ms, other.read_ms),
            self.appended + other.appended,
            self.inexact + other.inexact,
            max(self.after_ms, other.after_ms),
            min((one.start for one in (self, other) if one.count), default=0),
            max(self.end, other.end),
        )

    def equals(self, other: "Sums") -> bool:
        """Whether both are sums of equal records."""
        return (self.count, self.a, self.b) == (other.count, other.a, other.b)


NOTHING = Sums()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """How long a bucket is, and how long after its end its records may take to arrive; milliseconds."""

    bucket_ms: int
    within_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What a bucket shows. `records` are missing or extra ones. `latency_ms` is between the readings of both sides."""

    state: State
    records: int = 0
    latency_ms: int | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A bucket, what both sides hold of it, and what that shows."""

    place: Place
    source: Sums
    target: Sums
    verdict: Verdict

    @property
    def key(self) -> str:
        """Text that is another one as soon as a side holds other records."""
        return f"{self.source.count}.{self.source.a}.{self.target.count}.{self.target.a}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadThrough:
    """Up to which time each side was read: all that was in its logs then is added up. Milliseconds since 1970."""

    source_ms: int
    target_ms: int


def opened_ms(place: Place, source: Sums, target: Sums) -> int:
    """Return when a bucket begins by the audit's clock: when its records were read, if their clock is ahead of that.

    Else what a producer has written with a time of next year would be open, and a loss unseen, for a year.
    """
    return min(place.start_ms, max(source.read_ms, target.read_ms) or place.start_ms)


def due_ms(place: Place, source: Sums, target: Sums, rule: Rule) -> int:
    """Return until when the records must be on the target: records that are written late have their time too."""
    return max(opened_ms(place, source, target) + rule.bucket_ms, source.read_ms) + rule.within_ms


def judge(
    place: Place, source: Sums, target: Sums, rule: Rule, read: ReadThrough, unread: Sequence[str] = ()
) -> Verdict:
    """Return the verdict on a bucket by what was read of both sides.

    `unread` are the reasons why records of its partition may not have been read. A bucket that does not agree yet is
    open until both sides were read beyond the time that it has; when records arrive after that, it becomes `late`. What
    arrived while nobody read is not late: nobody has seen that it was missing.
    """
    if source.appended or target.appended:
        reason = "timestamps are of the broker's own (message.timestamp.type): each side has another one"
        return Verdict(state=State.UNKNOWN, reason=reason)
    ended = min(read.source_ms, read.target_ms) >= opened_ms(place, source, target) + rule.bucket_ms
    if source.equals(target):
        if not ended:
            return Verdict(state=State.OPEN)
        late = target.after_ms >= due_ms(place, source, target, rule)
        known = target.read_ms - target.after_ms <= rule.within_ms  # it arrived between two readings that are near
        latency = max(0, target.read_ms - source.read_ms) if known else None
        return Verdict(state=State.LATE if late else State.COMPLETE, latency_ms=latency)
    if unread:
        return Verdict(state=State.UNKNOWN, reason="; ".join(unread))
    if min(read.source_ms, read.target_ms) < due_ms(place, source, target, rule):
        return Verdict(state=State.OPEN)
    if source.count > target.count:
        return Verdict(state=State.MISSING, records=source.count - target.count)
    if source.count < target.count:
        return Verdict(state=State.EXTRA, records=target.count - source.count)
    if source.inexact or target.inexact:
        return Verdict(state=State.UNKNOWN, reason="Spark may hold records otherwise than Kafka does")
    return Verdict(state=State.ALTERED)


def percentile(values: Iterable[int], share: float) -> int | None:
    """Return the smallest value that at least this share of the values do not exceed; None of no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = -(-len(ordered) * share // 1)  # rounded up
    return ordered[max(0, int(rank) - 1)]
