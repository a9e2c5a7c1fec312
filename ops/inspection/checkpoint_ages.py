"""How long what a group has read at the source has not reached its position on the target.

Owns what can honestly be said of it. MirrorMaker writes a checkpoint of a partition only when its translation has moved
on, so a checkpoint may be old and still be right: it counts from the moment at which the group has left it. That moment
nobody has written down. It is not before the checkpoint, and not before the first record that the group has read behind
it, so the reported age is at most too long. With timestamps that producers set in the past it is.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Request
from kafka.checkpoints import SourceOffset
from kafka.cluster import Cluster
from kafka.groups import GroupPosition, Groups
from kafka.topic_partition import TopicPartition

RECORDS_MAX = 300
WITHIN_S = 2.0


def ages(
    source: Cluster, request: Request, found: Groups, repeating: Iterable[GroupPosition]
) -> dict[str, float | None]:
    """Return the seconds of each group that would read records again; None where nobody can tell.

    `repeating` are the positions in partitions of which records would be read again: the others are not behind. A
    position that MirrorMaker has translated as it stands is not behind either, however inexact the translation: 0.
    """
    if not request.mirror.sync_group_offsets:
        return dict.fromkeys((one.group for one in repeating), None)
    waiting = {one: _left(one, found, request) for one in repeating}
    stamped = stamps(source, {left for left in waiting.values() if left is not None}, request.limits.isolation)
    now_ms = time.time() * 1000
    by_group: dict[str, list[float | None]] = {}
    for one, left in waiting.items():
        by_group.setdefault(one.group, []).append(_age_s(one, found, request, left, stamped, now_ms))
    return {group: _longest(ages) for group, ages in by_group.items()}


def _left(one: GroupPosition, found: Groups, request: Request) -> SourceOffset | None:
    """The first offset behind the checkpoint if the group has gone on from there; else None."""
    claim = found.checkpoint(one, request.mirror)
    gone_on = claim is not None and one.committed > claim.upstream
    return (one.topic, one.partition, claim.upstream) if claim is not None and gone_on and not one.active else None


def _age_s(
    one: GroupPosition,
    found: Groups,
    request: Request,
    left: SourceOffset | None,
    stamped: Mapping[SourceOffset, int],
    now_ms: float,
) -> float | None:
    claim = found.checkpoint(one, request.mirror)
    # Members on the target have set the position there, and MirrorMaker leaves it alone.
    if claim is None or claim.written_ms is None or one.active:
        return None
    if one.synced is not None and one.synced < claim.downstream:
        since = claim.written_ms
    elif left is None:
        return 0.0
    elif left in stamped:
        since = max(claim.written_ms, stamped[left])
    else:
        return None
    return round(max(0.0, now_ms - since) / 1000, 1)


def _longest(ages: Sequence[float | None]) -> float | None:
    known = [one for one in ages if one is not None]
    return max(known, default=0.0) if len(known) == len(ages) else None


def stamps(source: Cluster, wanted: Iterable[SourceOffset], isolation: str) -> dict[SourceOffset, int]:
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
