"""One partition of a topic, by name and number: what offsets, records and findings belong to.

A module of its own, because all packages use it, and the clients that load with other modules of `kafka` are not always
needed.
"""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic's name and a partition's number, from 0. It is printed as Kafka names a log: `items-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
