"""Which records are compared for positions between two proven pairs, by what earlier comparisons have shown.

As long as both sides are the same it is enough to read from the last record that was compared up to the position. Where
they differed, or the mirror has repeated records, all between the two pairs is read, or from the next pair back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kafka.checkpoints import OffsetSync
from kafka.topic_partition import TopicPartition
from ops.follow.position import Pairs
from ops.follow.record_proof import REACH, ComparedRecords, Stretch

Place = tuple[TopicPartition, OffsetSync | None]
"""A partition of the source, and the pair behind the positions."""


@dataclass
class Stretches:
    """What is remembered of comparisons: the last pair that each has proven, and where that was not enough."""

    _proved: dict[Place, OffsetSync] = field(default_factory=dict)
    _from_behind: set[Place] = field(default_factory=set)
    _differing: set[TopicPartition] = field(default_factory=set)

    def retain(self, places: set[Place]) -> None:
        """Forget all places but these."""
        self._from_behind &= places
        self._proved = {place: pair for place, pair in self._proved.items() if place in places}

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition: what was proven of its logs does not hold any more."""
        self._proved = {place: pair for place, pair in self._proved.items() if place[0] != tp}
        self._differing.discard(tp)

    def chosen(self, source: TopicPartition, target: TopicPartition, pairs: Pairs, offsets: Sequence[int]) -> Stretch:
        """Return what to compare for positions at these offsets between two pairs."""
        anchor, following = pairs
        first, last = min(offsets), max(offsets)
        place = source, following
        if following is not None and (anchor is None or place in self._from_behind):
            return Stretch(source, target, None, following, max(first, following.upstream - REACH))
        whole = source in self._differing or _are_repeated(anchor, following)
        return Stretch(source, target, self._closest(place, anchor, first), following, last, whole)

    def learn(self, stretch: Stretch, records: ComparedRecords, *, exact: bool) -> None:
        """Take in what a comparison has shown, and whether all of its positions are exact."""
        place = stretch.source, stretch.following
        if stretch.following is not None and not exact:
            if stretch.whole:
                self._from_behind ^= {place}  # the other way next time
            else:
                self._differing.add(stretch.source)
        if (last := records.last_pair()) is not None:
            self._proved[place] = last
        elif stretch.anchor is not None:  # compaction may have removed it from one of the logs
            self._proved.pop(place, None)

    def _closest(self, place: Place, anchor: OffsetSync | None, offset: int) -> OffsetSync | None:
        """Return the pair that the last comparison has proven, if it lies between a sync and the offset."""
        proved = self._proved.get(place)
        if proved is None or anchor is None:
            return anchor
        if anchor.upstream < proved.upstream < offset and anchor.downstream < proved.downstream:
            return proved
        return anchor


def _are_repeated(anchor: OffsetSync | None, following: OffsetSync | None) -> bool:
    """Whether the mirror has repeated records between two pairs: it has written more than it read, or transactions."""
    if anchor is None or following is None:
        return False
    return following.downstream - anchor.downstream > following.upstream - anchor.upstream
