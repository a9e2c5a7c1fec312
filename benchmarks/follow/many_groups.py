"""What following 1,000 groups of 100 partitions costs: seconds of a round, CPU and memory of the follower, and age.

The age of a position is the time since the groups' positions were read that are on the target now: it grows until the
next round has ended. Owns the groups and their moving. Does not own clusters and mirror.
"""

import itertools
import statistics
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.clusters import BenchmarkError, Clusters
from benchmarks.follow import mirror
from benchmarks.follow.judging import Row
from benchmarks.follow.mirror import FollowProcess, FollowRound
from kafka import group_commits
from kafka.cluster import Cluster
from kafka.group_commits import CommittedOffset
from kafka.topic_partition import TopicPartition

TOPIC, RECORDS = "wide", 500
MOVING_OF, PHASE_S = 10, 20.0
"""One group of so many moves in each second, in all its partitions."""
SET_WITHIN_S = 120.0


@dataclass(frozen=True)
class Shape:
    """How many groups there are, and how many partitions each of them reads."""

    groups: int = 1000
    partitions: int = 100

    def commits(self, group: int, step: int) -> dict[TopicPartition, CommittedOffset]:
        """Where a group stands after so many moves."""
        first = zlib.crc32(b"%d" % group)
        return {
            TopicPartition(TOPIC, number): CommittedOffset(1 + (first + number * 7 + step) % (RECORDS - 1))
            for number in range(self.partitions)
        }


def commit(source: Cluster, shape: Shape, groups: Sequence[int], step: int) -> None:
    """Commit the positions of groups at the source; raises BenchmarkError."""
    left = {f"wide-{group:04}": shape.commits(group, step) for group in groups}
    end = time.monotonic() + SET_WITHIN_S
    while left:
        refused = group_commits.write(source, left)
        left = {group: left[group] for group in refused}
        if left and time.monotonic() > end:
            raise BenchmarkError(f"offsets of {len(left)} groups must be set (got {next(iter(refused.values()))}).")


@contextmanager
def moving(source: Cluster, shape: Shape) -> Iterator[None]:
    """Let a part of the groups move in each second while the block runs."""
    ending, problems = threading.Event(), list[BaseException]()

    def move() -> None:
        step = 0
        while not ending.wait(1.0):
            step += 1
            try:
                commit(source, shape, range(step % MOVING_OF, shape.groups, MOVING_OF), step)
            except BenchmarkError as error:
                problems.append(error)
                return

    thread = threading.Thread(target=move, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(SET_WITHIN_S)
    if problems:
        raise problems[0]


def measured(clusters: Clusters, source: Cluster, topics: Sequence[str], interval_s: float) -> list[Row]:
    """Return a row for the first round, one while no group moves, and one while some do; the topic is copied."""
    shape = Shape()
    commit(source, shape, range(shape.groups), 0)
    outputs = mirror.outputs(clusters, topics, ["wide-.*"])
    with mirror.following(clusters.folder, outputs, interval_s) as follower:
        follower.wait_for_round(0.0)
        rows = [_row("first round", follower.rounds[:1]), _phase(follower, "no group moves")]
        with moving(source, shape):
            rows.append(_phase(follower, f"{shape.groups // MOVING_OF} groups a second move"))
    return rows


def _phase(follower: FollowProcess, what: str) -> Row:
    began = time.monotonic()
    time.sleep(PHASE_S)
    return _row(what, [one for one in list(follower.rounds) if one.began >= began])


def _row(what: str, rounds: Sequence[FollowRound]) -> Row:
    if not rounds:
        raise BenchmarkError(f"follower: {what}: a round must end within {PHASE_S:.0f} s (got none).")
    seconds = [one.ended - one.began for one in rounds]
    ages = [later.ended - earlier.began for earlier, later in itertools.pairwise(rounds)]
    elapsed, cpu_s = rounds[-1].ended - rounds[0].ended, rounds[-1].cpu_s - rounds[0].cpu_s
    return {
        "what": what,
        "positions": dict(rounds[-1].positions),
        "rounds": len(rounds),
        "roundMedianS": round(statistics.median(seconds), 2),
        "roundMostS": round(max(seconds), 2),
        "ageMedianS": round(statistics.median(ages), 2) if ages else None,
        "ageMostS": round(max(ages), 2) if ages else None,
        "cores": round(cpu_s / elapsed, 2) if elapsed else None,
        "cpuS": round(rounds[-1].cpu_s, 2),
        "peakMib": rounds[-1].peak_mib,
    }
