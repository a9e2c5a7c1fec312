"""What the mirror's position has not passed is behind; what it has passed and is missing is lost."""

from types import SimpleNamespace
from typing import Any

import pytest

from contract.documents import parse
from kafka.connector_status import ConnectorState
from kafka.lag import Lag, Measure, PartitionLag
from kafka.mirror_position import CutState
from kafka.open_transactions import OpenTransaction
from kafka.topic_partition import TopicPartition
from spark import job
from spark.checks.records import records_complete
from spark.checks.registry import judge
from spark.comparison.classification import records_behind
from spark.comparison.findings import Finding, PartitionResult, Run, Sample
from spark.run_context import RunContext

PLACE = TopicPartition("items", 0)
SOURCE = "a->b.MirrorSourceConnector"


def finding(kind: str, *runs: Run, count: int | None = None, samples: tuple[int, ...] = ()) -> Finding:
    number = sum(run.records for run in runs) if count is None else count
    return Finding(kind, *PLACE, number, tuple(Sample(at, None, "ab" * 32) for at in samples), runs)


def partition(*findings: Finding) -> PartitionResult:
    fields: dict[str, Any] = {"source_start": 0, "cut": 100, "target_start": 0, "target_end": 50}
    return PartitionResult(*PLACE, **fields, source_records=100, compared=50, findings=list(findings))


def divided(*findings: Finding, position: int | None = None, compacted: bool = False) -> dict[str, Finding]:
    positions = {} if position is None else {PLACE: position}
    (found,) = records_behind([partition(*findings)], positions, {PLACE} if compacted else ())
    assert len({one.kind for one in found.findings}) == len(found.findings)
    return {one.kind: one for one in found.findings}


def counts(*findings: Finding, **known: Any) -> dict[str, int]:
    return {kind: one.count for kind, one in divided(*findings, **known).items()}


TAIL = Run(50, 99, 50, "tail")
GAP = Run(20, 24, 5, "gap")


def test_a_tail_that_the_position_has_not_passed_is_behind() -> None:
    found = divided(finding("lost", TAIL, samples=(50, 51)), position=49)
    assert found == {"behind": finding("behind", TAIL, samples=(50, 51))}


def test_a_partition_that_the_mirror_has_not_begun_is_behind() -> None:
    assert counts(finding("lost", Run(0, 99, 100, "whole"))) == {"behind": 100}


def test_a_tail_that_the_position_has_passed_is_lost() -> None:
    assert counts(finding("lost", TAIL), position=99) == {"lost": 50}


def test_what_is_missing_below_the_position_is_lost_beside_what_is_behind() -> None:
    found = divided(finding("lost", GAP, TAIL, samples=(20, 55, 70)), position=59)
    lost, behind = found["lost"], found["behind"]
    assert (lost.count, lost.runs) == (15, (GAP, Run(50, 59, 10, "tail")))
    assert [one.source_offset for one in lost.samples] == [20, 55]
    assert (behind.count, behind.runs) == (40, (Run(60, 99, 40, "tail"),))
    assert [one.source_offset for one in behind.samples] == [70]


def test_a_gap_above_the_position_is_lost_for_a_later_record_has_arrived() -> None:
    assert counts(finding("lost", GAP), position=10) == {"lost": 5}


@pytest.mark.parametrize("position", range(50, 99))
def test_a_run_with_holes_keeps_a_record_on_either_side_of_the_position(position: int) -> None:
    found = counts(finding("lost", Run(50, 99, 3, "tail")), position=position)
    assert found["lost"] >= 1
    assert found["behind"] >= 1
    assert sum(found.values()) == 3


def test_what_may_be_lost_of_a_run_with_holes_is_not_called_behind_and_no_exact_number() -> None:
    """Nine records of 0 to 8 and one of 1000, between them aborted ones: the position is in between."""
    samples = tuple(range(9))
    assert counts(finding("lost", Run(0, 1000, 10, "tail"), samples=samples), position=990) == {"lost": 9, "behind": 1}
    result = partition(finding("lost", Run(0, 1000, 10, "tail")))
    cut = CutState(positions={PLACE: 990}, behind=[PLACE], waited_s=5)
    assert records_complete(records_behind([result], {PLACE: 990}, ()), cut).observed.startswith(
        "about 9 lost in items-0 (tail, source offsets 0 to 990); about 1 behind in items-0 (tail, source offsets 991"
    )
    known = partition(finding("lost", Run(0, 1000, 10, "tail"), samples=samples))
    assert records_complete(records_behind([known], {PLACE: 990}, ()), cut).observed.startswith("9 lost in items-0")
    assert [run.document() for run in divided(finding("lost", Run(0, 9, 3, "tail")), position=5)["lost"].runs] == [
        {"first": 0, "last": 5, "records": 2, "where": "tail"}
    ]


def test_without_a_known_position_nothing_is_behind() -> None:
    one = partition(finding("lost", TAIL))
    assert records_behind([one], None, ()) == [one]


