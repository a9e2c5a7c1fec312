"""A broker that answers the two requests by which a client finds its cluster, and that may leave itself out."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import BinaryIO

METADATA, API_VERSIONS = 3, 18
UNSUPPORTED_VERSION = 35


class TalkingBroker:
    """Broker 0 with one topic; while `listed` is false its metadata names no broker, like one's that is stopping."""

    def __init__(self) -> None:
        self.listed = True
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as requests:
            for request in _frames(requests):
                key, version, correlation = struct.unpack_from(">hhi", request)
                answer = struct.pack(">i", correlation)
                answer += self._metadata() if key == METADATA else _api_versions(version)
                connection.sendall(struct.pack(">i", len(answer)) + answer)

    def _metadata(self) -> bytes:
        """Version 1: brokers, the controller, and the topic with its one partition."""
        leader = 0 if self.listed else -1
        itself = struct.pack(">i", 0) + _text("127.0.0.1") + struct.pack(">ih", self.port, -1)
        brokers = struct.pack(">i", 1) + itself if self.listed else struct.pack(">i", 0)
        topic = struct.pack(">h", 0) + _text("topic") + struct.pack(">b", 0)
        partition = struct.pack(">hiiiiii", 0, 0, leader, 1, 0, 1, 0)
        return brokers + struct.pack(">ii", leader, 1) + topic + struct.pack(">i", 1) + partition


def _frames(requests: BinaryIO) -> Iterator[bytes]:
    while len(size := requests.read(4)) == 4:
        yield requests.read(*struct.unpack(">i", size))


def _api_versions(version: int) -> bytes:
    """Version 0, which a client falls back to; no metadata but version 1 is served."""
    error = UNSUPPORTED_VERSION if version else 0
    return struct.pack(">hi", error, 2) + struct.pack(">hhhhhh", METADATA, 0, 1, API_VERSIONS, 0, 0)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
