"""Commits of groups whose names may have any bytes, in Kafka's protocol: a client library ends a name at a NUL byte."""

import socket
import struct

from tests.support.waiting import wait_until

FIND_COORDINATOR, OFFSET_COMMIT = 10, 8
NONE, LOADING, NOT_YET, NOT_COORDINATOR = 0, 14, 15, 16
WITHIN_S = 30.0


def commit(bootstrap: str, group: bytes, topic: str, partition: int, offset: int) -> None:
    """Commit an offset of a group without members, by brokers that take plain text from anybody."""

    def committed() -> bool:
        broker = _coordinator(bootstrap, group)
        return broker is not None and _commit(broker, group, topic, partition, offset)

    wait_until(f"group {group!r} has an offset", committed, WITHIN_S)


def _coordinator(bootstrap: str, group: bytes) -> str | None:
    """The broker that keeps the offsets of a group (FindCoordinator, version 0); None if there is none yet."""
    answer = _ask(bootstrap, FIND_COORDINATOR, 0, _text(group))
    error, _, length = struct.unpack_from(">hih", answer)
    assert error in (NONE, NOT_YET), error
    port = struct.unpack_from(">i", answer, 8 + length)[0]
    return None if error == NOT_YET else f"{answer[8 : 8 + length].decode()}:{port}"


def _commit(broker: str, group: bytes, topic: str, partition: int, offset: int) -> bool:
    """Whether the broker has taken the offset (OffsetCommit, version 2)."""
    of_nobody = struct.pack(">i", -1) + _text(b"") + struct.pack(">q", -1)
    part = struct.pack(">iiq", 1, partition, offset) + _text(b"")
    answer = _ask(
        broker, OFFSET_COMMIT, 2, _text(group) + of_nobody + struct.pack(">i", 1) + _text(topic.encode()) + part
    )
    (error,) = struct.unpack(">h", answer[-2:])
    assert error in (NONE, LOADING, NOT_YET, NOT_COORDINATOR), error
    return bool(error == NONE)


def _ask(broker: str, api: int, version: int, body: bytes) -> bytes:
    host, _, port = broker.rpartition(":")
    request = struct.pack(">hhi", api, version, 1) + _text(b"tests") + body
    with socket.create_connection((host, int(port)), WITHIN_S) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", answers.read(4))
        return answers.read(size)[4:]


def _text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value
