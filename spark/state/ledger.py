"""One run's use of the state: moves the offset ranges forward before the comparison, keeps what was verified after it.

A state is never needed: whatever is wrong with it, or with its store, is reported and leads to a full comparison.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from contract.verification_request import Request
from kafka.cluster import Cluster
from kafka.group_positions import NONE, GroupPosition, GroupPositions
from kafka.topic_metadata import cluster_id, topic_ids
from kafka.topic_partition import TopicPartition
from spark.comparison.findings import PartitionResult
from spark.comparison.offset_ranges import OffsetRange
from spark.comparison.position_columns import PositionColumns, by_partition
from spark.state import Anchor, Entry, Identity, State, TailRecord, merge, resume, thin
from spark.state import resume as tails
from spark.state.resume import CurrentLogs, Needed, Resumed
from spark.state.store import Store, StoreError

HARMLESS = {"expired_at_target", "expired_at_source", "aborted"}
COMPACTED = "the topic is compacted: it is always compared whole"
UNCERTAIN = {"foreign", "altered", "wrong_partition", "no_overlap"}
AGAIN = "the target holds records that the new part of the source does not: compared whole to find out what they are"
Log = Callable[[str], None]


@dataclass
class BothClusters:
    """The same question to both sides at once."""

    source: Cluster
    target: Cluster

    def ask(self, what: Callable[..., Any], source: Sequence[Any], target: Sequence[Any]) -> tuple[Any, Any]:
        """Return the answers of source and target to `what(cluster, *arguments)`."""
        with ThreadPoolExecutor(2) as pool:
            answers = pool.submit(what, self.source, *source), pool.submit(what, self.target, *target)
            return answers[0].result(), answers[1].result()


class Ledger:
    """State of the request's mirror. `resumed`: from where each partition goes on, or why it does not."""

    def __init__(self, store: Store, request: Request, source: Cluster, target: Cluster) -> None:
        self._store = store
        self._request = request
        self._both = BothClusters(source, target)
        self._identity: Identity | None = None
        self._name = ""
        self._entries: dict[TopicPartition, Entry] = {}
        self._doubted: set[TopicPartition] = set()
        self._ids: tuple[Mapping[str, str | None], Mapping[str, str | None]] = ({}, {})
        self.loaded = False
        self.saved = False
        self.problems: list[str] = []
        self.resumed: dict[TopicPartition, Resumed | str] = {}

    def document(self) -> dict[str, Any]:
        """Return the section of report.json about the state."""
        ordered = sorted(self.resumed.items())
        return {
            "uri": self._store.uri,
            "loaded": self.loaded,
            "resumed_partitions": [
                {"topic": topic, "partition": partition, **vars(one)}
                for (topic, partition), one in ordered
                if isinstance(one, Resumed)
            ],
            "full_partitions": [
                {"topic": topic, "partition": partition, "reason": one}
                for (topic, partition), one in ordered
                if isinstance(one, str)
            ],
            "saved": self.saved,
            "problems": list(self.problems),
        }

    def forward(
        self, offset_ranges: Iterable[OffsetRange], groups: Sequence[GroupPosition], log: Log
    ) -> list[OffsetRange]:
        """Return the offset ranges, their starts moved forward where an earlier run has verified what lies before."""
        offset_ranges = list(offset_ranges)
        why = self._load()
        names = {one.topic for one in offset_ranges}, {one.target_topic for one in offset_ranges}
        self._ids = self._both.ask(topic_ids, [names[0]], [names[1]])
        if why is None:
            self._judge(offset_ranges, needed(groups))
        else:
            log(f"state: {why}, everything is compared")
            self.resumed = dict.fromkeys((one.topic_partition for one in offset_ranges), why)
        self.resumed |= {one.topic_partition: COMPACTED for one in offset_ranges if one.compacted}
        moved = []
        for one in offset_ranges:
            at = self.resumed[one.topic_partition]
            if isinstance(at, Resumed):
                one = replace(one, source_start=at.source_offset, target_start=at.target_offset, resumed=True)
            moved.append(one)
        if why is None:
            number = sum(one.resumed for one in moved)
            log(f"state: {number} of {len(moved)} partitions go on from verified offsets")
        return moved

    def again(self, results: Iterable[PartitionResult]) -> set[str]:
        """Return the topics to compare whole after all, and remember it.

        A record that the new part of the source does not hold may be the copy of an older one: only the whole log
        shows whether it is foreign, doubled or was aborted.
        """
        topics = {
            result.topic
            for result in results
            if isinstance(self.resumed.get(TopicPartition(result.topic, result.partition)), Resumed)
            and any(finding.kind in UNCERTAIN for finding in result.findings)
        }
        for tp, one in self.resumed.items():
            if tp[0] in topics and isinstance(one, Resumed):
                self.resumed[tp] = AGAIN
        return topics

    def keep(self, offset_ranges: Iterable[OffsetRange], results: Iterable[PartitionResult], log: Log) -> None:
        """Store the verified offsets of all partitions without a fault; the others keep what was known before.

        `offset_ranges` are those with the logs' own starts, not the moved ones.
        """
        if self._identity is None:
            return
        identity, loaded = self._identity, dict(self._entries)
        entries = self._advance({one.topic_partition: one for one in offset_ranges if not one.compacted}, results)

        def update(stored: State | None) -> State:
            held = stored.entries if stored is not None and stored.identity == identity else {}
            return State(identity=identity, entries=merge(held, loaded, entries))

        try:
            self._store.save(self._name, update)
        except StoreError as error:
            self.problems.append(str(error))
            log(f"state: not saved, {error}")
        else:
            self.saved = True

    def _load(self) -> str | None:
        """Load the entries; return why there are none to go on from."""
        source_id, target_id = self._both.ask(cluster_id, [], [])
        if source_id is None or target_id is None:
            self.problems.append(why := "a cluster does not report its id")
            return why
        self._identity = Identity.of(self._request, source_id, target_id)
        self._name = name_of(self._request.mirror.name, self._identity)
        try:
            state = self._store.load(self._name)
        except StoreError as error:
            self.problems.append(str(error))
            return str(error)
        if state is None:
            return "there is no state of an earlier run"
        self.loaded = True
        if difference := self._identity.differs(state.identity):
            return f"the state is about something else ({difference})"
        self._entries = dict(state.entries)
        return None

    def _judge(self, offset_ranges: Sequence[OffsetRange], needs: Mapping[TopicPartition, Needed]) -> None:
        logs = CurrentLogs(source_ids=self._ids[0], target_ids=self._ids[1])
        known = []
        for one in offset_ranges:
            entry = self._entries.get(one.topic_partition)
            if entry is None:
                self.resumed[one.topic_partition] = "no earlier run has verified this partition"
            elif reason := resume.doubt(entry, one, logs):
                self._distrust(one.topic_partition, reason)
            elif not one.compacted:
                known.append((one, entry))
        source = {entry.topic_partition: (entry.source_tail[0][0], entry.verified) for _, entry in known}
        target = {
            TopicPartition(one.target_topic, one.partition): (entry.target_tail[0][0], entry.anchors[-1][1])
            for one, entry in known
        }
        isolation = self._request.limits.isolation
        read = self._both.ask(tails.records, [source, isolation], [target, isolation])
        logs = replace(logs, source_tails=read[0], target_tails=read[1])
        for one, entry in known:
            if reason := resume.changed(entry, one, logs):
                self._distrust(one.topic_partition, reason)
            else:
                self.resumed[one.topic_partition] = resume.start(entry, one, needs.get(one.topic_partition, Needed()))

    def _distrust(self, tp: TopicPartition, reason: str) -> None:
        self._doubted.add(tp)
        self.resumed[tp] = reason

    def _advance(
        self, offset_ranges: Mapping[TopicPartition, OffsetRange], results: Iterable[PartitionResult]
    ) -> dict[TopicPartition, Entry]:
        good = {
            TopicPartition(result.topic, result.partition): result.anchors
            for result in results
            if result.anchors
            and TopicPartition(result.topic, result.partition) in offset_ranges
            and not result.undecided
            and not any(finding.kind not in HARMLESS for finding in result.findings)
        }
        frontiers = {tp: anchors[-1] for tp, anchors in good.items()}
        source = {tp: at[0] for tp, at in frontiers.items()}
        target = {(offset_ranges[tp].target_topic, tp[1]): at[1] for tp, at in frontiers.items()}
        isolation = self._request.limits.isolation
        floors = (
            {tp: offset_ranges[tp].source_start for tp in frontiers},
            {(offset_ranges[tp].target_topic, tp[1]): offset_ranges[tp].target_start for tp in frontiers},
        )
        found = self._both.ask(tails.last_before, [source, floors[0], isolation], [target, floors[1], isolation])
        names = {tp[0] for tp in good}, {offset_ranges[tp].target_topic for tp in good}
        ids = self._both.ask(topic_ids, [names[0]], [names[1]])
        # Topics that are gone from the source take their entries with them.
        entries = {tp: entry for tp, entry in self._entries.items() if tp[0] in self._ids[0]}
        for tp, anchors in good.items():
            there = offset_ranges[tp].target_topic
            source_id, target_id = known = ids[0].get(tp[0]), ids[1].get(there)
            if source_id is None or target_id is None:
                continue  # brokers before Kafka 2.8: the next run could not know that it is the same topic
            if known != (self._ids[0].get(tp[0]), self._ids[1].get(there)):
                continue  # created again while this run was on
            tail = found[0].get(tp, ()), found[1].get((there, tp[1]), ())
            old = entries.get(tp)
            if not all(tail) or (old and tp not in self._doubted and old.verified > anchors[-1][0]):
                continue
            entries[tp] = self._entry(tp, (source_id, target_id), anchors, tail)
        return entries

    def _entry(
        self,
        tp: TopicPartition,
        ids: tuple[str, str],
        anchors: Sequence[Anchor],
        tail: tuple[tuple[TailRecord, ...], tuple[TailRecord, ...]],
    ) -> Entry:
        old = self._entries.get(tp) if tp not in self._doubted else None
        return Entry(
            topic=tp[0],
            partition=tp[1],
            source_topic_id=ids[0],
            target_topic_id=ids[1],
            anchors=thin(joined(old.anchors if old else (), [*anchors, *resume.anchors(anchors[-1], *tail)])),
            source_tail=tail[0],
            target_tail=tail[1],
        )


