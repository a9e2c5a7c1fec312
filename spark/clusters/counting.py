"""From which offset of the target a mirror counts, in topics that held records before it."""

from collections.abc import Iterable
from datetime import datetime

from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from spark.clusters.cluster import Cluster, Partition
from spark.request.model import Mirror


def offsets(target: Cluster, mirror: Mirror, there: Iterable[Partition]) -> dict[Partition, int]:
    """Return the first offset that counts, by topic and partition of the target, where the request names one.

    A time stands for the first record that is as young, or for the end where none is.
    """
    wanted = {mirror.target_topic(topic): where for topic, where in mirror.counts_from.items()}
    found: dict[Partition, int] = {}
    timed: dict[int, list[Partition]] = {}
    for topic, partition in there:
        where = wanted.get(topic)
        if isinstance(where, datetime):
            timed.setdefault(int(where.timestamp() * 1000), []).append((topic, partition))
        elif where is not None and partition in where:
            found[topic, partition] = where[partition]
    for moment, places in sorted(timed.items()):
        ends = target.ends(places, "read_uncommitted")
        first = target.offsets(places, OffsetSpec.for_timestamp(moment), "read_uncommitted")
        found |= {place: first[place] if first[place] >= 0 else ends[place] for place in places}
    return found


def told(offsets: Iterable[tuple[Partition, int]]) -> list[str]:
    """Return what is not judged, in a line a topic of the target."""
    by_topic: dict[str, list[str]] = {}
    for (topic, partition), offset in sorted(offsets):
        if offset:
            by_topic.setdefault(topic, []).append(f"{partition}: {offset}")
    return [
        f"target topic {topic}: the mirror counts from the offsets {', '.join(parts)} (by partition); what stands in "
        "front of them is older than the mirror and not judged"
        for topic, parts in by_topic.items()
    ]
