"""Stranded records come to the target, and their partitions are emptied only when nothing can be lost by that."""

import io
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from rich.console import Console

from kafka.errors import Answers
from kafka.topic_metadata import PartitionState, TopicState
from ops.errors import OpsError
from ops.recovery import failback_command, mirror_context, stranded_records
from ops.recovery.stranded_records import EMPTYING
from tests.support.failback_sides import FOUND, ITEMS, NONE, PROOF, STORE, STRANDED, Sides, work
from tests.support.recovery_pair import entry, known


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


def test_without_stranded_records_nothing_is_settled(sides: Sides) -> None:
    assert work(**NONE).settle() == {"records": 0}
    assert (sides.declared, sides.source.admin.changes, sides.altered) == ([], [], {})


def test_what_was_copied_and_not_committed_is_not_copied_again_when_the_rest_is(sides: Sides) -> None:
    sides.altered[STORE] = 4
    survey = {**STRANDED["survey"], "copied": {"items-0": 11}}
    names = [step.name for step in work().steps()]
    assert names[names.index("survey") :][:3] == ["survey", "realign", "settle"]
    assert work(survey=survey).realign() == {"partitions": 1}
    assert sides.altered == {ITEMS: 11, STORE: 4}
    assert work(survey=survey).settle()["records"] == 3
    assert sides.altered == {ITEMS: 11, STORE: 4}, "settling again would rewind what it has copied meanwhile"
    assert sides.declared[0] == {"failback": "settling", "state": "running"}


def test_partitions_are_emptied_only_after_the_target_was_proven_to_hold_them(sides: Sides) -> None:
    assert work(**STRANDED).settle()["records"] == 3
    assert sides.source.admin.changes == [(*ITEMS, 13)]
    assert sides.declared == [{"failback": "settling", "state": "running"}, {}, {"state": "stopped"}, {}]
    assert sides.ups == [None, None]


def test_the_proof_before_partitions_are_emptied_sends_no_canary_into_them(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling = known(active="target", failback="settling")
    monkeypatch.setattr(mirror_context, "load", lambda *_: settling)
    work(**STRANDED).settle()
    assert sides.proven == [settling]


def finding(kind: str, count: int = 2) -> dict[str, Any]:
    return {**FOUND, "findings": [{"kind": kind, "count": count}]}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (finding("lost"), "2 lost"),
        (finding("expired_at_target"), "2 expired_at_target"),
        ({**FOUND, "compared": 0}, "nothing of it was compared"),
        ({**FOUND, "partition": 1}, "nothing of it was compared"),
    ],
    ids=["lost", "let go", "not compared", "another partition"],
)
def test_records_that_the_target_does_not_surely_hold_are_not_deleted(
    sides: Sides, row: dict[str, Any], expected: str
) -> None:
    sides.proof = replace(PROOF, partitions=(row,))
    with pytest.raises(OpsError) as caught:
        work(**STRANDED).settle()
    assert str(caught.value) == (
        "mirror mm2: the target must hold every record of partitions that are emptied at the source (got items-0: "
        f"{expected}). See report.html; nothing was deleted. Where its retention was shorter, raise it, or keep these "
        "records elsewhere and delete them at the source."
    )
    assert sides.source.admin.changes == []


def emptied(ends: dict[str, int]) -> dict[str, Any]:
    return {**STRANDED, EMPTYING: {"ends": ends}}


