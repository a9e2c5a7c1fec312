"""Records that retention deletes while they are read have expired; what was lost stays lost."""

from typing import Any

import pytest

from kafka.topic_partition import TopicPartition
from spark.comparison.findings import Finding, PartitionResult, Run, Sample
from spark.comparison.retention import expired_meanwhile, overtaken

from ...support.compared_logs import TOPIC, Sizes, found_without_spark
from ...support.expired_logs import kept, log
from ...support.oracle import Logs

PLACE = TopicPartition("items", 0)


def judged(
    kind: str, *runs: Run, source_now: int = 0, target_now: int = 0, **changes: Any
) -> tuple[dict[str, int], list[Finding]]:
    """Counts by kind, and the findings, of a partition with 100 to 200 at the source and 0 to 100 on the target."""
    count = sum(run.records for run in runs)
    source = kind == "lost"
    samples = tuple(Sample(run.first if source else None, None if source else run.first, "ab" * 32) for run in runs)
    fields: dict[str, Any] = {"source_start": 100, "cut": 200, "target_start": 0, "target_end": 100} | changes
    finding = Finding(kind, *PLACE, count, samples, tuple(runs))
    result = PartitionResult(*PLACE, findings=[finding, *fields.pop("more", [])], **fields)
    (found,) = expired_meanwhile([result], {PLACE: source_now}, {PLACE: target_now})
    return {one.kind: one.count for one in found.findings}, found.findings


def test_a_head_that_the_target_deleted_meanwhile_has_expired() -> None:
    counts, _ = judged("lost", Run(100, 109, 10, "head"), target_now=10)
    assert counts == {"expired_at_target": 10}


def test_a_head_is_lost_while_the_target_deleted_nothing() -> None:
    counts, _ = judged("lost", Run(100, 109, 10, "head"), source_now=150)
    assert counts == {"lost": 10}


def test_no_more_has_expired_than_the_start_moved_by() -> None:
    counts, (lost, _) = judged("lost", Run(100, 129, 30, "head"), target_now=10)
    assert counts == {"lost": 20, "expired_at_target": 10}
    assert lost.runs == (Run(110, 129, 20, "head"),)
    assert lost.samples == ()


def test_a_gap_above_the_new_start_stays_lost() -> None:
    counts, _ = judged("lost", Run(150, 154, 5, "gap"), target_now=40)
    assert counts == {"lost": 5}


def test_a_gap_below_the_new_start_has_expired() -> None:
    counts, _ = judged("lost", Run(110, 114, 5, "gap"), target_now=40)
    assert counts == {"expired_at_target": 5}


def test_a_gap_is_placed_by_the_last_offsets_known_to_correspond() -> None:
    near = {"anchors": [(140, 20)]}  # the target lacks the source's first 20 records: 150 lies at 30
    counts, _ = judged("lost", Run(150, 154, 5, "gap"), target_now=40, **near)
    assert counts == {"expired_at_target": 5}


def test_one_loss_may_have_expired_and_another_not() -> None:
    counts, (lost, _) = judged("lost", Run(100, 104, 5, "head"), Run(190, 199, 10, "tail"), target_now=5)
    assert counts == {"lost": 10, "expired_at_target": 5}
    assert lost.runs == (Run(190, 199, 10, "tail"),)
    assert [sample.source_offset for sample in lost.samples] == [190]


def test_what_the_source_deleted_meanwhile_is_not_foreign() -> None:
    counts, _ = judged("foreign", Run(0, 9, 10), source_now=110)
    assert counts == {"expired_at_source": 10}


def test_a_record_that_the_source_never_had_stays_foreign() -> None:
    counts, _ = judged("foreign", Run(60, 60, 1), source_now=110)
    assert counts == {"foreign": 1}


def test_what_had_expired_before_is_added() -> None:
    before = Finding("expired_at_target", *PLACE, 7)
    counts, _ = judged("lost", Run(100, 102, 3, "head"), target_now=3, more=[before])
    assert counts == {"expired_at_target": 10}


def test_an_overlap_that_was_deleted_as_a_whole_is_no_fault() -> None:
    counts, _ = judged("no_overlap", Run(100, 199, 100), target_now=100)
    assert counts == {"expired_at_target": 100}


def test_logs_that_did_not_move_and_other_findings_are_left_alone() -> None:
    counts, _ = judged("altered", Run(100, 100, 1), source_now=100, target_now=0)
    assert counts == {"altered": 1}
    counts, _ = judged("altered", Run(100, 100, 1), source_now=200, target_now=100)
    assert counts == {"altered": 1}


def test_a_doubled_record_was_read_on_both_sides_and_never_expires() -> None:
    counts, _ = judged("doubled", Run(1, 3, 3), source_now=150)
    assert counts == {"doubled": 3}


def test_a_head_is_lost_while_the_target_deleted_only_what_is_older() -> None:
    older = {"more": [Finding("expired_at_source", *PLACE, 50)], "target_start": 50, "target_end": 190}
    counts, _ = judged("lost", Run(100, 109, 10, "head"), target_now=100, **older)
    assert counts == {"lost": 10, "expired_at_source": 50}
    counts, _ = judged("lost", Run(100, 109, 10, "head"), target_now=104, **older)
    assert counts == {"lost": 6, "expired_at_source": 50, "expired_at_target": 4}


