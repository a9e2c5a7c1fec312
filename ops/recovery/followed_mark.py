"""The mark of an offset that `ops follow` has set: committed as its metadata, where the group itself stores none."""

FOLLOWED = "rt-inventory-follow"
"""Earlier releases commit this alone."""


def mark(upstream: int) -> str:
    """Return the mark of an offset that was set for a group at this source offset: it skips nothing from there on."""
    return f"{FOLLOWED} {upstream}"


def is_marked(metadata: str) -> bool:
    """Whether `ops follow` has set the offset with this metadata."""
    return metadata == FOLLOWED or marked_upstream(metadata) is not None


def marked_upstream(metadata: str) -> int | None:
    """Return for which source offset it was set; None without a mark, or with one that does not say so."""
    name, _, upstream = metadata.partition(" ")
    return int(upstream) if name == FOLLOWED and upstream.isascii() and upstream.isdecimal() else None
