"""The switch of a failover: what keeps it from beginning, how it goes on, what was written to the source meanwhile."""

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining, failover_result, mirror_context, stranded_records, translation
from ops.recovery.client_workloads import FollowingClients
from ops.recovery.failover import PLANNED, UNPLANNED
from tests.support.failover_sides import DRAINED, ITEMS, OFFSETS, STOPPED, STORE, Sides, work
from tests.support.recovery_pair import known


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


def test_the_switch_is_read_back(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    done = work(offsets=OFFSETS, **STOPPED, **DRAINED)
    monkeypatch.setattr(mirror_context, "load", lambda *_: known())
    done.switch()
    assert (sides.declared, sides.ups) == ([{"state": "stopped", "active": "target"}], ["mm2"])
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))
    monkeypatch.setattr(FollowingClients, "listed", lambda _: {"workloads": ["Deployment stg/orders"]})
    assert done.confirm() == {
        "active": "target",
        "clientsSecret": "mm2-clients",
        "stranded": {},
        "workloads": ["Deployment stg/orders"],
    }
    sides.target.held["orders"][ITEMS] = 7
    with pytest.raises(OpsError, match="must stand at 8 or further"):
        done.confirm()
    monkeypatch.setattr(mirror_context, "load", lambda *_: known())
    with pytest.raises(OpsError, match=r"active must be target after the switch \(got source\)"):
        done.confirm()


@pytest.mark.parametrize("path", [PLANNED, UNPLANNED])
@pytest.mark.parametrize("changed", [{ITEMS: 13}, {TopicPartition("items", 1): 0}], ids=["a record", "a partition"])
def test_copies_that_changed_between_stop_and_switch_are_stopped_and_set_again(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, path: str, changed: dict[tuple[str, int], int]
) -> None:
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(state="running"))
    sides.target.log |= changed
    done = work(path, offsets=OFFSETS, **STOPPED, **DRAINED)
    with pytest.raises(OpsError) as caught:
        done.switch()
    assert str(caught.value) == (
        "target rt-inventory-stg: nothing may be written there between stop and switch (changed: "
        f"{draining.named(changed)}). Somebody has started the mirror again, or an application: stop it and run the "
        "command again."
    )
    assert (sides.declared, list(done.journal.steps)) == ([], ["drain"])


@pytest.mark.parametrize("path", [PLANNED, UNPLANNED])
def test_a_switch_that_was_interrupted_goes_on_although_applications_write_there_by_now(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    done = work(path, offsets=OFFSETS, **STOPPED, **DRAINED)
    noted: list[list[str]] = []

    def fail() -> None:
        noted.append(list(done.journal.steps))
        raise OpsError("the connection was lost")

    sides.at_up = fail
    with pytest.raises(OpsError, match="the connection was lost"):
        done.switch()
    assert noted == [["offsets", "stop", "drain", "switching"]], "it must be noted before anybody can write there"
    sides.at_up = lambda: None
    sides.target.log |= {ITEMS: 112, TopicPartition("items", 1): 3}
    sides.source.log[ITEMS] += 1
    done.switch()
    assert sides.declared == [{"state": "stopped", "active": "target"}] * 2
    assert done.journal.steps["stop"]["boundary"] == STOPPED["stop"]["boundary"], "a failback begins there"
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))
    done.journal.done("switch", {"switchedAt": "then", "seconds": 1.0})
    done.journal.done("confirm", {**done.confirm(), "seconds": 1.0})
    found = failover_result.result(done.pair, done.options, done.journal)
    assert (found["recordsLost"], found["stranded"]) == ((1, {"items-0": 1}) if path == PLANNED else (None, None))


