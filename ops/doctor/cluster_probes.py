"""Probes of one cluster through its admin interface: brokers, topics, rights, groups, assigned tasks.

They are read-only: they join no consumer group, commit no offset and read no record. What a snapshot reads too is read
once, for both.
"""

import struct
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # the package does not list it

from contract.verification_request import Mirror
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.connectivity import Broker, connection_error
from kafka.errors import DENIED, code_of
from kafka.topic_metadata import topic_configs
from ops.doctor.observations import AssignedTasks, Right
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


def silent_brokers(readings: ClusterReadings) -> SilentBrokers:
    """Return the brokers that take no connection; no more than BROKERS_MAX are tried."""
    tried = sorted(readings.layout().brokers)[:BROKERS_MAX]
    with ThreadPoolExecutor(16) as pool:
        answers = list(zip(tried, pool.map(connection_error, tried), strict=True))
    return tuple((broker, why) for broker, why in answers if why is not None)


def groups(readings: ClusterReadings, mirror: Mirror) -> tuple[Mapping[str, str], list[Right]]:
    """Return the states of the groups, and the rights that this user lacks to see them or to set their offsets."""
    cluster, states = readings.cluster, readings.group_states()
    if not mirror.sync_group_offsets:
        return states, []
    if not states and not cluster.sees_groups():
        return states, [("Describe", "the mirrored groups")]
    if cluster.side.role == "source":
        return states, []
    carried = sorted(group for group in states if mirror.carries_group(group))[:GROUPS_MAX]
    lacks: list[Right] = []
    if carried:
        futures = cluster.admin.describe_consumer_groups(
            carried, include_authorized_operations=True, request_timeout=CALL_DEADLINE_S
        )
        for group, future in futures.items():
            lacks += _missing(future, (AclOperation.READ,), f"group {group}", "Read")
    return states, lacks


def rights(cluster: Cluster, mirror: Mirror, source_layout: Callable[[], Layout]) -> list[Right]:
    """Return the rights on topics that the mirror needs on this side and its user lacks; absent topics lack nothing.

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
