"""From where a run may go on: pure judgement of one partition's entry against what its logs hold now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark.clusters.cluster import Partition
from spark.records.extents import Extent
from spark.state.model import Anchor, Entry, TailRecord


@dataclass(frozen=True)
class Resumed:
    """Offsets of both sides from which a partition is compared; what lies before was verified by an earlier run."""

    source_offset: int
    target_offset: int


@dataclass(frozen=True)
class Needed:
    """Lowest offsets that must be inside what is compared: where groups stand. None: nothing asks for any."""

    source: int | None = None
    target: int | None = None


@dataclass(frozen=True, kw_only=True)
class Logs:
    """What the two sides are now: ids of topics by their names, and the records where the tails of the state are."""

    source_ids: Mapping[str, str]
    target_ids: Mapping[str, str]
    source_tails: Mapping[Partition, Sequence[TailRecord]] = field(default_factory=dict)
    target_tails: Mapping[Partition, Sequence[TailRecord]] = field(default_factory=dict)


def doubt(entry: Entry, extent: Extent, logs: Logs) -> str | None:
    """Return why an entry says nothing of these logs any more, before their tails are read; None when it may."""
    ids = (logs.source_ids.get(extent.topic), logs.target_ids.get(extent.target_topic))
    known = (entry.source_topic_id, entry.target_topic_id)
    bounds = (
        ("source", entry.source_tail, entry.verified, extent.source_start, extent.cut),
        ("target", entry.target_tail, entry.anchors[-1][1], extent.target_start, extent.target_end),
    )
    for (side, tail, verified, start, end), now, then in zip(bounds, ids, known, strict=True):
        if now is None:
            return f"the {side} does not tell the topic's id"
        if now != then:
            return f"the topic was deleted and created again at the {side}"
        if end < verified:
            return f"the {side} ends at offset {end}, before the verified offset {verified}: records were cut off"
        if not tail or start > tail[0][0]:
            return f"the {side}'s log starts at offset {start}: the last verified records are gone"
    return None


def changed(entry: Entry, extent: Extent, logs: Logs) -> str | None:
    """Return why the last verified records are not what they were; None when they are."""
    there = (extent.target_topic, extent.partition)
    for side, tail, now in (
        ("source", entry.source_tail, logs.source_tails.get(entry.place)),
        ("target", entry.target_tail, logs.target_tails.get(there)),
    ):
        if now is None:
            return f"the last verified records of the {side} could not be read"
        if tuple(now) != tail:
            held = dict(now)
            odd = next((offset for offset, digest in tail if held.get(offset) != digest), tail[-1][0])
            return f"the {side} holds another record at the verified offset {odd}: its log was cut off and written anew"
    return None


def start(entry: Entry, extent: Extent, needed: Needed) -> Resumed | str:
    """Return the offsets to go on from: one anchor before the greatest that leaves what is needed inside.

    One before: some record that is verified already is compared again, so that no partition with records passes
    without a comparison, and a group at the verified offset has the image of a record to be measured by.
    """
    kept = [one for one in entry.anchors if one[0] >= extent.source_start and one[1] >= extent.target_start]
    usable = [
        one
        for one in kept
        if (needed.source is None or one[0] <= needed.source) and (needed.target is None or one[1] <= needed.target)
    ]
    if len(usable) > 1:
        return Resumed(*usable[-2])
    if len(kept) > 1:
        return "a group's position lies before every verified offset that the state remembers"
    return "the state remembers no earlier verified offset that both logs still hold"


def anchors(verified: Anchor, source: Sequence[TailRecord], target: Sequence[TailRecord]) -> list[Anchor]:
    """Return the verified offsets and, before them, those of the records at the end that correspond one to one.

    What the target holds in between (copies of aborted records, which fail nothing) is stepped over.
    """
    found = [verified]
    left = list(target)
    for offset, digest in reversed(source):
        while left and left[-1][1] != digest:
            left.pop()
        if not left:
            break
        found.append((offset, left.pop()[0]))
    return found[::-1]
