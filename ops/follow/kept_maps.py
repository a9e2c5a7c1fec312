"""What offset syncs have proven, kept in a compacted topic on the target: the syncs themselves are compacted away.

A record of a partition has the key `mirror/topic/partition`, one with the key `mirror` says which sync comes next. That
one is written last: what was written before it is taken in twice, which changes nothing.

Owns the topic and its records. Does not own what a map proves.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # the package does not list what it re-exports

from contract.verification_request import Mirror
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.errors import ClusterError
from kafka.offset_syncs import OffsetMap
from kafka.topic_partition import TopicPartition
from settings.topics import follow_topic

EVERY_S = 30.0
WRITTEN_WITHIN_S = 10.0
_CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "86400000"}


@dataclass
class FoundMaps:
    """What was kept: maps, the ids of topics that they are of, and the first offset sync that is not in them."""

    maps: dict[TopicPartition, OffsetMap] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    next_sync: int | None = None


class KeptMaps:
    """Reads them once, and writes what has changed now and then. What cannot be kept is reported, and no error."""

    def __init__(self, target: Cluster, mirror: Mirror, log: Callable[[str], None], every_s: float = EVERY_S) -> None:
        self._target, self._mirror, self._log, self._every_s = target, mirror, log, every_s
        self._topic = follow_topic(mirror.source_alias)
        self._producer: Producer | None = None
        self._syncs_id = ""
        self._written = time.monotonic()
        self._problem = ""

    def read(self, syncs_id: str, *, linear: bool = True) -> FoundMaps:
        """Return what was kept for the offset syncs topic of this id; nothing if there is none. Makes the topic.

        `linear` is as in OffsetMap.
        """
        self._syncs_id = syncs_id
        try:
            self._create()
            reader = self._target.topic_reader(self._topic)
            try:
                kept = {key: value for key, value in reader.read() if key is not None}
            finally:
                reader.close()
            return self._decoded(kept, linear=linear)
        except (ClusterError, KafkaException, ValueError, KeyError, TypeError) as error:
            self._report(str(error))
            return FoundMaps()

    def keep(
        self,
        maps: Mapping[TopicPartition, OffsetMap],
        ids: Mapping[str, str],
        changed: set[TopicPartition],
        next_sync: int,
        *,
        at_once: bool = False,
    ) -> None:
        """Write what has changed, if it is time; it is taken out of `changed` once it stands there."""
        if not changed or (not at_once and time.monotonic() - self._written < self._every_s):
            return
        self._written = time.monotonic()
        if self._producer is None:
            self._producer = self._target.producer({"message.timeout.ms": int(WRITTEN_WITHIN_S * 1000)})
        problems: list[str] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                problems.append(error.str())

        taken = set(changed)
        for tp in sorted(taken):
            value = None
            if tp in maps:
                value = json.dumps(ids.get(tp.topic, "")).encode() + b"\n" + maps[tp].pack()
            self._producer.produce(self._topic, key=self._key(tp), value=value, on_delivery=delivered)
        if not self._producer.flush(WRITTEN_WITHIN_S) and not problems:
            value = json.dumps({"nextSync": next_sync, "syncsId": self._syncs_id}).encode()
            self._producer.produce(self._topic, key=self._mirror.name.encode(), value=value, on_delivery=delivered)
            if not self._producer.flush(WRITTEN_WITHIN_S) and not problems:
                changed -= taken
                self._problem = ""
                return
        self._report(problems[0] if problems else "no answer")

    def _create(self) -> None:
        if self._target.names(lambda name: name == self._topic):
            return
        wanted = NewTopic(self._topic, 1, self._mirror.replication_factor or -1, config=_CONFIG)
        for future in self._target.admin.create_topics([wanted], request_timeout=CALL_DEADLINE_S).values():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def _decoded(self, kept: Mapping[bytes, bytes | None], *, linear: bool) -> FoundMaps:
        """Raises ValueError, KeyError or TypeError for records that are not of this release."""
        found = FoundMaps()
        head = json.loads(kept.get(self._mirror.name.encode()) or b"null")
        if head is None or head["syncsId"] != self._syncs_id:
            return found
        prefix = f"{self._mirror.name}/".encode()
        for key, value in kept.items():
            if key.startswith(prefix) and value is not None:
                _, topic, number = key.decode().split("/")
                ids, _, packed = value.partition(b"\n")
                found.maps[TopicPartition(topic, int(number))] = OffsetMap.unpack(packed, linear=linear)
                if known := json.loads(ids):
                    found.ids[topic] = known
        found.next_sync = int(head["nextSync"])
        return found

    def _key(self, tp: TopicPartition) -> bytes:
        return f"{self._mirror.name}/{tp.topic}/{tp.partition}".encode()

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            side = self._target.side
            self._log(
                f"target {side.alias}: topic {self._topic} must keep what offset syncs prove (got {problem}). A "
                "restart knows only those that compaction has left. Give user "
                f"{side.user} Create, Describe, DescribeConfigs, Read and Write on it."
            )
        self._problem = problem
