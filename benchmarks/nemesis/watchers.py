"""What runs along with the nemesis, and is judged at its end: the audit, and where it sets the groups, the follower.

Truth is a plain reading of both sides, and what the members of each group were given.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions

from benchmarks.audit import auditing, closed, document
from benchmarks.clusters import SOURCE, TARGET, BenchmarkError
from benchmarks.follow.mirror import FollowProcess, FollowRound, following
from benchmarks.nemesis.traffic import RECREATED, SHARE
from benchmarks.soak import Soak
from benchmarks.truth import Entry, Position, TopicPartition, never_read, position

BUCKET_S, WITHIN_S, EVERY_S, FOLLOW_EVERY_S = 10, 30, 30, 2.0
SETTLED_WITHIN_S, ANSWER_S, LOOK_S = 300.0, 30.0, 1.0
UNSETTLED = ("behind", "active", "foreign", "refused")
"""States that no position may keep: all records are copied, and nobody else sets or reads a group on the target."""
CHECKPOINTS = "source.checkpoints.internal"
ALL = 1 << 62  # a cut behind every offset
Bucket = tuple[str, int, int]
"""Topic, partition and begin in ms."""


def faulty_buckets(
    tp: TopicPartition,
    source: Iterable[Entry],
    target: Iterable[Entry],
    stamps: Mapping[bytes, int],
    from_ms: int,
) -> dict[Bucket, tuple[str, int]]:
    """Return the buckets of a partition in which the sides differ: the state that is true, and the records.

    As many records as are missing are filled by as many extra ones, and what is left of both makes a bucket altered.
    """
    counts: dict[int, tuple[Counter[bytes], Counter[bytes]]] = defaultdict(lambda: (Counter(), Counter()))
    for side, entries in enumerate((source, target)):
        for _, content in entries:
            counts[stamps[content] // (BUCKET_S * 1000) * BUCKET_S * 1000][side][content] += 1
    found: dict[Bucket, tuple[str, int]] = {}
    for start, (here, there) in counts.items():
        less = here.total() - there.total()
        if start >= from_ms and here != there:
            found[*tp, start] = ("missing", less) if less > 0 else ("extra", -less) if less else ("altered", 0)
    return found


def is_exact(truth: Position, at: int) -> bool:
    """Whether a group at this target offset goes on exactly where it stands at the source.

    It skips and repeats nothing (what was aborted is given to nobody), or stands in front of the copy of its next
    record, although that, or one behind it, was copied twice.
    """
    at_image = truth.lowest is not None and truth.highest is not None and truth.lowest <= at <= truth.highest
    return truth.skipped == 0 and (truth.repeated == 0 or at_image)


def group_types(listed: str) -> dict[str, str]:
    """Return the type of each group that Kafka's tool for groups lists: the client has none for share groups."""
    return {words[0]: words[1] for line in listed.splitlines()[1:] if len(words := line.split()) > 1}


def share_differences(
    given: int, source: Mapping[str, str], target: Mapping[str, str], translated: Set[str]
) -> list[str]:
    """Return the differences between what is to be true of the share group and what is, one line each.

    Args:
        given: number of records that its members were given.
        source: types of the source's groups.
        target: types of the target's groups.
        translated: groups of which MirrorMaker has written checkpoints.
    """
    rules = {
        f"must be a share group at the source (got {source.get(SHARE)})": source.get(SHARE) == "Share",
        "must be given records (got none)": given > 0,
        f"must not be on the target (got {target.get(SHARE)})": SHARE not in target,
        "must have no checkpoint, where other groups have": SHARE not in translated and bool(translated),
    }
    return [f"{SHARE}: {rule}" for rule, holds in rules.items() if not holds]


def is_settled(one: FollowRound) -> bool:
    """Whether a round has read and set all groups, and there are exact positions and none that are to be set."""
    return not one.problems and one.positions["exact"] > 0 and not any(one.positions[state] for state in UNSETTLED)


