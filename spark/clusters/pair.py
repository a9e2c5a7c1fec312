"""Both sides at once: connecting, asking again what Spark could not do, and what there is to read."""

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from spark.clusters import counting
from spark.clusters.cluster import Cluster, Partition, Topic
from spark.clusters.waiting import CutState
from spark.errors import ClusterError, UnansweredError
from spark.records.extents import Extent
from spark.request.model import Request


def connect(source: Cluster, target: Cluster) -> None:
    """Connect to both sides at the same time; raises one ClusterError that tells what is wrong with either."""
    with ThreadPoolExecutor(2) as pool:
        try:
            ended = [
                connection.exception() for connection in [pool.submit(source.connect), pool.submit(target.connect)]
            ]
        except BaseException:
            source.give_up()
            target.give_up()
            raise
    problems = [error for error in ended if error is not None]
    if not problems:
        return
    if all(isinstance(error, ClusterError) for error in problems):
        raise ClusterError("\n".join(map(str, problems)))
    raise next(error for error in problems if not isinstance(error, ClusterError))


def ask_again(cluster: Cluster, topics: Mapping[str, Topic]) -> None:
    """Raise a ClusterError if a side refuses by now what the comparison could not do either.

    It names broker, right and user. That a call gets no answer says less than what the comparison met: it is not told.
    """
    with contextlib.suppress(UnansweredError):
        seen = cluster.topics(topics.__contains__, topics)
        cluster.starts((topic.name, number) for topic in seen.values() for number in topic.replicas)


def extents(
    request: Request,
    source: Cluster,
    target: Cluster,
    source_topics: Mapping[str, Topic],
    target_topics: Mapping[str, Topic],
    starts: Mapping[Partition, int],
    state: CutState,
) -> list[Extent]:
    """Return what to read. The target's ends are read before the source's: what is there is then at the source too.

    The last stable offsets are read last: they lie below the ends only where a transaction is open.
    """
    there = [(topic.name, number) for topic in target_topics.values() for number in topic.replicas]
    target_ends = target.ends(there, request.limits.isolation)
    target_starts = target.starts(there)
    counted = counting.offsets(target, request.mirror, there)
    pending_ends = source.ends(starts, "read_uncommitted")
    source_ends = source.ends(starts, request.limits.isolation)
    found = []
    for place, start in starts.items():
        name = request.mirror.target_topic(place[0])
        copy = (name, place[1])
        counts_from = min(counted.get(copy, 0), target_ends.get(copy, 0))
        compacted = source_topics[place[0]].compacted or (name in target_topics and target_topics[name].compacted)
        found.append(
            Extent(
                topic=place[0],
                partition=place[1],
                source_start=start,
                cut=state.cut[place],
                source_end=source_ends[place],
                pending_end=pending_ends[place],
                target_topic=name,
                target_start=max(target_starts.get(copy, 0), counts_from),
                target_counts_from=counts_from,
                target_end=target_ends.get(copy, 0),
                position=(state.positions or {}).get(place),
                compacted=compacted,
            )
        )
    return found
