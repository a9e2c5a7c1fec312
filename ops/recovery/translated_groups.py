"""Groups that go on by what MirrorMaker has translated, its checkpoints and offset syncs, without the source.

Owns which offset on the target is proven for a group, setting it, and what is left to read from there. Does not own the
exact offsets, which are found by the records.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka import checkpoints
from kafka.checkpoints import OffsetTranslation
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining, group_offsets
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.translation import Offsets

Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TranslatedOffsets:
    """What MirrorMaker has translated of each group. `offsets` are those of the newest checkpoints on the target.

    `problem` says why the checkpoints could not be read.
    """

    offsets: Offsets = field(default_factory=dict)
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


def read(pair: MirrorContext, target: Cluster) -> TranslatedOffsets:
    """Return what MirrorMaker has translated, as far as its topics on the target can be read."""
    mirror = pair.request.mirror
    found = checkpoints.read_checkpoints(target, mirror)
    problem = " ".join(found.problems) or None  # offset syncs only add to the checkpoints
    if problem is None and mirror.offset_syncs_topic is not None and mirror.offset_syncs_topic.location == "target":
        found = checkpoints.with_syncs(found, target, target, mirror)
    offsets: Offsets = {}
    for (group, topic, partition), history in found.checkpoints.items():
        if history.newest and mirror.carries_group(group):
            offsets.setdefault(group, {})[TopicPartition(topic, partition)] = history.newest[-1].downstream
    known = {topic for topic, _ in found.syncs or {}}
    return TranslatedOffsets(
        offsets=offsets,
        translation=found,
        source_topics={mirror.target_topic(topic): topic for topic in known},
        problem=problem,
    )


class TargetGroups:
    """The mirrored groups on the target, and the remote topics that they read there.

    `require_permission` is called before offsets are set, and raises if they must not be.
    """

    def __init__(
        self,
        pair: MirrorContext,
        target: Cluster,
        say: Callable[[str], None],
        require_permission: Callable[[], None] = lambda: None,
    ) -> None:
        self._require_permission = require_permission
        self._pair = pair
        self._mirror = pair.request.mirror
        self._target = target
        self._say = say

    def ends(self) -> dict[TopicPartition, int]:
        """Return where the remote topics end now, open transactions included."""
        wanted = {topic for topic in self._target.names(lambda _: True) if self._is_remote(topic)}
        topics = self._target.topics(lambda name: name in wanted)
        places = [TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas]
        return self._target.ends(places, "read_uncommitted")

    def left(self, offsets: Mapping[TopicPartition, int]) -> int:
        """Return the records from these offsets on: what a group reads first, and at most what it reads again."""
        ends = self.ends()
        starts = self._target.starts([tp for tp in offsets if tp in ends])
        return sum(max(0, ends[tp] - max(offsets[tp], start)) for tp, start in starts.items())

    def set_synced(self, only: Iterable[str]) -> dict[str, Facts]:
        """Leave what MirrorMaker has synced and set what it has translated only, of these groups; raises OpsError.

        The verification has judged where they stand, by the records.
        """
        translated = read(self._pair, self._target)
        if translated.problem is not None:
            raise OpsError(translated.problem)
        states = self._target.group_states()
        names = {group for group in {*translated.offsets, *states} if self._mirror.carries_group(group)} & set(only)
        return {group: self._set(group, states, translated, {}) for group in sorted(names)}

    def set_proven(self, exclude: Iterable[str]) -> Facts:
        """Set groups by what MirrorMaker has translated, nothing else being known of them; raises OpsError.

        One that stands further than is proven is set back, so that it skips nothing. `mayBeSkipped` of a group are the
        records, by partition, in front of an offset that somebody else has set: nothing of it is translated.
        `translationUnknown` says why nothing is known of any.
        """
        translated = read(self._pair, self._target)
        if translated.problem is not None:
            self._say(f"  groups are left where they stand: {translated.problem}")
        states = self._target.group_states()
        names = {group for group in {*translated.offsets, *states} if self._mirror.carries_group(group)} - set(exclude)
        groups: Facts = {}
        ends = self.ends()
        for group in sorted(names):
            at = self._offsets(group, states)
            back, skipped = {}, {}
            starts = self._target.starts([tp for tp in at if tp in ends])
            for tp, start in sorted(starts.items()):
                proven = translated.proven(group, tp, at[tp])
                if proven is None and at[tp] > start and group in translated.offsets:
                    skipped[tp] = at[tp] - start
                elif proven is not None and proven < at[tp]:
                    back[tp] = proven
            groups[group] = self._set(group, states, translated, back) | {
                "setBack": draining.format_places({tp: at[tp] - offset for tp, offset in back.items()}),
                "mayBeSkipped": draining.format_places(skipped),
                "translated": group in translated.offsets,
            }
        return {"groups": groups, "translationUnknown": translated.problem}

    def _set(
        self, group: str, states: Mapping[str, str], translated: TranslatedOffsets, back: Mapping[TopicPartition, int]
    ) -> Facts:
        at = self._offsets(group, states)
        missing = {tp: offset for tp, offset in translated.offsets.get(group, {}).items() if tp not in at}
        if missing or back:
            group_offsets.commit(self._target, group, {**missing, **back}, self._require_permission)
        if missing:
            self._say(f"  group {group}: set in {len(missing)} partitions by its checkpoints")
        for tp, offset in back.items():
            self._say(f"  group {group}: set back from {at[tp]} to {offset} on {tp}: the mirror has translated no more")
        offsets = {**at, **missing, **back}
        return {
            "offsets": draining.format_places(offsets),
            "left": self.left(offsets),
            "withoutPosition": self._without_position(offsets),
        }

    def _offsets(self, group: str, states: Mapping[str, str]) -> dict[TopicPartition, int]:
        found = self._target.group_offsets([group])[group] if group in states else {}
        return {TopicPartition(*tp): offset for tp, offset in found.items()}

    def _without_position(self, offsets: Iterable[TopicPartition]) -> list[str]:
        """Partitions with records in topics that the group reads, in which it has no committed offset on the target."""
        read_topics, known = {topic for topic, _ in offsets}, set(offsets)
        ends = {tp: end for tp, end in self.ends().items() if tp.topic in read_topics and tp not in known}
        return [str(tp) for tp, start in sorted(self._target.starts(ends).items()) if ends[tp] > start]

    def _is_remote(self, topic: str) -> bool:
        if self._pair.keeps_names:
            return self._mirror.carries_topic(topic)
        prefix = f"{self._mirror.source_alias}{self._mirror.separator}"
        return topic.startswith(prefix) and self._mirror.carries_topic(topic.removeprefix(prefix))
