"""Windows of offsets: the first comparison of two logs whose offsets differ by one constant shift.

Both sides add up the same windows, so equal sums prove that a window holds the same records at the same offsets, the
shift apart, and therefore in the same order. Windows that differ are read record by record if they are few; otherwise
the partition is compared by chunks, which find their place again behind a lost record. Pure Python, knows no Spark.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka.topic_partition import TopicPartition
from spark.comparison.chunks import Chunk
from spark.comparison.offset_ranges import OffsetRange, WindowSum

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


def pieces(before: Sums, later: Sums, target: Sums) -> list[list[Chunk]] | None:
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
