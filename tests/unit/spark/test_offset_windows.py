"""Windows of offsets: which partitions they compare, what they prove, and that Spark sums up what is expected."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kafka.group_positions import GroupPosition
from spark.comparison import logs as partition
from spark.comparison.compare import Comparison
from spark.comparison.offset_ranges import (
    DIFFERING_MAX,
    SHIFTS_MAX,
    OffsetRange,
    Sums,
    by_shift,
    pieces_of_windows,
    shift_of,
)
from spark.comparison.spark_engine import SparkEngine
from spark.progress import Progress

from ...support import oracle
from ...support.compared_logs import (
    TOPIC,
    Brokers,
    Lists,
    Sizes,
    found_without_spark,
    no_spark,
    window_sums,
)
from ...support.generated_cases import cases
from ...support.oracle import Log, Logs
from ...support.spark_logs import reader
from .test_truth import altered, check, positioned, unique

SHIFTED = OffsetRange(
    topic="t", partition=0, source_start=5, cut=15, source_end=15, target_topic="t", target_start=2, target_end=12
)


class NoChunks(Lists):
    """An engine that compares by windows alone."""

    def scan(self, *_: object) -> dict[str, dict[tuple[str, int], list[object]]]:
        raise AssertionError("chunks are asked for")


def log(count: int, start: int = 0) -> Log:
    return [(start + number, unique(number)) for number in range(count)]


def summed(held: Log, shift: int = 0) -> Sums:
    """The sums of windows of four offsets."""
    return window_sums([((TOPIC, 0), *row) for row in held], shift, 2).get((TOPIC, 0), {})


def by_windows(logs: Logs, window_bits: int = 2) -> dict[str, int]:
    """What a comparison finds that needs no chunks."""
    engine = NoChunks(Brokers({0: logs}), Sizes(window_bits=window_bits))
    (result,), _ = found_without_spark({0: logs}, Sizes(), engine=engine)
    return {one.kind: one.count for one in result.findings}


def test_ranges_of_one_length_are_one_shift_apart() -> None:
    assert shift_of(SHIFTED) == -3
    assert shift_of(replace(SHIFTED, target_end=13)) is None
    assert shift_of(replace(SHIFTED, source_end=16)) is None
    assert shift_of(replace(SHIFTED, source_end=10, pending_end=15)) == -3
    assert shift_of(replace(SHIFTED, cleaned_at_target=True)) is None
    assert shift_of(replace(SHIFTED, source_start=15, target_end=2)) is None


def test_the_shifts_of_the_most_records_are_compared_by_windows() -> None:
    ranges = [replace(SHIFTED, partition=at, target_start=at, target_end=at + 10) for at in range(SHIFTS_MAX + 1)]
    ranges.append(replace(SHIFTED, partition=99, target_start=SHIFTS_MAX, target_end=SHIFTS_MAX + 10))
    found = by_shift(ranges)
    assert len(found) == SHIFTS_MAX
    assert found[SHIFTS_MAX - 5] == [(TOPIC, SHIFTS_MAX), (TOPIC, 99)]


def test_equal_windows_need_no_chunks_whatever_the_shift_and_wherever_the_cut() -> None:
    for start in (0, 1, 7):
        for cut in range(1, 31):
            logs = Logs(source=log(30), target=log(30, start), cut=cut, target_start=start)
            assert by_windows(logs) == {}
            parts = log(cut), log(30)[cut:], log(30, start)
            sums = [summed(part, shift) for part, shift in zip(parts, (0, 0, start), strict=True)]
            found = partition.Logs(cut, *(pieces_of_windows(*sums) or ()))
            assert (found.stretches, found.compared) == ([], cut)


def test_few_windows_that_differ_are_compared_record_by_record() -> None:
    records = log(60)
    for at in range(59):
        target = list(records)
        target[at] = (at, altered(target[at][1], "timestamp", at))
        assert by_windows(Logs(source=records, target=target, cut=60)) == {"altered": 1}
        target = list(records)
        target[at], target[at + 1] = (at, records[at + 1][1]), (at + 1, records[at][1])
        assert by_windows(Logs(source=records, target=target, cut=60)) == {"out_of_order": 1}


def test_many_windows_that_differ_are_compared_by_chunks() -> None:
    records, strange = log(60), [(59, unique(99))]
    target = [*((offset - 1, record) for offset, record in records[1:]), *strange]
    logs = Logs(source=records, target=target, cut=60)
    with pytest.raises(AssertionError, match="chunks are asked for"):
        by_windows(logs)
    check({0: logs}, Sizes())


def test_so_many_windows_may_differ_and_no_more() -> None:
    source = log(60)
    for differing in (DIFFERING_MAX, DIFFERING_MAX + 1):
        target = [(at, unique(99) if at % 4 == 0 and at < 4 * differing else one) for at, one in source]
        assert (pieces_of_windows(summed(source), {}, summed(target)) is None) == (differing > DIFFERING_MAX)


@st.composite
def of_one_length(draw: st.DrawFn) -> Logs:
    """Logs of one length with faults, holes at the same places, a cut and a shift."""
    size = draw(st.integers(2, 60))
    source = [(at, record) for at, record in log(size) if at in (0, size - 1) or draw(st.integers(0, 5))]
    records = [record for _, record in source]
    for at in draw(st.lists(st.integers(0, len(records) - 1), max_size=3)):
        kind = draw(st.sampled_from(["alter", "swap", "replace"]))
        if kind == "alter":
            records[at] = altered(records[at], "timestamp", at)
        elif kind == "swap":
            records[at - 1], records[at] = records[at], records[at - 1]
        else:
            records[at] = unique(100 + at)
    start = draw(st.sampled_from([0, 1, 13]))
    target = [(at + start, record) for (at, _), record in zip(source, records, strict=True)]
    return Logs(source=source, target=target, cut=draw(st.integers(1, size)), target_start=start)


SIZES = st.builds(Sizes, window_bits=st.sampled_from([0, 1, 2, 3, 11]), large=st.sampled_from([3, 99]))


@cases(60)
@given(of_one_length(), SIZES)
def test_faults_in_logs_of_one_length_are_found(logs: Logs, sizes: Sizes) -> None:
    truth = oracle.judge({0: logs})[0]
    (result,), _ = found_without_spark({0: logs}, sizes)
    assert {one.kind: one.count for one in result.findings} == truth.counts()
    assert result.compared == truth.compared


@cases(60)
@given(of_one_length(), st.integers(0, 70), st.integers(0, 80))
def test_positions_are_exact(logs: Logs, committed: int, synced: int) -> None:
    at_source = {record for _, record in logs.source}
    known = [(at, record) for at, record in logs.target if record in at_source]
    if len(known) == len({record for _, record in known}) == len(logs.target):
        positioned(logs, committed, synced, bits=2)


def test_anchors_lie_up_to_the_cut() -> None:
    logs = Logs(source=log(30), target=log(30, 4), cut=17, target_start=4)
    (result,), _ = found_without_spark({0: logs}, Sizes(window_bits=2))
    assert result.anchors == [(at, at + 4) for at in range(0, 17, 4)]


def same(spark: SparkSession, patch: pytest.MonkeyPatch, partitions: dict[int, Logs]) -> list[dict[str, int]]:
    """What Spark finds by windows, which must be what lists say."""
    made, _ = reader(spark, patch, partitions)
    patch.setattr(SparkEngine, "scan", no_spark)
    found = Comparison(made, no_spark).run(groups(), Progress())
    truths, positions = found_without_spark(partitions, Sizes(window_bits=11), groups())
    assert [(one.compared, one.source_records, one.target_records) for one in found.partitions] == [
        (one.compared, one.source_records, one.target_records) for one in truths
    ]
    assert found.groups == positions
    return [{one.kind: one.count for one in result.findings} for result in found.partitions]


def groups() -> Sequence[GroupPosition]:
    return [GroupPosition(group="g", topic=TOPIC, partition=0, committed=at, synced=at) for at in (0, 9, 25)]


def test_spark_finds_equal_what_is_equal_and_the_window_of_what_is_not(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = [one for one in log(40) if one[0] != 20]
    moved = [(at + 3, record) for at, record in source]
    swapped = [*moved[:10], (moved[10][0], moved[11][1]), (moved[11][0], moved[10][1]), *moved[12:]]
    partitions = {
        0: Logs(source=source, target=source, cut=23),
        1: Logs(source=source, target=moved, cut=40, target_start=3),
        2: Logs(source=source, target=swapped, cut=40, target_start=3),
        3: Logs(source=source, target=[*source[:5], (5, unique(99)), *source[6:]], cut=40),
    }
    assert same(spark, monkeypatch, partitions) == [{}, {}, {"out_of_order": 1}, {"lost": 1, "foreign": 1}]
