"""The faults of a nemesis: the same for a seed, within the time, never two at once on one target."""

import json
import sys
import threading
from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.follow import mirror
from benchmarks.follow.mirror import FollowProcess, FollowRound
from benchmarks.nemesis.__main__ import kept, with_others
from benchmarks.nemesis.schedule import (
    COMMAND_AT_S,
    CONTROL_PLANE,
    TARGETS,
    Fault,
    ScheduledFault,
    recovery_schedule,
    schedule,
)
from benchmarks.nemesis.traffic import begin_at_first
from benchmarks.nemesis.watchers import BUCKET_S, UNSETTLED, faulty_buckets, is_exact, is_settled
from benchmarks.truth import Ledger, TopicPartition, never_read, position
from ops.follow.follower import STATES
from tests.support.waiting import wait_until

SEEDS = range(50)


def test_a_seed_gives_the_same_faults_and_another_seed_or_phase_others() -> None:
    assert schedule(7, 0, 60) == schedule(7, 0, 60)
    assert len({schedule(seed, phase, 60) for seed in SEEDS for phase in range(3)}) == 3 * len(SEEDS)


def test_every_fault_ends_within_the_time_and_in_order() -> None:
    for seed in SEEDS:
        found = schedule(seed, 0, 40)
        assert all(0 <= one.at_s < one.until_s <= 40 for one in found)
        assert [one.at_s for one in found] == sorted(one.at_s for one in found)


def test_no_two_faults_of_one_target_overlap() -> None:
    for seed in SEEDS:
        for one, other in combinations(schedule(seed, 0, 60), 2):
            assert one.on != other.on or one.until_s < other.at_s


def test_every_fault_and_every_target_occurs_in_some_seed() -> None:
    found: list[ScheduledFault] = [one for seed in SEEDS for one in schedule(seed, 0, 60)]
    assert {(one.fault, one.on) for one in found} == {(fault, on) for fault in Fault for on in TARGETS[fault]}


def test_a_time_without_room_for_a_fault_is_refused() -> None:
    with pytest.raises(ValueError, match=r"seconds must be > 12\.0"):
        schedule(1, 0, 12)


def test_seeds_are_added_to_those_that_a_result_has(tmp_path: Path) -> None:
    result = tmp_path / "nemesis.json"
    assert with_others(result, [{"seed": 2, "lost": 0}]) == [{"seed": 2, "lost": 0}]
    result.write_text(json.dumps({"rows": [{"seed": 1, "lost": 0}, {"seed": 3, "lost": 0}]}), encoding="utf-8")
    found = with_others(result, [{"seed": 2, "lost": 0}, {"seed": 3, "lost": 1}])
    assert found == [{"seed": 1, "lost": 0}, {"seed": 2, "lost": 0}, {"seed": 3, "lost": 1}]


@pytest.mark.parametrize(
    ("row", "is_kept"),
    [
        ({}, True),
        ({"differences": ["one"], "lost": 0, "skipped": 0}, True),
        ({"differences": [], "lost": 0, "skipped": 0}, False),
    ],
)
def test_the_files_of_a_seed_that_did_not_end_or_does_not_hold_are_kept(
    tmp_path: Path, row: dict[str, object], is_kept: bool
) -> None:
    clusters, evidence = tmp_path / "clusters", tmp_path / "evidence"
    clusters.mkdir()
    (clusters / "worker.log").write_text("why", encoding="utf-8")
    found: dict[str, object] = {}
    with kept(found, evidence, clusters):
        found |= row
    assert (evidence / "clusters" / "worker.log").exists() is is_kept
    with kept(found, None, clusters):
        pass


def test_a_record_acknowledged_without_an_offset_is_looked_for_in_the_log() -> None:
    ledger, tp = Ledger(), ("items", 0)
    ledger.add(tp, 0, b"on")
    for content in (b"on", b"once", b"gone"):
        ledger.add(tp, None, content)
    log = [(0, b"on"), (1, b"once"), (2, b"on"), (3, b"not acknowledged yet")]
    assert ledger.place(tp, lambda: log) == 1, "an acknowledged record is not there"
    assert sorted(ledger.committed[tp]) == log[:3]
    assert ledger.unplaced[tp] == [b"gone"]


def test_what_the_log_has_without_an_answer_counts_only_where_records_of_the_topic_have_timed_out() -> None:
    ledger, tp = Ledger(), ("items", 0)
    ledger.add(tp, 0, b"first")
    ledger.add(tp, None, b"no offset")
    log = [(0, b"first"), (1, b"late"), (2, b"first"), (3, b"no offset"), (4, b"late"), (5, b"nobody sent it")]
    ledger.timed_out["others", 0].append(b"late")
    assert ledger.place(tp, lambda: log) == 0
    assert ledger.source(tp) == [log[0], log[3]]
    ledger.timed_out["items", 1].append(b"late")
    assert ledger.place(tp, lambda: log) == 0
    assert ledger.source(tp) == log[:5], "what nobody sent is none of it"
    assert ledger.records == 2, "which were acknowledged"
    ledger.add(tp, 2, b"first")
    assert ledger.place(tp, lambda: log) == 0
    assert ledger.source(tp) == log[:5], "an answer that came later is not counted twice"


