"""Which offset on the target MirrorMaker's checkpoints and offset syncs prove for a group, without the source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from kafka import checkpoints
from kafka.checkpoints import OffsetTranslation
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.translation import Offsets as OffsetsOfGroups


@dataclass(frozen=True, kw_only=True)
class TranslatedOffsets:
    """What MirrorMaker has translated of each group. `offsets` are those of the newest checkpoints on the target.

    `problem` says why the checkpoints could not be read.
    """

    offsets: OffsetsOfGroups = field(default_factory=dict)
    translation: OffsetTranslation = field(default_factory=OffsetTranslation)
    source_topics: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    def proven(self, group: str, tp: TopicPartition, at: int) -> int | None:
        """Return an offset up to which nothing is skipped: `at` itself if it is proven; None if nothing is translated.

        A checkpoint that is still there counts if the group has not gone back at the source since, and an offset sync
        that lies before where the group stood there.
        """
        last = self.translation.last_checkpoint((group, *tp))
        if last is None:
            return None
        if at <= last.downstream or self.translation.proves((group, *tp), last.upstream, at):
            return at
        syncs = (self.translation.syncs or {}).get(TopicPartition(self.source_topics.get(tp.topic, ""), tp.partition))
        newest = list(syncs.newest)[-1 if syncs.contradictions else 0 :] if syncs is not None else []
        reached = [one.downstream + (one.upstream < last.upstream) for one in newest if one.upstream <= last.upstream]
        return min(at, max([last.downstream, *reached]))

    def has_gone_back(self, group: str, tp: TopicPartition, upstream: int) -> bool:
        """Whether the group has reached this source offset and gone back in front of it, by the checkpoints."""
        history = self.translation.checkpoints.get((group, *tp))
        reached = [one.upstream >= upstream for one in history.newest] if history is not None else []
        return any(reached) and not reached[-1]


def read(pair: MirrorContext, target: Cluster) -> TranslatedOffsets:
    """Return what MirrorMaker has translated, as far as its topics on the target can be read."""
    mirror = pair.request.mirror
    found = checkpoints.read_checkpoints(target, mirror)
    problem = " ".join(found.problems) or None  # offset syncs only add to the checkpoints
    if problem is None and mirror.offset_syncs_topic is not None and mirror.offset_syncs_topic.location == "target":
        found = checkpoints.with_syncs(found, target, target, mirror)
    offsets: OffsetsOfGroups = {}
    once: dict[TopicPartition, TopicPartition] = {}
    carried = cache(mirror.carries_group)
    for (group, topic, partition), history in found.checkpoints.items():
        last = history.last
        if last is not None and carried(group):
            tp = TopicPartition(topic, partition)
            offsets.setdefault(group, {})[once.setdefault(tp, tp)] = last.downstream
    known = {topic for topic, _ in found.syncs or {}}
    return TranslatedOffsets(
        offsets=offsets,
        translation=found,
        source_topics={mirror.target_topic(topic): topic for topic in known},
        problem=problem,
    )
