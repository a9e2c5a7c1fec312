"""Until when first copies count, after a mirror has restarted and copies records a second time.

Owns what the source is asked for that. Does not own what the offset syncs say of it (`kafka/offset_syncs.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kafka.cluster import Cluster
from kafka.offset_syncs import OffsetMap
from kafka.topic_partition import TopicPartition
from ops.follow.new_log import Compare
from ops.follow.record_proof import Stretch

STRETCHES_AT_ONCE = 200


@dataclass(frozen=True)
class Repetitions:
    """What ends a repetition, asked of the source and compared with the target."""

    source: Cluster
    remote: Callable[[TopicPartition], TopicPartition]
    compare: Compare

    def ended(self, maps: Mapping[TopicPartition, OffsetMap]) -> Iterator[TopicPartition]:
        """Yield where second copies count from now on: all are there that the source had when that began.

        Until its end is known, they do not count however far they reach.
        """
        unbounded = {tp for tp, known in maps.items() if known.is_unbounded}
        ends = self.source.ends(unbounded, "read_uncommitted") if unbounded else {}
        yield from [tp for tp, end in ends.items() if maps[tp].repeats_before(end)]
        left = {tp: of for tp, known in sorted(maps.items()) if (of := known.repeated) and not known.is_unbounded}
        stretches = [Stretch(tp, self.remote(tp), pair, None, until + 1) for tp, (pair, until) in left.items()]
        compared = self.compare(stretches[:STRETCHES_AT_ONCE]) if stretches else {}
        for tp in [tp for tp, records in compared.items() if records.source_is_copied]:
            maps[tp].has_repeated()
            yield tp
