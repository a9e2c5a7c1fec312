"""What one run knows of its two clusters: connecting to both, the offset ranges to read, and the run's context."""

import contextlib
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from contract.verification_request import Request
from kafka import mirror_position
from kafka.canary import CanaryResult
from kafka.checkpoints import SourceOffset
from kafka.cluster import Cluster, Topic
from kafka.connector_status import ConnectorState
from kafka.errors import ClusterError, UnansweredError
from kafka.groups import Groups
from kafka.lag import Lag
from kafka.mirror_metadata import Metadata
from kafka.mirror_position import CutState
from kafka.topic_metadata import HiddenTopics
from kafka.topic_partition import TopicPartition
from spark.comparison.findings import PartitionResult
from spark.comparison.offset_ranges import OffsetRange
from spark.state.resume import Resumed


def connect(source: Cluster, target: Cluster) -> None:
    """Connect to both sides at the same time; raises one ClusterError with the problems of both."""
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
    """Raise a ClusterError if a cluster refuses by now what the comparison failed at, with broker, right and user.

    A call without an answer raises nothing: the comparison's own error says more.
    """
    with contextlib.suppress(UnansweredError):
        seen = cluster.topics(topics.__contains__, topics)
        cluster.starts(TopicPartition(topic.name, number) for topic in seen.values() for number in topic.replicas)


def ranges_to_read(
    request: Request,
    source: Cluster,
    target: Cluster,
    source_topics: Mapping[str, Topic],
    target_topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    state: CutState,
) -> list[OffsetRange]:
    """Return what to read. The target's ends are read before the source's: what is there is then at the source too.

    The last stable offsets are read last: they lie below the ends only where a transaction is open. Partitions that
    only the target has are among them if they hold anything: a record may have strayed there.
    """
    there = [TopicPartition(topic.name, number) for topic in target_topics.values() for number in topic.replicas]
    target_ends = target.ends(there, request.limits.isolation)
    target_starts = target.starts(there)
    counted = mirror_position.first_judged(target, request.mirror, there)
    pending_ends = source.ends(starts, "read_uncommitted")
    source_ends = source.ends(starts, request.limits.isolation)
    _require_whole_logs(source, state.cut, pending_ends)
    occupied = {tp for tp, end in target_ends.items() if end > target_starts[tp]}
    surplus = _surplus(request, source, source_topics, target_topics, occupied)
    found = []
    for tp, start in [*starts.items(), *((tp, 0) for tp in surplus)]:
        name = request.mirror.target_topic(tp[0])
        copy = TopicPartition(name, tp.partition)
        counts_from = min(counted.get(copy, 0), target_ends.get(copy, 0))
        found.append(
            OffsetRange(
                topic=tp[0],
                partition=tp[1],
                source_start=start,
                cut=state.cut.get(tp, 0),
                source_end=source_ends.get(tp, 0),
                pending_end=pending_ends.get(tp, 0),
                target_topic=name,
                target_start=max(target_starts.get(copy, 0), counts_from),
                target_counts_from=counts_from,
                target_end=target_ends.get(copy, 0),
                position=(state.positions or {}).get(tp),
                cleaned_at_source=source_topics[tp[0]].compacted,
                cleaned_at_target=name in target_topics and target_topics[name].compacted,
            )
        )
    return found


def _require_whole_logs(source: Cluster, cut: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
    """Raise ClusterError if a log at the source ends in front of the cut: what stood there is no longer known."""
    for tp, end in sorted(ends.items()):
        if end < cut.get(tp, 0):
            raise ClusterError(
                source.refusals.message(
                    f"the log of {tp.topic}-{tp.partition} must not end in front of the cut (got {end}, at the cut "
                    f"{cut[tp]}): it was cut off by an unclean leader election, or the topic was created again",
                    "Run this again.",
                )
            )


def _surplus(
    request: Request,
    source: Cluster,
    source_topics: Mapping[str, Topic],
    target_topics: Mapping[str, Topic],
    occupied: Container[TopicPartition],
) -> list[TopicPartition]:
    """Return the partitions, by the source's topic, that only the target has and that hold offsets there.

    The source is asked again about them: a partition that it was given after the cut is no stray, and all of its
    records are younger than what this run judges.
    """
    copies = {name: target_topics.get(request.mirror.target_topic(name)) for name in source_topics}
    found = [
        TopicPartition(name, number)
        for name, copy in copies.items()
        if copy is not None
        for number in copy.replicas
        if number not in source_topics[name].replicas and TopicPartition(copy.name, number) in occupied
    ]
    if not found:
        return []
    now = source.topics({name for name, _ in found}.__contains__)
    return [
        TopicPartition(name, number) for name, number in found if name not in now or number not in now[name].replicas
    ]


@dataclass(kw_only=True)
class RunContext:
    """Topics by their name on their own side. What is None could not be learned.

    Filled in while the run goes on: what it knew when it had to stop is used too. `stage` is what it does; `waited`:
    the wait for the mirror is over, topics and connectors are as they will be judged. `absent_topics`, `absent_groups`:
    plain names that the mirror is asked to carry and the source does not have. `doubtful_topics`: whether the mirror
    carries them depends on its release of Kafka, which is not known. `hidden_topics` are those that the source may have
    and does not show. `denied_groups`: why offsets of a group cannot be read, under "" why no group is shown at all.
    `..._starts_after`: log starts after the comparison, both by the source's topic name, for
    `retention.expired_meanwhile`. `resumed`: from where a partition was compared, or why as a whole; `state` is the
    report's section about it. Both are empty without `--state`.
    `loops` are topics of the target that were mirrored back to it. `translated` are the positions that the request asks
    for, each with its exact counterpart. `truth` holds the lowest and the highest target offset of the source offsets
    that MirrorMaker's checkpoints and offset syncs name.
    """

    request: Request
    source_topics: Mapping[str, Topic] = field(default_factory=dict)
    target_topics: Mapping[str, Topic] = field(default_factory=dict)
    cut: CutState = field(default_factory=CutState)
    stage: str = "reading the request"
    waited: bool = False
    absent_topics: Sequence[str] = ()
    doubtful_topics: Sequence[str] = ()
    hidden_topics: HiddenTopics = field(default_factory=HiddenTopics)
    absent_groups: Sequence[str] = ()
    denied_groups: Mapping[str, str] = field(default_factory=dict)
    source_starts_after: Mapping[TopicPartition, int] | None = None
    target_starts_after: Mapping[TopicPartition, int] | None = None
    warnings: list[str] = field(default_factory=list)
    connectors: list[ConnectorState] | None = None
    metadata: Metadata = field(default_factory=Metadata)
    partitions: list[PartitionResult] = field(default_factory=list)
    groups: Groups = field(default_factory=Groups)
    lag: Lag = field(default_factory=Lag)
    resumed: Mapping[TopicPartition, Resumed | str] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    canary: CanaryResult | None = None
    loops: Sequence[str] = ()
    translated: Sequence[Mapping[str, Any]] = ()
    truth: Mapping[SourceOffset, tuple[int | None, int | None]] = field(default_factory=dict)
