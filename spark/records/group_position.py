"""Where a consumer group stands, at the source and on the target."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GroupPosition:
    """Where one group stands in one partition. Offsets are those of the next record to read.

    `lowest` to `highest` are the target offsets that skip nothing and repeat only what stands doubled; `lowest` is the
    exact one. They are None while nothing of the partition lies on the target. `back` is the exact one at the source
    for a consumer that has read on the target up to `synced`; None where that cannot be told. `active`: the group has
    members on the target. `unclaimed`: no checkpoint that is left claims an offset as high as the synced one.
    """

    group: str
    topic: str
    partition: int
    committed: int
    synced: int | None
    lowest: int | None = None
    highest: int | None = None
    back: int | None = None
    unread: int = 0
    skipped: int = 0
    repeated: int = 0
    active: bool = False
    unclaimed: bool = False
    judged: bool = False
