"""One seed: groups at their distances on a real mirror with a follower, the source killed, and each group judged.

Owns what happens in a seed of a case, and what flowed over the mirror before it. Does not own how many seeds there are,
nor the result.
"""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from benchmarks.clusters import SOURCE, TARGET, WORKER, BenchmarkError, Clusters
from benchmarks.follow import judging, many_groups, mirror
from benchmarks.follow.judging import Row, TargetReading
from benchmarks.follow.mirror import FollowProcess, following, outputs
from benchmarks.follow.traffic import COMPACTED, DISTANCES, TRANSACTIONAL, Place, Rates, Traffic
from kafka import checkpoints, group_commits
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.recovery.mirror_context import MirrorContext

LAST_S = 1.0
COUNTS = ("skipped", "readAgain", "lastSecond", "sinceRound", "mirrorMakerSkipped", "mirrorMakerReadAgain")
LAST_ROUNDS = 20  # before the source is killed, at most: a row has their time and how many were not exact
SET_AFTER_S = 3.0
"""Seconds from the end of the source until groups go on: the fastest failover stops the mirror before it sets them."""
SETTLED_WITHIN_S, TRANSLATED_WITHIN_S = 180.0, 30.0
PLAIN, RECREATED = "plain", "recreated"
COMPACTION = {
    "cleanup.policy": "compact",
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "2000",
}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    PLAIN: (3, {}),
    TRANSACTIONAL: (2, {}),
    COMPACTED: (1, COMPACTION),
    RECREATED: (1, {}),
    many_groups.TOPIC: (many_groups.Shape.partitions, {}),
}
SOURCE_KILLED, WORKER_KILLED, TOPIC_RECREATED = "source killed", "worker killed before", "topic recreated before"
CASES = {
    SOURCE_KILLED: (PLAIN, TRANSACTIONAL, COMPACTED),
    WORKER_KILLED: (PLAIN, TRANSACTIONAL, COMPACTED),
    TOPIC_RECREATED: (RECREATED,),
}


