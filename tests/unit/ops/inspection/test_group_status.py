"""What is said of groups, as far as the mirror's position is known."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kafka import groups
from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetTranslation
from kafka.group_positions import GroupPosition
from kafka.groups import Groups
from kafka.lag import Measure, PartitionLag
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.inspection import group_status, snapshot
from ops.inspection.group_status import GroupStatus
from ops.inspection.probes import ClusterReadings
from ops.recovery.journal import Journal
from tests.support.recovery_pair import Kept, Side, entry, known

ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)


def position(tp: tuple[str, int], committed: int, synced: int | None) -> GroupPosition:
    return GroupPosition(group="orders", topic=tp[0], partition=tp[1], committed=committed, synced=synced)


def measure(**records: int) -> Measure:
    """How many records of `items` are not copied."""
    parts = [
        PartitionLag(topic=tp[0], partition=tp[1], position=None, source_end=10, records=left, seconds=0.0)
        for tp, left in ((ITEMS, records.get("items", 0)), (STORE, 0))
    ]
    return Measure(at_s=0.0, partitions=tuple(parts))


def mirrored(source: Any, target: Any, lag: Measure | None) -> GroupStatus:
    """The status of the only group of these clusters."""
    clusters = ClusterReadings(source, debug=True), ClusterReadings(target, debug=True)
    readings: Any = SimpleNamespace(pair=known(), source=clusters[0], target=clusters[1])
    (one,) = group_status.mirrored_groups(readings, [ITEMS, STORE], lag, {})
    return one


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is known of group orders: 7 of 10 read and synced at 5 in one partition, 1 of 5 read in one not synced."""
    found = Groups(
        positions=[position(ITEMS, 7, 5), position(STORE, 1, None)],
        source_states={"orders": "STABLE"},
        target_states={"orders": "EMPTY"},
    )
    monkeypatch.setattr(groups, "collect", lambda *_: found)
    source: Any = Side("es-src", {ITEMS: 10, STORE: 5})
    target: Any = Side("es-tgt", {ITEMS: 10, STORE: 5})

    def reported(lag: Measure | None, arrived: int = 0) -> GroupStatus:
        source.log[ITEMS] = 10 + arrived
        target.log[ITEMS] = 10 - (lag.partitions[0].records if lag else 0)
        return mirrored(source, target, lag)

    return reported


def test_what_a_group_would_read_again_is_what_lies_behind_where_it_was_synced(look: Any) -> None:
    one = look(measure())
    assert (one.unread, one.again, one.skipped, one.unsynced) == (3 + 4, 2, 0, ("store.inventory-1",))
    assert one.behind_s is None, "no checkpoint tells since when"


def test_a_group_has_its_offsets_by_partition(look: Any) -> None:
    items, store = look(measure(items=2)).offsets
    assert (items.topic, items.source, items.source_lag, items.target, items.target_lag) == ("items", 7, 3, 5, 3)
    assert (items.again, items.skipped) == (2, 0)
    assert (store.target_topic, store.source_lag, store.target, store.again) == ("store.inventory", 4, None, None)


def test_records_that_are_not_copied_are_read_neither_again_nor_skipped(look: Any) -> None:
    one = look(measure(items=2))
    assert (one.unread, one.again, one.skipped) == (3 + 4, 2, 0)


def test_records_that_came_after_the_lag_was_measured_are_not_taken_for_skipped(look: Any) -> None:
    assert look(measure(), arrived=5).skipped == 0


@pytest.mark.parametrize(
    ("checkpoint", "skipped"),
    [
        (Checkpoint(4, 3), 0),
        (Checkpoint(3, 3), 0),
        (Checkpoint(4, 2), 2),
        (Checkpoint(5, 3), 2),
        (None, 2),
    ],
    ids=["of its position", "of an earlier one", "before the synced one", "of a later one: it went back", "none"],
)
def test_offsets_that_transactions_take_at_the_source_alone_are_no_records_that_a_group_skips(
    monkeypatch: pytest.MonkeyPatch, checkpoint: Checkpoint | None, skipped: int
) -> None:
    """Read up to 4 of 10 at the source, where 3 are markers of transactions: 3 of 7 on the target."""
    history = CheckpointHistory()
    if checkpoint is not None:
        history.add(checkpoint)
    found = Groups(
        positions=[position(ITEMS, 4, 3)],
        source_states={"orders": "EMPTY"},
        target_states={"orders": "EMPTY"},
        translation=OffsetTranslation(checkpoints={("orders", *ITEMS): history}),
    )
    monkeypatch.setattr(groups, "collect", lambda *_: found)
    source: Any = Side("es-src", {ITEMS: 10, STORE: 5})
    target: Any = Side("es-tgt", {ITEMS: 7, STORE: 5})
    assert mirrored(source, target, measure()).skipped == skipped


def test_without_the_mirrors_position_nobody_knows_what_would_be_read_again(look: Any) -> None:
    one = look(None)
    assert (one.unread, one.again, one.skipped, one.unsynced) == (3 + 4, None, None, ())
    assert (one.source_state, one.target_state) == ("STABLE", "EMPTY")


def test_of_many_groups_that_cannot_be_read_each_has_its_reason_and_the_snapshot_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"g{number:04}" for number in range(1000)]

    def collect(*arguments: Any) -> Groups:
        arguments[4].update({name: f"user mirror may not Describe group {name}." for name in names[1:]})
        return Groups(source_states=dict.fromkeys(names, "EMPTY"))

    monkeypatch.setattr(groups, "collect", collect)
    sides: Any = Side("es-src", {ITEMS: 10}), Side("es-tgt", {ITEMS: 10})
    clusters = [ClusterReadings(side, debug=True) for side in sides]
    readings: Any = SimpleNamespace(pair=known(), source=clusters[0], target=clusters[1])
    unknown: dict[str, str] = {}
    found = group_status.mirrored_groups(readings, [ITEMS], measure(), unknown)
    assert [one.problem for one in found] == [
        None,
        *(f"user mirror may not Describe group {name}." for name in names[1:]),
    ]
    assert unknown["groups"].endswith("Describe group g0005.; and 994 more groups")


def test_the_journal_of_the_mirror_is_read_also_for_its_failback_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def load(namespace: str, mirror: str, *_: object, whole: bool) -> Kept:
        asked.append((namespace, mirror))
        return Kept({**entry(finished=None, drain={}, stop={}), "options": {"path": "planned", "exact": False}})

    monkeypatch.setattr(Journal, "load", load)
    back = replace(known(), mirror="mm2-failback")
    for of in (known(), back):
        recovery, why = snapshot._recovery(of, {})
        assert recovery is not None
        assert (recovery.state, recovery.continue_with, why) == (
            "interrupted",
            "python -m ops failover --to stg --mirror mm2",
            None,
        )
    assert asked == [("rt-inventory-stg", "mm2")] * 2


def test_a_journal_that_cannot_be_read_is_unknown_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object, whole: bool) -> Kept:
        raise OpsError("kubernetes: access must be given")

    monkeypatch.setattr(Journal, "load", load)
    assert snapshot._recovery(known(), {}) == (None, "kubernetes: access must be given")
