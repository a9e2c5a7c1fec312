"""Groups that move on the target after a failback has set their offsets: they are set again before the switch."""

from collections.abc import Iterable
from typing import Any

import pytest

from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import failback_command, mirror_offsets, translation
from ops.recovery.failback import SWITCHING, Failback
from ops.recovery.mirror_offsets import OffsetMapping
from ops.recovery.translation import Proof
from tests.support.failback_sides import ITEMS, LAST, NONE, Sides, work

LEAD = 3
"""How many offsets further a record is at the source."""


class Moving(Sides):
    """A group that works on the target, which a proof finds where it is then; its mirror writes checkpoints.

    It goes to the next one of `moves` right after each proof.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.moves: list[int] = []
        self.proofs = 0
        self.target.log[TopicPartition(work().mirror.checkpoints_name, 0)] = 1
        self.target.states["orders"] = "STABLE"
        self.reach(6)
        monkeypatch.setattr(translation.Prover, "of_now", lambda *_: self.of_now())

    def reach(self, offset: int) -> None:
        self.target.held["orders"] = {ITEMS: offset}

    def of_now(self) -> Proof:
        self.proofs += 1
        at = self.target.held["orders"][ITEMS]
        row = {"group": "orders", "topic": "items", "partition": 0, "committed": at, "lowest": at + LEAD, "lag": 1}
        if self.moves:
            self.reach(self.moves.pop(0))
        return Proof(verdict="pass", failed=(), records_compared=15, report="report.html", positions=(row,))


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Moving:
    return Moving(monkeypatch)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def ready(sides: Moving, said: list[str]) -> Failback:
    """A failback that has set the offsets and let the mirror go on behind what has returned."""
    done = work(**{name: facts for name, facts in LAST.items() if name not in ("offsets", "forward")}, **NONE)
    for name in ("offsets", "forward"):
        done.journal.done(name, {**getattr(done, name)(), "seconds": 1.0})
    done.say = said.append
    assert sides.claimed == [checkpoint(6)]
    sides.claimed.clear()
    return done


def checkpoint(offset: int) -> OffsetMapping:
    return OffsetMapping(topic_partition=ITEMS, upstream=offset + LEAD, downstream=offset, group="orders")


def noted(done: Failback) -> Any:
    return done.journal.steps["offsets"]["groups"]["orders"]


@pytest.mark.parametrize("to", [9, 4], ids=["it reads on", "it is set back, and would skip"])
def test_a_group_that_moved_since_its_offsets_were_set_is_set_again(
    sides: Moving, ready: Failback, said: list[str], to: int
) -> None:
    sides.reach(to)
    at_switch: list[Any] = []
    sides.at_up = lambda: at_switch.append((sides.source.held["orders"][ITEMS], list(sides.claimed)))
    ready.journal.done("switch", ready.switch())
    assert at_switch == [(to + LEAD, [checkpoint(to)])]
    assert noted(ready) == {
        "repeated": 0,
        "skipped": 0,
        "offsets": {"items-0": to + LEAD},
        "from": {"items-0": to},
    }
    assert ready.journal.steps["offsets"]["seconds"] == 1.0
    assert said[0] == "  groups have moved at rt-inventory-stg since their offsets were set"
    ready.journal.done("confirm", {"active": "source", "clientsSecret": None, "stranded": {}})
    found = failback_command.result(ready.pair, ready.journal)
    assert found["groups"] == {"orders": {"repeated": 0, "skipped": 0}}


def test_a_group_that_moves_while_it_is_set_again_is_followed_until_it_rests(sides: Moving, ready: Failback) -> None:
    sides.reach(7)
    sides.moves = [8]
    ready.switch()
    assert sides.source.held["orders"] == {ITEMS: 8 + LEAD}
    assert sides.claimed == [checkpoint(7), checkpoint(8)]


def test_groups_that_never_rest_keep_a_failback_from_its_switch(sides: Moving, ready: Failback) -> None:
    sides.reach(7)
    sides.moves = [8, 9, 10, 11]
    with pytest.raises(OpsError, match=r"groups must be at rest \(they have moved each time .* Stop these"):
        ready.switch()
    assert (sides.declared, SWITCHING in ready.journal.steps) == ([], False)
    sides.moves = []
    ready.switch()
    assert sides.source.held["orders"] == {ITEMS: 10 + LEAD}


def test_groups_that_rest_are_not_set_again(sides: Moving, ready: Failback) -> None:
    sides.target.held["__ours"] = {ITEMS: 3}  # which the mirror does not carry
    sides.target.states["__ours"] = "STABLE"
    ready.switch()
    assert (sides.proofs, sides.claimed, sides.ups) == (1, [], ["mm2"])


def test_a_journal_that_does_not_say_where_groups_were_lets_them_be_set_again(
    sides: Moving, ready: Failback, said: list[str]
) -> None:
    """An earlier release has set the offsets."""
    sides.reach(9)
    facts = ready.journal.steps["offsets"]
    ready.journal.done("offsets", {key: value for key, value in facts.items() if key != "stood"})
    ready.switch()
    assert (noted(ready)["offsets"], sides.claimed) == ({"items-0": 9 + LEAD}, [checkpoint(9)])
    assert said[0] == "  where groups were at rt-inventory-stg when their offsets were set is not noted"


def test_a_command_that_ends_before_the_checkpoints_are_written_sets_groups_again_in_the_next(
    sides: Moving, ready: Failback, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Iterable[OffsetMapping], *__: object) -> int:
        raise OpsError("topic mm2 must accept the offset mappings")

    sides.reach(9)
    with monkeypatch.context() as broken:
        broken.setattr(mirror_offsets, "write", fail)
        with pytest.raises(OpsError, match="must accept"):
            ready.switch()
    assert sides.source.held["orders"] == {ITEMS: 9 + LEAD}
    ready.switch()
    assert (noted(ready)["from"], sides.claimed) == ({"items-0": 9}, [checkpoint(9)])


def test_what_is_written_to_the_target_is_brought_back_before_groups_are_set_again(
    sides: Moving, ready: Failback
) -> None:
    sides.reach(9)
    sides.target.log[ITEMS] += 1
    with pytest.raises(OpsError, match=r"must not be written to .* \(grew meanwhile: items-0\)"):
        ready.switch()
    assert sides.proofs == 1
    assert "offsets" not in ready.journal.steps
