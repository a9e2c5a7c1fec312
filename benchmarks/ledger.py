"""What is true of a mirror: from the producers' own acknowledgements and from a plain reading of the target.

An independent judge of the verification job: it shares no code with it and knows what the source must hold, because it
keeps what the broker answered to each producer. Linear in the number of records, one partition at a time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

Place = tuple[str, int]
Entry = tuple[int, bytes]  # offset and digest


def digest(
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, str | bytes | None]],
    timestamp_ms: int,
) -> bytes:
    """Return 16 bytes that tell records apart: null differs from empty, and header from header."""
    return blake2b(repr((key, value, list(headers), timestamp_ms)).encode(), digest_size=16).digest()


@dataclass
class Ledger:
    """The brokers' answers to the producers: the offset of each record, and whether its transaction was committed."""

    committed: dict[Place, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    aborted: dict[Place, list[Entry]] = field(default_factory=lambda: defaultdict(list))

    def add(self, tp: Place, offset: int, content: bytes, *, committed: bool = True) -> None:
        """Keep one acknowledged record whose transaction, if it had one, has ended."""
        (self.committed if committed else self.aborted)[tp].append((offset, content))

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
    """Where one group stands: exact range of target offsets, and what the synced offset skips and repeats."""

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
    """Return where a group with this committed source offset stands on the target.

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


def _offsets(entries: Iterable[Entry]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for offset, content in entries:
        found[content].append(offset)
    return dict(found)
