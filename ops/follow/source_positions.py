"""The mirrored groups' committed offsets at the source as they were last read, and which were not read in this round.

A group that cannot be read keeps its positions, which are the newest that are known of it and may be set; nobody knows
whether it has moved since. Does not own what is set for them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka import group_commits, in_flight
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.follow.position import Position

MISSING_AT_ONCE = in_flight.IN_FLIGHT
"""Groups that a round asks for though they are not listed any more: if nobody answers, it takes one deadline longer."""
LEADERS_EVERY = 10
"""Rounds after which it asks again whether groups cannot be listed: that is one more request, and rounds are short."""


@dataclass
class SourcePositions:
    """Positions by group and partition, also those of a group that was not read.

    `carries_group` and `carries_topic`: whether the mirror carries a group and a topic with this name.
    """

    source: Cluster
    carries_group: Callable[[str], bool]
    carries_topic: Callable[[str], bool]
    by_group: dict[str, dict[TopicPartition, Position]] = field(default_factory=dict)
    errors: dict[str, ClusterError] = field(default_factory=dict)
    """Why groups were not read in this round."""
    _unread: set[str] = field(default_factory=set)
    _is_answered: bool = False
    _lost: str = ""
    _left: int = 0

    def read(self) -> list[str]:
        """Read the offsets of all groups; return why some may be missing. Raises ClusterError if nothing answers.

        A group that is not listed any more is forgotten once its coordinator answers that it has no offsets: it may be
        one whose partition of `__consumer_offsets` has no leader. Of such a group that was never read only that
        partition is known, for which the first of `LEADERS_EVERY` rounds asks.
        """
        self._unread, self.errors, self._is_answered = {*self.by_group}, {}, False
        unlisted: dict[str, str] = {}
        listed = set(filter(self.carries_group, self.source.group_states(unlisted, leaders=False)))
        self._left -= 1
        if self._left < 0 and not unlisted:
            self._lost, self._left = group_commits.lost_partitions(self.source), LEADERS_EVERY - 1
        missing = [] if unlisted else sorted(self._unread - listed)[:MISSING_AT_ONCE]
        for group, offsets in group_commits.answers(
            self.source, [*sorted(listed), *missing], self.errors, stable=False
        ):
            self._is_answered = True
            self._unread.discard(group)
            self.by_group[group] = dict(self._moved(self.by_group.get(group, {}), offsets))
            if not self.by_group[group] and group not in listed:
                del self.by_group[group]
        return [*unlisted.values(), *([self._lost] if self._lost else []), *map(str, self.errors.values())]

    @property
    def failure(self) -> ClusterError | None:
        """Why no group at all was read in this round; None if one was, or there is none."""
        return next(iter(self.errors.values()), None) if not self._is_answered else None

    def _moved(
        self, before: Mapping[TopicPartition, Position], offsets: Iterable[tuple[TopicPartition, Any]]
    ) -> Iterator[tuple[TopicPartition, Position]]:
        for tp, at in offsets:
            one, metadata = before.get(tp), at.metadata or ""
            if one is not None:
                one.move(at.offset, metadata)
            elif self.carries_topic(tp.topic):
                one = Position(at.offset, metadata)
            if one is not None:
                yield tp, one

    def forget(self, tp: TopicPartition) -> None:
        """Forget all that depends on the logs of a partition."""
        for of_group in self.by_group.values():
            if tp in of_group:
                of_group[tp].forget()

    def begin_again(self, tp: TopicPartition) -> None:
        """Forget unread positions in a partition whose topic was created again: they are of its old log.

        In the new one no group has gone back, and what was set skips nothing of what the mirror copies behind it.
        """
        for group, of_group in self.by_group.items():
            if group in self._unread:
                of_group.pop(tp, None)
            elif tp in of_group:
                of_group[tp].went_back, of_group[tp].was_read = False, True

    def states(self) -> Counter[str]:
        """How many positions are in each state; those of a group that was not read are unknown."""
        return Counter(
            "unknown" if group in self._unread else one.state
            for group, of_group in self.by_group.items()
            for one in of_group.values()
        )
