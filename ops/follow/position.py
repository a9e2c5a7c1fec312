"""A group in a partition as the follower knows it: where it stands at the source, and what was set for that."""

from dataclasses import dataclass

from kafka.checkpoints import OffsetSync
from kafka.group_commits import CommittedOffset
from kafka.offset_syncs import OffsetMap
from ops.follow.record_proof import ComparedRecords
from ops.recovery.followed_mark import is_marked, marked_upstream

Pairs = tuple[OffsetSync | None, OffsetSync | None]
"""The proven pairs in front of a position and behind it; None where there is none, of one side at most."""


@dataclass(slots=True)
class Position:
    """What is known of a group in a partition: its offset at the source, and what was set on the target for that.

    `went_back`: it has gone back at the source since it was set, which was at `left`. `was_read`: nothing is known of
    it, and where it is on the target was looked at. `not_in_front`: the first proven pair, if the records in front of
    it do not show where the group goes on.
    """

    upstream: int
    metadata: str
    state: str = "unknown"
    wanted: int | None = None
    set_to: int | None = None
    went_back: bool = False
    left: int | None = None
    was_read: bool = False
    not_in_front: OffsetSync | None = None

    def move(self, upstream: int, metadata: str) -> None:
        """Take in where the group stands now; what was set for a position in front of it skips nothing from there."""
        if upstream != self.upstream or metadata != self.metadata:
            if upstream < self.upstream:
                self.left = self.left if self.set_to is None else self.set_to
                self.set_to, self.went_back, self.was_read = None, True, False
            self.upstream, self.metadata, self.wanted, self.not_in_front = upstream, metadata, None, None

    def is_due(self, *, again: bool) -> bool:
        """Whether it is to be set, or where it is on the target to be looked at."""
        return not self.was_read if self.wanted is None else again or self.wanted != self.set_to

    def was_set(self, at: CommittedOffset) -> bool:
        """Whether a follower has set this offset."""
        return is_marked(at.metadata) or at.offset in {self.set_to, self.left}

    def has_left(self, at: CommittedOffset) -> bool:
        """Whether this offset was set for a position behind the one where the group is now: it may skip records."""
        upstream = marked_upstream(at.metadata)
        return self.went_back or (upstream is not None and upstream > self.upstream)

    def is_set(self, offset: int | None) -> None:
        """Take in that this is its offset on the target now."""
        self.set_to, self.went_back, self.left, self.was_read = offset, False, None, True

    def find(self, known: OffsetMap | None) -> Pairs | None:
        """Take in what the offset syncs prove; from what was set for it before a group is not moved back.

        Return the two pairs between which the records may prove more, None if they cannot.
        """
        self.state, self.wanted = "unknown", None
        if known is None:
            return None
        image, first = known.image(self.upstream), known.first
        if image is None:
            return (None, first) if first is not None and first != self.not_in_front else None
        if image.proven:
            self.state, self.wanted = "exact", image.offset
            return None
        self.state, self.wanted = "unproven", max(image.offset, self.set_to or 0)
        return image.anchor, image.following

    def compare(self, records: ComparedRecords, start: int) -> None:
        """Take in what the records from a source offset on prove."""
        proof = records.position(self.upstream) if self.upstream >= start else None
        if proof is not None and (proof.exact or proof.offset >= int(self.wanted or 0)):
            self.state, self.wanted = proof.state, proof.offset
        elif self.state == "unknown" and records.source.complete and records.target.complete:
            self.not_in_front = records.following

    def forget(self) -> None:
        """Forget all that depends on the logs of the partition."""
        self.state, self.wanted, self.set_to, self.left, self.not_in_front = "unknown", None, None, None, None