@pytest.mark.parametrize("moment", ["while it switches", "while it confirms"])
def test_what_a_producer_with_the_old_address_writes_through_switch_and_confirm_is_counted_and_named(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """It knows neither the new address nor of the fence: nothing copies its records any more."""
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))
    monkeypatch.setattr(FollowingClients, "listed", lambda _: {"workloads": []})
    done = work(prove={}, offsets=OFFSETS, **STOPPED, **DRAINED)
    stepped = {"seconds": 1.0}

    def write() -> None:
        sides.source.log[ITEMS] += 3
        sides.source.log["items", 1] = 2

    sides.at_up = write if moment == "while it switches" else lambda: None
    done.journal.done("switch", {**done.switch(), **stepped})
    if moment == "while it confirms":
        plain = sides.source.connect
        monkeypatch.setattr(sides.source, "connect", lambda within_s=0.0: (plain(within_s), write()))
    done.journal.done("confirm", {**done.confirm(), **stepped})
    found = failover_result.result(done.pair, done.options, done.journal)

    assert (found["recordsLost"], found["stranded"]) == (5, {"items-0": 3, "items-1": 2})
    assert failover_result.unsettled(found), "the command's exit code says so too"
    console = Console(width=200, no_color=True)
    with console.capture() as shown:
        console.print(failover_result.summary(found))
    assert f"the source was written to afterwards ({stranded_records.named(found['stranded'])})" in shown.get()
    assert "items-0" in shown.get()
    assert "the failback brings them over" in shown.get()


def test_what_a_source_that_was_given_up_got_until_the_end_is_counted(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = work(UNPLANNED, offsets=OFFSETS, switch={"switchedAt": "then"})
    done.journal.done("stop", {**STOPPED["stop"], "copied": {"items-0": 9, "store.inventory-1": 4}, "notMirrored": 2})
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))
    sides.source.log[ITEMS] += 1000
    done.journal.done("confirm", done.confirm())
    found = failover_result.result(done.pair, done.options, done.journal)
    assert (found["recordsLost"], found["stranded"]) == (1000, {"items-0": 1000})
    monkeypatch.setattr(sides.source, "connect", refuse)
    done.journal.done("confirm", done.confirm())
    found = failover_result.result(done.pair, done.options, done.journal)
    assert (found["recordsLost"], found["stranded"]) == (2, None), "what was there when the mirror was stopped"


def test_a_source_partition_that_was_made_anew_since_it_was_drained_is_counted_from_its_start(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = work(offsets=OFFSETS, **STOPPED, **DRAINED)
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))
    sides.source.log[ITEMS] = 7
    assert done.confirm()["stranded"] == {"items-0": 7}


def refuse(within_s: float = 0.0) -> None:
    raise ClusterError("it is down")


def test_a_source_that_does_not_answer_at_the_end_is_unknown(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    done = work(offsets=OFFSETS, **STOPPED, **DRAINED)
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))

    monkeypatch.setattr(sides.source, "connect", refuse)
    confirmed = done.confirm()
    assert (confirmed["stranded"], confirmed["why"]) == (None, "it is down")
    done.journal.done("switch", {"switchedAt": "then", "seconds": 1.0})
    done.journal.done("confirm", {**confirmed, "seconds": 1.0})
    assert failover_result.result(done.pair, done.options, done.journal)["recordsLost"] is None


def test_records_that_were_written_while_offsets_were_set_start_the_mirror_again(sides: Sides) -> None:
    sides.source.log[STORE] += 1
    done = work(prove={}, offsets=OFFSETS, **STOPPED, **DRAINED)
    with pytest.raises(OpsError, match=r"source rt-inventory-dev: must not be written to .*: store\.inventory-1\)"):
        done.switch()
    assert (sides.declared, sides.ups, dict(done.journal.steps)) == ([{"state": "running"}], [None], {})
    given_up = work(UNPLANNED, offsets=OFFSETS, **STOPPED, **DRAINED)
    given_up.switch()
    assert sides.ups == [None, "mm2"]


