"""What the offset syncs prove of a topic that was created again while nobody followed it.

Syncs of its new log follow those of the old one, as those of a restarted mirror that repeats records do: the source
offset goes back. Which of both it is the records show. Owns that decision. Does not notice the new topic.
"""

from collections.abc import Callable, Mapping, Sequence

from kafka.offset_syncs import OffsetMap
from kafka.topic_partition import TopicPartition
from ops.follow.record_proof import ComparedRecords, Stretch

Compare = Callable[[Sequence[Stretch]], Mapping[TopicPartition, ComparedRecords]]


def of_new_logs(
    maps: Mapping[TopicPartition, OffsetMap], remote: Callable[[TopicPartition], TopicPartition], compare: Compare
) -> dict[TopicPartition, OffsetMap]:
    """Return the maps of the new logs; of a partition that is left out nothing is proven.

    Syncs from a step back on are of the new log if the last of them is of one record on both sides.
    """
    found: dict[TopicPartition, OffsetMap] = {}
    left = maps
    while held := {tp: one for tp, known in left.items() if (one := known.held_back) is not None}:
        compared = compare([Stretch(tp, remote(tp), end, None, end.upstream + 1) for tp, (_, end) in held.items()])
        found |= {tp: later for tp, (later, _) in held.items() if compared[tp].same}
        left = {tp: later for tp, (later, _) in held.items() if tp not in found}
    return found
