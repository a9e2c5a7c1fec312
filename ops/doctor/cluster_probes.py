"""Probes of the clusters: brokers, topics, rights, groups and assigned tasks of one, and records that are twice.

They are read-only: they join no consumer group and commit no offset. What a snapshot reads too is read once, for both.

Whether the first records of partitions are twice in the remote topic: then the mirror lost its position and began
again. The offset of the second one follows from MirrorMaker's own offset syncs; the records themselves are the proof.
Only a few records of each partition are compared. It does not replace the verification.
"""

import struct
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import AclOperation, OffsetSpec  # type: ignore[attr-defined]  # the package lists neither

from contract.verification_request import Mirror
from kafka.checkpoints import OffsetSyncHistory, OffsetTranslation, with_syncs
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.connectivity import Broker, connection_error
from kafka.errors import DENIED, code_of
from kafka.groups import hidden_patterns
from kafka.raw_consumer import headers_as_copied
from kafka.topic_metadata import topic_configs
from kafka.topic_partition import TopicPartition
from ops.doctor.observations import AssignedTasks, DuplicateRecord, Right
from ops.errors import OpsError
from ops.inspection.probes import BROKERS_MAX, ClusterReadings, Layout

GROUPS_MAX = 100
_WORDS = {
    AclOperation.READ: "Read",
    AclOperation.WRITE: "Write",
    AclOperation.ALTER: "Alter",
    AclOperation.DESCRIBE: "Describe",
    AclOperation.DESCRIBE_CONFIGS: "DescribeConfigs",
    AclOperation.ALTER_CONFIGS: "AlterConfigs",
}
_READ_TOPIC = (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
_OWN_TOPIC = (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE)
_COPY = (AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.ALTER)


SilentBrokers = tuple[tuple[Broker, str], ...]
"""Brokers that take no connection at the address that they advertise, each with the reason."""
PARTITIONS_MAX = 300
COMPARED = 3
SCANNED = 200
READ_S = 10.0
_COMMITTED, _UNCOMMITTED = "read_committed", "read_uncommitted"
Content = tuple[object, ...]
Records = list[tuple[int, Content]]
"""Offsets, each with the content of its record."""


def silent_brokers(readings: ClusterReadings) -> SilentBrokers:
    """Return the brokers that take no connection; no more than BROKERS_MAX are tried."""
    tried = sorted(readings.layout().brokers)[:BROKERS_MAX]
    with ThreadPoolExecutor(16) as pool:
        answers = list(zip(tried, pool.map(connection_error, tried), strict=True))
    return tuple((broker, why) for broker, why in answers if why is not None)


def groups(readings: ClusterReadings, mirror: Mirror) -> tuple[Mapping[str, str], list[Right]]:
    """Return the states of the groups, and the rights that this user lacks to see them or to set their offsets."""
    cluster, states = readings.cluster, readings.group_states()
    if not mirror.sets_groups:
        return states, []
    lacks: list[Right] = [
        ("Describe", f"the groups of {pattern}") for pattern in hidden_patterns(cluster, mirror, states)
    ]
    if cluster.side.role == "source":
        return states, lacks
    carried = sorted(group for group in states if mirror.carries_group(group))[:GROUPS_MAX]
    if carried:
        futures = cluster.admin.describe_consumer_groups(
            carried, include_authorized_operations=True, request_timeout=CALL_DEADLINE_S
        )
        for group, future in futures.items():
            lacks += _missing(future, (AclOperation.READ,), f"group {group}", "Read")
    return states, lacks


def other_groups(readings: ClusterReadings, mirror: Mirror) -> tuple[str, ...]:
    """Return the groups by names that the mirror carries which are no consumer groups: share groups, streams groups.

    Only the client's older call lists them, without their kind.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        listed = readings.cluster.admin.list_groups(timeout=CALL_DEADLINE_S)
    consumers = readings.group_states()
    others = {str(group.id) for group in listed if not group.protocol_type} - set(consumers)
    return tuple(sorted(group for group in others if mirror.carries_group(group)))


def rights(cluster: Cluster, mirror: Mirror, source_layout: Callable[[], Layout]) -> list[Right] | None:
    """Return the rights on topics that the mirror needs on this side and its user lacks; absent topics lack nothing.

    None if the brokers do not report rights: those before Kafka 2.3 describe a topic without any (KIP-430).

    Args:
        cluster: this side, connected.
        mirror: which topics it carries and names, and what it keeps where.
        source_layout: returns the topics of the source.
    """
    source = cluster.side.role == "source"
    topics = {*filter(mirror.carries_topic, source_layout().topics), *mirror.named_topics}
    config = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS) if mirror.topic_configs.sync else ()
    needed: dict[str, Any] = {
        name if source else mirror.target_topic(name): _READ_TOPIC if source else (*_COPY, *config) for name in topics
    }
    needed |= {one.name: _OWN_TOPIC for one in mirror.internal_topics if one.location == cluster.side.role}
    if not needed:
        return []
    futures = cluster.admin.describe_topics(
        TopicCollection(sorted(needed)), include_authorized_operations=True, request_timeout=CALL_DEADLINE_S
    )
    lacks: list[Right] = []
    for name, future in futures.items():
        if future.exception() is None and not future.result().authorized_operations:
            return None
        # A broker answers alike for an absent topic and a hidden one: what the mirror need not keep counts as absent.
        lacks += _missing(future, needed[name], f"topic {name}", "Describe" if mirror.keeps(name) else None)
    return lacks


def policies(cluster: Cluster, mirror: Mirror) -> dict[str, str]:
    """Return the clean-up policies of the mirror's own topics that are there and may be described."""
    names = [one.name for one in mirror.internal_topics if one.location == cluster.side.role]
    found = topic_configs(cluster, names).found
    return {name: str(config["cleanup.policy"].value) for name, config in found.items() if "cleanup.policy" in config}


def _missing(future: Any, needed: Iterable[AclOperation], resource: str, denied: str | None) -> list[Right]:
    try:
        granted = future.result().authorized_operations
    except KafkaException as error:
        return [(denied, resource)] if denied is not None and code_of(error) in DENIED else []
    return [(_WORDS[one], resource) for one in needed if granted and one not in granted]


_CONNECTOR_ITSELF = -1
_INCREMENTAL = 1  # and later versions of the protocol
_STABLE = "Stable"


def assigned_tasks(cluster: Cluster, group: str, connector: str) -> AssignedTasks:
    """Return the tasks of a connector that a worker has; raises OpsError while the group has no stable assignment."""
    try:
        with warnings.catch_warnings():
            # The call that replaces it does not return the metadata of the members.
            warnings.simplefilter("ignore", DeprecationWarning)
            groups = cluster.admin.list_groups(group=group, timeout=CALL_DEADLINE_S)
    except KafkaException as error:
        raise OpsError(f"group {group} cannot be described ({error.args[0].str()})") from None
    found = [one for one in groups if one.id == group]
    if found and found[0].state != _STABLE and found[0].members:
        raise OpsError(f"group {group} is {found[0].state}")
    return of_members(connector, [_member(one) for group in found for one in group.members])


def of_members(connector: str, members: Iterable[tuple[bytes, bytes]]) -> AssignedTasks:
    """Return the tasks of a connector that workers have; raises OpsError for another format.

    Args:
        connector: its name.
        members: metadata with which each worker joined the group, and its assignment.
    """
    tasks: set[int] = set()
    delay_ms = 0
    for metadata, assignment in members:
        try:
            held = _held(metadata, connector)
            change = _Assignment.read(assignment, connector)
        except (struct.error, UnicodeDecodeError):
            raise OpsError("the assignment of the workers' group has an unknown format") from None
        tasks |= (held - change.given_away) | change.tasks
        delay_ms = max(delay_ms, change.delay_ms)
    return AssignedTasks(tasks=frozenset(tasks - {_CONNECTOR_ITSELF}), delay_ms=delay_ms)


def _member(member: Any) -> tuple[bytes, bytes]:
    return bytes(member.metadata or b""), bytes(member.assignment or b"")


def _held(metadata: bytes, connector: str) -> set[int]:
    """Return the tasks that a worker had when it joined; the eager protocol gives all of them away before."""
    reader = _Reader(metadata)
    version = reader.integer("h")
    reader.text()  # its address
    reader.integer("q")  # position in the configuration topic
    held = reader.bytes() if version >= _INCREMENTAL else b""
    return _Assignment.read(held, connector).tasks if held else set()


@dataclass(frozen=True, kw_only=True)
class _Assignment:
    """Tasks of one connector that a worker gets and gives away. After `delay_ms` those without a worker are given."""

    tasks: set[int]
    given_away: set[int]
    delay_ms: int

    @classmethod
    def read(cls, data: bytes, connector: str) -> "_Assignment":
        reader = _Reader(data)
        version = reader.integer("h")
        reader.integer("h")  # error
        reader.text()  # the leader
        reader.text()  # its address
        reader.integer("q")  # position in the configuration topic
        tasks = reader.tasks(connector)
        if version < _INCREMENTAL:
            return cls(tasks=tasks, given_away=set(), delay_ms=0)
        return cls(tasks=tasks, given_away=reader.tasks(connector), delay_ms=reader.integer("i"))


class _Reader:
    """Reads the fields of Kafka's protocol types one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def integer(self, kind: str) -> int:
        """Return a number: `h`, `i` or `q` for 2, 4 or 8 bytes."""
        (value,) = struct.unpack_from(f">{kind}", self._data, self._at)
        self._at += struct.calcsize(f">{kind}")
        return int(value)

    def text(self) -> str:
        """Return a string; an empty one for null."""
        length = max(0, self.integer("h"))
        if self._at + length > len(self._data):
            raise struct.error("the text ends too early")
        value = self._data[self._at : self._at + length].decode()
        self._at += length
        return value

    def bytes(self) -> bytes:
        """Return a byte string; an empty one for null."""
        length = max(0, self.integer("i"))
        if self._at + length > len(self._data):
            raise struct.error("the bytes end too early")
        self._at += length
        return self._data[self._at - length : self._at]

    def tasks(self, connector: str) -> set[int]:
        """Return the numbers of a connector's tasks in a list of connectors."""
        found: set[int] = set()
        for _ in range(max(0, self.integer("i"))):
            name = self.text()
            numbers = [self.integer("i") for _ in range(max(0, self.integer("i")))]
            found |= set(numbers) if name == connector else set()
        return found


@dataclass(frozen=True, kw_only=True)
class DuplicateScan:
    """The partitions with a duplicate record, how many partitions were compared, and how many could have been."""

    duplicates: tuple[DuplicateRecord, ...]
    compared: int
    partitions: int


def find_duplicate_records(
    source: Cluster, target: Cluster, mirror: Mirror, topics: Mapping[str, int]
) -> DuplicateScan:
    """Return the partitions whose first records at the source are at two offsets on the target.

    Args:
        source: the connected source.
        target: the connected target.
        mirror: how it names remote topics, and where it keeps its offset syncs.
        topics: carried topics of the source with the number of partitions, which is the same on both sides. Compacted
            topics are left out.
    """
    syncs = with_syncs(OffsetTranslation(), source, target, mirror).syncs or {}
    plain = _not_compacted(source, topics)
    known = [tp for tp in sorted(syncs) if tp[0] in plain and tp[1] < topics[tp[0]]]
    topic_partitions = _with_records(source, known[:PARTITIONS_MAX])
    remote = {tp: TopicPartition(mirror.target_topic(tp.topic), tp.partition) for tp in topic_partitions}
    firsts = _read(source, source.starts(topic_partitions), COMPARED)
    begins = _first_not_older(target, {remote[tp]: one for tp, one in firsts.items() if one})
    found_first = _read(target, begins, SCANNED)
    found = []
    for tp, originals in firsts.items():
        first = _offset_of(originals, found_first.get(remote[tp], []))
        if first is None:
            continue
        expected = _expected(syncs[tp], originals[0][0], first)
        second = next((at for at in expected if _is_at(at, originals, target, remote[tp])), None)
        if second is not None:
            found.append(
                DuplicateRecord(
                    topic=tp[0],
                    remote_topic=remote[tp].topic,
                    partition=tp[1],
                    source=originals[0][0],
                    first=first,
                    second=second,
                )
            )
    return DuplicateScan(duplicates=tuple(found), compared=min(len(known), PARTITIONS_MAX), partitions=len(known))


def _expected(history: OffsetSyncHistory, offset: int, first: int) -> list[int]:
    """Return the target offsets that the syncs give for a source offset, if greater than the first one found."""
    newest = list(history.newest)
    ends = [one for one in (newest[:1] + newest[-1:]) if one.upstream >= offset]
    return sorted({at for one in ends if (at := one.downstream - (one.upstream - offset)) > first})


def _offset_of(originals: Records, records: Records) -> int | None:
    """Return the offset at which these records begin among others; None if they are not there."""
    contents = [content for _, content in originals]
    for at, (offset, _) in enumerate(records):
        if [content for _, content in records[at : at + len(contents)]] == contents:
            return offset
    return None


def _is_at(offset: int, originals: Records, target: Cluster, remote: TopicPartition) -> bool:
    there = _read(target, {remote: offset}, len(originals)).get(remote, [])
    return bool(there) and there[0][0] == offset and [one for _, one in there] == [one for _, one in originals]


def _not_compacted(source: Cluster, topics: Iterable[str]) -> set[str]:
    configs = topic_configs(source, topics).found
    return {
        name
        for name, config in configs.items()
        if "compact" not in str(config["cleanup.policy"].value)
        and config["message.timestamp.type"].value == "CreateTime"
    }


def _with_records(source: Cluster, topic_partitions: list[TopicPartition]) -> list[TopicPartition]:
    starts, ends = source.starts(topic_partitions), source.ends(topic_partitions, _COMMITTED)
    return [tp for tp in topic_partitions if starts[tp] < ends[tp]]


def _first_not_older(target: Cluster, firsts: Mapping[TopicPartition, Records]) -> dict[TopicPartition, int]:
    """Return the first offset of each remote partition whose record is not older than the first one at the source."""
    by_time: dict[int, list[TopicPartition]] = {}
    for tp, records in firsts.items():
        by_time.setdefault(int(str(records[0][1][0])), []).append(tp)
    found: dict[TopicPartition, int] = {}
    for moment, partitions in by_time.items():
        found |= target.offsets(partitions, OffsetSpec.for_timestamp(moment), _UNCOMMITTED)
    return {tp: offset for tp, offset in found.items() if offset >= 0}


def _read(cluster: Cluster, starts: Mapping[TopicPartition, int], count: int) -> dict[TopicPartition, Records]:
    """Return up to `count` records of each partition from an offset on; fewer where it ends or answers too late."""
    found: dict[TopicPartition, Records] = {tp: [] for tp in starts}
    ends = cluster.ends(starts, _COMMITTED)
    left = {tp for tp, at in starts.items() if at < ends[tp]}
    if not left:
        return found
    consumer = cluster.consumer(_COMMITTED)
    try:
        consumer.assign([ClientTopicPartition(*tp, starts[tp]) for tp in left])
        deadline = time.monotonic() + READ_S
        while left and time.monotonic() < deadline:
            for message in consumer.consume(500, timeout=0.2):
                tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
                if message.error() is not None or tp not in left:
                    continue
                kind, stamp = message.timestamp()
                content = (
                    -1 if kind == TIMESTAMP_NOT_AVAILABLE else stamp,
                    message.key(),
                    message.value(),
                    tuple(headers_as_copied(message) or ()),
                )
                found[tp].append((int(message.offset() or 0), content))
                if len(found[tp]) >= count:
                    left.discard(tp)
                    consumer.pause([ClientTopicPartition(*tp)])
            waiting = [ClientTopicPartition(*tp) for tp in left]
            for at in consumer.position(waiting) if waiting else []:
                if at.offset >= ends[TopicPartition(at.topic, at.partition)]:
                    left.discard(TopicPartition(at.topic, at.partition))
    finally:
        consumer.close()
    return found
