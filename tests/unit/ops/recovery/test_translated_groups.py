"""Where groups go on by what MirrorMaker has translated: not further than is proven; what nobody can tell is named."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kafka import checkpoints
from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetSync, OffsetSyncHistory, OffsetTranslation
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import translated_offsets
from ops.recovery.failover import PLANNED, UNPLANNED
from ops.recovery.followed_mark import FOLLOWED
from tests.support.failover_sides import ITEMS, STORE, Sides, work
from tests.support.recovery_pair import known


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


def history(pairs: Iterable[tuple[int, int]]) -> OffsetSyncHistory:
    found = OffsetSyncHistory()
    for upstream, downstream in pairs:
        found.add(OffsetSync(upstream, downstream))
    return found


def test_a_group_that_stands_further_than_the_mirror_has_translated_is_set_back(sides: Sides) -> None:
    sides.translate("orders", ITEMS, (5, 5))
    found = work(UNPLANNED).offsets()["groups"]["orders"]
    assert sides.target.held["orders"] == {ITEMS: 5}
    assert (found["offsets"], found["setBack"], found["mayBeSkipped"]) == ({"items-0": 5}, {"items-0": 3}, {})
    assert (found["left"], found["translated"]) == (12 - 5, True)
    again = work(UNPLANNED).offsets()["groups"]["orders"]
    assert (again["offsets"], again["setBack"]) == ({"items-0": 5}, {}), "an interrupted step is safe to run again"


def test_what_ops_follow_has_set_is_not_set_back(sides: Sides) -> None:
    sides.translate("orders", ITEMS, (5, 5))
    sides.target.metadata["orders", ITEMS] = FOLLOWED
    found = work(UNPLANNED).offsets()["groups"]["orders"]
    assert sides.target.held["orders"] == {ITEMS: 8}
    assert (found["offsets"], found["setBack"], found["mayBeSkipped"]) == ({"items-0": 8}, {}, {})


@pytest.mark.parametrize(
    ("pairs", "mark", "at"),
    [
        (((9, 8), (5, 5)), f"{FOLLOWED} 9", 5),
        (((9, 8), (5, 5)), f"{FOLLOWED} 5", 8),
        (((9, 8), (5, 5)), FOLLOWED, 8),
        (((4, 4), (5, 5)), f"{FOLLOWED} 9", 8),
    ],
    ids=["the group went back since", "it was there when it was set", "not known", "MirrorMaker is behind"],
)
def test_what_ops_follow_has_set_before_the_group_went_back_is_set_back(
    sides: Sides, pairs: tuple[tuple[int, int], ...], mark: str, at: int
) -> None:
    sides.translate("orders", ITEMS, *pairs)
    sides.target.metadata["orders", ITEMS] = mark
    work(UNPLANNED).offsets()
    assert sides.target.held["orders"][ITEMS] == at


def test_a_group_that_a_broker_does_not_list_yet_is_known_by_its_offsets(sides: Sides) -> None:
    """While a coordinator loads, a broker lists none of its groups."""
    sides.translate("orders", ITEMS, (5, 5))
    sides.target.metadata["orders", ITEMS] = FOLLOWED
    sides.target.states.clear()
    found = work(UNPLANNED).offsets()["groups"]["orders"]
    assert sides.target.held["orders"] == {ITEMS: 8}
    assert (found["offsets"], found["setBack"]) == ({"items-0": 8}, {})


def test_an_offset_that_ops_follow_has_set_may_skip_nothing_though_nothing_is_translated(sides: Sides) -> None:
    sides.translate("orders", STORE, (2, 2))
    assert work(UNPLANNED).offsets()["groups"]["orders"]["mayBeSkipped"] == {"items-0": 8}
    sides.target.metadata["orders", ITEMS] = FOLLOWED
    assert work(UNPLANNED).offsets()["groups"]["orders"]["mayBeSkipped"] == {}


@pytest.mark.parametrize(
    ("pairs", "at"),
    [
        (((5, 8), (7, 5)), 8),  # a restarted worker knows fewer pairs: what it had translated before still holds
        (((9, 8), (5, 5)), 5),  # the group went back at the source
        (((5, 8),), 8),
        (((5, 9),), 8),
    ],
    ids=["an earlier one leads there", "the group went back", "there", "further"],
)
def test_every_checkpoint_that_still_holds_proves_an_offset(
    sides: Sides, pairs: tuple[tuple[int, int], ...], at: int
) -> None:
    sides.translate("orders", ITEMS, *pairs)
    work(UNPLANNED).offsets()
    assert sides.target.held["orders"][ITEMS] == at


@pytest.mark.parametrize(
    ("pairs", "at"),
    [
        (((2, 3), (6, 7)), 8),  # it has read the record at 6, which lies at 7
        (((2, 3), (7, 7)), 7),  # it has not read the record at 7
        (((2, 3), (9, 9)), 5),
        (((3, 9), (6, 6)), 7),  # the older one points past its record
    ],
    ids=["read", "next", "later", "contradicted"],
)
def test_an_offset_sync_before_the_group_proves_an_offset(
    sides: Sides, pairs: tuple[tuple[int, int], ...], at: int
) -> None:
    sides.translate("orders", ITEMS, (7, 5))
    sides.syncs = {ITEMS: history(pairs)}
    syncs = {"offset_syncs_topic": {"name": "mm2-offset-syncs.es-src.internal", "location": "target"}}
    found = work(UNPLANNED, of=known(syncs)).offsets()["groups"]["orders"]
    assert sides.target.held["orders"][ITEMS] == at
    assert found["setBack"] == ({} if at == 8 else {"items-0": 8 - at})
    sides.target.held["orders"][ITEMS] = 8
    syncs["offset_syncs_topic"]["location"] = "source"
    work(UNPLANNED, of=known(syncs)).offsets()
    assert sides.target.held["orders"][ITEMS] == 5, "the source is lost, and with it its offset syncs"


@pytest.mark.parametrize("path", [PLANNED, UNPLANNED])
def test_however_many_groups_there_are_the_logs_are_read_once(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A reading of all logs for each group takes ten thousand times as long, and is the same."""

    def readings(number: int) -> int:
        for at in range(number):
            sides.translate(f"g{at:04}", ITEMS, (5, 5))
            sides.target.states[f"g{at:04}"] = "EMPTY"
        read: list[int] = []
        sides.target.at = lambda: read.append(1)
        rows = [{**row, "group": f"g{at:04}"} for row in sides.proof.positions for at in range(number)]
        sides.proof = replace(sides.proof, positions=tuple(rows))
        found = work(path, exact=path == PLANNED).offsets()["groups"]
        assert len([group for group in found if group.startswith("g")]) == number
        return len(read)

    assert readings(2) == readings(700)