class Watchers:
    """The audit and the follower of one run."""

    def __init__(self, soak: Soak, folder: Path) -> None:
        self._soak, self._folder = soak, folder / "audit"
        self._folder.mkdir()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let both run until the block ends."""
        options = {"bucket": BUCKET_S, "within": WITHIN_S, "every": EVERY_S}
        with ExitStack() as stack:
            audit = auditing(self._soak.clusters, self._folder, self._soak.request(), **options)
            self._audit, self._follower = stack.enter_context(audit), None
            if self._soak.followed:
                followed = following(self._folder, self._outputs(), FOLLOW_EVERY_S, starts_again=True)
                self._follower = stack.enter_context(followed)
            yield

    def judge(self) -> dict[str, Any]:
        """Return the differences between what both say and what is true; all traffic has ended."""
        audit, wrong = self._audited()
        positions, more = self._followed(self._follower) if self._follower else (None, [])
        shared, others = self._shared()
        problems = [*wrong, *more, *others]
        return {"audit": audit, "follower": positions, "shared": shared, "differences": problems}

    def _audited(self) -> tuple[dict[str, int], list[str]]:
        ended_ms, end = int(time.time() * 1000), time.monotonic() + SETTLED_WITHIN_S
        while not closed(found := document(self._folder), ended_ms):
            if self._audit.poll() is not None or time.monotonic() > end:
                raise BenchmarkError(
                    f"audit: buckets must close within {SETTLED_WITHIN_S:.0f} s (got {_brief(found)}). "
                    "See audit/audit.log of the evidence."
                )
            time.sleep(LOOK_S)
        report = found or {}
        said = {
            (one["topic"], one["partition"], one["start_ms"]): (one["state"], one["records"])
            for one in report["faults"]
            if one["topic"] != RECREATED
        }
        true: dict[Bucket, tuple[str, int]] = {}
        for tp in self._partitions():
            source, target = (self._soak.sides[side].everything(tp) for side in (SOURCE, TARGET))
            stamps = self._soak.sides[SOURCE].stamps | self._soak.sides[TARGET].stamps
            true |= faulty_buckets(tp, source, target, stamps, report["from_ms"])
        wrong = [
            f"audit: {bucket[0]}-{bucket[1]} at {bucket[2]}: {said.get(bucket)}, truth {true.get(bucket)}"
            for bucket in sorted(said.keys() | true.keys())
            if said.get(bucket) != true.get(bucket)
        ]
        states = Counter[str]()
        for topic in report["topics"]:
            if topic["topic"] != RECREATED:
                states.update(topic["buckets"])
        return dict(sorted(states.items())), wrong

    def _followed(self, follower: FollowProcess) -> tuple[dict[str, int], list[str]]:
        """Return how many positions are exact by the follower and in truth, and which groups would skip."""
        last, wrong = self._settled(follower)
        exact = 0
        for group in self._soak.traffic.groups:
            here, there = self._commits(SOURCE, group), self._commits(TARGET, group)
            for tp, committed in here.items():
                if (at := there.get(tp)) is None:
                    continue
                source, target = (self._soak.sides[side].everything(tp) for side in (SOURCE, TARGET))
                truth = position(source, target, ALL, committed, at)
                exact += is_exact(truth, at)
                unread = never_read(source, self._soak.traffic.read[group][tp], target, ALL, at)
                if unread and tp[0] != RECREATED:
                    wrong.append(f"follower: {group} on {tp[0]}-{tp[1]} would skip {unread} at {at}")
        if last.groups > len(self._soak.traffic.groups):
            wrong.append(f"follower: {last.groups} groups, truth {len(self._soak.traffic.groups)}")
        claimed = last.positions["exact"]
        if claimed > exact:
            wrong.append(f"follower: {claimed} positions are exact, truth {exact}")
        return {**last.positions, "trulyExact": exact, "aborts": follower.aborts}, wrong

    def _settled(self, follower: FollowProcess) -> tuple[FollowRound, list[str]]:
        """Return the first settled round, else the last with what is wrong; raises BenchmarkError if there is none."""
        since = time.monotonic()
        try:
            return follower.wait_for_round(since, is_settled, SETTLED_WITHIN_S), []
        except BenchmarkError as error:
            if not follower.rounds or follower.rounds[-1].began < since:
                raise
            return follower.rounds[-1], [str(error)]

    def _shared(self) -> tuple[int, list[str]]:
        """Return how many records the share group was given, and what is wrong with what is known of it elsewhere."""
        given = sum(map(len, self._soak.traffic.read[SHARE].values()))
        clusters = self._soak.clusters
        source, target = (group_types(clusters.groups(side)) for side in (SOURCE, TARGET))
        log = b"".join(path.read_bytes() for path in clusters.folder.glob(f"{TARGET}.data/{CHECKPOINTS}-0/*.log"))
        translated = {group for group in (*self._soak.traffic.groups, SHARE) if group.encode() in log}
        return given, share_differences(given, source, target, translated)

    def _commits(self, side: str, group: str) -> dict[TopicPartition, int]:
        admin = self._soak.clusters.admin(side)
        found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(ANSWER_S)
        return {(one.topic, one.partition): one.offset for one in found.topic_partitions if one.offset >= 0}

    def _partitions(self) -> Sequence[TopicPartition]:
        ledger = self._soak.traffic.ledger
        return sorted(tp for tp in {*ledger.committed, *ledger.aborted} if tp[0] != RECREATED)

    def _outputs(self) -> dict[str, Any]:
        """The mirror as a stack's outputs describe it."""
        request = self._soak.request()
        request["mirror"] |= {
            "source_alias": "source",
            "target_alias": "target",
            "checkpoints_topic": CHECKPOINTS,
            "offset_syncs_topic": {"name": "mm2-offset-syncs.target.internal", "location": "source"},
        }
        name = request["mirror"]["name"]
        return {"verificationRequests": {name: request}, "mirrors": {name: {"active": "source"}}}


def _brief(found: Mapping[str, Any] | None) -> str:
    """What keeps an audit from closing its buckets: how many are open, and its problems; no record is named."""
    if found is None:
        return "no report"
    counts = {topic["topic"]: topic["buckets"].get("open", 0) for topic in found["topics"]}
    return f"open: {counts}, read through: {found['read_through']}, problems: {found['problems']}"
