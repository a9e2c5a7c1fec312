"""Reads what is needed to know how long the records that are not copied are safe from the source's retention.

Owns the two looks in time by which rates are measured, and how large a record is. Does not own what follows from it
(`kafka/retention.py`), nor the mirror's position, which the lag has.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.cluster import Cluster
from kafka.lag import Measure, PartitionLag, first_records
from kafka.raw_consumer import headers_as_copied
from kafka.retention import NotCopied, RetentionLimits, UntilDeletion, deleted_offsets, limits_of, until_deletion
from kafka.topic_metadata import topic_configs
from kafka.topic_partition import TopicPartition
from ops.inspection.group_status import existing
from ops.inspection.probes import MirrorReadings

LOOK_S = 2.0
"""Between the two looks at the log ends. The mirror writes to the target long before it commits its position."""
SAMPLED = 20
"""Records of a partition whose largest stands for all that are not copied."""
SAMPLED_PARTITIONS_MAX = 300
SAMPLED_WITHIN_S = 3.0
BATCH_BYTES = 61 + 21
"""What a batch and a record have besides key, value and headers (org.apache.kafka.common.record.DefaultRecordBatch)."""
REASONS_MAX = 3
EVERY_RECORD = "read_uncommitted"
"""The isolation by which logs are as large as they are: retention counts records of all transactions."""
Rates = Mapping[TopicPartition, float]
"""Records a second."""


def observe(readings: MirrorReadings, lag: Measure) -> tuple[tuple[UntilDeletion, ...], str | None]:
    """Return the partitions of which retention deletes records, and why nobody knows of some of them.

    Args:
        readings: of both clusters, which are connected.
        lag: the mirror's position in each partition, with the first record that is not copied.

    Raises:
        ClusterError: a cluster does not answer, or refuses what it is asked.
    """
    request, source, target = readings.pair.request, readings.source.cluster, readings.target.cluster
    described = topic_configs(source, {one.topic for one in lag.partitions})
    values = {topic: {name: one.value for name, one in config.items()} for topic, config in described.found.items()}
    limits = {topic: one for topic, config in values.items() if (one := limits_of(config)) is not None}
    limited = _with_open(source, [one for one in lag.partitions if one.topic in limits], request.limits.isolation)
    behind = {TopicPartition(one.topic, one.partition): one for one in limited if one.records}
    remote = {tp: TopicPartition(request.mirror.target_topic(tp.topic), tp.partition) for tp in behind}
    written, copied = _rates(source, target, remote, request.limits.isolation)
    by_size = {tp: one.following for tp, one in behind.items() if limits[tp.topic].size is not None}
    sizes = record_bytes(source, by_size, EVERY_RECORD)
    now_ms = time.time() * 1000
    held = {TopicPartition(one.topic, one.partition) for one in lag.partitions if not one.records}
    found = tuple(_until(one, limits[one.topic], written, copied, sizes, now_ms, held) for one in limited)
    reasons = list(described.refused.values())
    if unread := sorted({one.unknown for one in found if one.unknown is not None}):
        partitions = [f"{one.topic}-{one.partition}" for one in found if one.unknown is not None]
        more = f" and {len(partitions) - REASONS_MAX} more" if len(partitions) > REASONS_MAX else ""
        reasons.append(f"{', '.join(partitions[:REASONS_MAX])}{more}: {'; '.join(unread)}")
    return found, "; ".join(reasons[:REASONS_MAX]) or None


def _with_open(source: Cluster, limited: list[PartitionLag], isolation: str) -> list[PartitionLag]:
    """Add what stands behind an open transaction: a mirror that reads committed records stops there, and lag ends.

    Retention does not: brokers delete up to the high watermark, also if the transaction never ends.
    """
    if isolation == EVERY_RECORD or not limited:
        return limited
    every = {TopicPartition(one.topic, one.partition): one for one in limited}
    ends = source.ends(every, EVERY_RECORD)
    longer = {tp: one for tp, one in every.items() if max(one.source_end, one.following) < ends[tp]}
    stable = source.ends(longer, isolation) if longer else {}
    held = {tp: one for tp, one in longer.items() if max(stable[tp], one.following) < ends[tp]}
    at = {tp: one.following for tp, one in held.items() if not one.records}
    first = first_records(source, at, ends, EVERY_RECORD)
    for tp, one in held.items():
        if one.records:
            every[tp] = replace(one, records=one.records + max(0, ends[tp] - one.source_end))
        else:
            offset, first_ms = first.get(tp, (one.following, None))
            every[tp] = replace(one, records=ends[tp] - offset, first_ms=first_ms)
    return list(every.values())


def _until(
    one: PartitionLag,
    limits: RetentionLimits,
    written: Rates,
    copied: Rates,
    sizes: Mapping[TopicPartition, int],
    now_ms: float,
    held: Collection[TopicPartition],
) -> UntilDeletion:
    tp = TopicPartition(one.topic, one.partition)
    left = NotCopied(
        topic=one.topic,
        partition=one.partition,
        records=one.records,
        deleted=deleted_offsets(one.position, one.log_start),
        first_ms=one.first_ms,
        record_bytes=sizes.get(tp),
        written_per_s=written.get(tp),
        copied_per_s=copied.get(tp),
        held=tp in held,
    )
    return until_deletion(left, limits, now_ms)


def _rates(
    source: Cluster, target: Cluster, remote: Mapping[TopicPartition, TopicPartition], isolation: str
) -> tuple[Rates, Rates]:
    """Return how fast the source's partitions are written, and how fast the mirror writes what it copies of them."""
    if not remote:
        return {}, {}
    there = existing(target, remote.values())
    began, ends, copies = time.monotonic(), source.ends(remote, EVERY_RECORD), target.ends(there, isolation)
    time.sleep(LOOK_S)
    later, later_copies = source.ends(remote, EVERY_RECORD), target.ends(there, isolation)
    passed_s = time.monotonic() - began
    written = {tp: max(0, later[tp] - end) / passed_s for tp, end in ends.items()}
    copied = {tp: max(0, later_copies[tp] - end) / passed_s for tp, end in copies.items()}
    return written, {tp: copied[one] for tp, one in remote.items() if one in copied}