def needed(groups: Sequence[GroupPosition]) -> dict[TopicPartition, Needed]:
    """Return per partition the lowest positions of any group: both must be inside what is compared."""
    positions = GroupPositions.of(groups)
    columns = PositionColumns(positions)
    found: dict[TopicPartition, Needed] = {}
    for tp, places in by_partition(positions):
        synced = columns.synced[places]
        reached = synced[synced != NONE]
        found[tp] = Needed(int(columns.committed[places].min()), int(reached.min()) if len(reached) else None)
    return found


def joined(older: Iterable[Anchor], newer: Iterable[Anchor]) -> list[Anchor]:
    """Return the anchors of both in order, each at another offset on both sides; in doubt the newer ones count."""
    found: list[Anchor] = []
    for anchor in sorted({**dict(older), **dict(newer)}.items(), reverse=True):
        if not found or anchor[1] < found[-1][1]:
            found.append(anchor)
    return found[::-1]


def name_of(mirror: str, identity: Identity) -> str:
    """Return the name of the state's document: the mirror's name, and a hash of the two clusters' ids."""
    clusters = f"{identity.source_cluster_id} {identity.target_cluster_id}"
    digest = hashlib.sha256(f"{mirror} {clusters}".encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', mirror)[:80]}-{digest}.json"
