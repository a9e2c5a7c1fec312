"""Which tasks of a connector the workers' group has handed out, by the group's coordinator on the target.

Connect's REST interface calls a task RUNNING until another worker takes it over, also if its worker has crashed. The
group knows better: each worker says what it has when it joins, and is told what it gets and what it gives away. Owns
these formats (org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol). Joins no group.
"""

import struct
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from ops.doctor.seen import AssignedTasks
from ops.errors import OpsError
from spark.clusters.cluster import CALL_DEADLINE_S, Cluster

_CONNECTOR_ITSELF = -1
_INCREMENTAL = 1  # and later versions of the protocol
_STABLE = "Stable"


def assigned_tasks(cluster: Cluster, group: str, connector: str) -> AssignedTasks:
    """Return the tasks of a connector that a worker has; raises OpsError while nobody knows."""
    try:
        with warnings.catch_warnings():
            # The call that is to take its place does not tell what stands in the metadata of the members.
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
        members: what each worker said when it joined the group, and what it was assigned then.
    """
    tasks: set[int] = set()
    delay_ms = 0
    for metadata, assignment in members:
        try:
            held = _held(metadata, connector)
            change = _Assignment.read(assignment, connector)
        except (struct.error, UnicodeDecodeError):
            raise OpsError("the assignment of the workers' group has a format that is not known") from None
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
