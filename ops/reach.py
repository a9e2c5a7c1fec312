"""The first contact with a cluster: is it there, does it let us in, does it have the topic."""

import logging
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException

from ops.connection import Connection
from ops.errors import FINAL, OpsError, explain

CONTACT_TIMEOUT_S = 20.0
_TRY_S = 2.0


class Metadata(Protocol):
    """The part of a client that asks a cluster what it has."""

    def list_topics(self, *, timeout: float) -> Any:
        """Return the cluster's metadata."""

    def poll(self, timeout: float) -> Any:
        """Serve the client's callbacks."""


@dataclass
class Troubles:
    """What a client reports through its error callback, one error of a kind, so that a failure can be explained."""

    connection: Connection
    seen: list[KafkaError] = field(default_factory=list)

    def note(self, error: KafkaError) -> None:
        """Keep an error, the latest of its kind in its first one's place; librdkafka calls this."""
        for index, known in enumerate(self.seen):
            if known.code() == error.code():
                self.seen[index] = error
                return
        self.seen.append(error)

    def final(self) -> bool:
        """Whether something was seen that no retry heals."""
        return any(error.code() in FINAL or error.fatal() for error in self.seen)

    def error(self, *more: KafkaError) -> OpsError:
        """Return the one error to show for everything that was seen."""
        connection = self.connection
        return explain([*self.seen, *more], connection.name, connection.bootstrap_servers, connection.user)


def client_settings(connection: Connection, troubles: Troubles) -> dict[str, Any]:
    """Return the properties that every client of this package has: the connection, quiet logs, collected errors."""
    quiet = logging.getLogger("ops.librdkafka")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    return {
        **connection.client_config(),
        "client.id": "rt-inventory-ops",
        "error_cb": troubles.note,
        "logger": quiet,
    }


def partitions_of(client: Metadata, topic: str, troubles: Troubles, deadline_s: float = CONTACT_TIMEOUT_S) -> list[int]:
    """Return a topic's partitions; raise OpsError if the cluster or the topic cannot be used within the deadline."""
    end = time.monotonic() + deadline_s
    last: list[KafkaError] = []
    while time.monotonic() < end:
        try:
            topics = client.list_topics(timeout=_TRY_S).topics
        except KafkaException as error:
            last = [error.args[0]]
            client.poll(0)
            if troubles.final():
                break
            continue
        if topic in topics:
            return sorted(topics[topic].partitions)
        shown = ", ".join(sorted(name for name in topics if not name.startswith("__"))) or "none"
        raise OpsError(
            f"cluster {troubles.connection.name}: topic {topic!r} must exist and be open to user "
            f"{troubles.connection.user!r} (got none, allowed {shown}). Declare it under rt-inventory:topics."
        )
    raise troubles.error(*last)
