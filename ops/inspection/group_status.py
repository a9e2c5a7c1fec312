"""The status of each mirrored group: unread records, what it would read again on the target or skip, and since when.

Since when: MirrorMaker writes a checkpoint of a partition only when its translation has moved on, so a checkpoint may
be old and still be right. The age counts from the moment at which the group read past it. No one records that moment.
It is not before the checkpoint was written, and not before the timestamp of the first record behind it, so the reported
age is an upper bound. It is not one if producers set timestamps in the past.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Request
from kafka import groups as consumer_groups
from kafka.checkpoints import SourceOffset
from kafka.cluster import Cluster
from kafka.groups import IDLE, GroupPosition, Groups
from kafka.lag import Measure
from kafka.topic_partition import TopicPartition
from ops.recovery.mirror_context import MirrorContext

RECORDS_MAX = 300
WITHIN_S = 2.0


@dataclass(frozen=True, kw_only=True)
class GroupStatus:
    """A mirrored group. `unread` are its records at the source that it has not read.

    `again` and `skipped` are the records that it would read again or never read if it went on at the target now: by
    offsets alone, so approximate, and None where that is unknown. Nothing is skipped where a checkpoint leads to the
    position. `unsynced`
    are partitions in which it has no position on the target. `behind_s` is the upper bound of the seconds
    since when its position was not carried over; 0 if it is, None if unknown.
    """

    group: str
    source_state: str | None
    target_state: str | None
    unread: int | None
    again: int | None
    skipped: int | None
    unsynced: tuple[str, ...] = ()
    behind_s: float | None = None

    @property
    def active_on_target(self) -> bool:
        """Whether it has members on the target."""
        return self.target_state is not None and self.target_state not in IDLE


def mirrored_groups(
    pair: MirrorContext,
    source: Cluster,
    target: Cluster,
    topic_partitions: list[TopicPartition],
    lag: Measure | None,
    unknown: dict[str, str],
) -> tuple[GroupStatus, ...]:
    """Return the groups with a position at the source, sorted by name; `unknown` gets why others are left out.

    Args:
        topic_partitions: those of the source that the mirror carries.
        lag: how far the mirror is behind; without it nothing is known of what a group would read again or skip.
    """
    mirror, isolation = pair.request.mirror, pair.request.limits.isolation
    starts, ends = source.starts(topic_partitions), source.ends(topic_partitions, isolation)
    copies = {tp: TopicPartition(mirror.target_topic(tp.topic), tp.partition) for tp in topic_partitions}
    there = _existing(target, copies.values())
    target_starts, target_ends = target.starts(there), target.ends(there, isolation)
    denied: dict[str, str] = {}
    found = consumer_groups.collect(source, target, pair.request, {tp for tp in topic_partitions if ends[tp]}, denied)
    if denied:
        unknown["groups"] = "; ".join(denied.values())
    # From one measure: ends that were read after it would count records that arrived since as skipped.
    copied_to = (
        {TopicPartition(one.topic, one.partition): one.source_end - one.records for one in lag.partitions}
        if lag
        else {}
    )
    by_group: dict[str, GroupStatus] = {group: _without_offsets(group, found) for group in found.source_states}
    repeating: list[GroupPosition] = []
    for one in found.positions:
        tp = TopicPartition(one.topic, one.partition)
        copied = copied_to.get(tp, ends[tp])
        unread = max(0, copied - max(one.committed, starts[tp]))
        seen = by_group[one.group]
        seen = replace(seen, unread=(seen.unread or 0) + max(0, ends[tp] - max(one.committed, starts[tp])))
        if lag is None:
            by_group[one.group] = seen
            continue
        if one.synced is None or copies[tp] not in target_ends:
            seen = replace(seen, unsynced=(*seen.unsynced, f"{one.topic}-{one.partition}"))
        else:
            left = target_ends[copies[tp]] - max(one.synced, target_starts[copies[tp]])
            repeating += [one] if left > unread else []
            # Transactions, aborted and compacted records take offsets at the source that the copy does not have.
            is_translated = found.translation.vouches((one.group, *copies[tp]), one.committed, one.synced)
            seen = replace(
                seen,
                again=(seen.again or 0) + max(0, left - unread),
                skipped=(seen.skipped or 0) + (0 if is_translated else max(0, unread - left)),
                behind_s=0.0,
            )
        by_group[one.group] = seen
    behind_s = checkpoint_ages(source, pair.request, found, repeating)
    known = {name: behind_s.get(name, one.behind_s) for name, one in by_group.items() if not one.unsynced}
    return tuple(replace(one, behind_s=known.get(name)) for name, one in sorted(by_group.items()))


def _without_offsets(group: str, found: Groups) -> GroupStatus:
    return GroupStatus(
        group=group,
        source_state=found.source_states.get(group),
        target_state=found.target_states.get(group),
        unread=None,
        again=None,
        skipped=None,
    )


def groups_on_target(pair: MirrorContext, target: Cluster) -> tuple[GroupStatus, ...]:
    """Return the groups while the source does not answer: only their states on the target are known."""
    return tuple(
        GroupStatus(group=group, source_state=None, target_state=state, unread=None, again=None, skipped=None)
        for group, state in sorted(target.group_states().items())
        if pair.request.mirror.carries_group(group)
    )


def _existing(target: Cluster, wanted: Any) -> list[TopicPartition]:
    topic_partitions = set(wanted)
    topics = target.topics(lambda name: name in {topic for topic, _ in topic_partitions})
    return sorted(tp for tp in topic_partitions if tp[0] in topics and tp[1] in topics[tp[0]].replicas)


def checkpoint_ages(
    source: Cluster, request: Request, found: Groups, repeating: Iterable[GroupPosition]
) -> dict[str, float | None]:
    """Return the seconds of each group that would read records again; None where that is unknown.

    `repeating` are the positions in partitions of which records would be read again: the others are not behind. A
    position that MirrorMaker has translated as it is now is not behind either, however inexact the translation: 0.
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
    """The first offset behind the checkpoint if the group has gone on from there; else None."""
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
        since = max(checkpoint.written_ms, timestamps[left])
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
