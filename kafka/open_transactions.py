"""Transactions that were open when a run took its cut and still are when it ends.

What producers write behind the first record of an open transaction lies behind the last stable offset, and so behind
the cut. While a transaction goes on, that is so for a moment; one that hangs keeps it so, run after run (KIP-664). One
whose first record is older than a coordinator lets a transaction be is taken for one that hangs.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition

LONGEST_S = 900  # Kafka's default of transaction.max.timeout.ms


@dataclass(frozen=True)
class OpenTransaction:
    """A partition with an open transaction: source offsets from `first` to `last` were written before the cut.

    `hangs`: its first record is older than `LONGEST_S`, by its timestamp.
    """

    topic_partition: TopicPartition
    first: int
    last: int
    hangs: bool

    def __str__(self) -> str:
        """Which offsets are not judged, why, and what to do."""
        where = f"source offsets {self.first} to {self.last} are not judged: a transaction"
        if not self.hangs:
            return f"{where} was open there from the cut to the end of this run"
        return (
            f"{where} is open there since more than {LONGEST_S // 60} min, and all that is written behind it stays "
            "unjudged; find it at the source with kafka-transactions.sh find-hanging, and end it with abort"
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
    spec = OffsetSpec.for_timestamp(int((now() - LONGEST_S) * 1000))
    younger = source.offsets(held, spec, "read_uncommitted") if held else {}
    return [OpenTransaction(tp, stable[tp], written[tp] - 1, not 0 <= younger[tp] <= stable[tp]) for tp in held]