def test_what_lies_in_front_of_a_commit_that_outlived_its_topic_is_not_skipped_by_the_mirror() -> None:
    source = [(offset, b"%d" % offset) for offset in range(5)]
    read: dict[TopicPartition, set[int]] = {("items", 0): {2, 4}, ("items", 1): set()}
    begin_at_first(read)
    assert read == {("items", 0): {0, 1, 2, 4}, ("items", 1): set()}
    assert never_read(source, read["items", 0], source, 5, 5) == 1, "what it left out behind its first still counts"


def test_a_recovery_has_a_long_line_and_loses_a_process_before_or_in_the_command() -> None:
    found = [recovery_schedule(seed, turn) for seed in SEEDS for turn in range(2)]
    assert found == [recovery_schedule(seed, turn) for seed in SEEDS for turn in range(2)]
    assert all(round_trip_ms > 0 and faults for round_trip_ms, faults in found)
    every = [one for _, faults in found for one in faults]
    assert {(one.fault, one.on) for one in every} == {
        (fault, on) for fault in (Fault.PAUSE, Fault.KILL) for on in CONTROL_PLANE
    }
    assert {one.at_s < COMMAND_AT_S for one in every} == {True, False}
    for _, faults in found:
        assert all(one.on != other.on or one.until_s < other.at_s for one, other in combinations(faults, 2))


def test_buckets_in_which_the_sides_differ_are_what_the_audit_must_report() -> None:
    first, second, size = 10 * BUCKET_S * 1000, 11 * BUCKET_S * 1000, BUCKET_S * 1000
    stamps = {b"a": first, b"b": first + size - 1, b"c": second, b"d": second, b"old": 0}
    source = [(0, b"old"), (1, b"a"), (2, b"b"), (3, b"c")]

    def found(*target: bytes) -> dict[int, tuple[str, int]]:
        return {
            start: what
            for (_, _, start), what in faulty_buckets(("t", 0), source, enumerate(target), stamps, first).items()
        }

    assert found(b"a", b"b", b"c") == {}, "what is older than the audit is not judged"
    assert found(b"a", b"c") == {first: ("missing", 1)}
    assert found(b"a", b"b", b"c", b"c", b"d") == {second: ("extra", 2)}
    assert found(b"a", b"b", b"d") == {second: ("altered", 0)}
    assert found(b"a", b"a", b"c") == {first: ("altered", 0)}


def test_a_position_is_exact_if_nothing_is_skipped_or_read_again() -> None:
    source, target = [(0, b"a"), (1, b"b")], [(5, b"a"), (6, b"b"), (7, b"aborted")]
    exact = {at: is_exact(position(source, target, 2, 2, at), at) for at in (5, 6, 7, 8)}
    assert exact == {5: False, 6: False, 7: True, 8: True}, "an aborted copy is given to nobody"
    assert not is_exact(position(source, target, 2, 0, 6), 6), "it skips the first"
    doubled = [*target, (8, b"a")]
    assert is_exact(position(source, doubled, 2, 1, 6), 6), "that the mirror has copied it twice is another fault"


def test_a_round_that_leaves_a_position_to_be_set_or_has_none_that_is_exact_is_not_the_last() -> None:
    def of(**positions: int) -> FollowRound:
        return FollowRound(0.0, 1.0, {**dict.fromkeys(STATES, 0), **positions}, groups=1, cpu_s=0.0, peak_mib=0)

    assert is_settled(of(exact=1, unproven=1, unknown=1))
    assert not is_settled(of(unproven=1))
    assert not any(is_settled(of(exact=1, **{state: 1})) for state in UNSETTLED)


@pytest.mark.parametrize(
    ("ends", "rounds", "aborts"),
    [
        (["abort()"], 2, 1),
        (["kill(os.getpid(), 11)"], 2, 1),
        (["abort()", "_exit(1)"], 2, 1),
        (["_exit(1)"], 1, 0),
    ],
)
def test_a_follower_that_librdkafka_ends_is_started_until_it_has_a_round_and_none_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[str], rounds: int, aborts: int
) -> None:
    monkeypatch.setattr(mirror, "AGAIN_AFTER_S", 0.01)
    row = {"began": 1.0, "ended": 2.0, "positions": {}, "groups": 0, "cpu_s": 0.0, "peak_mib": 0}
    left = tmp_path / "left"
    left.write_text("\n".join(ends), encoding="utf-8")
    program = (
        f"import os, pathlib, time; at = pathlib.Path({str(left)!r})\n"
        "end, _, rest = at.read_text().partition(chr(10))\n"
        f"if len(at.read_text()) in ({len(left.read_text())}, 0): print({json.dumps(row)!r}, flush=True)\n"
        "at.write_text(rest); exec('os.' + end if end else 'time.sleep(60)')"
    )
    follower = FollowProcess([sys.executable, "-c", program], starts_again=True)
    thread = threading.Thread(target=follower.collect)
    thread.start()
    try:
        if aborts:
            wait_until("the last process has printed a round", lambda: len(follower.rounds) == rounds)
        else:
            thread.join(30)
            assert follower.is_over
    finally:
        follower.end()
        thread.join(30)
    assert not thread.is_alive()
    assert (follower.aborts, len(follower.rounds)) == (aborts, rounds)
    assert follower.child.poll() is not None
