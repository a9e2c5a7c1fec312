"""Which transactions were open from the cut to the end of a run, and which of them hang."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from kafka.cluster import Cluster
from kafka.open_transactions import LONGEST_S, OpenTransaction, still_open
from kafka.topic_partition import TopicPartition

HERE, THERE = TopicPartition("items", 0), TopicPartition("items", 1)
NOW_S = 1_800_000_000.0


class Source:
    """A cluster that answers with stable offsets and, for a time, with the first offset that is not older."""

    def __init__(self, stable: Mapping[TopicPartition, int], younger: int = 0) -> None:
        self.stable, self.younger = stable, younger
        self.asked: list[object] = []

    def ends(self, partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        assert isolation == "read_committed"
        self.asked.append("ends")
        return {tp: self.stable[tp] for tp in partitions}

    def offsets(self, partitions: Iterable[TopicPartition], spec: Any, isolation: str) -> dict[TopicPartition, int]:
        assert (spec._value, isolation) == ((NOW_S - LONGEST_S) * 1000, "read_uncommitted")
        self.asked.append("offsets")
        return dict.fromkeys(partitions, self.younger)


def found(source: Source, cut: Mapping[TopicPartition, int], written: Mapping[TopicPartition, int]) -> Any:
    return still_open(cast("Cluster", source), cut, written, lambda: NOW_S)


def test_a_cut_without_open_transactions_asks_nothing() -> None:
    source = Source({})
    assert found(source, {HERE: 12, THERE: 9}, {HERE: 12, THERE: 8}) == []
    assert found(source, {HERE: 12}, {}) == []
    assert not source.asked


def test_a_transaction_that_has_ended_meanwhile_is_none() -> None:
    source = Source({HERE: 12})
    assert found(source, {HERE: 10, THERE: 9}, {HERE: 12, THERE: 9}) == []
    assert source.asked == ["ends"]


@pytest.mark.parametrize(
    ("younger", "hangs"),
    [(3, False), (10, False), (11, True), (-1, True)],
    ids=["all-are-young", "its-first-is-young", "only-what-follows-is-young", "all-are-old"],
)
def test_one_hangs_if_its_first_record_is_older_than_a_transaction_may_be(younger: int, hangs: bool) -> None:
    (one,) = found(Source({HERE: 10, THERE: 30}, younger), {HERE: 10, THERE: 20}, {HERE: 25, THERE: 30})
    assert one == OpenTransaction(HERE, 10, 24, hangs)
    assert ("find-hanging" in str(one)) is hangs
    assert "source offsets 10 to 24 are not judged" in str(one)
