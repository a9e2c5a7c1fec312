"""The offset ranges that a run reads, the engine that reads them, and the records that they stand for.

An engine is Spark for many records, this process alone for few.

Logs whose offsets differ by one constant shift are first compared by windows of offsets. Both sides add up the same
windows, so equal sums prove that a window holds the same records at the same offsets, the shift apart, and therefore in
the same order. Windows that differ are read record by record if they are few; otherwise the partition is compared by
chunks, which find their place again behind a lost record.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from contract.verification_request import ClusterConfig, Request
from kafka.topic_partition import TopicPartition
from spark.comparison.chunks import Chunk
from spark.comparison.difference import Row
from spark.comparison.logs import Window
from spark.comparison.reading import ReadRange
from spark.progress import Progress


@dataclass(frozen=True, slots=True)
class WindowSum:
    """Records of one log in one window of offsets: offset of the first and the last one, and their number.

    `a` and `b` are, for each word of the digests, the XOR over the records of a hash of the word and of the record's
    place, which is its offset at the source or the target's offset less the shift.
    """

    first: int
    last: int
    records: int
    a: int
    b: int

    @property
    def content(self) -> tuple[int, int, int]:
        """What two windows have in common that hold the same records at the same places."""
        return self.records, self.a, self.b


Frame = TypeVar("Frame")
Windows = dict[TopicPartition, dict[int, WindowSum]]
"""The sums of each partition's windows by their number: the place of their records shifted right by some bits."""
Pieces = dict[TopicPartition, list[Chunk]]
Digest = str
Occurrences = dict[tuple[TopicPartition, Digest], tuple[int, int]]


class ComparisonEngine(Protocol[Frame]):
    """Reads records and answers questions about them. A `Frame` is what stands for records that are to be read."""

    def read(self, side: ClusterConfig, ranges: Sequence[ReadRange], isolation: str, names: Mapping[str, str]) -> Frame:
        """The data records of exactly these ranges; `names` maps a topic of this cluster to the source's name."""

    def union(self, frames: Iterable[Frame | None]) -> Frame | None:
        """The records of all of these, None if there are none to read."""

    def watched(self, progress: Progress, stage: str, partitions: int, records: int) -> AbstractContextManager[None]:
        """Advance the progress while the block reads this many partitions and records."""

    def windows(
        self, logs: Mapping[str, tuple[Frame, int]], topic_partitions: Sequence[TopicPartition], bits: int
    ) -> dict[str, Windows]:
        """For each named log and its shift, the sums of windows of 2**bits offsets of each partition.

        A partition is left out where they prove nothing, all are where the engine has no use for windows.
        """

    def scan(
        self, logs: Mapping[str, Frame], topic_partitions: Sequence[TopicPartition], bits: int
    ) -> dict[str, Pieces]:
        """For each named log, the pieces of chunks of each partition in the order of their offsets."""

    def inexact(self) -> set[TopicPartition]:
        """The partitions whose pieces of the last scan prove nothing: from now on they are read in another way."""

    def rows(self, records: Frame | None) -> dict[TopicPartition, list[Row]]:
        """The records of each partition in the order of their offsets, each once."""

    def offsets(self, records: Frame | None) -> dict[TopicPartition, list[int]]:
        """The offsets of the records of each partition, sorted, each once."""

    def occurrences(self, logs: Mapping[str, Frame], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
        """Where digests occur in whole logs: how often, and the first offset, per named log and partition."""


WAVES_MAX = 16
UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True, kw_only=True)
class OffsetRange:
    """Offsets to read of one mirrored partition. `source_end` is a later end than the cut: what came after it.

    `pending_end` lies behind it while a transaction is open: a mirror that reads uncommitted has copied what stands
    between the two, of that transaction and of all other producers. It was written after the cut too.
    `resumed`: an earlier run verified what lies in front of the starts; nothing in front of them is missing.
    `cleaned_at_source`, `cleaned_at_target`: the topic's `cleanup.policy` there contains `compact`, so Kafka's log
    cleaner may have removed records anywhere in the log.
    A partition that only the target has is empty at the source: its offsets there are all 0.
    """

    topic: str
    partition: int
    source_start: int
    cut: int
    source_end: int
    target_topic: str
    target_start: int
    target_counts_from: int = 0
    target_end: int
    position: int | None = None
    cleaned_at_source: bool = False
    cleaned_at_target: bool = False
    resumed: bool = False
    pending_end: int = 0

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic of the source, and partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def compacted(self) -> bool:
        """Whether records are compared by their keys: either log may have dropped superseded ones."""
        return self.cleaned_at_source or self.cleaned_at_target

    @property
    def source_last(self) -> int:
        """The offset behind all that the source's log held."""
        return max(self.source_end, self.pending_end)

    @property
    def offsets(self) -> int:
        """How many offsets there are to read on both sides together."""
        return self.source_last - self.source_start + self.target_end - self.target_start

    @property
    def removed_at_source(self) -> int:
        """How many records the source's log has removed in front of its log start, at most."""
        return 0 if self.resumed else self.source_start

    @property
    def removed_at_target(self) -> int:
        """How many records the target's log has removed in front of its log start, at most."""
        return 0 if self.resumed else self.target_start - self.target_counts_from


