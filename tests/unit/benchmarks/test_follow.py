"""The judge of followed groups by small logs, and what a seed chooses."""

import os
import random
from array import array
from pathlib import Path
from typing import cast

import psutil
import pytest
from confluent_kafka import KafkaError

from benchmarks.clusters import SOURCE, BenchmarkError, Clusters
from benchmarks.follow.judging import Cost, TargetLog, holds, source_offsets, summary, within_last_second
from benchmarks.follow.judging import cost as cost_of
from benchmarks.follow.traffic import Commits, Log, Place, Rates, Traffic
from benchmarks.tables import _follow
from sandbox.processes import Processes
from sandbox.state import SandboxState
from sandbox.toolchain import Tools
from tests.support.waiting import wait_until


def source(*offsets: int, incarnation: int = 0) -> Log:
    """A log whose records have these offsets; -1 is one that was not acknowledged."""
    return Log(incarnation, array("q", [at for at in offsets if at >= 0]), array("q", offsets))


def target(*values: str) -> TargetLog:
    found = TargetLog()
    for at, value in enumerate(values):
        found.add(at, value.encode())
    return found


def cost(log: Log, there: TargetLog, read_up_to: int, at: int) -> Cost:
    return cost_of(source_offsets(log, there), there, read_up_to, at)


FOUR = target("0 0", "0 1", "0 2", "0 3")


def test_the_exact_offset_costs_nothing_across_gaps_of_the_source() -> None:
    assert cost(source(0, 1, 3, 4), FOUR, 4, 3) == Cost(skipped=0, read_again=0)


def test_records_on_the_wrong_side_of_the_offset_are_counted() -> None:
    assert cost(source(0, 1, 2, 3), FOUR, 3, 1) == Cost(skipped=0, read_again=2)
    assert cost(source(0, 1, 2, 3), FOUR, 1, 3) == Cost(skipped=2, read_again=0)


def test_a_record_that_nobody_acknowledged_is_not_read() -> None:
    assert cost(source(0, 1, 2, -1), FOUR, 9, 4) == Cost(skipped=1, read_again=0)


def test_a_second_copy_is_read_again_and_saves_an_unread_record() -> None:
    twice = target("0 0", "0 1", "0 0", "0 1")
    assert cost(source(0, 1), twice, 1, 1) == Cost(skipped=0, read_again=1)
    assert cost(source(0, 1), twice, 1, 2) == Cost(skipped=0, read_again=1)
    assert cost(source(0, 1), twice, 1, 4) == Cost(skipped=1, read_again=0)


def test_records_of_an_earlier_incarnation_are_past() -> None:
    both = target("0 0", "0 1", "1 0", "1 1")
    assert cost(source(0, 1, incarnation=1), both, 1, 0) == Cost(skipped=0, read_again=3)
    assert cost(source(0, 1, incarnation=1), both, 1, 3) == Cost(skipped=0, read_again=0)


def test_a_target_log_knows_what_it_holds() -> None:
    assert FOUR.next_offset == 4
    assert FOUR.holds(0, 3)
    assert not FOUR.holds(0, 4)
    assert not FOUR.holds(1, 0)


def test_a_group_reads_no_further_than_its_distance() -> None:
    assert source(0, 2, 3, 5).readable_up_to(2) == 3
    assert source(0, 2).readable_up_to(2) == 0


def test_what_a_group_has_read_is_that_until_a_time() -> None:
    place = ("plain", 0)
    traffic = Traffic({}, read={("orders", place): [(1.0, 10, 10), (2.0, 15, 5), (2.5, 18, 3)]})
    assert traffic.read_up_to("orders", place) == 18
    assert traffic.read_up_to("orders", place, 2.0) == 15
    assert traffic.read_between("orders", place, 1.0, 2.5) == 8
    assert traffic.read_up_to("others", place) == 0
    traffic.committed["orders", place] = [(1.1, 10), (2.1, 15)]
    assert traffic.committed_before("orders", place, 2.1) == 10
    assert traffic.read_from("orders", place, 10, 2.5) == 8
    assert traffic.read_from("orders", place, 15, 2.2) == 0


def test_a_seed_chooses_the_same_rates_and_each_topic_is_written_to() -> None:
    topics = {"plain": 3, "transactional": 2}
    one, other = (Rates.of_seed(random.Random("case 1"), topics) for _ in range(2))  # noqa: S311
    assert one == other
    for seed in range(20):
        found = Rates.of_seed(random.Random(seed), topics).of  # noqa: S311
        assert {topic for topic, _ in found} == set(topics)
        assert all(number < topics[topic] and rate > 0 for (topic, number), rate in found.items())


def test_the_bound_and_the_table() -> None:
    row = {"case": "source killed", "topic": "plain", "group": "behind-1000", "seed": 1, "skipped": 0, "readAgain": 5}
    row |= {"lastSecond": 5, "sinceRound": 6, "roundAgeS": 1.3, "mirrorMakerSkipped": 0, "mirrorMakerReadAgain": 2500}
    assert holds(row)
    assert within_last_second(row)
    assert holds(row | {"readAgain": 6})
    assert not within_last_second(row | {"readAgain": 6})
    assert not holds(row | {"readAgain": 7})
    assert not holds(row | {"skipped": 1})
    found = summary([row, row | {"readAgain": 7}])
    assert [(one["within"], one["withinLastSecond"], one["readAgainMost"]) for one in found] == [(1, 1, 7)]
    machine = {"cores": 2, "processor": "EPYC", "memoryGib": 24, "loadAverage": [0.5]}
    result = {"summary": found, "costs": [], "machine": machine, "date": "2026-11-27", "versions": {"kafka": "4.3.1"}}
    assert (
        "| source killed | plain | 1 000 | 0 | 6 (most 7) | 5 | 6 (1.3 s) | 1 of 2 | 1 of 2 | 2 500 (most 2 500) |"
        in _follow(result)
    )


def test_the_end_of_a_process_that_somebody_else_has_killed_is_a_benchmarks_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = SandboxState(tmp_path / "state")
    state.create()
    processes = Processes(state)
    clusters = Clusters(cast(Tools, None), tmp_path, processes, {})
    message = r"kafka.source: must run until it is killed \(got an end before\)"
    with pytest.raises(BenchmarkError, match=message):
        clusters.kill(SOURCE)

    def alive_until_now(name: str) -> bool:
        pid = processes.kill(name)
        wait_until("its exit code is collected", lambda: not psutil.pid_exists(pid), 10)
        return True

    processes.start(SOURCE, ["sleep", "60"], {"PATH": os.environ["PATH"]}, tmp_path / "log")
    monkeypatch.setattr(processes, "alive", alive_until_now)
    with pytest.raises(BenchmarkError, match=message):
        clusters.kill(SOURCE)


def test_one_commit_of_a_group_is_on_its_way_and_what_is_refused_is_committed_again() -> None:
    noted = list[tuple[Place, int]]()
    commits = Commits(lambda place, at: noted.append((place, at)), {("plain", 0): 500, ("plain", 1): 7})
    first = commits.taken()
    commits.waiting["plain", 0] = 1000
    assert commits.taken() == []
    commits.answered(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE), first)
    second = commits.taken()
    assert {(at.topic, at.partition): at.offset for at in second} == {("plain", 0): 1000, ("plain", 1): 7}
    commits.answered(None, second)
    assert commits.taken() == []
    assert sorted(noted) == [(("plain", 0), 1000), (("plain", 1), 7)]
