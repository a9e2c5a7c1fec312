"""One partition of a topic, by name and number: what offsets, records and findings belong to.

A module of its own, because all packages use it, and the clients that load with other modules of `kafka` are not always
needed.
"""

from typing import Any, NamedTuple


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number, from 0. It is printed as Kafka names a log: `items-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


_NO_ID = "A" * 22  # zeros in Base64: brokers before Kafka 2.8 leave the field so (KIP-516)


def topic_id(described: Any) -> str | None:
    """Return the id of a topic that the client has described; None if the brokers give topics none."""
    found = str(described.topic_id)
    return None if found == _NO_ID else found
