"""What the steps of a failback do to made-up clusters: where the way back begins, and what may be deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import connector_offsets, failback, failback_command, group_offsets, mirror_context
from ops.recovery.mirror_offsets import OffsetMapping
from tests.support.failback_sides import (
    AT_REST,
    ENDED,
    ITEMS,
    LAST,
    NEW,
    NONE,
    PROOF,
    STORE,
    STRANDED,
    UNREAD,
    Sides,
    work,
)
from tests.support.recovery_pair import known


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


def test_the_operator_is_asked_in_the_cluster_that_the_stack_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    @contextmanager
    def kubernetes(_: Any, context: str | None) -> Iterator[None]:
        asked.append(context)
        if asked:
            raise OpsError("asked")
        yield

    monkeypatch.setattr(connector_offsets, "kubernetes", kubernetes)
    back = work()
    resource = back.pair.resource.model_copy(update={"context": "stg"})
    request = back.pair.request.model_copy(update={"mirror": back.mirror.model_copy(update={"resource": resource})})
    back.pair = replace(back.pair, request=request)
    with pytest.raises(OpsError, match="asked"):
        back.require_support()
    assert asked == ["stg"]


def test_records_that_only_the_source_has_are_found(sides: Sides) -> None:
    assert work().survey() == STRANDED["survey"]
    sides.source.begin[ITEMS] = 12
    assert work({"items-0": 9}).survey()["stranded"] == {"items-0": 1, "store.inventory-1": 5}


def test_offsets_without_records_are_not_stranded(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides.source, "has_records", lambda *_: False)
    assert work().survey() == NONE["survey"]


@pytest.mark.parametrize(("at", "left"), [(12, {}), (11, {"items-0": 1})])
def test_what_was_copied_and_not_committed_is_not_stranded(sides: Sides, at: int, left: dict[str, int]) -> None:
    sides.beyond = {ITEMS: at}
    found = work().survey()
    assert (found["copied"], found["stranded"], found["anew"]) == ({"items-0": at}, left, dict.fromkeys(left, 0))
    assert sides.asked == {ITEMS: 13}  # the other partition has no record behind what was committed


@pytest.mark.parametrize(("end", "stranded"), [(0, {}), (4, {"items-0": 4})], ids=["empty", "with records of its own"])
def test_a_partition_that_was_made_anew_at_the_source_is_filled_from_the_target(
    sides: Sides, capsys: pytest.CaptureFixture[str], end: int, stranded: dict[str, int]
) -> None:
    sides.source.log[ITEMS] = end
    found = work().survey()
    assert (found["stranded"], found["anew"]) == (stranded, {"items-0": 0})
    assert "made anew at the source, and filled from the target: items-0" in capsys.readouterr().out
    work(survey=found).position()
    assert sides.altered[ITEMS] == failback.NOT_COPIED


def test_a_partition_that_is_not_at_the_source_any_more_is_filled_from_the_target(
    sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    del sides.source.log[ITEMS]
    found = work().survey()
    assert (found["stranded"], found["anew"]) == ({}, {"items-0": 0})
    assert "made anew at the source, and filled from the target: items-0" in capsys.readouterr().out
    assert work(survey=found).settle() == {"records": 0}
    work(survey=found).position()
    assert sides.altered == {ITEMS: failback.NOT_COPIED, STORE: -1, NEW: -1}
    groups = {"orders": {"offsets": {"items-0": 4}, "from": {"items-0": 11}}}
    work(survey=found, stop={"ends": {"store.inventory-1": 5}}, offsets={"groups": groups}).forward()
    assert sides.claimed[2:] == [
        OffsetMapping(topic_partition=ITEMS, upstream=0, downstream=12),
        OffsetMapping(topic_partition=ITEMS, upstream=4, downstream=11, group="orders"),
    ]


def test_a_partition_that_ends_where_the_mirror_was_is_not_made_anew(sides: Sides) -> None:
    sides.source.log[ITEMS] = 10
    assert work().survey() == NONE["survey"]


def test_stranded_records_of_compacted_topics_are_refused(sides: Sides) -> None:
    sides.source.compacted = {"items"}
    with pytest.raises(OpsError) as caught:
        work().survey()
    assert str(caught.value) == (
        "source rt-inventory-dev: compacted topics must hold no record that was not copied before the failover (got "
        "items-0): it is older than what the target has by now. Delete these topics there, keep what is needed of "
        "them, let `pulumi up` make them again, and run the command again: they are filled from the target."
    )
    sides.source.log[ITEMS] = 0
    assert work().survey()["anew"] == {"items-0": 0}


def test_the_way_back_begins_where_both_sides_were_equal(sides: Sides) -> None:
    work(**NONE).position()
    assert sides.altered == {ITEMS: 9, STORE: -1, NEW: -1}


def test_an_emptied_partition_comes_back_as_a_whole(sides: Sides) -> None:
    assert work(**STRANDED).position()["positions"]["items-0"] == failback.NOT_COPIED
    assert sides.altered[ITEMS] == failback.NOT_COPIED


def test_the_source_is_not_active_again_without_a_proof(sides: Sides) -> None:
    sides.proof = replace(PROOF, failed=("groups_synced", "checkpoints_consistent"))
    assert work().prove()["failed"] == ["groups_synced", "checkpoints_consistent"]
    sides.proof = replace(PROOF, failed=("records_complete",))
    with pytest.raises(OpsError, match=r"\(failed: records_complete\).*the target is still active"):
        work().prove()
    sides.proof = replace(PROOF, unproven=("groups_no_loss", "records_intact"))
    with pytest.raises(OpsError, match=r"\(failed: records_intact\).*the target is still active"):
        work().prove()
    sides.proof = replace(PROOF, unproven=("topics_present",))
    with pytest.raises(OpsError, match=r"\(failed: topics_present\).*the target is still active"):
        work().prove()


def test_what_cannot_be_set_exactly_is_reported_while_applications_can_go_on(sides: Sides) -> None:
    row = {"group": "orders", "topic": "items", "partition": 0, "committed": 12, "lowest": None, "lag": 1}
    sides.proof = replace(PROOF, positions=(row,))
    with pytest.raises(OpsError, match=r"exact offsets must be known \(got none for orders on items-0:"):
        work().prove()
    sides.proof = replace(PROOF, positions=({**row, "lag": 0},))
    assert work().prove()["verdict"] == "pass"


def test_where_the_source_ends_is_noted_when_the_way_back_is_stopped(sides: Sides) -> None:
    assert work(**AT_REST).stop() == {"ends": {"items-0": 13, "store.inventory-1": 5}}
    assert sides.declared == [{"failback": "prepared"}, {}]


def test_records_that_were_written_while_the_way_back_was_stopped_start_it_again(sides: Sides) -> None:
    sides.target.log[NEW] += 1
    done = work(copy={}, prove={}, **AT_REST)
    with pytest.raises(OpsError) as caught:
        done.stop()
    assert str(caught.value) == (
        "target rt-inventory-stg: must not be written to once everything is copied (grew meanwhile: "
        "items.inventory-0). Records are copied again. Stop the producers and run the command again."
    )
    assert sides.declared == [{"failback": "prepared"}, {}, {"failback": "copying"}, {}]
    assert list(done.journal.steps) == ["copy"]


def test_the_mirror_goes_on_behind_what_has_returned(sides: Sides) -> None:
    done = work(stop={"ends": {"items-0": 20, "store.inventory-1": 0}}, offsets={"groups": {}}, **NONE)
    assert done.forward() == {"claims": 0}
    assert sides.altered == {ITEMS: 19, STORE: -1}
    assert sides.claimed == []


def test_what_the_mirror_knew_of_partitions_that_were_filled_anew_is_replaced(sides: Sides) -> None:
    groups = {"orders": {"offsets": {"items-0": 18, "store.inventory-1": 3}, "from": {"items-0": 11}}}
    ends = {"items-0": 20, "store.inventory-1": 5}
    assert work(stop={"ends": ends}, offsets={"groups": groups}, **STRANDED).forward() == {"claims": 4}
    assert [one.topic_partition for one in sides.claimed] == [ITEMS] * 4
    assert sides.claimed[0].upstream == -1, "older than anything that the mirror knows: it forgets that"
    assert sides.claimed[2:] == [
        OffsetMapping(topic_partition=ITEMS, upstream=sides.source.log[ITEMS], downstream=12),
        OffsetMapping(topic_partition=ITEMS, upstream=18, downstream=11, group="orders"),
    ]


def test_groups_get_a_checkpoint_wherever_they_have_read_on_the_target(sides: Sides) -> None:
    groups = {
        "orders": {"offsets": {"items-0": 18, "store.inventory-1": 3}, "from": {"items-0": 11, "store.inventory-1": 4}}
    }
    done = work(stop={"ends": {"items-0": 20}}, offsets={"groups": groups}, **NONE)
    assert done.forward() == {"claims": 0}, "a mirror that has no checkpoints makes no topic for them"
    sides.target.log[TopicPartition(done.mirror.checkpoints_name, 0)] = 1
    assert done.forward() == {"claims": 2}
    assert sides.claimed == [
        OffsetMapping(topic_partition=ITEMS, upstream=18, downstream=11, group="orders"),
        OffsetMapping(topic_partition=STORE, upstream=3, downstream=4, group="orders"),
    ]


def test_a_group_that_is_set_back_at_the_source_is_named_with_both_offsets(sides: Sides) -> None:
    row = {"group": "orders", "topic": "items", "partition": 0, "committed": 12, "lowest": 11, "lag": 0}
    sides.proof = replace(PROOF, positions=(row,))
    sides.source.held["orders"] = {ITEMS: 14}
    failback, said = work(), list[str]()
    failback.say = said.append
    failback.offsets()
    assert sides.source.held["orders"] == {ITEMS: 11}
    assert "  group orders: set back from 14 to 11 on items-0: what is behind it was not read" in said


def test_groups_are_set_exactly_where_they_stand_on_the_target(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"group": "orders", "topic": "items", "partition": 0, "committed": 12, "lowest": 11, "lag": 0}
    sides.proof = replace(PROOF, positions=(row,))
    found = work().offsets()["groups"]["orders"]
    assert (found["offsets"], found["from"]) == ({"items-0": 11}, {"items-0": 12})
    assert sides.source.held["orders"] == {ITEMS: 11}
    sides.proof = replace(PROOF, positions=({**row, "lowest": None},))
    assert work().offsets()["groups"]["orders"]["offsets"] == {"items-0": sides.source.log[ITEMS]}
    sides.source.states["orders"] = "STABLE"
    monkeypatch.setattr(group_offsets, "LEAVE_WITHIN_S", -1.0)
    with pytest.raises(OpsError, match=r"cluster es-src: groups must be inactive"):
        work().offsets()


@pytest.mark.parametrize(("active", "state"), [("target", "running"), ("source", "stopped")])
def test_the_switch_back_is_read_back(sides: Sides, monkeypatch: pytest.MonkeyPatch, active: str, state: str) -> None:
    done = work(**UNREAD, **ENDED, **AT_REST)
    done.switch()
    assert sides.declared == [{"active": "source", "state": "running", "failback": None}, {}]
    assert sides.ups == ["mm2"], "no other `up` may change who is active"
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active=active, state=state))
    with pytest.raises(OpsError, match=rf"must say active source, state running \(got {active}, {state}\)"):
        done.confirm()
    monkeypatch.setattr(mirror_context, "load", lambda *_: known())
    assert done.confirm() == {
        "active": "source",
        "clientsSecret": "mm2-clients",
        "workloads": ["Deployment stg/orders"],
        "stranded": {},
    }


def test_records_that_were_written_while_offsets_were_set_start_the_way_back_again(sides: Sides) -> None:
    sides.target.log[NEW] += 1
    done = work(**LAST)
    with pytest.raises(OpsError, match=r"target rt-inventory-stg: must not be written to .*: items\.inventory-0\)"):
        done.switch()
    assert sides.declared == [{"failback": "copying"}, {}]
    assert (sides.ups, list(done.journal.steps)) == ([None], ["copy", "settle"])


def test_a_switch_that_was_interrupted_goes_on_although_the_way_back_is_gone_by_then(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = work(**LAST)
    noted: list[bool] = []

    def fail() -> None:
        noted.append("switching" in done.journal.steps)
        raise OpsError("the connection was lost")

    sides.at_up = fail
    with pytest.raises(OpsError, match="the connection was lost"):
        done.switch()
    assert noted == [True], "it must be noted before anybody can write there"
    sides.at_up = lambda: None
    sides.target.log[NEW] += 1000
    monkeypatch.setattr(mirror_context, "load", lambda *_: pytest.fail("the way back was asked for"))
    done.switch()
    assert "on the target only by now: items.inventory-0: 1000 offsets" in capsys.readouterr().out
    assert sides.declared == [{"active": "source", "state": "running", "failback": None}, {}] * 2
    assert set(LAST) <= set(done.journal.steps)
    monkeypatch.setattr(mirror_context, "load", lambda *_: known())
    done.journal.done("switch", {"switchedAt": "then"})
    done.journal.done("confirm", done.confirm())
    found = failback_command.result(done.pair, done.journal)
    assert (found["recordsLost"], found["stranded"]) == (1000, {"items.inventory-0": 1000})


@pytest.mark.parametrize("role", ["source", "target"])
def test_a_side_that_does_not_answer_at_the_end_is_unknown(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    def refuse(within_s: float = 0.0) -> None:
        raise ClusterError(f"{role} is down")

    done = work(**LAST)
    monkeypatch.setattr(mirror_context, "load", lambda *_: known())
    sides.target.log[NEW] += 1
    monkeypatch.setattr(sides.target if role == "target" else sides.source, "connect", refuse)
    confirmed = done.confirm() if role == "target" else done._stranded()
    assert (confirmed["stranded"], confirmed["why"]) == (None, f"{role} is down")
    done.journal.done("switch", {"switchedAt": "then"})
    done.journal.done("confirm", {"active": "source", "clientsSecret": None, **confirmed})
    assert failback_command.result(done.pair, done.journal)["recordsLost"] is None
