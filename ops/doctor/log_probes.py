"""Probes of what the mirror copies from: logs that are not those that it knew, records too large, topics that are gone.

They are read-only. The mirror's position is that of the snapshot's lag.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from contract.verification_request import Mirror
from kafka import mirror_position
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.connector_status import NO_ANSWER, REST_DEADLINE_S
from kafka.lag import PartitionLag
from kafka.topic_metadata import hidden_topics, topic_configs, topic_ids
from kafka.topic_partition import TopicPartition
from ops.doctor.observations import LargeRecord, ReplacedLog
from ops.inspection.probes import MirrorReadings
from ops.inspection.retention import record_bytes
from ops.recovery.mirror_context import latest_verification

REQUEST_LIMIT = 1_048_576
"""`max.request.size` of a producer that sets none (org.apache.kafka.clients.producer.ProducerConfig)."""
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the package has no types here


@dataclass(frozen=True)
class LargeRecordScan:
    """Records that are too large, of how many partitions some were read, and how many are behind."""

    records: tuple[LargeRecord, ...] = ()
    read: int = 0
    partitions: int = 0


def replaced_logs(readings: MirrorReadings) -> tuple[ReplacedLog, ...]:
    """Return the logs of the source that the mirror has not copied from: their topics are new, or they were cut off.

    A log end in front of the position proves it. No leader of a new log was ever elected again: its epoch is 0. Where
    one was, or a new log has grown beyond the position, the topic's id shows it if the latest verification's report is
    here.
    """
    lag, source = readings.lag(), readings.source.cluster
    if lag is None:
        return ()
    passed = [one for one in lag.partitions if one.position is not None and one.position >= one.source_end]
    ends = _ends(source, [TopicPartition(one.topic, one.partition) for one in passed])
    report = latest_verification(readings.pair) or {}
    known: Mapping[str, str] = report.get("source_topic_ids") or {}
    ids = topic_ids(source, {one.topic for one in lag.partitions} & set(known))
    renewed = {topic for topic, now in ids.items() if now is not None and now != known[topic]}
    found = [replaced for one in passed if (replaced := _replaced(one, ends, renewed)) is not None]
    found += [
        ReplacedLog(
            topic=topic,
            partition=None,
            is_new=True,
            known_id=known[topic],
            topic_id=ids[topic],
            known_at=str(report.get("finished_at")),
        )
        for topic in sorted(renewed)
    ]
    return tuple(found)


def _replaced(
    one: PartitionLag, ends: Mapping[TopicPartition, tuple[int, int | None]], renewed: Collection[str]
) -> ReplacedLog | None:
    """Return a partition whose high watermark is not behind the position: a transaction may be open there.

    `renewed` topics are known to be new by their ids: the epoch of one grows once its broker was started again.
    """
    end, epoch = ends.get(TopicPartition(one.topic, one.partition), (None, None))
    if end is None or one.position is None or one.position < end:
        return None
    return ReplacedLog(
        topic=one.topic,
        partition=one.partition,
        is_new=end == 0 or epoch == 0 or one.topic in renewed,
        position=one.position,
        log_end=end,
    )


def _ends(source: Cluster, wanted: list[TopicPartition]) -> dict[TopicPartition, tuple[int, int | None]]:
    """Return high watermark and leader epoch of the last record; a partition that cannot be asked is missing."""
    if not wanted:
        return {}
    asked = {ClientTopicPartition(*tp): _LATEST for tp in wanted}
    futures = source.admin.list_offsets(
        asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=CALL_DEADLINE_S
    )
    found: dict[TopicPartition, tuple[int, int | None]] = {}
    for part, future in futures.items():
        try:
            end = future.result()
        except KafkaException:
            continue
        found[TopicPartition(part.topic, part.partition)] = end.offset, getattr(end, "leader_epoch", None)
    return found


def orphans(readings: MirrorReadings) -> dict[str, str]:
    """Return topics with a position that the source has no more, each with its remote topic that is still there.

    A topic that the mirror's user may not describe looks alike, and is left out.
    """
    request = readings.pair.request
    mirror, here, there = request.mirror, readings.source.layout().topics, readings.target.layout().topics
    reader, _ = mirror_position.open_reader(readings.target.cluster, request, lambda _: None)
    if reader is None:
        return {}
    try:
        copied = {topic for topic, _ in reader.read()}
    finally:
        reader.close()
    gone = {
        topic for topic in copied - set(here) if mirror.carries_topic(topic) and mirror.target_topic(topic) in there
    }
    hidden = hidden_topics(readings.source.cluster, dict.fromkeys(gone, "the mirror's offsets")).named_by
    return {topic: mirror.target_topic(topic) for topic in sorted(gone - set(hidden))}


def large_records(readings: MirrorReadings) -> LargeRecordScan:
    """Return the partitions of which a record that is not copied is larger than a limit of the target or the producer.

    Only the first records behind the position are read, where a mirror stands that cannot go on. A producer judges a
    record as it is, a topic a batch as it comes: nobody knows how large one is that the producer compresses.
    """
    lag, request = readings.lag(), readings.pair.request
    if lag is None:
        return LargeRecordScan()
    behind = {TopicPartition(one.topic, one.partition): one.following for one in lag.partitions if one.records}
    sizes = record_bytes(readings.source.cluster, behind, request.limits.isolation)
    large = {tp: size for tp, size in sizes.items() if size > REQUEST_LIMIT // 2}
    if not large:
        return LargeRecordScan((), len(sizes), len(behind))
    remote = {topic: request.mirror.target_topic(topic) for topic, _ in large}
    configs = topic_configs(readings.target.cluster, remote.values()).found
    producer = _producer(readings, request.mirror)
    request_limit = None if producer is None else int(producer.get("max.request.size") or REQUEST_LIMIT)
    compresses = (producer or {}).get("compression.type") not in (None, "none")
    found = []
    for tp, size in sorted(large.items()):
        name = remote[tp.topic]
        setting = configs.get(name, {}).get("max.message.bytes")
        topic_limit = int(setting.value) if setting is not None and setting.value and not compresses else None
        if any(limit is not None and size > limit for limit in (topic_limit, request_limit)):
            found.append(
                LargeRecord(
                    topic=tp.topic,
                    remote_topic=name,
                    partition=tp.partition,
                    size=size,
                    topic_limit=topic_limit,
                    request_limit=request_limit,
                )
            )
    return LargeRecordScan(tuple(found), len(sizes), len(behind))


def _producer(readings: MirrorReadings, mirror: Mirror) -> dict[str, Any] | None:
    """Return what is set of the mirror's producer; None if neither Connect nor the resource reports it."""
    config = connector_config(mirror)
    resource = readings.resource()
    document: Mapping[str, Any] = resource.document if resource is not None else {}
    if config is None and not document:
        return None
    spec = document.get("spec") or {}
    connectors = [one.get("sourceConnector") or {} for one in spec.get("mirrors") or []]
    found: dict[str, Any] = {}
    for prefix, holders in (
        ("producer.", [*(spec.get("clusters") or []), spec.get("target") or {}]),
        ("producer.override.", [*connectors, {"config": config}]),
    ):
        for holder in holders:
            options = holder.get("config") or {}
            found |= {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
    return found


def connector_config(mirror: Mirror) -> Mapping[str, str] | None:
    """Return the source connector's configuration; None without an answer of Connect."""
    if mirror.connect_url is None:
        return None
    try:
        path = f"{mirror.connect_url.rstrip('/')}/connectors/{quote(mirror.source_connector, safe='')}/config"
        answer = httpx.get(path, timeout=REST_DEADLINE_S)
        answer.raise_for_status()
        return dict(answer.json())
    except NO_ANSWER:
        return None
