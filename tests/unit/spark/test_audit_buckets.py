"""The audit's verdicts: nothing is called complete that was not read on both sides, and a fault is counted exactly."""

import random
from dataclasses import replace

import pytest

from spark.audit.buckets import NOTHING, WORD, Place, ReadThrough, Rule, State, Sums, due_ms, judge, percentile

PLACE = Place("items", 0, 60_000)
RULE = Rule(bucket_ms=60_000, within_ms=30_000)
END, DUE = 120_000, 150_000
HELD = Sums(count=10, a=7, b=8, read_ms=119_000, after_ms=109_000)
COPIED = replace(HELD, read_ms=121_000, after_ms=111_000)


def read(source: int, target: int | None = None) -> ReadThrough:
    return ReadThrough(source_ms=source, target_ms=source if target is None else target)


def state(source: Sums, target: Sums, through: ReadThrough) -> State:
    return judge(PLACE, source, target, RULE, through).state


@pytest.mark.parametrize(
    ("through", "wanted"),
    [
        (read(END - 1), State.OPEN),
        (read(END), State.COMPLETE),
        (read(END, END - 1), State.OPEN),
        (read(END - 1, DUE), State.OPEN),
    ],
    ids=["before its end", "at its end", "the target is behind", "the source is behind"],
)
def test_equal_sums_are_complete_once_both_sides_were_read_beyond_the_end(through: ReadThrough, wanted: State) -> None:
    assert state(HELD, COPIED, through) is wanted


@pytest.mark.parametrize(
    ("target", "wanted", "records"),
    [
        (replace(COPIED, count=7, a=1), State.MISSING, 3),
        (Sums(), State.MISSING, 10),
        (replace(COPIED, count=12, a=1), State.EXTRA, 2),
        (replace(COPIED, a=1), State.ALTERED, 0),
        (replace(COPIED, b=1), State.ALTERED, 0),
    ],
)
def test_a_fault_is_named_when_its_time_is_over_and_counted(target: Sums, wanted: State, records: int) -> None:
    for early in (read(DUE - 1), read(DUE, DUE - 1), read(DUE - 1, DUE)):
        assert state(HELD, target, early) is State.OPEN
    found = judge(PLACE, HELD, target, RULE, read(DUE))
    assert (found.state, found.records, found.latency_ms) == (wanted, records, None)


def test_records_that_arrive_after_their_time_are_late_and_not_lost_for_good() -> None:
    assert state(HELD, replace(HELD, count=9, a=1), read(DUE + 60_000)) is State.MISSING
    held_back = replace(HELD, read_ms=DUE + 70_000, after_ms=DUE + 60_000)
    found = judge(PLACE, HELD, held_back, RULE, read(DUE + 80_000))
    assert (found.state, found.latency_ms) == (State.LATE, DUE + 70_000 - HELD.read_ms)
    assert state(HELD, replace(held_back, after_ms=DUE), read(DUE + 80_000)) is State.LATE
    assert state(HELD, replace(HELD, read_ms=DUE, after_ms=DUE - 10_000), read(DUE)) is State.COMPLETE


def test_what_arrived_while_nobody_read_is_not_late_and_has_no_latency() -> None:
    after_a_restart = replace(HELD, read_ms=DUE + 70_000, after_ms=DUE - 1)
    found = judge(PLACE, HELD, after_a_restart, RULE, read(DUE + 80_000))
    assert (found.state, found.latency_ms) == (State.COMPLETE, None)


YEAR_MS = 365 * 86_400_000
AHEAD = replace(PLACE, start_ms=PLACE.start_ms + YEAR_MS)


@pytest.mark.parametrize(
    ("target", "wanted"),
    [(COPIED, State.COMPLETE), (Sums(), State.MISSING), (replace(COPIED, count=11, a=1), State.EXTRA)],
)
def test_a_clock_that_is_a_year_ahead_keeps_no_bucket_open_for_a_year(target: Sums, wanted: State) -> None:
    newest = max(HELD.read_ms, target.read_ms)
    soon, over = read(newest + RULE.bucket_ms - 1), read(newest + RULE.bucket_ms + RULE.within_ms)
    assert judge(AHEAD, HELD, target, RULE, soon).state is State.OPEN
    assert judge(AHEAD, HELD, target, RULE, over).state is wanted


def test_a_record_with_a_time_of_next_year_that_only_the_target_has_is_extra() -> None:
    over = read(COPIED.read_ms + RULE.bucket_ms + RULE.within_ms)
    assert judge(AHEAD, Sums(), COPIED, RULE, over).state is State.EXTRA


def test_records_that_are_written_late_have_their_time_too() -> None:
    backfilled = replace(HELD, read_ms=500_000)
    assert due_ms(PLACE, backfilled, NOTHING, RULE) == 530_000
    assert state(backfilled, Sums(), read(529_999)) is State.OPEN
    assert state(backfilled, replace(HELD, read_ms=530_000), read(540_000)) is State.COMPLETE


def test_what_may_not_have_been_read_is_unknown_and_neither_lost_nor_complete() -> None:
    fewer = replace(HELD, count=9, a=1)
    found = judge(PLACE, HELD, fewer, RULE, read(DUE), ["source es-src: deleted", "x"])
    assert (found.state, found.reason) == (State.UNKNOWN, "source es-src: deleted; x")
    appended = judge(PLACE, HELD, replace(COPIED, appended=1), RULE, read(DUE))
    assert appended.state is State.UNKNOWN
    assert "message.timestamp.type" in str(appended.reason)
    assert state(replace(HELD, inexact=1), replace(COPIED, a=1), read(DUE)) is State.UNKNOWN
    assert state(replace(HELD, inexact=1), replace(COPIED, count=9, a=1), read(DUE)) is State.MISSING


def test_sums_do_not_depend_on_the_order_and_count_a_record_twice_that_is_there_twice() -> None:
    chance = random.Random(1)  # noqa: S311 - no secret is made of it
    parts = [
        Sums(1, chance.randrange(WORD), chance.randrange(WORD), number, start=number + 40, end=number + 41)
        for number in range(200)
    ]
    shuffled = chance.sample(parts, len(parts))
    whole, other = sum(parts, Sums()), sum(shuffled, Sums())
    assert whole == other
    assert (whole.count, whole.read_ms, whole.start, whole.end) == (200, 199, 40, 240)
    assert not (whole + parts[3]).equals(whole)
    doubled_for_lost = sum(parts[1:], Sums()) + parts[1]
    assert doubled_for_lost.count == whole.count
    assert not doubled_for_lost.equals(whole)


@pytest.mark.parametrize(
    ("values", "share", "wanted"), [((), 0.5, None), ((7,), 0.99, 7), (range(1, 101), 0.95, 95), ((3, 1, 2), 0.5, 2)]
)
def test_a_percentile_is_one_of_the_values(values: tuple[int, ...], share: float, wanted: int | None) -> None:
    assert percentile(values, share) == wanted
