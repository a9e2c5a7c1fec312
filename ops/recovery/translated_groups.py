"""Groups that go on by what MirrorMaker has translated, its checkpoints and offset syncs, without the source.

Owns which offset on the target is proven for a group, setting it, and what is left to read from there. Does not own the
exact offsets, which are found by the records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice
from typing import Any

from kafka import checkpoints
from kafka.checkpoints import OffsetTranslation
from kafka.cluster import Cluster
from kafka.groups import LogRange
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining, group_offsets
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.translation import Offsets

PLACES_NAMED = 5
"""Partitions of a group of which each gets a line of progress."""
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


@dataclass(frozen=True)
class _Change:
    """A group on the target: where it stood, where it is set as nothing was known there, and where it is set back.

    `unexplained` are the records in front of offsets of which nothing is translated, by partition.
    """

    group: str
    at: Mapping[TopicPartition, int]
    missing: Mapping[TopicPartition, int]
    back: dict[TopicPartition, int] = field(default_factory=dict)
    unexplained: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_one(self) -> bool:
        """Whether anything is to be set."""
        return bool(self.missing or self.back)


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
        logs = self._logs
        return sum(max(0, logs[tp].end - max(at, logs[tp].start)) for tp, at in offsets.items() if tp in logs)

    def set_synced(self, only: Iterable[str]) -> dict[str, Facts]:
        """Leave what MirrorMaker has synced and set what it has translated only, of these groups; raises OpsError.

        The verification has judged where they stand, by the records.
        """
        translated = read(self._pair, self._target)
        if translated.problem is not None:
            raise OpsError(translated.problem)
        return {change.group: self._facts(change) for change in self._changes(translated, set(only).__contains__)}

    def set_proven(self, exclude: Iterable[str]) -> Facts:
        """Set groups by what MirrorMaker has translated, nothing else being known of them; raises OpsError.

        One that stands further than is proven is set back, so that it skips nothing. `mayBeSkipped` of a group are the
        records, by partition, in front of an offset that somebody else has set: nothing of it is translated.
        `translationUnknown` says why nothing is known of any.
        """
        translated = read(self._pair, self._target)
        if translated.problem is not None:
            self._say(f"  groups are left where they stand: {translated.problem}")
        left_alone = set(exclude)
        groups = {
            change.group: {
                **self._facts(change),
                "setBack": draining.format_places({tp: change.at[tp] - to for tp, to in change.back.items()}),
                "mayBeSkipped": draining.format_places(change.unexplained),
                "translated": change.group in translated.offsets,
            }
            for change in self._changes(translated, lambda group: group not in left_alone, set_back=True)
        }
        return {"groups": groups, "translationUnknown": translated.problem}

    def _changes(
        self, translated: TranslatedOffsets, wanted: Callable[[str], bool], *, set_back: bool = False
    ) -> Iterator["_Change"]:
        """Set the mirrored groups that are wanted, and yield what was changed of each, in their order."""
        states = self._target.group_states()
        carried = {group for group in {*translated.offsets, *states} if self._mirror.carries_group(group)}
        left = iter(sorted(filter(wanted, carried)))
        while names := list(islice(left, group_offsets.GROUPS_AT_ONCE)):
            at = self._target.group_offsets([group for group in names if group in states])
            changes = [self._change(group, at.get(group, {}), translated, set_back) for group in names]
            to_set = [(change.group, {**change.missing, **change.back}) for change in changes if change.is_one]
            for _ in group_offsets.commit_each(self._target, to_set, self._require_permission):
                pass
            yield from changes

    def _change(
        self, group: str, at: Mapping[TopicPartition, int], translated: TranslatedOffsets, set_back: bool
    ) -> "_Change":
        """Return what is to be changed of a group that stands at these offsets."""
        of_group = translated.offsets.get(group, {})
        change = _Change(group, at, {tp: offset for tp, offset in of_group.items() if tp not in at})
        for tp in sorted(tp for tp in at if tp in self._logs) if set_back else ():
            proven, start = translated.proven(group, tp, at[tp]), self._logs[tp].start
            if proven is None and at[tp] > start and of_group:
                change.unexplained[tp] = at[tp] - start
            elif proven is not None and proven < at[tp]:
                change.back[tp] = proven
        return change

    def _facts(self, change: "_Change") -> Facts:
        """Report what was changed of a group; return where it stands, and what is left to read from there."""
        if change.missing:
            self._say(f"  group {change.group}: set in {len(change.missing)} partitions by its checkpoints")
        for tp, to in islice(change.back.items(), PLACES_NAMED):
            came = f"set back from {change.at[tp]} to {to} on {tp}"
            self._say(f"  group {change.group}: {came}: the mirror has translated no more")
        if len(change.back) > PLACES_NAMED:
            self._say(f"  group {change.group}: set back in {len(change.back) - PLACES_NAMED} more partitions")
        offsets = {**change.at, **change.missing, **change.back}
        return {
            "offsets": draining.format_places(offsets),
            "left": self.left(offsets),
            "withoutPosition": self._without_position(offsets),
        }

    def _without_position(self, offsets: Mapping[TopicPartition, int]) -> list[str]:
        """Partitions with records in topics that the group reads, in which it has no committed offset on the target."""
        held = (tp for topic in {topic for topic, _ in offsets} for tp in self._held.get(topic, ()))
        return [str(tp) for tp in sorted(held) if tp not in offsets]

    @cached_property
    def _logs(self) -> dict[TopicPartition, LogRange]:
        """The logs of the remote topics when they were asked for first: one reading for all groups."""
        ends = self.ends()
        return {tp: LogRange(start, ends[tp]) for tp, start in self._target.starts(ends).items()}

    @cached_property
    def _held(self) -> dict[str, list[TopicPartition]]:
        """The partitions of each remote topic that hold records."""
        found: dict[str, list[TopicPartition]] = {}
        for tp, log in self._logs.items():
            if log.end > log.start:
                found.setdefault(tp.topic, []).append(tp)
        return found

    def _is_remote(self, topic: str) -> bool:
        if self._pair.keeps_names:
            return self._mirror.carries_topic(topic)
        prefix = f"{self._mirror.source_alias}{self._mirror.separator}"
        return topic.startswith(prefix) and self._mirror.carries_topic(topic.removeprefix(prefix))