def record_bytes(source: Cluster, following: Mapping[TopicPartition, int], isolation: str) -> dict[TopicPartition, int]:
    """Return the size of the largest of some records from an offset on, without compression, as it is in a log.

    A partition is left out if none was read in time, or beyond SAMPLED_PARTITIONS_MAX.
    """
    found: dict[TopicPartition, list[int]] = {}
    wanted = dict(sorted(following.items())[:SAMPLED_PARTITIONS_MAX])
    if not wanted:
        return {}
    consumer = source.consumer(isolation)
    try:
        consumer.assign([ClientTopicPartition(*tp, at) for tp, at in wanted.items()])
        deadline = time.monotonic() + SAMPLED_WITHIN_S
        last = deadline
        while wanted and time.monotonic() < min(deadline, last):
            for message in consumer.consume(500, timeout=0.2):
                tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
                if message.error() is not None or tp not in wanted:
                    continue
                sizes = found.setdefault(tp, [])
                sizes.append(_size(message))
                if len(sizes) >= SAMPLED:
                    del wanted[tp]
                    consumer.pause([ClientTopicPartition(*tp)])
            if set(wanted) <= set(found):  # what is left has fewer records than a sample
                last = min(last, time.monotonic() + 0.5)
    finally:
        consumer.close()
    return {tp: max(sizes) for tp, sizes in found.items()}


def _size(message: object) -> int:
    """Return what a producer takes for the size of a record alone in its batch, as it compares it with its limit.

    Source: org.apache.kafka.common.record.internal.DefaultRecord.recordSizeUpperBound; lengths are zigzag varints.
    """
    parts: list[bytes | str | None] = [message.key(), message.value()]  # type: ignore[attr-defined]  # a Message
    headers: list[tuple[str | bytes, bytes | None]] = list(headers_as_copied(message) or ())
    parts += [part for header in headers for part in header]
    lengths = [len(part.encode() if isinstance(part, str) else part) for part in parts if part is not None]
    nulls = len(parts) - len(lengths)
    return BATCH_BYTES + nulls + sum(lengths) + sum(map(_varint, (*lengths, len(headers))))


def _varint(number: int) -> int:
    return max(1, -(-(2 * number).bit_length() // 7))