@pytest.mark.parametrize(("path", "lost"), [(PLANNED, 0), (UNPLANNED, 3)])
def test_the_result_says_what_was_lost_and_what_is_read_again(sides: Sides, path: str, lost: int) -> None:
    left = {"stranded": {}} if path == PLANNED else {"stranded": None, "why": "it is down"}
    confirmed = {"active": "target", "clientsSecret": None, **left, "seconds": 1.0}
    steps: dict[str, Any] = {
        "offsets": {**OFFSETS, "seconds": 1.0},
        "switch": {"switchedAt": "then", "seconds": 1.0},
        "confirm": confirmed,
        **STOPPED,
        "switching": {},
    }
    if path == UNPLANNED:
        steps["measure"] = {"notMirrored": 1, "newestMirrored": {"items": "then"}, "seconds": 1.0}
        steps["stop"] = {**STOPPED["stop"], "notMirrored": 3, "why": "", "seconds": 1.0}
    done = work(path, **steps)
    found = failover_result.result(done.pair, done.options, done.journal)
    assert (found["recordsLost"], found["active"], found["switchedAt"]) == (lost, "target", "then")
    assert found["groups"]["orders"] == {
        "repeated": None,
        "skipped": None,
        "left": 4,
        "withoutPosition": [],
        "setBack": {},
        "mayBeSkipped": {},
        "translated": True,
    }
    assert found["newestMirrored"] == ({"items": "then"} if path == UNPLANNED else None)
    assert "switching" not in found["seconds"]


@pytest.mark.parametrize("exact", [False, True])
def test_groups_that_moved_at_the_source_since_their_offsets_were_set_are_set_again(sides: Sides, exact: bool) -> None:
    done = work(exact=exact, **STOPPED, **DRAINED)
    done.journal.done("offsets", {**done.offsets(), "seconds": 1.0})
    said = list[str]()
    done.say = said.append
    moved = tuple({**row, "lowest": row["lowest"] + 1, "repeated": 5} for row in sides.proof.positions)
    sides.proof = replace(sides.proof, positions=moved)
    sides.source.held["orders"][STORE] = 3
    done.switch()
    offsets = done.journal.steps["offsets"]
    assert offsets["groups"]["orders"]["repeated"] == (0 if exact else 10)
    assert sides.target.held["orders"] == ({ITEMS: 13, STORE: 3} if exact else {ITEMS: 8})
    assert offsets["seconds"] == 1.0
    assert said == [
        "  groups have moved at rt-inventory-dev since their offsets were set",
        *(["  group orders: exact in 2 partitions"] if exact else []),
    ]


def test_groups_that_never_rest_keep_a_planned_failover_from_its_switch(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = work(exact=True, **STOPPED, **DRAINED)
    done.journal.done("offsets", done.offsets())
    standing = iter(range(99))
    monkeypatch.setattr(translation, "standing", lambda *_: str(next(standing)))
    with pytest.raises(OpsError, match=r"groups must be at rest \(they have moved each time .* Stop these"):
        done.switch()
    assert (sides.declared, "switching" in done.journal.steps) == ([], False)


def test_a_planned_failover_whose_journal_does_not_say_where_groups_were_sets_them_again(sides: Sides) -> None:
    """An earlier release has set the offsets."""
    done, said = work(exact=True, **STOPPED, **DRAINED, offsets=OFFSETS), list[str]()
    done.say = said.append
    done.switch()
    assert sides.target.held["orders"] == {ITEMS: 12, STORE: 2}
    assert said[0] == "  where groups were at rt-inventory-dev when their offsets were set is not noted"


def test_groups_that_stand_where_they_did_are_not_set_again(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    done = work(exact=True, **STOPPED, **DRAINED)
    done.journal.done("offsets", done.offsets())
    monkeypatch.setattr(done, "offsets", lambda: pytest.fail("they are set already"))
    sides.source.held["orders"][TopicPartition("local", 0)] = 7  # which the mirror does not carry
    done.switch()
    assert sides.ups == ["mm2"]


def test_nobody_knows_what_groups_repeat_if_the_source_is_given_up_after_their_offsets_were_set(sides: Sides) -> None:
    planned = work(exact=True, **STOPPED, **DRAINED)
    facts = planned.offsets()
    confirmed = {"active": "target", "clientsSecret": None, "stranded": {}}
    steps = {**STOPPED, "offsets": facts, "switch": {"switchedAt": "then"}, "confirm": confirmed}
    for path, cost in ((PLANNED, 0), (UNPLANNED, None)):
        done = work(path, **steps)
        found = failover_result.result(done.pair, done.options, done.journal)["groups"]["orders"]
        assert (found["repeated"], found["skipped"], found["left"]) == (cost, cost, 3)
