"""What the steps of a failover do to made-up clusters: what is measured, stopped, set, and said to be lost."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka import mirror_position
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from ops.recovery import draining, failover, mirror_context, translation
from ops.recovery.failover import PLANNED, UNPLANNED, Failover, Options
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.translation import Proof
from tests.support.recovery_pair import Clock, Kept, Side, entry, known

ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)
COPIED = {ITEMS: 9, STORE: 4}
DRAINED: dict[str, Any] = {"drain": {"ends": {"items-0": 10, "store.inventory-1": 5}}}
STOPPED: dict[str, Any] = {"stop": {"boundary": {"items-0": 12, "store.inventory-1": 5}}}


class Sides:
    """Both clusters, the proof that the job would bring, and every setting that was declared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source: Any = Side("es-src", {ITEMS: 10, STORE: 5}, {"orders": {ITEMS: 10, STORE: 2}})
        self.target: Any = Side("es-tgt", {ITEMS: 12, STORE: 5, TopicPartition("local", 0): 9}, {"orders": {ITEMS: 8}})
        self.copied: dict[tuple[str, int], int] | None = dict(COPIED)
        self.proof = Proof(verdict="pass", failed=(), records_compared=15, report="report.html", positions=rows())
        self.target_offsets: translation.Offsets = {}
        self.declared: list[dict[str, str | None]] = []
        self.ups: list[str | None] = []
        self.at_up: Callable[[], None] = lambda: None
        monkeypatch.setattr(MirrorContext, "source", lambda _: self.source)
        monkeypatch.setattr(MirrorContext, "target", lambda _: self.target)
        monkeypatch.setattr(PulumiStack, "set_mirror", lambda _, __, values: self.declared.append(values))
        monkeypatch.setattr(PulumiStack, "up", lambda _, mirror, __: self.up(mirror))
        monkeypatch.setattr(translation.Prover, "prove", lambda _: self.proof)
        monkeypatch.setattr(translation.Prover, "of_now", lambda *_: self.proof)
        monkeypatch.setattr(translation, "claimed", lambda *_: self.target_offsets)
        monkeypatch.setattr(
            mirror_position, "open_reader", lambda *_: (self, "") if self.copied is not None else (None, "?")
        )
        monkeypatch.setattr(draining, "time", Clock())

    def up(self, mirror: str | None) -> None:
        self.ups.append(mirror)
        self.at_up()

    def read(self) -> dict[tuple[str, int], int]:
        return dict(self.copied or {})

    def close(self) -> None:
        pass


def rows() -> tuple[dict[str, Any], ...]:
    items = {"topic": "items", "partition": 0, "committed": 10, "lowest": 12, "lag": 0, "repeated": 4, "skipped": 0}
    store = {"topic": STORE[0], "partition": 1, "committed": 2, "lowest": 2, "lag": 3, "repeated": 2, "skipped": 0}
    return {"group": "orders", **items}, {"group": "orders", **store}


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


def work(path: str = PLANNED, *, exact: bool = False, of: MirrorContext | None = None, **steps: Any) -> Failover:
    options = Options(path=path, exact=exact, drain_s=30.0, report_dir=Path("reports"))
    engine = PulumiStack(folder=Path(), name="stg", environment={})
    return Failover(of or known(), options, engine, Kept(entry(finished=None, **steps)), lambda _: None)


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
    assert (found["notMirrored"], found["why"]) == (left, "")
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


def test_what_the_mirror_has_synced_stays_and_what_it_has_only_translated_is_set(sides: Sides) -> None:
    sides.target_offsets = {"orders": {ITEMS: 11, STORE: 1}, "others": {ITEMS: 1}}
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
    with pytest.raises(OpsError, match=r"groups must be inactive .* members in orders"):
        work(exact=exact).offsets()
    assert sides.target.admin.changes == []


def test_without_the_source_groups_at_work_are_left_as_they_are(sides: Sides) -> None:
    sides.target_offsets = {"orders": {STORE: 1}, "late": {ITEMS: 7}}
    sides.target.states["orders"] = "STABLE"
    found = work(UNPLANNED).offsets()["groups"]
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


OFFSETS: dict[str, Any] = {"groups": {"orders": {"offsets": {"items-0": 8}, "left": 4}}}


def test_the_switch_is_read_back(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    done = work(offsets=OFFSETS, **STOPPED, **DRAINED)
    monkeypatch.setattr(mirror_context, "load", lambda *_: known())
    done.switch()
    assert (sides.declared, sides.ups) == ([{"state": "stopped", "active": "target"}], ["mm2"])
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))
    assert done.confirm() == {"active": "target", "clientsSecret": "mm2-clients", "stranded": {}}
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
    found = failover.result(done.pair, done.options, done.journal)
    assert (found["recordsLost"], found["stranded"]) == ((1, {"items-0": 1}) if path == PLANNED else (None, None))


def test_what_a_source_that_was_given_up_got_until_the_end_is_counted(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = work(UNPLANNED, offsets=OFFSETS, switch={"switchedAt": "then"})
    done.journal.done("stop", {**STOPPED["stop"], "copied": {"items-0": 9, "store.inventory-1": 4}, "notMirrored": 2})
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target"))
    sides.source.log[ITEMS] += 1000
    done.journal.done("confirm", done.confirm())
    found = failover.result(done.pair, done.options, done.journal)
    assert (found["recordsLost"], found["stranded"]) == (1000, {"items-0": 1000})
    monkeypatch.setattr(sides.source, "connect", refuse)
    done.journal.done("confirm", done.confirm())
    found = failover.result(done.pair, done.options, done.journal)
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
    assert failover.result(done.pair, done.options, done.journal)["recordsLost"] is None


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
    found = failover.result(done.pair, done.options, done.journal)
    assert (found["recordsLost"], found["active"], found["switchedAt"]) == (lost, "target", "then")
    assert found["groups"] == {"orders": {"repeated": None, "skipped": None, "left": 4, "withoutPosition": []}}
    assert found["newestMirrored"] == ({"items": "then"} if path == UNPLANNED else None)
    assert "switching" not in found["seconds"]