def test_what_is_emptied_is_noted_before_the_first_record_is_deleted(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = work(**STRANDED)
    monkeypatch.setattr(stranded_records, "delete_records", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        done.settle()
    assert done.journal.steps[EMPTYING]["ends"] == {"items-0": 13}


def test_a_failback_that_was_killed_behind_the_deletion_goes_on(sides: Sides) -> None:
    sides.source.begin[ITEMS] = 13
    sides.proof = replace(PROOF, partitions=({**FOUND, "compared": 0},))
    assert work(**emptied({"items-0": 13})).settle()["records"] == 3
    assert sides.source.admin.changes == [(*ITEMS, 13)]


@pytest.mark.parametrize(("begin", "end"), [(12, 13), (13, 14)], ids=["not emptied", "written to since"])
def test_a_partition_with_records_at_the_source_needs_a_proof_also_if_it_was_emptied_before(
    sides: Sides, begin: int, end: int
) -> None:
    sides.source.begin[ITEMS], sides.source.log[ITEMS] = begin, end
    sides.proof = replace(PROOF, partitions=({**FOUND, "compared": 0},))
    with pytest.raises(OpsError, match="nothing of it was compared"):
        work(**emptied({"items-0": 13})).settle()
    assert sides.source.admin.changes == []


@pytest.mark.parametrize("ends", [{}, {"items-0": 12}], ids=["emptied by somebody else", "made again"])
def test_records_that_somebody_else_has_deleted_keep_nobody_from_going_on_and_are_not_called_brought_over(
    sides: Sides, ends: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    sides.source.begin[ITEMS] = 13
    sides.proof = replace(PROOF, partitions=({**FOUND, "compared": 0},))
    found = work(**emptied(ends)).settle()
    assert (found["records"], found["deletedUnproven"]) == (0, 3)
    assert "deleted at the source before they were found on the target: items-0: 3 offsets" in capsys.readouterr().out


def test_a_failback_whose_records_were_deleted_unproven_claims_no_loss_and_no_success() -> None:
    done: dict[str, Any] = {
        "mirror": "mm2",
        "switchedAt": "now",
        "verification": {"recordsCompared": 1},
        "recordsBroughtOver": 0,
        "recordsDeletedUnproven": 2,
        "recordsLost": 0,
        "stranded": {},
        "strandedWhy": None,
        "groups": {},
        "clientsSecret": "",
    }
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(failback_command.summary(done))
    shown = " ".join(console.export_text().split())
    assert "! 2 records that only the source had were deleted there before they were found on the target." in shown
    assert "No record was lost" not in shown
    assert failback_command.unsettled(done)


def test_what_is_found_where_nothing_is_emptied_keeps_nobody_from_going_on(sides: Sides) -> None:
    elsewhere = {**finding("lost"), "topic": STORE[0], "partition": STORE[1]}
    sides.proof = replace(PROOF, verdict="fail", failed=("records_complete",), partitions=(FOUND, elsewhere))
    assert work(**STRANDED).settle()["records"] == 3


def test_records_that_came_after_the_proof_are_not_deleted(sides: Sides) -> None:
    sides.drained["items-0"] = 12
    with pytest.raises(OpsError, match=r"got more than was verified in items-0.*nothing was deleted"):
        work(**STRANDED).settle()
    assert sides.source.admin.changes == []


def test_partitions_that_will_be_emptied_are_counted_for_the_plan_before_anything_is_changed(sides: Sides) -> None:
    sides.source.begin[ITEMS] = 4
    assert work().to_be_emptied() == {"items-0": 9}
    assert work(**STRANDED).to_be_emptied() == {"items-0": 13}, "survey has found it, and is not done twice"
    assert work(**STRANDED, settle={"records": 3}).to_be_emptied() == {}
    done = work()
    assert done.journal.entry is not None
    done.journal.entry = {**entry(**done.journal.entry["before"]["steps"])}  # nobody has begun: the failover's own
    assert done.to_be_emptied() == {"items-0": 9}
    assert (sides.declared, sides.source.admin.changes, sides.altered) == ([], [], {})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (PartitionState(3, 2), "items-0 is under-replicated: 2 of 3 replicas in sync"),
        (PartitionState(1, 1, online=False), "items-0 is offline: no leader"),
        (None, "items-0 is not there"),
        ("it may not be described", "items it may not be described"),
    ],
)
def test_nothing_is_emptied_while_the_target_is_under_replicated(
    sides: Sides, found: PartitionState | str | None, expected: str
) -> None:
    if isinstance(found, str):
        sides.replicas = Answers(refused={"items": found})
    else:
        sides.replicas = Answers(found={"items": TopicState("items", {} if found is None else {0: found})})
    for begun in (work().to_be_emptied, work(**STRANDED).settle):
        with pytest.raises(OpsError) as caught:
            begun()
        assert str(caught.value) == (
            "target rt-inventory-stg: partitions that are emptied at the source must have all of their replicas in "
            f"sync (got {expected}): until they return the target has their only copy. Wait until its brokers run and "
            "have caught up, then run the command again; nothing was deleted."
        )
    assert sides.source.admin.changes == []
    sides.source.log[ITEMS] = 10
    assert work().to_be_emptied() == {}, "nothing is emptied: replicas do not matter"


def test_a_refused_deletion_is_reported_with_the_right_that_is_missing(sides: Sides) -> None:
    sides.source.admin.refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(OpsError, match="Give user es-src-user Delete on the topic"):
        work(**STRANDED).settle()