def test_a_group_that_is_set_back_everywhere_gets_a_few_lines(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    for number in range(100):
        tp = TopicPartition("items", number)
        sides.target.log[tp], sides.target.held["orders"][tp] = 12, 8
        sides.translate("orders", tp, (5, 5))
    failover = work(UNPLANNED)
    failover.say = said.append
    assert len(failover.offsets()["groups"]["orders"]["setBack"]) == 100
    assert said[-1] == "  group orders: set back in 95 more partitions"
    assert len(said) == 6


def test_an_offset_that_somebody_else_has_set_is_named_with_what_may_be_skipped(sides: Sides) -> None:
    sides.translate("orders", STORE, (1, 1))
    sides.target.begin[ITEMS] = 2
    sides.target.held["orders"][TopicPartition("local", 0)] = 9
    found = work(UNPLANNED).offsets()["groups"]["orders"]
    assert found["mayBeSkipped"] == {"items-0": 6}
    assert sides.target.held["orders"][ITEMS] == 8
    sides.target.begin[ITEMS] = 8
    assert work(UNPLANNED).offsets()["groups"]["orders"]["mayBeSkipped"] == {}, "there is nothing in front of it"


def test_a_group_of_the_targets_own_is_named_and_left(sides: Sides) -> None:
    found = work(UNPLANNED).offsets()["groups"]["orders"]
    assert (found["translated"], found["mayBeSkipped"], found["setBack"]) == (False, {}, {})
    assert sides.target.admin.changes == []


def test_checkpoints_that_cannot_be_read_keep_nobody_from_failing_over(sides: Sides) -> None:
    sides.unread = ("topic es-src.checkpoints.internal: no record came",)
    done = work(UNPLANNED).offsets()
    assert done["translationUnknown"] == "topic es-src.checkpoints.internal: no record came"
    assert (list(done["groups"]), sides.target.admin.changes) == (["orders"], [])
    with pytest.raises(OpsError, match="no record came"):
        work().offsets()


def test_what_the_records_have_proven_is_not_set_back_by_a_planned_failover(sides: Sides) -> None:
    sides.translate("orders", ITEMS, (5, 5))
    work().offsets()
    assert sides.target.held["orders"][ITEMS] == 8


def test_the_newest_checkpoint_of_each_mirrored_group_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def history(*downstream: int) -> CheckpointHistory:
        found = CheckpointHistory()
        for offset in downstream:
            found.add(Checkpoint(offset, offset))
        return found

    histories = {
        ("orders", "items", 0): history(5, 9, 7),
        ("orders", "items", 1): history(3),
        ("__ours", "items", 0): history(1),
        ("empty", "items", 0): CheckpointHistory(),
    }
    monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: OffsetTranslation(checkpoints=histories))
    target: Any = Cluster(known().request.target)
    assert translated_offsets.read(known(), target).offsets == {"orders": {("items", 0): 7, ("items", 1): 3}}