def test_a_foreign_record_stays_foreign_while_the_source_deleted_only_what_is_older() -> None:
    older = {"more": [Finding("expired_at_target", *PLACE, 20)]}
    counts, _ = judged("foreign", Run(0, 0, 1), source_now=120, **older)
    assert counts == {"foreign": 1, "expired_at_target": 20}


def test_records_without_an_overlap_are_counted_once() -> None:
    lost = Finding("lost", *PLACE, 100, (), (Run(100, 199, 100, "whole"),))
    counts, _ = judged("no_overlap", Run(100, 199, 100), target_now=100, more=[lost])
    assert counts == {"expired_at_target": 100}
    counts, _ = judged("no_overlap", Run(100, 199, 100), target_start=90, target_now=100, more=[lost])
    assert counts == {"lost": 90, "expired_at_target": 10}


# What was read is the evidence: a log that was read in full up to its new start had removed nothing before.
WHILE_READ: dict[str, tuple[Logs, dict[str, int]]] = {
    "a head that was lost": (Logs(source=kept(0, 100), target=log(range(10, 100)), cut=100), {"lost": 10}),
    "a gap that was lost": (Logs(source=kept(0, 100), target=log(range(50), range(60, 100)), cut=100), {"lost": 10}),
    "foreign records": (
        Logs(source=kept(0, 100), target=log(range(50), range(950, 955), range(50, 100)), cut=100),
        {"foreign": 5},
    ),
    "logs without an overlap": (
        Logs(source=kept(0, 40), target=log(range(900, 940)), cut=40),
        {"foreign": 40, "lost": 40, "no_overlap": 40},
    ),
    "deleted before it was read": (Logs(source=kept(0, 100), target=kept(30, 100), cut=100), {"expired_at_target": 30}),
    "deleted in the middle of the reading": (
        Logs(source=kept(0, 100), target=[*kept(0, 20), *kept(60, 100)], cut=100),
        {"expired_at_target": 40},
    ),
    "deleted at the source in the middle of the reading": (
        Logs(source=[*kept(0, 20), *kept(60, 100)], target=kept(0, 100), cut=100),
        {"expired_at_source": 40},
    ),
    "lost in front of what was deleted": (
        Logs(source=kept(0, 100), target=[*log(range(5, 20)), *log(range(60, 100), first=55)], cut=100),
        {"expired_at_target": 40, "lost": 5},
    ),
}


@pytest.mark.parametrize("bits", [0, 2, 11])
@pytest.mark.parametrize("name", WHILE_READ)
def test_what_was_read_in_full_had_lost_its_records_before_it_deleted_any(name: str, bits: int) -> None:
    logs, wanted = WHILE_READ[name]
    tp = TopicPartition(TOPIC, 0)
    (result,), _ = found_without_spark({0: logs}, Sizes(bits=bits))
    (found,) = expired_meanwhile([result], {tp: min(70, logs.cut)}, {tp: 70})
    assert {one.kind: one.count for one in found.findings} == wanted


def undecided(
    position: int | None, *, copied: int, read: range, source_now: int = 800, known: bool = True
) -> str | None:
    """What is undecided of a partition with offsets 0 to 999 at the source, when its log begins at `source_now`.

    The target has so many of its first records and those that were read at the source, in which a run found no fault.
    """
    left = Run(0, min(copied, read.start) - 1, min(copied, read.start))
    findings = [Finding("foreign", *PLACE, left.records, (), (left,))] if left.records > 0 else []
    runs = [Run(read.start, read.stop - 1, len(read))] if known else None
    compared = PartitionResult(
        *PLACE, 0, 1000, 0, 1000, len(read), left.records + len(read), len(read), findings, read_at_source=runs
    )
    judged = expired_meanwhile([compared], {PLACE: source_now}, {PLACE: 0})
    assert [one.kind for one in judged[0].findings] == ["expired_at_source"] * len(findings)
    (found,) = overtaken([compared], judged, {} if position is None else {PLACE: position}, {PLACE: source_now})
    return found.undecided


@pytest.mark.parametrize("position", [499, None])
def test_what_the_source_deleted_before_the_mirror_and_the_run_had_read_it_is_unknown(position: int | None) -> None:
    words = "source offsets up to 799 were deleted before this run read them"
    assert (undecided(position, copied=500, read=range(800, 1000)) or "").startswith(f"300 {words}")
    assert undecided(position, copied=800, read=range(800, 1000)) is None, "all of it has expired, and was copied"


def test_what_lay_behind_the_mirrors_position_at_the_cut_is_not_asked_for() -> None:
    assert undecided(799, copied=500, read=range(800, 1000)) is None
    assert undecided(798, copied=500, read=range(800, 1000)) is None, "an offset may be a marker"
    assert undecided(797, copied=500, read=range(800, 1000)) is not None


@pytest.mark.parametrize("known", [True, False])
def test_what_this_run_has_read_at_the_source_is_not_unknown(known: bool) -> None:
    assert undecided(499, copied=0, read=range(1000), known=known) is None
    assert undecided(499, copied=0, read=range(10, 1000), known=known) is not None
