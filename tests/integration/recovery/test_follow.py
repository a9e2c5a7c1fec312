"""Groups that are followed on a real mirror, and the source killed: what they read again, beside MirrorMaker's own.

By night only, when nothing runs beside it: a mirror that waits for a loaded machine copies later than in the last
second, which is the bound. Unit tests prove the rest in every run, with a simulated mirror.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # the package does not list what it re-exports

from benchmarks.clusters import SOURCE, TARGET, Clusters, running
from kafka import checkpoints, group_commits
from kafka.checkpoints import OffsetSync
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.follow.command import FollowMetrics, followed, repeat
from ops.follow.record_proof import RecordComparison, Stretch
from ops.recovery.followed_mark import FOLLOWED
from sandbox.toolchain import Tools
from tests.support import followed_mirror
from tests.support.followed_mirror import PARTITIONS, PLAIN, TRANSACTIONAL, Cost, Traffic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.nightly

SEEDS, DISTANCES = range(5), (7, 1000)
GROUPS = {f"behind-{distance}-{seed}": distance + seed for distance in DISTANCES for seed in SEEDS}
INTERVAL_S, LATELY_S, FLOWS_S = 0.5, 1.0, 12.0


@dataclass
class Outcome:
    """What each group would read from where it was set, and from where MirrorMaker would have set it."""

    followed: list[Cost] = field(default_factory=list)
    mirror_makers: list[Cost] = field(default_factory=list)
    metadata: set[str] = field(default_factory=set)
    states: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def outcome(tools: Tools) -> Iterator[Outcome]:
    with running(tools, {"offset.flush.interval.ms": 10_000}) as clusters:
        traffic = Traffic(dict(clusters.client(SOURCE)), GROUPS)
        followed_mirror.start_mirror(clusters, sorted(GROUPS))
        traffic.prefill()
        _until_copied(clusters, traffic)
        metrics, ending = FollowMetrics(followed_mirror.known(clusters)), threading.Event()
        with traffic.flowing():
            follower = threading.Thread(target=_follow, args=(metrics, ending), daemon=True)
            follower.start()
            time.sleep(FLOWS_S)
            states = dict(metrics.last.positions) if metrics.last else {}
            clusters.processes.kill(SOURCE, hold=True)
            killed = time.monotonic()
            traffic.end()
        time.sleep(2)
        ending.set()
        follower.join(60)
        assert not traffic.problems
        assert not follower.is_alive()
        yield _judged(clusters, traffic, killed, states)


def _follow(metrics: FollowMetrics, ending: threading.Event) -> None:
    with followed(metrics.pair) as follower:
        repeat(follower, metrics, INTERVAL_S, ending.is_set)


def _until_copied(clusters: Clusters, traffic: Traffic) -> None:
    admin, client = clusters.admin(TARGET), dict(clusters.client(TARGET))
    wait_until(
        "the topics are on the target", lambda: {PLAIN, TRANSACTIONAL} <= {*admin.list_topics(timeout=5).topics}, 90
    )

    def copied() -> bool:
        return all(
            len(followed_mirror.values(client, topic, number)) >= len(traffic.offsets[topic, number])
            for topic in (PLAIN, TRANSACTIONAL)
            for number in range(PARTITIONS)
        )

    wait_until("the records are on the target", copied, 90)


def _judged(clusters: Clusters, traffic: Traffic, killed: float, states: dict[str, int]) -> Outcome:
    known, found = followed_mirror.known(clusters), Outcome(states=states)
    target = Cluster(known.request.target)
    target.connect()
    claimed = checkpoints.read_checkpoints(target, known.request.mirror)
    copied = {
        (topic, number): [at for at, _ in followed_mirror.values(dict(clusters.client(TARGET)), topic, number)]
        for topic in (PLAIN, TRANSACTIONAL)
        for number in range(PARTITIONS)
    }
    for group, offsets in group_commits.read(target, GROUPS).items():
        for topic, number in copied:
            at = offsets[TopicPartition(topic, number)]
            last = claimed.last_checkpoint((group, topic, number))
            place = group, topic, number
            judge = traffic, copied[topic, number], killed, LATELY_S
            found.metadata.add(at.metadata.partition(" ")[0])
            found.followed.append(followed_mirror.cost(place, at.offset, *judge))
            found.mirror_makers.append(followed_mirror.cost(place, last.downstream if last else 0, *judge))
    return found


def test_no_group_skips_a_record_and_none_reads_more_again_than_in_the_last_second(outcome: Outcome) -> None:
    assert len(outcome.followed) == len(GROUPS) * 2 * PARTITIONS
    assert not [one for one in outcome.followed if one.skipped]
    assert not [one for one in outcome.followed if one.repeated > one.lately]


def test_mirror_makers_own_translation_costs_more(outcome: Outcome) -> None:
    for distance in DISTANCES:
        ours, theirs = (
            sum(one.repeated for one in costs if f"-{distance}-" in one.position[0])
            for costs in (outcome.followed, outcome.mirror_makers)
        )
        assert ours < theirs


def test_positions_are_marked_and_counted(outcome: Outcome) -> None:
    assert outcome.metadata == {FOLLOWED}
    assert sum(outcome.states.values()) == len(outcome.followed)
    assert outcome.states["exact"] + outcome.states["behind"] >= len(outcome.followed) * 0.9


def test_a_log_whose_records_retention_has_removed_is_read_at_once(tools: Tools) -> None:
    place = TopicPartition("emptied", 0)
    with running(tools, with_worker=False) as clusters:
        request = followed_mirror.known(clusters).request
        sides = Cluster(request.source), Cluster(request.target)
        for side in sides:
            side.connect()
            for made in side.admin.create_topics([NewTopic(place.topic, 1, 1)]).values():
                made.result(30)
            producer = side.producer({})
            for number in range(10):
                producer.produce(place.topic, b"%d" % number)
            producer.flush(30)
        for removed in sides[0].admin.delete_records([ClientTopicPartition(*place, 10)]).values():
            removed.result(30)
        comparison = RecordComparison(*sides, "read_committed")
        found = comparison.compare([Stretch(place, place, OffsetSync(8, 8), None, 10)])[place]
        comparison.close()
    assert (list(found.source.offsets), list(found.target.offsets)) == ([], [8, 9])
    assert found.source.complete, "a consumer in front of the log's start waits for a record that does not come"
    assert found.position(10) is None
