"""The mirrored groups' committed offsets at the source as they were last read, and which were not read in this round.

A group that cannot be read keeps its positions, which are the newest that are known of it and may be set; nobody knows
whether it has moved since. Does not own what is set for them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka import group_commits
from kafka.cluster import Cluster
from kafka.errors import ClusterError, UnansweredError
from kafka.topic_partition import TopicPartition
from ops.follow.position import Position

UNANSWERED_ROUNDS = 3
"""Rounds in a row with a request that the source did not answer, after which the next one begins with a new client."""


@dataclass
class SourcePositions:
    """Positions by group and partition, also those of a group that was not read.

    `carries_group` and `carries_topic`: whether the mirror carries a group and a topic with this name.
    """

    source: Cluster
    carries_group: Callable[[str], bool]
    carries_topic: Callable[[str], bool]
    by_group: dict[str, dict[TopicPartition, Position]] = field(default_factory=dict)
    _unread: set[str] = field(default_factory=set)
    _unanswered: int = 0

    def read(self) -> list[str]:
        """Read the offsets of all groups; return why some were not read. Raises ClusterError if it answers for none.

        A client may go on getting no answer for some requests where a new one gets them at once.
        """
        self._unread = {*self.by_group}
        if self._unanswered == UNANSWERED_ROUNDS:
            self._unanswered = 0
            self.source.connect(self.source.call_within_s)
        self._unanswered += 1
        unlisted: dict[str, str] = {}
        names = sorted(filter(self.carries_group, self.source.group_states(unlisted, leaders=False)))
        errors: dict[str, ClusterError] = {}
        for group, offsets in group_commits.answers(self.source, names, errors, stable=False):
            self._unread.discard(group)
            self.by_group[group] = dict(self._moved(self.by_group.get(group, {}), offsets))
        if not unlisted:
            for group in self._unread - errors.keys():
                del self.by_group[group]
            self._unread &= self.by_group.keys()
        unanswered = [error for error in errors.values() if isinstance(error, UnansweredError)]
        if len(unanswered) == len(names) > 0:
            raise unanswered[0]
        if not unanswered:
            self._unanswered = 0
        return [*unlisted.values(), *map(str, errors.values())]

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

    def states(self) -> Counter[str]:
        """How many positions are in each state; those of a group that was not read are unknown."""
        return Counter(
            "unknown" if group in self._unread else one.state
            for group, of_group in self.by_group.items()
            for one in of_group.values()
        )
