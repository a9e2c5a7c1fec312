"""One round: the groups' committed offsets at the source, their exact images, and what of them is set on the target.

Owns which positions are set. One that somebody else has set is left alone: known are those that this process has set,
those that carry the mark of an earlier one, and MirrorMaker's own, which are moved forward only. Does not own what
proves an image (`kafka/offset_syncs.py`, `record_proof.py`).
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from kafka import checkpoints, group_commits
from kafka.checkpoints import OffsetSync
from kafka.cluster import Cluster, TopicReader
from kafka.errors import ClusterError
from kafka.group_commits import CommittedOffset
from kafka.groups import IDLE, LogRange
from kafka.offset_syncs import OffsetMap
from kafka.topic_metadata import topic_ids
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.follow import new_log
from ops.follow.client_renewal import ClientRenewal
from ops.follow.kept_maps import KeptMaps
from ops.follow.position import Pairs, Position
from ops.follow.record_proof import ComparedRecords, RecordComparison, Stretch
from ops.follow.repetitions import STRETCHES_AT_ONCE, Repetitions
from ops.follow.source_positions import SourcePositions
from ops.follow.stretches import Stretches
from ops.recovery.followed_mark import mark
from ops.recovery.mirror_context import MirrorContext

STATES = ("exact", "behind", "unproven", "unknown", "active", "foreign", "refused")
"""What a position can be, see `Round`."""
COMPARED_WITHIN_S = 0.5
"""Groups at several places of a partition, or far in front of all syncs, need several comparisons; none begins in a
round after so long."""
LOOKED_AGAIN_EVERY = 30
"""Rounds in which each position that is set already is read once on the target: MirrorMaker or a tool may move it."""
CHECKPOINTS_EVERY = 5
"""Rounds after which MirrorMaker's checkpoints are read again, if it is to be known who has set a position."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """The positions after one round, by their state, and how many offsets were set.

    `exact`: the group goes on at the image of its position. `behind`: it has read further than the mirror has copied,
    and goes on behind all that is copied. `unproven`: nothing is skipped, but records may be read again. `unknown`: it
    lies before all that syncs and records prove, or was not read at the source in this round. `active`: it has members
    on the target. `foreign`: somebody else has set it there. `refused`: it could not be set.
    """

    positions: Mapping[str, int]
    groups: int
    set_offsets: int
    problems: tuple[str, ...] = ()


@dataclass
class Follower:
    """Both connected clusters, and what is remembered between two rounds."""

    pair: MirrorContext
    source: Cluster
    target: Cluster
    kept: KeptMaps | None = None
    _maps: dict[TopicPartition, OffsetMap] = field(default_factory=dict)
    _changed: set[TopicPartition] = field(default_factory=set)
    _stretches: Stretches = field(default_factory=Stretches)
    _ids: dict[str, str] = field(default_factory=dict)
    _there: set[str] = field(default_factory=set)
    _rounds: int = 0
    _syncs: TopicReader | None = None
    _next_sync: int | None = None
    _comparison: RecordComparison | None = None
    _read_checkpoints: tuple[int, Mapping[checkpoints.CheckpointKey, checkpoints.CheckpointHistory]] | None = None

    def __post_init__(self) -> None:
        mirror = self.pair.request.mirror
        self._source_client, self._target_client = ClientRenewal(self.source), ClientRenewal(self.target)
        self._positions = SourcePositions(self.source, cache(mirror.carries_group), cache(mirror.carries_topic))
        self._repetitions = Repetitions(self.source, self._remote, self._compared)

    def round(self) -> Round:
        """Set what is to be set now; raises ClusterError if a cluster cannot be asked.

        Without the source, what the mirror has copied since is taken in, if its offset syncs are on the target.
        """
        self._rounds += 1
        renewed = [*self._source_client.renew(), *self._target_client.renew()]
        lost, problems = None, list[str]()
        try:
            # The positions are read first: what the mirror copies meanwhile only adds to what is known of them.
            problems = self._positions.read()
        except ClusterError as error:
            lost = error
        self._source_client.judge([*self._positions.errors.values(), *([lost] if lost is not None else [])])
        self._read_syncs()
        try:
            if lost is None:
                self._forget_recreated()
                self._end_repetitions()
        except ClusterError as error:
            lost = error
        between = self._translate()
        try:
            if between and lost is None:
                self._prove(between)
        except ClusterError as error:  # a partition without a leader keeps no group of the others from being set
            lost = error
        try:
            set_offsets, more = self._set()
        except ClusterError as error:
            self._target_client.judge([error])
            raise
        if lost is not None:
            raise lost
        if self._positions.failure is not None:
            raise self._positions.failure
        states = self._positions.states()
        return Round(
            positions={state: states[state] for state in STATES},
            groups=len(self._positions.by_group),
            set_offsets=set_offsets,
            problems=(*renewed, *problems, *more),
        )

    def close(self) -> None:
        """Keep what is known, and give the connections back."""
        self._keep(at_once=True)
        if self._syncs is not None:
            self._syncs.close()
        if self._comparison is not None:
            self._comparison.close()
        self._syncs = self._comparison = None

    def _read_syncs(self) -> None:
        syncs = self.pair.request.mirror.offset_syncs_topic
        if syncs is None:
            raise OpsError(
                f"stack {self.pair.stack}: mirror {self.pair.mirror} must name its offset syncs topic. Run "
                "`pulumi up` once."
            )
        if self._syncs is None:
            side = self.source if syncs.location == "source" else self.target
            reader = side.topic_reader(syncs.name)
            if not reader.exists:
                raise OpsError(
                    f"{side.side.role} {side.side.alias}: topic {syncs.name} must exist and user {side.side.user} "
                    "must have Describe and Read on it (got no such topic). The mirror makes it when it starts."
                )
            self._syncs, self._next_sync = reader, self._restore(side, syncs.name)
            if self._next_sync is not None:
                reader.start_at(self._next_sync)
        for message in self._syncs.messages():
            offset = message.offset() or 0
            if self._next_sync is not None and offset != self._next_sync:  # compaction has removed syncs
                for known in self._maps.values():
                    known.interrupt()
            self._next_sync = offset + 1
            decoded = checkpoints.decode_sync(_bytes(message.key()), _bytes(message.value()))
            if decoded is not None:
                self._learn(*decoded)
        self._keep(at_once=False)

    def _keep(self, *, at_once: bool) -> None:
        if self.kept is not None and self._next_sync is not None:
            self.kept.keep(self._maps, self._ids, self._changed, self._next_sync, at_once=at_once)

    def _restore(self, side: Cluster, topic: str) -> int | None:
        """Take in the maps that an earlier process has kept; return the first offset sync that they lack."""
        if self.kept is None or self._maps:
            return self._next_sync
        found = self.kept.read(topic_ids(side, [topic]).get(topic) or "", linear=not self.pair.outputs.exactly_once)
        self._maps, self._ids = found.maps, found.ids
        return found.next_sync

    def _learn(self, tp: TopicPartition, sync: OffsetSync | None) -> None:
        linear = not self.pair.outputs.exactly_once  # the markers of its transactions take offsets of the target
        self._changed.add(tp)
        if sync is None:
            self._forget(tp)
        elif self._maps.setdefault(tp, OffsetMap(linear)).add(sync.upstream, sync.downstream):
            self._forget_positions(tp)

    def _forget(self, tp: TopicPartition) -> None:
        self._changed.add(tp)
        self._maps.pop(tp, None)
        self._forget_positions(tp)

    def _forget_positions(self, tp: TopicPartition) -> None:
        self._stretches.forget(tp)
        self._positions.forget(tp)

    def _forget_recreated(self) -> None:
        """Forget what was known of topics that were created again, on either side."""
        mirror = self.pair.request.mirror
        topics = {tp.topic for tp in self._maps}
        at_source, on_target = topic_ids(self.source, topics), topic_ids(self.target, map(mirror.target_topic, topics))
        self._there = {topic for topic in topics if topic in at_source and mirror.target_topic(topic) in on_target}
        now = {topic: f"{at_source[topic]} {on_target[mirror.target_topic(topic)]}" for topic in self._there}
        before = {topic: self._ids.get(topic, one) for topic, one in now.items()}
        recreated = {tp: known for tp, known in self._maps.items() if before.get(tp.topic) != now.get(tp.topic)}
        self._ids |= now
        for tp in recreated:
            self._forget(tp)
            self._positions.begin_again(tp)
        if recreated:
            self._maps |= new_log.of_new_logs(recreated, self._remote, self._compared)

    def _end_repetitions(self) -> None:
        there = {tp: known for tp, known in self._maps.items() if tp.topic in self._there}
        for tp in self._repetitions.ended(there):
            self._changed.add(tp)
            self._forget_positions(tp)

    def _translate(self, *, only_unknown: bool = False) -> dict[TopicPartition, dict[Pairs, list[Position]]]:
        """Find the images of all positions that are not exact yet, or only of unknown ones, by the offset syncs.

        Return those that lie between two syncs or in front of all: the records may prove more of them.
        """
        between: dict[TopicPartition, dict[Pairs, list[Position]]] = {}
        for of_group in self._positions.by_group.values():
            for tp, one in of_group.items():
                if one.state != "unknown" and (only_unknown or (one.state == "exact" and one.wanted is not None)):
                    continue
                pairs = one.find(self._maps.get(tp) if tp.topic in self._there else None)
                if pairs is not None:
                    between.setdefault(tp, {}).setdefault(pairs, []).append(one)
        return between

    def _prove(self, between: Mapping[TopicPartition, Mapping[Pairs, list[Position]]]) -> None:
        """Compare the records of as many stretches as the time allows."""
        self._stretches.retain({(tp, following) for tp, of_pairs in between.items() for _, following in of_pairs})
        until = time.monotonic() + COMPARED_WITHIN_S
        while self._compare(between, until) and time.monotonic() < until:
            between = self._translate(only_unknown=True)

    def _compare(self, between: Mapping[TopicPartition, Mapping[Pairs, list[Position]]], until: float) -> bool:
        """Compare the stretches of a partition one after the other, those of all partitions at once.

        Return whether some have been proven in front of all that was known, and others lie further in front.
        """
        nearer = False
        for turn in range(max(map(len, between.values()), default=0)):
            if turn and time.monotonic() > until:
                break
            more = {tp: of for tp, of in between.items() if turn < len(of)}
            nearer = self._compare_stretches(more, self._rounds + turn) or nearer
        return nearer

    def _compare_stretches(self, between: Mapping[TopicPartition, Mapping[Pairs, list[Position]]], turn: int) -> bool:
        """Compare the records of some stretches: of each partition one, of all partitions so many, in their turn.

        Return as `_compare`.
        """
        places = sorted(between)
        start = turn * STRETCHES_AT_ONCE % len(places) if len(places) > STRETCHES_AT_ONCE else 0
        chosen: dict[Stretch, list[Position]] = {}
        for tp in (places[start:] + places[:start])[:STRETCHES_AT_ONCE]:
            places_of = sorted(between[tp], key=lambda one: one[0].upstream if one[0] else -1, reverse=True)
            pairs = places_of[turn % len(places_of)]
            positions = between[tp][pairs]
            offsets = [one.upstream for one in positions]
            chosen[self._stretches.chosen(tp, self._remote(tp), pairs, offsets)] = positions
        compared, nearer = self._compared(chosen), False
        for stretch, positions in chosen.items():
            records = compared[stretch.source]
            for one in positions:
                one.compare(records, stretch.wanted if stretch.anchor is None else 0)
            if any(one.state == "unknown" for one in positions) and (pair := records.first_pair()):
                nearer = self._maps[stretch.source].add_in_front(pair) or nearer  # they lie further in front
                self._changed.add(stretch.source)
            self._stretches.learn(stretch, records, exact=all(one.state == "exact" for one in positions))
        return nearer

    def _compared(self, stretches: Iterable[Stretch]) -> Mapping[TopicPartition, ComparedRecords]:
        if self._comparison is None:
            self._comparison = RecordComparison(self.source, self.target, self.pair.request.limits.isolation)
        return self._comparison.compare(stretches)

    def _set(self) -> tuple[int, list[str]]:
        """Set what differs from what this process has set last, in groups without members."""
        changed: dict[str, dict[TopicPartition, Position]] = {}
        for number, (group, of_group) in enumerate(self._positions.by_group.items()):
            again = (number + self._rounds) % LOOKED_AGAIN_EVERY == 0
            for tp, one in of_group.items():
                if one.is_due(again=again):
                    changed.setdefault(group, {})[tp] = one
        if not changed:
            self._target_client.judge([])
            return 0, []
        states = self.target.group_states()
        for group in [group for group in changed if states.get(group, IDLE[0]) not in IDLE]:
            del changed[group]
            self._mark(group, "active")
        unread: dict[str, ClusterError] = {}
        # All of them: a broker that is starting does not list its groups, but they stand where somebody has set them.
        found = group_commits.read(self.target, changed, unread)
        self._target_client.judge(unread.values())
        problems = [str(error) for error in unread.values()]
        for group in unread:
            self._mark(group, "refused")
        logs = self._logs(changed)
        decided = {
            group: dict(self._decide(group, of_group, found.get(group, {}), logs))
            for group, of_group in changed.items()
            if group not in unread
        }
        wanted = {group: self._commits(of_group) for group, of_group in decided.items() if of_group}
        refused = group_commits.write(self.target, wanted)
        for group in refused:
            self._mark(group, "refused")
        for one in (one for group in wanted.keys() - refused.keys() for one in decided[group].values()):
            one.is_set(one.wanted)
        problems += [f"group {group}: {error.str()}" for group, error in refused.items()]
        return sum(len(one) for group, one in wanted.items() if group not in refused), problems

    def _mark(self, group: str, state: str) -> None:
        """Give a group's positions this state, also those that were set before: nobody knows where it is now."""
        for one in self._positions.by_group[group].values():
            if one.wanted is not None:
                one.state, one.set_to = state, None

    def _commits(self, positions: Mapping[TopicPartition, Position]) -> group_commits.Commits:
        of = {self._remote(tp): one for tp, one in positions.items()}
        return {
            remote: CommittedOffset(int(one.wanted or 0), one.metadata or mark(one.upstream))
            for remote, one in of.items()
        }

    def _logs(self, changed: Mapping[str, Mapping[TopicPartition, Position]]) -> dict[TopicPartition, LogRange]:
        """Return the target's logs; the start is read where a group may have to go back to it, or else it is 0."""
        there = set(self.target.names(lambda _: True))
        remote = {(self._remote(tp), one.wanted is None) for of in changed.values() for tp, one in of.items()}
        held = sorted(one for one in remote if one[0].topic in there)
        starts = self.target.starts([tp for tp, is_unknown in held if is_unknown])
        ends = self.target.ends(dict.fromkeys(tp for tp, _ in held), "read_uncommitted")
        return {tp: LogRange(starts.get(tp, 0), end) for tp, end in ends.items()}

    def _decide(
        self,
        group: str,
        positions: Mapping[TopicPartition, Position],
        found: Mapping[TopicPartition, CommittedOffset],
        logs: Mapping[TopicPartition, LogRange],
    ) -> Iterator[tuple[TopicPartition, Position]]:
        """Yield the positions that are to be set; the state of the others says why not."""
        for tp, one in positions.items():
            remote, wanted = self._remote(tp), int(one.wanted or 0)
            at, log = found.get(remote), logs.get(remote, LogRange(0, -1))
            if one.wanted is None:
                if at is not None and at.offset > log.start and one.was_set(at) and one.has_left(at) and log.end >= 0:
                    one.wanted = log.start  # it is not known where it goes on, and what was set would skip
                    yield tp, one
                else:
                    one.was_read = True
            elif wanted > log.end:
                one.state, one.wanted = "unproven", None
            elif at is None:
                yield tp, one
            elif at.offset == wanted:
                one.is_set(wanted)
            elif not self._is_ours(group, remote, one, at):
                one.state, one.set_to = "foreign", None
            elif wanted > at.offset or one.state == "exact" or one.has_left(at):
                yield tp, one
            else:
                one.set_to = at.offset

    def _is_ours(self, group: str, remote: TopicPartition, one: Position, at: CommittedOffset) -> bool:
        """Whether the position on the target was set by a follower, or by MirrorMaker and lies behind."""
        if one.was_set(at):
            return True
        if at.offset > int(one.wanted or 0):
            return False
        if at.metadata and at.metadata == one.metadata:
            return True
        history = self._checkpoints().get((group, *remote))
        return history is not None and any(known.downstream == at.offset for known in history.newest)

    def _checkpoints(self) -> Mapping[checkpoints.CheckpointKey, checkpoints.CheckpointHistory]:
        """Return MirrorMaker's checkpoints, as they were at most some rounds ago."""
        if self._read_checkpoints is None or self._rounds - self._read_checkpoints[0] >= CHECKPOINTS_EVERY:
            found = checkpoints.read_checkpoints(self.target, self.pair.request.mirror).checkpoints
            self._read_checkpoints = self._rounds, found
        return self._read_checkpoints[1]

    def _remote(self, tp: TopicPartition) -> TopicPartition:
        return TopicPartition(self.pair.request.mirror.target_topic(tp.topic), tp.partition)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
