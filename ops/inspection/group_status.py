"""The status of each mirrored group: unread records, what it would read again on the target or skip, and since when.

Since when: MirrorMaker writes a checkpoint of a partition only when its translation has moved on, so a checkpoint may
be old and still be right. The age counts from the moment at which the group read past it. No one records that moment.
It is not before the checkpoint was written, and not before the timestamp of the first record behind it, so the reported
age is an upper bound. It is not one if producers set timestamps in the past.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Request
from kafka import groups as consumer_groups
from kafka.checkpoints import SourceOffset
from kafka.cluster import Cluster
from kafka.group_positions import GroupPosition
from kafka.groups import IDLE, Groups, LogRange
from kafka.lag import Measure, age_s
from kafka.topic_partition import TopicPartition
from ops.inspection.probes import MirrorReadings

RECORDS_MAX = 300
REASONS_MAX = 5
WITHIN_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupOffset:
    """A mirrored group in one partition: its committed offsets, and its lag, on both sides. What is None is unknown.

    `again` and `skipped` are the records that it would read again or never read if it went on at the target now: by
    offsets alone, so approximate. They count only what the mirror has copied, and are None without the mirror's
    position or an offset on the target. Nothing is skipped where a checkpoint leads to that offset.
    """

    topic: str
    target_topic: str
    partition: int
    source: int
    source_lag: int
    target: int | None
    target_lag: int | None
    again: int | None
    skipped: int | None


@dataclass(frozen=True, kw_only=True)
class GroupStatus:
    """A mirrored group. `unread` are its records at the source that it has not read.

    `again` and `skipped` are the sums over the partitions in which they are known, None if there is none. `unsynced`
    are partitions in which it has no position on the target. `behind_s` is the upper bound of the seconds since when
    its position was not carried over; 0 if it is, None if unknown. `problem` is the reason why its offsets are unknown.
    """

    group: str
    source_state: str | None
    target_state: str | None
    unread: int | None
    again: int | None
    skipped: int | None
    unsynced: tuple[str, ...] = ()
    behind_s: float | None = None
    offsets: tuple[GroupOffset, ...] = ()
    problem: str | None = None

    @property
    def active_on_target(self) -> bool:
        """Whether it has members on the target."""
        return self.target_state is not None and self.target_state not in IDLE


def mirrored_groups(
    readings: MirrorReadings, topic_partitions: list[TopicPartition], lag: Measure | None, unknown: dict[str, str]
) -> tuple[GroupStatus, ...]:
    """Return the groups with a position at the source, sorted by name.

    Args:
        readings: of both clusters, which are connected.
        topic_partitions: those of the source that the mirror carries.
        lag: how far the mirror is behind; without it nothing is known of what a group would read again or skip.
        unknown: gets under `groups` why the offsets of some groups are not known.
    """
    request, source, target = readings.pair.request, readings.source.cluster, readings.target.cluster
    logs = _logs(source, topic_partitions, request)
    remote = {tp: TopicPartition(request.mirror.target_topic(tp.topic), tp.partition) for tp in topic_partitions}
    there = _logs(target, existing(target, remote.values()), request)
    denied: dict[str, str] = {}
    held = {tp for tp, log in logs.items() if log.end}
    states = readings.source.group_states(), readings.target.group_states()
    found = consumer_groups.collect(source, target, request, held, denied, states)
    if denied:
        more = f"; and {len(denied) - REASONS_MAX} more groups" if len(denied) > REASONS_MAX else ""
        unknown["groups"] = "; ".join(list(denied.values())[:REASONS_MAX]) + more
    # From one measure: ends that were read after it would count records that arrived since as skipped.
    parts = lag.partitions if lag is not None else ()
    copied_to = {TopicPartition(one.topic, one.partition): one.source_end - one.records for one in parts}
    by_group: dict[str, list[GroupOffset]] = {group: [] for group in found.source_states}
    repeating: list[GroupPosition] = []
    for one in found.positions:
        tp = TopicPartition(one.topic, one.partition)
        copied = copied_to.get(tp, logs[tp].end) if lag is not None else None
        offset = _group_offset(one, found, logs[tp], remote[tp], there.get(remote[tp]), copied)
        by_group[one.group].append(offset)
        repeating += [one] if offset.again else []
    behind_s = checkpoint_ages(source, request, found, repeating)
    return tuple(
        _group_status(
            group, found, offsets, behind_s.get(group, 0.0), measured=lag is not None, problem=denied.get(group)
        )
        for group, offsets in sorted(by_group.items())
    )


def _group_offset(
    one: GroupPosition,
    found: Groups,
    log: LogRange,
    remote: TopicPartition,
    remote_log: LogRange | None,
    copied: int | None,
) -> GroupOffset:
    """Return a position with what going on at the target would cost; `copied` is the end of what the mirror copied."""
    target_lag = again = skipped = None
    if one.synced is not None and remote_log is not None:
        target_lag = remote_log.end - max(one.synced, remote_log.start)
        if copied is not None:
            unread = max(0, copied - max(one.committed, log.start))
            again = max(0, target_lag - unread)
            # Transactions, aborted and compacted records take offsets at the source that the remote topic lacks.
            is_translated = found.translation.proves((one.group, *remote), one.committed, one.synced)
            skipped = 0 if is_translated else max(0, unread - target_lag)
    return GroupOffset(
        topic=one.topic,
        target_topic=remote.topic,
        partition=one.partition,
        source=one.committed,
        source_lag=max(0, log.end - max(one.committed, log.start)),
        target=one.synced,
        target_lag=None if target_lag is None else max(0, target_lag),
        again=again,
        skipped=skipped,
    )


def _group_status(
    group: str,
    found: Groups,
    offsets: list[GroupOffset],
    behind_s: float | None,
    *,
    measured: bool,
    problem: str | None,
) -> GroupStatus:
    """Return a group with the sums of its partitions. `measured`: whether the mirror's position is known."""
    unsynced = tuple(f"{one.topic}-{one.partition}" for one in offsets if measured and one.again is None)
    known = any(one.again is not None for one in offsets)
    return GroupStatus(
        group=group,
        source_state=found.source_states.get(group),
        target_state=found.target_states.get(group),
        unread=_sum(one.source_lag for one in offsets),
        again=_sum(one.again for one in offsets),
        skipped=_sum(one.skipped for one in offsets),
        unsynced=unsynced,
        behind_s=behind_s if known and not unsynced else None,
        offsets=tuple(offsets),
        problem=problem,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the numbers that are known; None if none is."""
    known = [one for one in numbers if one is not None]
    return sum(known) if known else None


def groups_on_target(readings: MirrorReadings) -> tuple[GroupStatus, ...]:
    """Return the groups while the source does not answer: only their states on the target are known."""
    mirror = readings.pair.request.mirror
    return tuple(
        GroupStatus(group=group, source_state=None, target_state=state, unread=None, again=None, skipped=None)
        for group, state in sorted(readings.target.group_states().items())
        if mirror.carries_group(group)
    )


def _logs(cluster: Cluster, topic_partitions: list[TopicPartition], request: Request) -> dict[TopicPartition, LogRange]:
    starts, ends = cluster.starts(topic_partitions), cluster.ends(topic_partitions, request.limits.isolation)
    return {tp: LogRange(start, ends[tp]) for tp, start in starts.items()}


def existing(target: Cluster, wanted: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return those of the wanted partitions that the target has."""
    topic_partitions = set(wanted)
    topics = target.topics(lambda name: name in {topic for topic, _ in topic_partitions})
    return sorted(tp for tp in topic_partitions if tp[0] in topics and tp[1] in topics[tp[0]].replicas)


def checkpoint_ages(
    source: Cluster, request: Request, found: Groups, repeating: Iterable[GroupPosition]
) -> dict[str, float | None]:
    """Return the seconds of each group that would read records again; None where that is unknown.

    `repeating` are the positions in partitions of which records would be read again: the others are not behind. A
    position that MirrorMaker has translated as it is now is not behind either, however inexact the translation: 0.
    Checkpoints do not say how old what a follower has set is.
    """
    if not request.mirror.sync_group_offsets:
        return dict.fromkeys((one.group for one in repeating), None)
    waiting = {one: _first_unsynced(one, found, request) for one in repeating}
    timestamps = record_timestamps(
        source, {left for left in waiting.values() if left is not None}, request.limits.isolation
    )
    now_ms = time.time() * 1000
    by_group: dict[str, list[float | None]] = {}
    for one, left in waiting.items():
        by_group.setdefault(one.group, []).append(_age_s(one, found, request, left, timestamps, now_ms))
    return {group: _longest(ages) for group, ages in by_group.items()}


def _first_unsynced(one: GroupPosition, found: Groups, request: Request) -> SourceOffset | None:
    """Return the first offset after the checkpoint if the group has read on from there; else None."""
    checkpoint = found.checkpoint(one, request.mirror)
    if checkpoint is None or one.active or one.committed <= checkpoint.upstream:
        return None
    return one.topic, one.partition, checkpoint.upstream


def _age_s(
    one: GroupPosition,
    found: Groups,
    request: Request,
    left: SourceOffset | None,
    timestamps: Mapping[SourceOffset, int],
    now_ms: float,
) -> float | None:
    checkpoint = found.checkpoint(one, request.mirror)
    # Members on the target have set the position there, and MirrorMaker leaves it alone.
    if checkpoint is None or checkpoint.written_ms is None or one.active:
        return None
    if one.synced is not None and one.synced < checkpoint.downstream:
        since = checkpoint.written_ms
    elif left is None:
        return 0.0
    elif left in timestamps:
        is_ahead = age_s(timestamps[left], now_ms) is None  # then the checkpoint is all that bounds it
        since = checkpoint.written_ms if is_ahead else max(checkpoint.written_ms, timestamps[left])
    else:
        return None
    return round(max(0.0, now_ms - since) / 1000, 1)


def _longest(ages: Sequence[float | None]) -> float | None:
    known = [one for one in ages if one is not None]
    return max(known, default=0.0) if len(known) == len(ages) else None


def record_timestamps(source: Cluster, wanted: Iterable[SourceOffset], isolation: str) -> dict[SourceOffset, int]:
    """Return the timestamp (ms) of the first record at or behind each offset, as far as they are read in time."""
    queues: dict[TopicPartition, list[int]] = {}
    for topic, number, offset in sorted(wanted)[:RECORDS_MAX]:
        queues.setdefault(TopicPartition(topic, number), []).append(offset)
    found: dict[SourceOffset, int] = {}
    if not queues:
        return found
    consumer = source.consumer(isolation)
    try:
        consumer.assign([ClientTopicPartition(*tp, offsets[0]) for tp, offsets in queues.items()])
        end = time.monotonic() + WITHIN_S
        while queues and time.monotonic() < end:
            for message in consumer.consume(100, timeout=0.1):
                tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
                left, at = queues.get(tp), int(message.offset() or 0)
                if message.error() is not None or left is None or at < left[0]:
                    continue  # what was fetched before the consumer was sent on
                kind, stamp = message.timestamp()
                while left and left[0] <= at:
                    if kind != TIMESTAMP_NOT_AVAILABLE:
                        found[*tp, left[0]] = int(stamp)
                    left.pop(0)
                if left:
                    consumer.seek(ClientTopicPartition(*tp, left[0]))
                else:
                    del queues[tp]
                    consumer.pause([ClientTopicPartition(*tp)])
    except KafkaException:  # the ages of the others are not reported
        return found
    finally:
        consumer.close()
    return found
