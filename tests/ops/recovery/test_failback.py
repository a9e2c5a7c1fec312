"""What the steps of a failback do to made-up clusters: where the way back begins, and what may be deleted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from ops.errors import OpsError
from ops.recovery import connector_offsets, draining, failback, pair, translation
from ops.recovery.engine import Engine
from ops.recovery.failback import Failback, Options
from ops.recovery.pair import Pair
from ops.recovery.translation import Proof
from tests.ops.recovery.cases import Clock, Kept, Side, entry, known

ITEMS, STORE, NEW = ("items", 0), ("store.inventory", 1), ("items.inventory", 0)
STRANDED: dict[str, Any] = {"survey": {"stranded": {"items-0": 3}}}
PROOF = Proof(verdict="pass", exit_code=0, failed=(), records_compared=15, report="report.html", positions=())


class Sides:
    """Both clusters, where connectors were told to begin, and every setting that was declared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source: Any = Side("es-src", {ITEMS: 13, STORE: 5})
        self.target: Any = Side("es-tgt", {ITEMS: 12, STORE: 8, NEW: 2})
        self.proof = PROOF
        self.declared: list[dict[str, str | None]] = []
        self.altered: dict[tuple[str, int], int] = {}
        self.proven: list[Pair] = []
        self.drained = {"items-0": 13, "store.inventory-1": 5}
        monkeypatch.setattr(Pair, "source", lambda one: self.target if one.mirror.endswith("back") else self.source)
        monkeypatch.setattr(Pair, "target", lambda one: self.source if one.mirror.endswith("back") else self.target)
        monkeypatch.setattr(Engine, "declare", lambda _, __, values: self.declared.append(values))
        monkeypatch.setattr(Engine, "up", lambda *_: self.declared.append({}))
        monkeypatch.setattr(translation.Prover, "prove", lambda prover: self.prove(prover))
        monkeypatch.setattr(translation.Prover, "of_now", lambda *_: self.proof)
        monkeypatch.setattr(draining, "drain", lambda *_: {"ends": self.drained, "records": 18})
        monkeypatch.setattr(draining, "time", Clock())
        monkeypatch.setattr(pair, "load", lambda _, name, *__: replace(known(), mirror=name))
        monkeypatch.setattr(connector_offsets, "alter", lambda _, __, at, *___: self.altered.update(at))

    def prove(self, prover: Any) -> Proof:
        self.proven.append(prover._pair)
        return self.proof


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


def work(copied: dict[str, int] | None = None, **steps: Any) -> Failback:
    options = Options(catch_up_s=30.0, drain_s=30.0, report_dir=Path("reports"))
    journal = Kept(entry("failback", finished=None, **steps))
    noted = {"copied": copied or {"items-0": 9, "store.inventory-1": 4}, "boundary": {"items-0": 10}}
    assert journal.entry is not None
    journal.entry["before"] = {"command": "failover", "steps": {"stop": noted}}
    return Failback(known(active="target"), options, Engine(folder=Path(), stack="stg", environment={}), journal, print)


def test_records_that_only_the_source_has_are_found(sides: Sides) -> None:
    assert work().survey() == {"stranded": {"items-0": 3}}
    sides.source.begin[ITEMS] = 12
    assert work({"items-0": 9}).survey() == {"stranded": {"items-0": 1, "store.inventory-1": 5}}


def test_offsets_without_records_are_not_stranded(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides.source, "has_records", lambda *_: False)
    assert work().survey() == {"stranded": {}}


def test_without_stranded_records_nothing_is_settled(sides: Sides) -> None:
    assert work(survey={"stranded": {}}).settle() == {"records": 0}
    assert (sides.declared, sides.source.admin.changes) == ([], [])


def test_partitions_are_emptied_only_after_the_target_was_proven_to_hold_them(sides: Sides) -> None:
    assert work(**STRANDED).settle()["records"] == 3
    assert sides.source.admin.changes == [(*ITEMS, 13)]
    assert sides.declared == [{"failback": "settling", "state": "running"}, {}, {"state": "stopped"}, {}]


def test_the_proof_before_partitions_are_emptied_sends_no_canary_into_them(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    settling = known(active="target", failback="settling")
    monkeypatch.setattr(pair, "load", lambda *_: settling)
    work(**STRANDED).settle()
    assert sides.proven == [settling]


@pytest.mark.parametrize("check", ["records_complete", "records_intact"])
def test_records_that_are_not_proven_to_be_on_the_target_are_not_deleted(sides: Sides, check: str) -> None:
    sides.proof = replace(PROOF, failed=(check, "records_foreign"))
    with pytest.raises(OpsError, match=rf"\(failed: {check}\).*nothing was deleted"):
        work(**STRANDED).settle()
    assert sides.source.admin.changes == []


def test_records_that_came_after_the_proof_are_not_deleted(sides: Sides) -> None:
    sides.drained["items-0"] = 12
    with pytest.raises(OpsError, match=r"got more than was verified in items-0.*nothing was deleted"):
        work(**STRANDED).settle()
    assert sides.source.admin.changes == []


def test_a_refused_deletion_is_told_with_the_right_that_is_missing(sides: Sides) -> None:
    sides.source.admin.refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(OpsError, match="Give user es-src-user Delete on the topic"):
        work(**STRANDED).settle()


def test_the_way_back_begins_where_both_sides_were_equal(sides: Sides) -> None:
    work(survey={"stranded": {}}).position()
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


def test_the_mirror_goes_on_behind_what_has_returned(sides: Sides) -> None:
    done = work(stop={"ends": {"items-0": 20, "store.inventory-1": 0}})
    done.forward()
    assert sides.altered == {ITEMS: 19, STORE: -1}


def test_groups_are_set_exactly_where_they_stand_on_the_target(sides: Sides) -> None:
    row = {"group": "orders", "topic": "items", "partition": 0, "committed": 12, "lowest": 11, "lag": 0}
    sides.proof = replace(PROOF, positions=(row,))
    assert work().offsets()["groups"]["orders"]["offsets"] == {"items-0": 11}
    assert sides.source.held["orders"] == {ITEMS: 11}
    sides.source.states["orders"] = "STABLE"
    with pytest.raises(OpsError, match=r"cluster es-src: groups must be inactive"):
        work().offsets()


@pytest.mark.parametrize(("active", "state"), [("target", "running"), ("source", "stopped")])
def test_the_switch_back_is_read_back(sides: Sides, monkeypatch: pytest.MonkeyPatch, active: str, state: str) -> None:
    done = work(offsets={"groups": {}})
    done.switch()
    assert sides.declared == [{"active": "source", "state": "running", "failback": None}, {}]
    monkeypatch.setattr(pair, "load", lambda *_: known(active=active, state=state))
    with pytest.raises(OpsError, match=rf"must say active source, state running \(got {active}, {state}\)"):
        done.confirm()
    monkeypatch.setattr(pair, "load", lambda *_: known())
    assert done.confirm()["active"] == "source"