class Reader(Generic[Frame]):
    """Records of both sides. Topics have the source's names; partitions without offsets to read are left out."""

    def __init__(self, engine: ComparisonEngine[Frame], request: Request, offset_ranges: Iterable[OffsetRange]) -> None:
        self.engine = engine
        self.request = request
        self.offset_ranges = {offset_range.topic_partition: offset_range for offset_range in offset_ranges}
        self._names = {offset_range.target_topic: offset_range.topic for offset_range in self.offset_ranges.values()}

    def before_cut(self, topic_partitions: Iterable[TopicPartition]) -> Frame | None:
        """The source's records up to the cut."""
        found = [self.offset_ranges[tp] for tp in topic_partitions]
        return self._source([ReadRange(one.topic, one.partition, one.source_start, one.cut) for one in found])

    def after_cut(self, topic_partitions: Iterable[TopicPartition]) -> Frame | None:
        """The source's records from the cut on; those that no transaction has decided yet are among them."""
        found = [self.offset_ranges[tp] for tp in topic_partitions]
        return self._known([ReadRange(one.topic, one.partition, one.cut, one.source_last) for one in found])

    def source(self, topic_partitions: Iterable[TopicPartition]) -> Frame | None:
        """All records of the source that are known, before and after the cut."""
        found = [self.offset_ranges[tp] for tp in topic_partitions]
        return self._known([ReadRange(one.topic, one.partition, one.source_start, one.source_last) for one in found])

    def everything(self, topic_partitions: Iterable[TopicPartition]) -> Frame | None:
        """The records of `source`, and those of aborted transactions."""
        found = [self.offset_ranges[tp] for tp in topic_partitions]
        ranges = [ReadRange(one.topic, one.partition, one.source_start, one.source_last) for one in found]
        return self._source(ranges, UNCOMMITTED)

    def target(self, topic_partitions: Iterable[TopicPartition]) -> Frame | None:
        """The target's records."""
        found = [self.offset_ranges[tp] for tp in topic_partitions]
        return self._target(
            [ReadRange(one.target_topic, one.partition, one.target_start, one.target_end) for one in found]
        )

    def source_windows(self, windows: Mapping[TopicPartition, Sequence[Window]]) -> Frame | None:
        """The source's records in some windows of each partition."""
        waves = _waves(windows)
        frames = [self._known([ReadRange(*tp, one.low, one.high) for tp, one in wave.items()]) for wave in waves]
        return self.engine.union(frames)

    def target_windows(self, windows: Mapping[TopicPartition, Sequence[Window]]) -> Frame | None:
        """The target's records in some windows of each partition."""
        frames = []
        for wave in _waves(windows):
            topic_partitions = ((self.offset_ranges[tp], one) for tp, one in wave.items())
            frames.append(
                self._target(
                    [ReadRange(tp.target_topic, tp.partition, one.low, one.high) for tp, one in topic_partitions]
                )
            )
        return self.engine.union(frames)

    def _known(self, ranges: Sequence[ReadRange]) -> Frame | None:
        """What the isolation shows up to the last stable offset, and all from there on."""
        stable = [self.offset_ranges[TopicPartition(part.topic, part.partition)].source_end for part in ranges]
        decided = [replace(part, end=min(part.end, end)) for part, end in zip(ranges, stable, strict=True)]
        pending = [replace(part, start=max(part.start, end)) for part, end in zip(ranges, stable, strict=True)]
        return self.engine.union([self._source(decided), self._source(pending, UNCOMMITTED)])

    def _source(self, ranges: Sequence[ReadRange], isolation: str | None = None) -> Frame | None:
        held = [part for part in ranges if part.end > part.start]
        used = isolation or self.request.limits.isolation
        return self.engine.read(self.request.source, held, used, {}) if held else None

    def _target(self, ranges: Sequence[ReadRange]) -> Frame | None:
        held = [part for part in ranges if part.end > part.start]
        isolation = self.request.limits.isolation
        return self.engine.read(self.request.target, held, isolation, self._names) if held else None


