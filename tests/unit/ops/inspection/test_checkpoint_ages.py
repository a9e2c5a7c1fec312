"""For how long a group's position was not carried over, by checkpoints and by the records that it has read since."""

import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetTranslation
from kafka.group_positions import GroupPosition
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from ops.inspection import group_status
from tests.support.recovery_pair import known

ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)
NOW = 1_790_000_000.0


class Log:
    """The source as a consumer sees it: the age of each record in seconds by partition, oldest first."""

    def __init__(self, **ages_s: list[float]) -> None:
        self.records = {{"items": ITEMS, "store": STORE}[name]: found for name, found in ages_s.items()}
        self.at: dict[Any, int] = {}
        self.paused: set[Any] = set()
        self.fetched: deque[tuple[Any, int]] = deque()
        self.read = 0
        self.kind = TIMESTAMP_CREATE_TIME

    def consumer(self, isolation: str) -> "Log":
        return self

    def assign(self, partitions: list[ClientTopicPartition]) -> None:
        self.at = {(one.topic, one.partition): one.offset for one in partitions}

    def seek(self, tp: ClientTopicPartition) -> None:
        self.at[tp.topic, tp.partition] = tp.offset

    def pause(self, partitions: list[ClientTopicPartition]) -> None:
        self.paused |= {(one.topic, one.partition) for one in partitions}

    def consume(self, number: int, timeout: float) -> list[Any]:
        found = []
        for tp, at in self.at.items():
            for offset in range(at, min(at + 2, len(self.records[tp]))) if tp not in self.paused else ():
                found += [self.message(tp, offset)]
        self.read += len(found)
        return found

    def message(self, tp: Any, offset: int) -> Any:
        stamp = int((NOW - self.records[tp][offset]) * 1000)
        reported = {"topic": tp[0], "partition": tp[1], "offset": offset, "error": None}
        reported["timestamp"] = (self.kind, stamp)
        return SimpleNamespace(**{name: (lambda value=value: value) for name, value in reported.items()})

    def close(self) -> None:
        self.at = {}


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr(group_status, "WITHIN_S", 0.3)


def position(committed: int, synced: int, tp: tuple[str, int] = ITEMS, **changed: Any) -> GroupPosition:
    name = changed.pop("group", "orders")
    return GroupPosition(group=name, topic=tp[0], partition=tp[1], committed=committed, synced=synced, **changed)


def translation(*message: tuple[str, tuple[str, int], int, int, float | None]) -> OffsetTranslation:
    """Newest checkpoints: group, partition, upstream, downstream, and how long ago it was written."""
    found = {}
    for group, tp, upstream, downstream, age_s in message:
        history = CheckpointHistory()
        history.add(Checkpoint(upstream, downstream, None if age_s is None else int((NOW - age_s) * 1000)))
        found[group, *tp] = history
    return OffsetTranslation(checkpoints=found)


def ages(log: Log, found: OffsetTranslation, *repeating: GroupPosition, **mirror: Any) -> dict[str, float | None]:
    source: Any = log
    return group_status.checkpoint_ages(source, known(mirror).request, Groups(translation=found), repeating)


def test_a_group_that_went_on_is_behind_since_the_first_record_that_it_read_since() -> None:
    log = Log(items=[900, 800, 40, 30, 20])
    reported = ages(log, translation(("orders", ITEMS, 2, 2, 600)), position(4, 2))
    assert reported == {"orders": 40.0}, "the checkpoint is older, but the group stood there until then"


def test_a_group_that_caught_up_since_is_behind_no_longer_than_the_checkpoint() -> None:
    log = Log(items=[900, 800, 700, 30, 20])
    assert ages(log, translation(("orders", ITEMS, 2, 2, 60)), position(4, 2)) == {"orders": 60.0}


def test_a_checkpoint_that_was_not_set_on_the_target_counts_from_when_it_was_written() -> None:
    assert ages(Log(items=[9] * 9), translation(("orders", ITEMS, 8, 8, 60)), position(8, 3)) == {"orders": 60.0}


def test_a_position_that_was_translated_as_it_stands_is_not_behind_however_inexact() -> None:
    log = Log(items=[9] * 9)
    assert ages(log, translation(("orders", ITEMS, 8, 3, 60)), position(8, 3)) == {"orders": 0.0}
    assert log.read == 0


def test_the_partition_that_is_behind_the_longest_counts() -> None:
    log = Log(items=[40, 30], store=[500, 400])
    reported = translation(("orders", ITEMS, 0, 0, 900), ("orders", STORE, 1, 1, 900))
    assert ages(log, reported, position(2, 0), position(2, 1, STORE)) == {"orders": 400.0}


def test_several_groups_in_one_partition_are_each_asked_for() -> None:
    log = Log(items=[float(n) for n in range(90, 0, -1)])
    names = {f"group-{at}": at for at in (70, 3, 50, 4)}
    reported = translation(*((name, ITEMS, at, at, 900) for name, at in names.items()))
    found = ages(log, reported, *(position(80, at, group=name) for name, at in names.items()))
    assert found == {name: 90.0 - at for name, at in names.items()}
    assert log.read < 20


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ((), {}),
        ((("orders", ITEMS, 0, 0, None),), {}),
        ((("orders", ITEMS, 0, 0, 60),), {"active": True}),
    ],
    ids=["no checkpoint", "one without a time", "members on the target"],
)
def test_what_is_unknown_is_not_reported(claim: Any, changed: dict[str, Any]) -> None:
    assert ages(Log(items=[9, 9]), translation(*claim), position(2, 0, **changed)) == {"orders": None}


def test_records_that_cannot_be_read_in_time_or_have_no_time_make_it_unknown() -> None:
    reported = translation(("orders", ITEMS, 2, 2, 60))
    assert ages(Log(items=[9, 9]), reported, position(3, 2)) == {"orders": None}
    log = Log(items=[9, 9, 9])
    log.kind = TIMESTAMP_NOT_AVAILABLE
    assert ages(log, reported, position(3, 2)) == {"orders": None}


YEAR_S = 31_536_000.0


@pytest.mark.parametrize(("ahead_s", "age_s"), [(30.0, 0.0), (3600.0, 60.0), (YEAR_S, 60.0)])
def test_a_time_that_lies_ahead_is_no_age_below_zero_and_leaves_the_checkpoint_as_the_bound(
    ahead_s: float, age_s: float
) -> None:
    log = Log(items=[-ahead_s, -ahead_s])
    assert ages(log, translation(("orders", ITEMS, 0, 0, 60)), position(2, 0)) == {"orders": age_s}


def test_a_mirror_that_syncs_no_offsets_carries_nothing_over() -> None:
    reported = translation(("orders", ITEMS, 0, 0, 60))
    assert ages(Log(items=[9, 9]), reported, position(2, 0), sync_group_offsets=False) == {"orders": None}
