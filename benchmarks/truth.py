"""What is true of a mirror's records and groups: the independent judge of the verification job.

It rests on the producers' acknowledgements and a plain reading of both sides, and shares no code with the job. It is
linear in the number of records, one partition at a time.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import blake2b

TopicPartition = tuple[str, int]  # not that of `kafka/`, with which the verification counts
Entry = tuple[int, bytes]  # offset and digest


def digest(
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, str | bytes | None]],
    timestamp_ms: int,
) -> bytes:
    """Return a digest of 16 bytes, in which null differs from empty and one header from two."""
    return blake2b(repr((key, value, list(headers), timestamp_ms)).encode(), digest_size=16).digest()


@dataclass
class Ledger:
    """The brokers' answers to the producers: the offset of each record, and whether its transaction was committed."""

    committed: dict[TopicPartition, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    aborted: dict[TopicPartition, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    unplaced: dict[TopicPartition, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """Acknowledged without an offset: the answer was lost, and the broker has known the record when it came again."""
    timed_out: dict[TopicPartition, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """Not acknowledged in time: nobody was promised that the log has them, nor that it has not."""
    unacknowledged: dict[TopicPartition, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    """What the log had of those when it was last read, and what it has of others without an answer of its own.

    Where a record times out the producer begins a new epoch, and sends again what it has no answer for, on all
    partitions: the broker cannot know that it has those records already (librdkafka's issue 4953).
    """

    revoked: int = 0
    """Number of committed records that a broker has aborted afterwards."""
    restored: int = 0
    """Number of aborted records that a broker has committed afterwards."""

    def add(self, tp: TopicPartition, offset: int | None, content: bytes, *, committed: bool = True) -> None:
        """Keep one acknowledged record whose transaction, if it had one, has ended."""
        if offset is not None or not committed:
            (self.committed if committed else self.aborted)[tp].append((-1 if offset is None else offset, content))
        else:
            self.unplaced[tp].append(content)

    def place(self, tp: TopicPartition, log: Callable[[], Sequence[Entry]]) -> int:
        """Give records without an offset one at which the log has them; return how many it does not have.

        `log` is read after it is known what was acknowledged. Where records of the topic have timed out, all that it
        has of what was sent counts, however often.
        """
        waiting, self.unplaced[tp] = self.unplaced[tp], []
        late = {one for (topic, _), contents in list(self.timed_out.items()) if topic == tp[0] for one in contents}
        if not waiting and not late:
            return 0
        there = log()
        known = {offset for offset, _ in self.committed[tp]}
        free: dict[bytes, list[int]] = defaultdict(list)
        for offset, content in there:
            if offset not in known:
                free[content].append(offset)
        for content in waiting:
            if free[content]:
                self.committed[tp].append((free[content].pop(0), content))
            else:
                self.unplaced[tp].append(content)
        if late:
            sent = late | {content for _, content in self.committed[tp]}
            self.unacknowledged[tp] = [(at, content) for content in sent & free.keys() for at in free[content]]
        return len(self.unplaced[tp])

    def source(self, tp: TopicPartition) -> list[Entry]:
        """Return what the source holds of a partition, in order, by the answers and by what `place` has found."""
        return sorted([*self.committed[tp], *self.unacknowledged[tp]])

    def follow_markers(
        self, tp: TopicPartition, cut: int, given: Sequence[Entry], log: Callable[[], Sequence[Entry]]
    ) -> None:
        """Take records for committed or aborted as the log's markers say, where its broker has acknowledged the other.

        `given` is what a reader of committed records gets in front of the cut, `log` what one of all records does.
        """
        read = {*given}
        missing = {entry for entry in list(self.committed[tp]) if entry[0] < cut} - read
        for entry in sorted(missing & {*log()}) if missing else ():
            self._move(entry, self.committed[tp], self.aborted[tp])
            self.revoked += 1
        for entry in sorted(read.intersection(list(self.aborted[tp]))):
            self._move(entry, self.aborted[tp], self.committed[tp])
            self.restored += 1

    def _move(self, entry: Entry, here: list[Entry], there: list[Entry]) -> None:
        here.remove(entry)  # in place: producers add to it meanwhile
        there.append(entry)

    def forget(self, topic: str) -> None:
        """The topic was deleted, and all its records with it."""
        for kept in (self.committed, self.aborted, self.unplaced, self.timed_out, self.unacknowledged):
            for tp in [one for one in kept if one[0] == topic]:
                del kept[tp]

    @property
    def records(self) -> int:
        """Number of committed records."""
        return sum(len(entries) for entries in self.committed.values())


@dataclass(frozen=True)
class Truth:
    """What one run of the job must find in one partition."""

    source_records: int
    target_records: int
    found: Mapping[str, int]


@dataclass(frozen=True)
class Position:
    """The position of one group: exact range of target offsets, and what the synced offset skips and repeats."""

    lowest: int | None
    highest: int | None
    skipped: int
    repeated: int


def judge(committed: Sequence[Entry], aborted: Sequence[Entry], target: Sequence[Entry], cut: int) -> Truth:
    """Return what is true of one partition up to the cut.

    The n-th of several identical records is the n-th image, and their order is not judged. What the target holds behind
    the image of the cut, and is no image, is out of scope.
    """
    everything = sorted(committed)
    here, there = _offsets(everything), _offsets(target)
    images = [
        (got, sent)
        for content, offsets in here.items()
        for sent, got in zip(offsets, there.get(content, []), strict=False)
    ]
    end = min((got for got, sent in images if sent >= cut), default=None)
    has, are = {sent for _, sent in images}, {got for got, _ in images}
    dropped = Counter(content for _, content in aborted)
    found = Counter(lost=sum(offset < cut and offset not in has for offset, _ in everything))
    for offset, content in target:
        if offset in are or (end is not None and offset >= end):
            continue
        if dropped[content]:
            dropped[content] -= content in here
            found["aborted"] += 1
        else:
            found["doubled" if content in here else "foreign"] += 1
    alone = {offsets[0] for offsets in here.values() if len(offsets) == 1}
    furthest = -1
    for _, offset in sorted(image for image in images if image[1] in alone):
        found["out_of_order"] += offset < min(furthest, cut)
        furthest = max(furthest, offset)
    counts = {kind: number for kind, number in sorted(found.items()) if number}
    return Truth(sum(offset < cut for offset, _ in everything), len(target), counts)


def position(committed: Sequence[Entry], target: Sequence[Entry], cut: int, group_offset: int, synced: int) -> Position:
    """Return the position on the target of a group with this committed source offset.

    What was acknowledged after the cut counts as far as it has arrived.
    """
    here, there = _offsets(sorted(committed)), _offsets(target)
    first, last, ends, copied = [], [], [], []
    skipped = repeated = 0
    for content, every in here.items():
        images = there.get(content, [])
        if not images:
            continue
        before = sum(offset < cut for offset in every)
        offsets = every[: max(before, len(images))]
        read = sum(offset < group_offset for offset in offsets)
        unread = len(offsets) - read
        ahead = sum(offset >= synced for offset in images)
        skipped += max(min(unread, len(images)) - ahead, 0)
        repeated += max(ahead - unread, 0) if read else 0
        if unread:
            last.append(images[max(len(images) - unread, 0)])
        if unread and len(images) > read:
            first.append(images[read])
        ends.append(images[min(len(offsets), len(images)) - 1] + 1)
        copied.append(images[-1] + 1)
    lowest = min(first) if first else max(ends, default=None)
    highest = min(last) if last else max(copied, default=None)
    return Position(lowest, highest, skipped, repeated)


def never_read(committed: Sequence[Entry], read: Set[int], target: Sequence[Entry], cut: int, synced: int) -> int:
    """Return how many records in front of the cut a group has not read and would not read on the target.

    Args:
        committed: what was acknowledged at the source.
        read: source offsets that members were given.
        target: the target's log.
        cut: the source's log end offset up to which the target is judged.
        synced: the group's position on the target.
    """
    here, there = _offsets(sorted(committed)), _offsets(target)
    skipped = 0
    for content, every in here.items():
        images = there.get(content, [])
        unread = sum(offset < cut and offset not in read for offset in every)
        skipped += max(min(unread, len(images)) - sum(offset >= synced for offset in images), 0)
    return skipped


def _offsets(entries: Iterable[Entry]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for offset, content in entries:
        found[content].append(offset)
    return dict(found)
