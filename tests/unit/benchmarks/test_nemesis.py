"""The faults of a nemesis: the same for a seed, within the time, never two at once on one target."""

from itertools import combinations

import pytest

from benchmarks.nemesis.schedule import TARGETS, Fault, ScheduledFault, schedule
from benchmarks.truth import Ledger

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


def test_a_record_acknowledged_without_an_offset_is_looked_for_in_the_log() -> None:
    ledger, tp = Ledger(), ("items", 0)
    ledger.add(tp, 0, b"on")
    for content in (b"on", b"once", b"gone"):
        ledger.add(tp, None, content)
    log = [(0, b"on"), (1, b"once"), (2, b"on"), (3, b"not acknowledged yet")]
    assert ledger.place(tp, lambda: log) == 1, "an acknowledged record is not there"
    assert sorted(ledger.committed[tp]) == log[:3]
    assert ledger.unplaced[tp] == [b"gone"]