def _waves(windows: Mapping[TopicPartition, Sequence[Window]]) -> list[dict[TopicPartition, Window]]:
    """One window of a partition at a time, which is what the Kafka source can read; the nearest ones are joined."""
    waves: list[dict[TopicPartition, Window]] = []
    for tp, wanted in windows.items():
        for number, window in enumerate(_fewer(wanted)):
            if number == len(waves):
                waves.append({})
            waves[number][tp] = window
    return waves


def _fewer(windows: Sequence[Window]) -> list[Window]:
    found = sorted(set(windows), key=lambda window: window.low)
    while len(found) > 1:
        at = min(range(len(found) - 1), key=lambda number: found[number + 1].low - found[number].high)
        if len(found) <= WAVES_MAX and found[at + 1].low > found[at].high:
            break
        found[at : at + 2] = [Window(found[at].low, max(found[at].high, found[at + 1].high))]
    return found


def cleaned_copies(offset_ranges: Iterable[OffsetRange]) -> list[str]:
    """Return a line for each topic of which only the copy is compacted: what its log cleaner removed is not named."""
    found = {
        one.topic: f"target topic {one.target_topic} is compacted, and topic {one.topic} of the source is not: "
        "records that its log cleaner removed, all but the last of a key, are not named as lost"
        for one in offset_ranges
        if one.cleaned_at_target and not one.cleaned_at_source
    }
    return list(found.values())


DIFFERING_MAX = 4  # windows of a partition that are read record by record
SHIFTS_MAX = 8  # each different shift is a reading of its own to plan
Sums = Mapping[int, WindowSum]


def shift_of(one: OffsetRange) -> int | None:
    """Return target offset less source offset of the partition's records, None if its ranges do not suggest one shift.

    Ranges of the same length do: nothing is on its way, and neither log has holes that the other has not. A compacted
    log has holes at places of its own.
    """
    length = one.source_last - one.source_start
    if one.compacted or not length or length != one.target_end - one.target_start:
        return None
    return one.target_start - one.source_start


def by_shift(offset_ranges: Iterable[OffsetRange]) -> dict[int, list[TopicPartition]]:
    """Return the partitions to compare by windows: those of the SHIFTS_MAX shifts that the most records have."""
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    records: Counter[int] = Counter()
    for one in offset_ranges:
        if (shift := shift_of(one)) is not None:
            found[shift].append(one.topic_partition)
            records[shift] += one.source_last - one.source_start
    return {shift: found[shift] for shift, _ in records.most_common(SHIFTS_MAX)}


def pieces_of_windows(before: Sums, later: Sums, target: Sums) -> list[list[Chunk]] | None:
    """Return each window as a chunk: of the source before the cut and from it on, and of the target.

    The arguments map a window's number to its sums. Chunks have one signature where the windows are equal. None if more
    than DIFFERING_MAX windows differ.
    """
    source = {number: _joined(before.get(number), later.get(number)) for number in before.keys() | later.keys()}
    there = {number: one.content for number, one in target.items()}
    differing = {number for number in source.keys() | there.keys() if source.get(number) != there.get(number)}
    if len(differing) > DIFFERING_MAX:
        return None
    ours = [{number: _chunk(held[number]) for number in sorted(held)} for held in (before, later)]
    theirs = {number: _chunk(target[number]) for number in sorted(target)}
    # What the source holds on both sides of the cut becomes one chunk (see Logs): on the target too.
    if before and (seam := min(later, default=None)) is not None and seam in theirs:
        if seam not in before:
            theirs[seam] = replace(theirs[seam], begins=False)
        elif seam not in differing:
            theirs[seam] = replace(theirs[seam], sums=ours[0][seam].joined(ours[1][seam]).sums)
    return [[*held.values()] for held in (*ours, theirs)]


def _joined(one: WindowSum | None, other: WindowSum | None) -> tuple[int, int, int]:
    """The content of a window that the cut may part."""
    held = [part.content for part in (one, other) if part is not None]
    records, a, b = held[0]
    for more, c, d in held[1:]:
        records, a, b = records + more, a ^ c, b ^ d
    return records, a, b


def _chunk(one: WindowSum) -> Chunk:
    return Chunk(one.first, one.last, one.records, begins=True, sums=(one.a, 0, one.b, 0))