@dataclass
class Site:
    """The clusters, the mirror and what has flowed over it since it runs."""

    clusters: Clusters
    interval_s: float
    known: MirrorContext
    source: Cluster
    target: Cluster
    traffic: Traffic
    reading: TargetReading
    filled: set[str] = field(default_factory=set)

    @classmethod
    def on(cls, clusters: Clusters, interval_s: float) -> "Site":
        """Make the topics and start the mirror."""
        mirror.create_topics(clusters, TOPICS)
        mirror.start_mirror(clusters, list(TOPICS), list(DISTANCES))
        known = mirror.context(mirror.outputs(clusters, list(TOPICS), list(DISTANCES)))
        source, target = known.source(), known.target()
        for side in (source, target):
            side.connect()
        traffic, reading = Traffic(clusters.client(SOURCE)), TargetReading(clusters.client(TARGET))
        return cls(clusters, interval_s, known, source, target, traffic, reading)

    def seed(self, case: str, number: int) -> list[Row]:
        """Run a seed and return a row for each topic and group; the source runs again at the end."""
        chance = random.Random(f"{case} {number}")  # noqa: S311 - moments and rates, no secret
        topics = {name: TOPICS[name][0] for name in CASES[case]}
        self.traffic.problems.clear()
        self._start_again()
        self._fill(case, topics)
        places = [(topic, at) for topic, partitions in topics.items() for at in range(partitions)]
        rates = Rates.of_seed(chance, topics)
        declared = outputs(self.clusters, list(TOPICS), list(DISTANCES))
        with (
            following(self.clusters.folder, declared, self.interval_s) as follower,
            self.traffic.flowing(rates, topics, chance),
        ):
            self._settle(follower, places)
            if case == WORKER_KILLED:
                self._kill_worker(chance, places)
            time.sleep(chance.uniform(1.0, 4.0))
            self.traffic.require_no_problems()
            killed = self.clusters.kill(SOURCE)
            self.traffic.end()
            time.sleep(max(0.0, killed + SET_AFTER_S - time.monotonic()))
            rows = self._judged(follower, places, killed)
        self._until("the source is down", lambda: not self.clusters.processes.alive(SOURCE))
        self._start_again()
        return [{"case": case, "seed": number, **row, "holds": judging.holds(row)} for row in rows]

    def _start_again(self) -> None:
        """Start what does not run: the source that was killed, and a worker that found no cluster for too long."""
        if not self.clusters.processes.alive(SOURCE):
            self.clusters.start_broker(SOURCE)
        if not self.clusters.processes.alive(WORKER):
            self.clusters.start_worker(wait=False)
        self.clusters.wait_for_broker(SOURCE)

    def _fill(self, case: str, topics: dict[str, int]) -> None:
        again = case == TOPIC_RECREATED and set(topics) <= self.filled
        if again:
            self._until(
                "what was written is copied",
                self._copied([(topic, at) for topic, number in topics.items() for at in range(number)]),
            )
            for topic in topics:
                mirror.delete_topic(self.clusters, topic)
            mirror.create_topics(self.clusters, {topic: TOPICS[topic] for topic in topics})
        left = {topic: number for topic, number in topics.items() if again or topic not in self.filled}
        self.traffic.prefill(left, again=again)
        self.filled |= set(topics)
        if left and case == TOPIC_RECREATED and not again:
            self._fill(case, topics)

    def _settle(self, follower: FollowProcess, places: Sequence[Place]) -> None:
        """Wait until groups are at their distances, and mirror, MirrorMaker's checkpoints and follower know that."""
        self._until("the mirror runs", lambda: mirror.runs(self.clusters))
        self._until("each group is at its distance", lambda: self.traffic.are_at_distance(places))
        self._until("what was written is copied", self._copied(places))
        self._translated(places)
        follower.wait_for_round(time.monotonic())

    def _copied(self, places: Sequence[Place]) -> Callable[[], bool]:
        """Return whether all that is acknowledged by now is on the target."""
        logs = self.traffic.logs
        marks = {place: (logs[place].incarnation, logs[place].last_number()) for place in places}
        there = set(self.target.names(lambda _: True))

        def look() -> bool:
            there.update(self.target.names(lambda _: True))
            if not {topic for topic, _ in places} <= there:
                return False
            try:
                self.reading.read(places)
            except KafkaException:  # a topic that is made just now has no leader yet
                return False
            return all(self.reading.logs[place].holds(*mark) for place, mark in marks.items())

        return look

    def _translated(self, places: Sequence[Place]) -> None:
        """Wait until MirrorMaker has a checkpoint of each group in each partition; not for ever."""
        wanted = {(group, *place) for group in DISTANCES for place in places}
        end = time.monotonic() + TRANSLATED_WITHIN_S
        while not wanted <= set(self._checkpoints().checkpoints) and time.monotonic() < end:
            time.sleep(0.5)

    def _checkpoints(self) -> checkpoints.OffsetTranslation:
        return checkpoints.read_checkpoints(self.target, self.known.request.mirror)

    def many_groups(self) -> list[Row]:
        """Return what following many groups costs."""
        topic, number = many_groups.TOPIC, many_groups.Shape.partitions
        self.traffic.prefill({topic: number}, many_groups.RECORDS)
        self._until("what was written is copied", self._copied([(topic, at) for at in range(number)]))
        return many_groups.measured(self.clusters, self.source, list(TOPICS), self.interval_s)

    def _kill_worker(self, chance: random.Random, places: Sequence[Place]) -> None:
        """Kill the worker and start it again; by chance the source ends before it copies again."""
        killed = self.clusters.kill(WORKER)
        down_s = chance.uniform(0.0, 5.0)
        waits = chance.random() < 2 / 3
        self._until("the worker is down", lambda: not self.clusters.processes.alive(WORKER))
        time.sleep(max(0.0, killed + down_s - time.monotonic()))
        self.clusters.start_worker(wait=False)
        if waits:
            self._until("the mirror runs", lambda: mirror.runs(self.clusters))
            self._until("what was written is copied", self._copied(places))

    def _judged(self, follower: FollowProcess, places: Sequence[Place], killed: float) -> list[Row]:
        positions = group_commits.read(self.target, DISTANCES)
        claimed = self._checkpoints()
        self.reading.forget(place for place in places if COMPACTED in place[0])
        self.reading.read(places)
        last = max((one for one in list(follower.rounds) if one.ended <= killed), key=lambda one: one.began)
        rounds = [one for one in list(follower.rounds) if one.ended <= killed][-LAST_ROUNDS:]
        took = statistics.median(one.ended - one.began for one in rounds)
        not_exact = sum(one.positions["exact"] < sum(one.positions.values()) for one in rounds)
        rows = []
        logs = self.reading.logs
        sources = {place: judging.source_offsets(self.traffic.logs[place], logs[place]) for place in places}
        for topic in dict.fromkeys(topic for topic, _ in places):
            for group in DISTANCES:
                row: Row = {
                    "topic": topic,
                    "group": group,
                    "skipped": 0,
                    "readAgain": 0,
                    "lastSecond": 0,
                    "sinceRound": 0,
                }
                row |= {"mirrorMakerSkipped": 0, "mirrorMakerReadAgain": 0}
                row |= {
                    "roundAgeS": round(killed - last.began, 2),
                    "roundS": round(took, 2),
                    "roundsNotExact": not_exact,
                }
                for place in (place for place in places if place[0] == topic):
                    there = logs[place]
                    read_up_to = self.traffic.read_up_to(group, place, killed)
                    at = positions.get(group, {}).get(TopicPartition(*place))
                    checkpoint = claimed.last_checkpoint((group, *place))
                    ours = judging.cost(sources[place], there, read_up_to, at.offset if at else 0)
                    theirs = judging.cost(sources[place], there, read_up_to, checkpoint.downstream if checkpoint else 0)
                    row["skipped"] += ours.skipped
                    row["readAgain"] += ours.read_again
                    row["lastSecond"] += self.traffic.read_between(group, place, killed - LAST_S, killed)
                    known = self.traffic.committed_before(group, place, last.began)
                    row["sinceRound"] += self.traffic.read_from(group, place, known, killed)
                    row["mirrorMakerSkipped"] += theirs.skipped
                    row["mirrorMakerReadAgain"] += theirs.read_again
                rows.append(row)
        return rows

    def _until(self, what: str, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SETTLED_WITHIN_S
        while not condition():
            if self.traffic.problems:
                self.traffic.require_no_problems()
            if time.monotonic() > end:
                raise BenchmarkError(f"follow: {what} must hold within {SETTLED_WITHIN_S:.0f} s.")
            time.sleep(0.1)
