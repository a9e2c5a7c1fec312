"""Transactions that were open when a run took its cut and still are when it ends.

What producers write behind the first record of an open transaction lies behind the last stable offset, and so behind
the cut. While a transaction goes on, that is so for a moment; one that hangs keeps it so, run after run (KIP-664). One
whose first record is older than a coordinator lets a transaction be is taken for one that hangs.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.topic_partition import TopicPartition

LONGEST_S = 900  # Kafka's default of transaction.max.timeout.ms


@dataclass(frozen=True)
class OpenTransaction:
    """A partition with an open transaction: source offsets from `first` to `last` were written before the cut.

    `why_hanging` is why it must be taken for one that hangs, by its first record; empty if it need not.
    """

    topic_partition: TopicPartition
    first: int
    last: int
    why_hanging: str

    def __str__(self) -> str:
        """Which offsets are not judged, why, and what to do."""
        said = (
            f"source offsets {self.first} to {self.last} are not judged: a transaction was open there from the cut to "
            "the end of this run"
        )
        if not self.why_hanging:
            return said
        return (
            f"{said}, and {self.why_hanging}; look for it at the source with kafka-transactions.sh find-hanging, and "
            "end it with abort if it hangs"
        )


def still_open(
    source: Cluster,
    cut: Mapping[TopicPartition, int],
    written: Mapping[TopicPartition, int],
    now: Callable[[], float] = time.time,
) -> list[OpenTransaction]:
    """Return the partitions of which offsets that were written at the cut lie behind the last stable offset even now.

    Args:
        source: asked about the partitions where a transaction was open at the cut, and about no others.
        cut: the last stable offsets at the cut.
        written: the high watermarks, read just before the cut.
        now: seconds since the epoch.

    Raises:
        ClusterError: the source does not answer, or refuses.
    """
    waiting = sorted(tp for tp, end in written.items() if cut[tp] < end)
    if not waiting:
        return []
    stable = source.ends(waiting, "read_committed")
    held = [tp for tp in waiting if stable[tp] < written[tp]]
    return [OpenTransaction(tp, cut[tp], written[tp] - 1, _why_hanging(source, tp, stable[tp], now())) for tp in held]


def _why_hanging(source: Cluster, tp: TopicPartition, first: int, now: float) -> str:
    began = _written_at(source, tp, first)
    if began is None:
        return f"its first record, offset {first}, cannot be read any more"
    if now - began > LONGEST_S:
        return f"its first record, offset {first}, is more than {LONGEST_S // 60} min old by its timestamp"
    return ""


def _written_at(source: Cluster, tp: TopicPartition, offset: int) -> float | None:
    """When the record at an offset was written, by its timestamp, in seconds; None if it is not there or has none."""
    consumer = source.consumer("read_uncommitted")
    try:
        consumer.assign([ClientTopicPartition(*tp, offset)])
        deadline = time.monotonic() + CALL_DEADLINE_S
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                kind, stamp = message.timestamp()
                known = message.offset() == offset and kind != TIMESTAMP_NOT_AVAILABLE
                return int(stamp) / 1000 if known else None
        return None
    finally:
        consumer.close()
