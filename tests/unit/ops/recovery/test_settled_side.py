"""A side has settled once it no longer grows: what the tasks of a stopped mirror had in flight has arrived."""

from typing import Any

import pytest

from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining
from tests.support.recovery_pair import Clock, Side

ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(draining, "time", found)
    return found


def test_a_side_has_settled_when_it_does_not_grow_between_two_snapshots(clock: Clock) -> None:
    target: Any = Side("es-tgt", {ITEMS: 10})
    answers = iter([{ITEMS: 10}, {ITEMS: 12}, {ITEMS: 13}, {ITEMS: 13}])
    began = clock.now
    draining.settled(target, lambda _: next(answers), "rt-inventory-stg")
    assert clock.now - began == 3 * draining.SETTLED_AFTER_S


def test_copies_that_somebody_else_writes_to_are_reported(clock: Clock) -> None:
    target: Any = Side("es-tgt", {ITEMS: 10})

    def ends(side: Any) -> dict[TopicPartition, int]:
        side.log[ITEMS] += 1
        return {**side.log, STORE: 5}

    with pytest.raises(OpsError) as caught:
        draining.settled(target, ends, "rt-inventory-stg")
    assert str(caught.value) == (
        "cluster rt-inventory-stg: nothing may be written to the copies while the mirror is stopped (grew for 60 s: "
        "items-0). Stop who does, run this again."
    )
