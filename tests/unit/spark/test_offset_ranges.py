"""What a run reads of both sides while both logs grow."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from contract.verification_request import ClusterConfig, CountsFrom, Request
from kafka.cluster import Cluster, Topic
from kafka.errors import ClusterError, Refusals
from kafka.mirror_position import CutState
from kafka.topic_partition import TopicPartition
from spark.comparison.offset_ranges import OffsetRange, cleaned_copies
from spark.run_context import ranges_to_read

PLACE = TopicPartition("items", 0)


class Growing:
    """A log to which ten records are written before each answer, and a mirror that has copied all of them."""

    written = 100

    def __init__(self, open_from: int | None = None) -> None:
        self.open_from = open_from

    def ends(self, topic_partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        Growing.written += 10
        stable = isolation == "read_committed" and self.open_from is not None
        return dict.fromkeys(topic_partitions, cast("int", self.open_from) if stable else Growing.written)

    def starts(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(topic_partitions, 0)


class _Asked:
    """The little of a request that counts here."""

    class limits:  # noqa: N801 - a field of the request
        isolation = "read_committed"

    class mirror:  # noqa: N801 - a field of the request
        counts_from: Mapping[str, CountsFrom] = {}

        @staticmethod
        def target_topic(name: str) -> str:
            return name


class _Known(Growing):
    """A cluster with one topic of so many partitions, and one record in each of the target's."""

    def __init__(self, partitions: int, empty: Iterable[int] = ()) -> None:
        super().__init__()
        self.partitions = partitions
        self.empty = set(empty)
        self.asked = 0

    @property
    def topic(self) -> Topic:
        """Its topic as it is now."""
        return Topic("items", dict.fromkeys(range(self.partitions), 1), compacted=False)

    def topics(self, wanted: object) -> dict[str, Topic]:
        self.asked += 1
        return {"items": self.topic}

    def ends(self, topic_partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        return {tp: 0 if tp[1] in self.empty else 1 for tp in topic_partitions}


def surplus(source: _Known, target: _Known) -> list[tuple[int, int, int]]:
    """Partition, cut and target's end of what is read, where the source had one partition at the cut."""
    at_cut = {"items": Topic("items", {0: 1}, compacted=False)}
    request, state = cast("Request", _Asked), CutState({PLACE: 1})
    clusters = cast("Cluster", source), cast("Cluster", target)
    found = ranges_to_read(request, *clusters, at_cut, {"items": target.topic}, {PLACE: 0}, state)
    return [(one.partition, one.cut, one.target_end) for one in found]


def test_partitions_that_only_the_target_has_are_read_if_they_hold_anything() -> None:
    assert surplus(_Known(1), _Known(4, empty=[2])) == [(0, 1, 1), (1, 0, 1), (3, 0, 1)]


def test_partitions_that_the_source_was_given_after_the_cut_are_no_surplus() -> None:
    assert surplus(_Known(2), _Known(3)) == [(0, 1, 1), (2, 0, 1)]
    source = _Known(1)
    assert surplus(source, _Known(1)) == [(0, 1, 1)]
    assert source.asked == 0


def offset_range(open_from: int | None) -> Any:
    topics = {"items": Topic("items", {0: 1}, compacted=False)}
    source, target = cast("Cluster", Growing(open_from)), cast("Cluster", Growing())
    request = cast("Request", _Asked)
    (found,) = ranges_to_read(request, source, target, topics, topics, {PLACE: 0}, CutState({PLACE: 90}))
    return found


def test_what_the_target_holds_was_at_the_source_when_its_end_was_read() -> None:
    for open_from in (None, 95):
        found = offset_range(open_from)
        assert found.target_end <= found.source_last


def test_only_an_open_transaction_leaves_something_pending() -> None:
    found = offset_range(None)
    assert found.source_end == found.source_last
    found = offset_range(95)
    assert (found.source_end, found.source_last) == (95, found.pending_end)


class _CutOff(_Known):
    """A source whose log ends at 90: its leader was elected uncleanly, or the topic was created again."""

    refusals = Refusals(ClusterConfig(role="source", alias="es-src", client_config={}))

    def ends(self, topic_partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        return dict.fromkeys(topic_partitions, 90)


def test_a_log_that_ends_in_front_of_the_cut_is_an_error() -> None:
    source, target = cast("Cluster", _CutOff(1)), cast("Cluster", _Known(1))
    topics, request = {"items": _Known(1).topic}, cast("Request", _Asked)
    (found,) = ranges_to_read(request, source, target, topics, topics, {PLACE: 0}, CutState({PLACE: 90}))
    assert found.cut == 90
    with pytest.raises(ClusterError, match=r"the log of items-0 must not end in front of the cut \(got 90, "):
        ranges_to_read(request, source, target, topics, topics, {PLACE: 0}, CutState({PLACE: 91}))


@pytest.mark.parametrize(
    ("at_source", "at_target", "warned"),
    [(False, False, False), (True, True, False), (True, False, False), (False, True, True)],
)
def test_a_copy_that_only_the_target_compacts_is_warned_of_once(at_source: bool, at_target: bool, warned: bool) -> None:
    ranges = [
        OffsetRange(
            topic="items",
            partition=number,
            source_start=0,
            cut=10,
            source_end=10,
            target_topic="a.items",
            target_start=0,
            target_end=10,
            cleaned_at_source=at_source,
            cleaned_at_target=at_target,
        )
        for number in range(2)
    ]
    found = cleaned_copies(ranges)
    assert len(found) == warned
    assert all("target topic a.items is compacted, and topic items of the source is not" in line for line in found)
