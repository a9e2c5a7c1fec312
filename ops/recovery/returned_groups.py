"""Consumer groups of a failback: they are put on the source where they are on the target, exactly, by the records.

The forward mirror gets to know each pair of positions, for nothing else leads to what groups have read on the target
while it was active. A fence keeps nobody from reading: groups that move on are set again until none does. Does not own
how positions are found (`translation.py`), nor what is appended to MirrorMaker's topics (`mirror_offsets.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain

from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.recovery import draining, group_offsets, mirror_offsets, translation
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Facts, Say


@dataclass(frozen=True, kw_only=True)
class ReturnedGroups:
    """The groups of one failback of a mirror, in its direction from the source to the target."""

    pair: MirrorContext
    journal: Journal
    say: Say

    def set(self, back: MirrorContext, prover: translation.Prover) -> Facts:
        """Set every group on the source; return its positions on both sides, and where all were before it began.

        `back` is the mirror in the other direction, which is stopped, `prover` its own. Raises OpsError.
        """
        here, there = connected(back.source()), connected(back.target())
        before = translation.standing(here, back.request.mirror)
        proof = prover.of_now(here)
        wanted = proof.exact(back, self.ends(there))
        group_offsets.wait_until_inactive(there, wanted, self.say)
        in_order, report = sorted(wanted.items()), partial(group_offsets.report_set_back, self.say)
        for group, topic_partitions in group_offsets.commit_each(there, in_order, self.journal.require_held, report):
            self.say(f"  group {group}: exact in {len(topic_partitions)} partitions")
        committed, places = proof.committed(), draining.format_places
        return {
            "groups": {
                group: {"repeated": 0, "skipped": 0, "offsets": places(offsets), "from": places(committed[group])}
                for group, offsets in wanted.items()
            },
            "stood": before,
        }

    def write_mappings(self, groups: Mapping[str, Facts]) -> int:
        """Append the groups' positions to the forward mirror's checkpoints, and return how many mappings that are.

        What MirrorMaker knew of the partitions that were filled again is no longer true: it gets to know what is.
        `groups` are those of `set`.
        """
        filled = draining.read_places(self.journal.steps["survey"]["anew"])
        source, target = connected(self.pair.source()), connected(self.pair.target())
        mirror = self.pair.request.mirror
        has_checkpoints = target.names(lambda name: name == mirror.checkpoints_name)
        read = _places(groups, "from")
        translated = {tp for places in read.values() for tp in places} if has_checkpoints else filled
        of_partitions = mirror_offsets.of_partitions(filled, self._extent(source), self._extent(target))
        of_groups = mirror_offsets.of_groups(translated, _places(groups, "offsets"), read)
        mappings, may = chain(of_partitions, of_groups), self.journal.require_held
        may()
        return mirror_offsets.write(mappings, mirror, source, target, may)

    def follow(self, back: MirrorContext, prover: translation.Prover, require_at_rest: Callable[[], None]) -> None:
        """Set groups and write their mappings again until none has moved on the target since; raises OpsError.

        `require_at_rest` is called before each time and raises if the target has records that have not returned: where
        they are on the source cannot be found.
        """

        def set_again() -> Facts:
            require_at_rest()
            facts = self.set(back, prover)
            self.write_mappings(facts["groups"])
            return facts

        name, here = self.pair.name_of("target"), connected(back.source())
        translation.follow_groups(here, name, back.request.mirror, self.journal, set_again, self.say)

    def require_reached(self) -> None:
        """Raise OpsError unless each group is on the source where it was set, or further."""
        groups = self.journal.steps["offsets"]["groups"]
        group_offsets.require_reached(connected(self.pair.source()), _places(groups, "offsets").items())

    def ends(self, side: Cluster) -> dict[TopicPartition, int]:
        """Where the mirrored topics end on a side now. Names are the same on both."""
        topics = side.topics(self.pair.request.mirror.carries_topic).values()
        every = [TopicPartition(topic.name, number) for topic in topics for number in topic.replicas]
        return side.ends(every, "read_uncommitted")

    def _extent(self, side: Cluster) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Where the mirrored topics start and end on a side now."""
        ends = self.ends(side)
        return side.starts(ends), ends


def _places(groups: Mapping[str, Facts], what: str) -> dict[str, dict[TopicPartition, int]]:
    return {group: draining.read_places(found[what]) for group, found in groups.items()}
