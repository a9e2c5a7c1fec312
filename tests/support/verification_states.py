"""States made by hand for the tests."""

from collections.abc import Sequence
from dataclasses import replace

from spark.state import Anchor, Entry, Identity, State

IDENTITY = Identity(
    source_cluster_id="source-cluster",
    target_cluster_id="target-cluster",
    source_alias="es-src",
    target_alias="es-tgt",
    naming="identity",
    separator=".",
    isolation="read_committed",
)


def entry(
    topic: str = "items", partition: int = 0, anchors: Sequence[Anchor] = ((0, 5), (10, 15)), **more: str
) -> Entry:
    """An entry whose last record stands just before the verified offsets."""
    last = anchors[-1]
    made = Entry(
        topic=topic,
        partition=partition,
        source_topic_id="s1",
        target_topic_id="t1",
        anchors=tuple(anchors),
        source_tail=((max(0, last[0] - 1), "a"),),
        target_tail=((max(0, last[1] - 1), "a"),),
    )
    return replace(made, **more)


def state(*entries: Entry) -> State:
    return State(identity=IDENTITY, entries={one.topic_partition: one for one in entries})
