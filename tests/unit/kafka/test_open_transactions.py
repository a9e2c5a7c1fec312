"""Which transactions were open from the cut to the end of a run, and which of them must be taken for hanging."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE

from kafka import open_transactions
from kafka.cluster import Cluster
from kafka.open_transactions import LONGEST_S, OpenTransaction, still_open
from kafka.topic_partition import TopicPartition

HERE, THERE = TopicPartition("items", 0), TopicPartition("items", 1)
NOW_S = 1_800_000_000.0
Stamp = tuple[int, int]


class Source:
    """A cluster that answers with stable offsets, and with one record of each partition: its offset and timestamp."""

    def __init__(self, stable: Mapping[TopicPartition, int], record: tuple[int, Stamp] | None = None) -> None:
        self.stable, self.record = stable, record
        self.asked: list[object] = []

    def ends(self, partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        assert isolation == "read_committed"
        self.asked.append("ends")
        return {tp: self.stable[tp] for tp in partitions}

    def consumer(self, isolation: str) -> Any:
        assert isolation == "read_uncommitted"
        return SimpleNamespace(assign=self._assign, poll=lambda _: self._message(), close=lambda: None)

    def _assign(self, places: list[Any]) -> None:
        self.asked += [(one.topic, one.partition, one.offset) for one in places]

    def _message(self) -> Any:
        if self.record is None:
            return None
        offset, stamp = self.record
        return SimpleNamespace(error=lambda: None, offset=lambda: offset, timestamp=lambda: stamp)


def found(source: Source, cut: Mapping[TopicPartition, int], written: Mapping[TopicPartition, int]) -> Any:
    return still_open(cast("Cluster", source), cut, written, lambda: NOW_S)


def written(seconds_ago: float) -> Stamp:
    return TIMESTAMP_CREATE_TIME, int((NOW_S - seconds_ago) * 1000)


def test_a_cut_without_open_transactions_asks_nothing() -> None:
    source = Source({})
    assert found(source, {HERE: 12, THERE: 9}, {HERE: 12, THERE: 8}) == []
    assert found(source, {HERE: 12}, {}) == []
    assert not source.asked


def test_a_transaction_that_has_ended_meanwhile_is_none() -> None:
    source = Source({HERE: 12})
    assert found(source, {HERE: 10, THERE: 9}, {HERE: 12, THERE: 9}) == []
    assert source.asked == ["ends"]


OLD = f"its first record, offset 12, is more than {LONGEST_S // 60} min old by its timestamp"
GONE = "its first record, offset 12, cannot be read any more"


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ((12, written(LONGEST_S - 1)), ""),
        ((12, written(LONGEST_S + 1)), OLD),
        ((14, written(0)), GONE),
        ((12, (TIMESTAMP_NOT_AVAILABLE, 0)), GONE),
        (None, GONE),
    ],
    ids=["young", "old", "removed", "without a time", "no answer"],
)
def test_its_first_record_decides_whether_it_may_hang(
    record: tuple[int, Stamp] | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier transaction, from the cut at 10 on, has ended: what it held is not judged either."""
    monkeypatch.setattr(open_transactions, "CALL_DEADLINE_S", 0.05)
    source = Source({HERE: 12, THERE: 30}, record)
    (one,) = found(source, {HERE: 10, THERE: 20}, {HERE: 25, THERE: 30})
    assert one == OpenTransaction(HERE, 10, 24, why)
    assert source.asked == ["ends", ("items", 0, 12)]
    assert ("find-hanging" in str(one)) is bool(why)
    assert why in str(one)
    assert "source offsets 10 to 24 are not judged" in str(one)
