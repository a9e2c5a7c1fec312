"""What the steps of a failover do to made-up clusters: what is measured, stopped, set, and said to be lost."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from ops.recovery.failover import PLANNED, UNPLANNED, Failover
from tests.support.failover_sides import COPIED, DRAINED, ITEMS, OFFSETS, STOPPED, STORE, Sides, rows, work
from tests.support.recovery_pair import Kept, Side, known


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


def names(done: Failover) -> list[str]:
    return [step.name for step in done.steps()]


def test_nothing_is_changed_before_the_mirror_is_stopped(sides: Sides) -> None:
    for path in (PLANNED, UNPLANNED):
        done = work(path)
        for step in done.steps()[: names(done).index("stop")]:
            step.action()
    assert (sides.declared, sides.ups, sides.target.admin.changes) == ([], [], [])
    assert names(work(UNPLANNED)) == ["measure", "stop", "offsets", "switch", "confirm"]


@pytest.mark.parametrize(
    ("failed", "exact", "message"),
    [
        (("records_complete",), False, "records_complete"),
        (("records_complete", "groups_synced"), True, "records_complete"),
        (("groups_reread_bounded",), False, "With --exact the groups' offsets are set by the records instead."),
    ],
)
def test_a_planned_failover_needs_a_verification_that_holds(
    sides: Sides, failed: tuple[str, ...], exact: bool, message: str
) -> None:
    sides.proof = replace(sides.proof, failed=failed)
    with pytest.raises(OpsError, match="verification must hold before a planned failover") as caught:
        work(exact=exact).prove()
    assert message in str(caught.value)
    assert ("With --exact" in str(caught.value)) == (message not in failed)


@pytest.mark.parametrize("exact", [False, True])
def test_records_that_nobody_could_judge_keep_a_planned_failover_from_going_on(sides: Sides, exact: bool) -> None:
    sides.proof = replace(sides.proof, unproven=("records_complete", "groups_synced"))
    with pytest.raises(OpsError, match=r"\(failed: records_complete\)\. See report.html; nothing has changed"):
        work(exact=exact).prove()
    sides.proof = replace(sides.proof, unproven=("groups_synced",))
    assert work(exact=exact).prove()["unproven"] == ["groups_synced"]
    sides.proof = replace(sides.proof, unproven=("groups_no_loss",))
    if exact:
        assert work(exact=True).prove()["unproven"] == ["groups_no_loss"]
        return
    with pytest.raises(OpsError, match=r"\(failed: groups_no_loss\)\. With --exact"):
        work().prove()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("check", ["topics_present", "partitions_match"])
def test_a_topic_that_nobody_could_see_keeps_a_planned_failover_from_going_on(
    sides: Sides, exact: bool, check: str
) -> None:
    sides.proof = replace(sides.proof, unproven=(check, "lag", "acls_synced"))
    with pytest.raises(OpsError, match=rf"\(failed: {check}\)\. See report.html; nothing has changed"):
        work(exact=exact).prove()
    sides.proof = replace(sides.proof, empty=True)
    assert work(exact=exact).prove()["unproven"] == [check, "lag", "acls_synced"]


def test_the_proof_of_a_planned_failover_reads_only_what_is_new_since_the_state_of_the_stack(
    sides: Sides, tmp_path: Path
) -> None:
    def state(value: str) -> str | None:
        (tmp_path / "Pulumi.stg.yaml").write_text(f"config:\n  rt-inventory:verification: {value}\n", encoding="utf-8")
        stack = PulumiStack(folder=tmp_path, name="stg", environment={})
        return Failover(known(), work().options, stack, Kept(), lambda _: None)._prover._state

    assert state("{state: 's3://bucket/state'}") == "s3://bucket/state"
    assert state("{state: reports/state}") == str(tmp_path / "reports/state")
    assert state("{when: always}") is None


def test_what_cannot_be_set_exactly_is_reported_before_anything_is_changed(sides: Sides) -> None:
    gone, rest = rows()
    sides.proof = replace(sides.proof, positions=(gone, {**rest, "lowest": None}))
    with pytest.raises(OpsError, match=r"exact offsets must be known \(got none for orders on store\.inventory-1:"):
        work(exact=True).prove()
    assert work().prove()["groups"] == {"orders": {"repeated": 6, "skipped": 0}}


def test_with_exact_offsets_what_the_mirror_says_of_groups_is_forgiven(sides: Sides) -> None:
    sides.proof = replace(sides.proof, failed=("groups_reread_bounded", "groups_synced"))
    assert work(exact=True).prove()["groups"] == {"orders": {"repeated": 6, "skipped": 0}}


@pytest.mark.parametrize(
    ("copied", "left"), [(COPIED, 0), ({ITEMS: 6, STORE: 4}, 3), ({ITEMS: 9}, 3), (None, None)], ids=str
)
def test_what_stays_behind_is_counted_if_the_source_answers(
    sides: Sides, copied: dict[tuple[str, int], int] | None, left: int | None
) -> None:
    sides.copied = copied
    sides.source.begin[STORE] = 2
    found = work(UNPLANNED).measure()
    assert (found["notMirrored"], found["why"]) == (left, "" if copied else "the mirror's position is not known")
    assert sorted(found["newestMirrored"]) == ["items", "store.inventory"]


@pytest.mark.parametrize("call", ["connect", "topics", "ends", "starts"])
def test_a_source_that_answers_in_part_or_not_at_all_keeps_nobody_from_going_on(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: Any) -> Any:
        raise ClusterError("source es-src: leader of items-0 must be reachable")

    monkeypatch.setattr(sides.source, call, fail)
    found = work(UNPLANNED).measure()
    assert (found["notMirrored"], found["why"]) == (None, "source es-src: leader of items-0 must be reachable")


def test_where_both_sides_stand_is_noted_when_the_mirror_is_stopped(sides: Sides) -> None:
    found = work(**DRAINED).stop()
    assert (sides.declared, sides.ups) == ([{"state": "stopped"}], [None])
    assert found == {
        "boundary": {"items-0": 12, "store.inventory-1": 5},
        "copied": {"items-0": 9, "store.inventory-1": 4},
    }
    sides.copied = None
    assert work(**DRAINED).stop()["copied"] is None


def test_records_that_were_written_while_the_mirror_was_stopped_start_it_again(sides: Sides) -> None:
    sides.source.log[ITEMS] += 1
    done = work(prove={"verdict": "pass"}, **DRAINED)
    with pytest.raises(OpsError) as caught:
        done.stop()
    assert str(caught.value) == (
        "source rt-inventory-dev: must not be written to once everything is copied (grew meanwhile: items-0). The "
        "mirror runs again. Stop the producers and run the command again."
    )
    assert sides.declared == [{"state": "stopped"}, {"state": "running"}]
    assert (sides.ups, dict(done.journal.steps)) == ([None, None], {})


def test_what_was_written_to_a_source_that_is_given_up_is_counted_when_the_mirror_is_stopped(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ClusterError("source es-src: must answer")

    sides.source.log[ITEMS] += 2
    found = work(UNPLANNED, **DRAINED).stop()
    assert (found["boundary"]["items-0"], found["notMirrored"]) == (12, 2)
    monkeypatch.setattr(sides.source, "connect", fail)
    found = work(UNPLANNED, **DRAINED).stop()
    assert (found["notMirrored"], found["why"]) == (None, "source es-src: must answer")
    assert sides.declared == [{"state": "stopped"}] * 2


def test_a_source_that_did_not_answer_the_command_is_not_asked_again_before_the_switch(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides.source, "connect", lambda *_: pytest.fail("it was asked"))
    begun = work(UNPLANNED, **DRAINED)
    begun.unanswered = "source es-src: must answer"
    for found in (begun.measure(), begun.stop()):
        assert (found["notMirrored"], found["why"]) == (None, "source es-src: must answer")


def test_a_mirror_whose_operator_cannot_stop_it_is_paused(sides: Sides) -> None:
    older = known(restState="paused")
    work(of=older, **DRAINED).stop()
    work(of=older, offsets=OFFSETS, **STOPPED, **DRAINED).switch()
    assert sides.declared == [{"state": "paused"}, {"state": "paused", "active": "target"}]


def test_copies_with_a_prefix_are_reported_from_other_topics(sides: Sides) -> None:
    sides.target.log = {
        TopicPartition("es-src.items", 0): 3,
        TopicPartition("items", 0): 4,
        TopicPartition("es-src.other", 0): 5,
        TopicPartition("es-src.checkpoints", 0): 6,
    }
    assert work(of=known({"naming": "prefixed"}), **DRAINED).stop()["boundary"] == {"es-src.items-0": 3}


def test_exact_offsets_are_set_where_the_records_say(sides: Sides) -> None:
    found = work(exact=True).offsets()["groups"]
    assert sides.target.held["orders"] == {ITEMS: 12, STORE: 2}
    assert found == {
        "orders": {"repeated": 0, "skipped": 0, "offsets": {"items-0": 12, "store.inventory-1": 2}, "left": 3}
    }


def test_a_group_beyond_every_checkpoint_that_exact_offsets_set_back_is_named_with_both_offsets(sides: Sides) -> None:
    """Somebody has reset it there, or members have read on the target and left."""
    sides.target.held["orders"] = {ITEMS: 15, STORE: 1}
    said = list[str]()
    failover = work(exact=True)
    failover.say = said.append
    found = failover.offsets()["groups"]["orders"]
    assert sides.target.held["orders"] == {ITEMS: 12, STORE: 2}
    assert found["setBack"] == {"items-0": 3}
    assert "  group orders: set back from 15 to 12 on items-0: what is behind it was not read" in said
    assert not [line for line in said if "set back" in line and "store.inventory" in line]


def test_what_the_mirror_has_synced_stays_and_what_it_has_only_translated_is_set(sides: Sides) -> None:
    for group, tp, offset in (("orders", ITEMS, 11), ("orders", STORE, 1), ("others", ITEMS, 1)):
        sides.translate(group, tp, (offset, offset))
    found = work().offsets()["groups"]
    assert sides.target.held["orders"] == {ITEMS: 8, STORE: 1}
    assert "others" not in sides.target.held
    assert found["orders"] == {
        "repeated": 6,
        "skipped": 0,
        "offsets": {"items-0": 8, "store.inventory-1": 1},
        "left": (12 - 8) + (5 - 1),
        "withoutPosition": [],
    }


def test_a_group_that_has_read_all_of_what_is_gone_goes_on_at_the_end_of_the_copies(sides: Sides) -> None:
    gone, rest = rows()
    sides.proof = replace(sides.proof, positions=({**gone, "lowest": None}, rest))
    found = work(exact=True).offsets()["groups"]["orders"]
    assert (found["offsets"], found["left"]) == ({"items-0": 12, "store.inventory-1": 2}, 3)
    assert sides.target.held["orders"] == {ITEMS: 12, STORE: 2}


@pytest.mark.parametrize("exact", [False, True])
def test_a_group_that_works_on_the_target_already_is_no_planned_failover(sides: Sides, exact: bool) -> None:
    sides.target.states["orders"] = "STABLE"
    sides.proof = replace(sides.proof, unproven=("groups_no_loss",))  # nothing is judged while all work there
    for step in (work(exact=exact).prove, work(exact=exact).offsets):
        with pytest.raises(OpsError, match=r"groups must be inactive .* members in orders"):
            step()
    assert sides.target.admin.changes == []


def test_without_the_source_groups_at_work_are_left_as_they_are(sides: Sides) -> None:
    sides.translate("orders", STORE, (1, 1))
    sides.translate("late", ITEMS, (7, 7))
    sides.target.states["orders"] = "STABLE"
    done = work(UNPLANNED).offsets()
    assert done["activeOnTarget"] == ["orders"]
    found = done["groups"]
    assert list(found) == ["late"]
    assert sides.target.admin.changes == [("late", *ITEMS, 7)]
    assert found["late"]["left"] == 5


def test_partitions_with_records_in_which_a_group_has_no_offset_are_reported_and_not_counted(monkeypatch: Any) -> None:
    sides = Sides(monkeypatch)
    ends = {
        ITEMS: 12,
        TopicPartition("items", 1): 6,
        TopicPartition("items", 2): 0,
        STORE: 5,
        TopicPartition("local", 0): 9,
    }
    sides.target = Side("es-tgt", ends, {"orders": {ITEMS: 8}})
    found = work(UNPLANNED).offsets()["groups"]["orders"]
    assert (found["left"], found["withoutPosition"]) == (12 - 8, ["items-1"])


def test_a_position_that_comes_too_slowly_is_unknown_and_keeps_no_unplanned_failover_from_going_on(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def slow(within_s: float) -> Any:
        asked.append(within_s)
        raise ClusterError("topic mm2-offsets must be readable")

    monkeypatch.setattr(sides, "read", slow)
    found = work(UNPLANNED).measure()
    assert (found["notMirrored"], found["why"]) == (None, "the mirror's position is not known")
    assert work(UNPLANNED).stop()["copied"] is None
    assert asked == [60.0, 600.0], "a failback needs the position that is noted when the mirror is stopped"
    with pytest.raises(ClusterError, match="must be readable"):
        work(**DRAINED).stop()