def test_a_target_that_holds_only_foreign_records_has_no_lack_of_overlap_while_the_mirror_is_behind() -> None:
    whole = finding("lost", Run(0, 99, 100, "whole"))
    found = counts(whole, finding("foreign", count=3), finding("no_overlap", count=100))
    assert found == {"behind": 100, "foreign": 3}


def test_a_newer_record_of_a_key_that_is_not_copied_yet_is_behind_in_a_compacted_topic() -> None:
    older = finding("altered", count=2, samples=(60, 70))
    missing = finding("lost", count=1, samples=(80,))
    assert counts(older, missing, position=59, compacted=True) == {"behind": 3}
    assert counts(older, missing, position=60, compacted=True) == {"altered": 2, "behind": 1}
    assert counts(older, position=59) == {"altered": 2}


def test_the_check_says_how_many_are_behind_and_what_the_mirror_was_doing() -> None:
    side = {"client_config": {"bootstrap.servers": "h:1"}}
    request = parse({"source": side | {"alias": "a"}, "target": side | {"alias": "b"}, "mirror": {"topics": ["x"]}}, {})
    late = records_behind([partition(finding("lost", TAIL))], {PLACE: 49}, ())
    context = RunContext(
        request=request, partitions=late, cut=CutState(positions={PLACE: 49}, behind=[PLACE], waited_s=120.2)
    )

    def observed(states: list[ConnectorState] | None) -> str:
        context.connectors = states
        (check,) = [one for one in judge(context) if one.name == "records_complete"]
        assert check.ok is False
        assert "lost" not in check.observed
        return check.observed

    said = "50 behind in items-0 (tail, source offsets 50 to 99); behind: not copied after 120 s of waiting, "
    assert observed(None) == said + "what its connectors did is not known"
    ran = [ConnectorState(SOURCE, "RUNNING", ("RUNNING",))]
    assert observed(ran) == said + "its connectors and tasks ran when the wait ended"
    stuck = ConnectorState(SOURCE, "RUNNING", ("RUNNING", "UNASSIGNED"))
    assert observed([stuck]) == said + f"task 1 of {SOURCE} is UNASSIGNED"


def test_the_job_counts_a_tail_as_behind_by_the_position_that_its_wait_ended_with() -> None:
    side = SimpleNamespace(starts=lambda topic_partitions: dict.fromkeys(topic_partitions, 0))
    cut = CutState({PLACE: 100}, positions={PLACE: 49})
    context = SimpleNamespace(partitions=[partition(finding("lost", TAIL))], cut=cut, warnings=[])
    run: Any = SimpleNamespace(context=context, meter=None, reader=None, source=side, target=side, starts={PLACE: 0})
    job._Run.read_again(run, [])
    (found,) = context.partitions
    assert [(one.kind, one.count) for one in found.findings] == [("behind", 50)]


@pytest.mark.parametrize(("copied", "known"), [(49, False), (79, True)])
def test_the_job_knows_by_the_position_at_the_cut_whether_retention_has_overtaken_the_mirror(
    copied: int, known: bool
) -> None:
    """The source's log begins at 80 when the run has read 80 to 99, of which the target has copies alone."""
    source, target = (SimpleNamespace(starts=lambda held, at=at: dict.fromkeys(held, at)) for at in (80, 0))
    part = PartitionLag(
        topic=PLACE.topic, partition=PLACE.partition, position=copied, source_end=100, records=0, seconds=0
    )
    meter = SimpleNamespace(at_end=lambda: None, lag=Lag(at_cut=Measure(at_s=0.0, partitions=(part,))))
    read = [Run(80, 99, 20)]
    compared = PartitionResult(*PLACE, 0, 100, 0, 20, 20, 20, 20, read_at_source=read)
    context = SimpleNamespace(partitions=[compared], cut=CutState({PLACE: 100}, positions={PLACE: 99}), warnings=[])
    run: Any = SimpleNamespace(
        context=context, meter=meter, reader=None, source=source, target=target, starts={PLACE: 0}
    )
    job._Run.read_again(run, [])
    (found,) = context.partitions
    assert (found.undecided is None) is known


@pytest.mark.parametrize("why", ["its first record is old", ""])
def test_the_job_leaves_a_partition_open_in_which_a_transaction_may_hang_and_warns_of_one_that_goes_on(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = PartitionResult(*PLACE, 0, 50, 0, 50)
    context = SimpleNamespace(partitions=[earlier], warnings=[])
    monkeypatch.setattr(job, "still_open", lambda *_: [OpenTransaction(PLACE, 50, 69, why)])
    run: Any = SimpleNamespace(context=context, source=None, cut={PLACE: 50}, written={PLACE: 70})
    job._Run.look_at_transactions(run)
    (found,) = context.partitions
    assert bool(found.undecided) is bool(why)
    assert (context.warnings == []) is bool(why)
    assert "source offsets 50 to 69 are not judged" in (found.undecided or context.warnings[0])
