"""A group in a partition as the follower knows it: where it stands at the source, and what was set for that."""

from dataclasses import dataclass

from kafka.offset_syncs import OffsetImage


@dataclass(slots=True)
class Position:
    """What is known of a group in a partition: its offset at the source, and what was set on the target for that.

    `went_back`: it has gone back at the source since it was set.
    """

    upstream: int
    metadata: str
    state: str = "unknown"
    wanted: int | None = None
    set_to: int | None = None
    went_back: bool = False

    def move(self, upstream: int, metadata: str) -> None:
        """Take in where the group stands now; what was set for a position in front of it skips nothing from there."""
        if upstream != self.upstream or metadata != self.metadata:
            if upstream < self.upstream:
                self.set_to, self.went_back = None, True
            self.upstream, self.metadata, self.wanted = upstream, metadata, None

    def find(self, image: OffsetImage | None) -> None:
        """Take in what the offset syncs prove; from what was set for it before a group is not moved back."""
        self.state, self.wanted = "unknown", None
        if image is not None and image.proven:
            self.state, self.wanted = "exact", image.offset
        elif image is not None:
            self.state, self.wanted = "unproven", max(image.offset, self.set_to or 0)

    def forget(self) -> None:
        """Forget all that depends on the logs of the partition."""
        self.state, self.wanted, self.set_to = "unknown", None, None
