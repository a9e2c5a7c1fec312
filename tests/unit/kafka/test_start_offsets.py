"""From where a mirror counts: read from the request, looked up on the target, and no sign of a lost beginning."""

import copy
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from contract.documents import parse
from contract.fields import RequestError
from contract.verification_request import Mirror
from kafka import mirror_position
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.comparison.offset_ranges import OffsetRange

from ..contract.test_request import ENVIRONMENT, GOOD

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def mirror(value: object) -> Mirror:
    document = copy.deepcopy(GOOD)
    document["mirror"]["counts_from"] = value
    return parse(document, ENVIRONMENT).mirror


class Target:
    """A cluster whose partition 0 has a record of noon at offset 7, and whose partition 1 has none so young."""

    def ends(self, partitions: Iterable[TopicPartition], _isolation: str) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 40)

    def offsets(self, partitions: Iterable[TopicPartition], spec: Any, _isolation: str) -> dict[TopicPartition, int]:
        assert spec._value == NOON.timestamp() * 1000
        return {tp: 7 if tp[1] == 0 else -1 for tp in partitions}


def test_a_time_or_offsets_say_from_where_a_topic_counts() -> None:
    assert mirror({"items": "2026-01-31T12:00:00Z"}).counts_from == {"items": NOON}
    assert mirror({"items": {"0": 12, "3": 0}}).counts_from == {"items": {0: 12, 3: 0}}
    assert mirror(None).counts_from == {}


@pytest.mark.parametrize("value", ["2026-01-31", "2026-01-31T12:00:00", {}, {"x": 1}, {"0": -1}, {"0": True}, 12])
def test_anything_else_is_refused_by_topic_and_value(value: object) -> None:
    with pytest.raises(RequestError, match=r"mirror\.counts_from: items must be a time with its zone") as caught:
        mirror({"items": value})
    assert repr(value) in str(caught.value)


def test_a_topic_that_the_mirror_does_not_carry_is_refused() -> None:
    with pytest.raises(RequestError, match=r"counts_from must name topics that the mirror carries \(got other,"):
        mirror({"other": {"0": 1}})


def test_offsets_are_taken_as_they_are_and_times_are_looked_up() -> None:
    there = [("items", 0), ("items", 1), ("store.a", 0), ("store.b", 0)]
    asked = mirror({"items": "2026-01-31T12:00:00Z", "store.a": {"0": 5}})
    found = mirror_position.first_judged(cast("Cluster", Target()), asked, there)
    assert found == {("items", 0): 7, ("items", 1): 40, ("store.a", 0): 5}
    (line, other) = mirror_position.older_records([*found.items(), (("store.b", 0), 0)])
    assert "items" in line
    assert "0: 7, 1: 40" in line
    assert "store.a" in other


def test_what_is_written_between_the_two_questions_is_not_left_out() -> None:
    """A cluster to which four records are written while it is asked: they have the time that is asked for."""

    class Growing(Target):
        end = 17

        def ends(self, partitions: Iterable[TopicPartition], _isolation: str) -> dict[TopicPartition, int]:
            found, self.end = self.end, self.end + 4
            return dict.fromkeys(partitions, found)

        def offsets(self, partitions: Iterable[TopicPartition], spec: Any, isolation: str) -> dict[TopicPartition, int]:
            found = super().offsets(partitions, spec, isolation)
            self.end += 4
            return found

    moment, tp = int(NOON.timestamp() * 1000), TopicPartition("items", 1)
    assert mirror_position.first_from(cast("Cluster", Growing()), [tp], moment) == {tp: 17}


def test_a_log_that_still_holds_where_the_mirror_counts_from_has_not_lost_its_beginning() -> None:
    def removed(start: int, counts_from: int) -> int:
        return OffsetRange(
            topic="items",
            partition=0,
            source_start=0,
            cut=10,
            source_end=10,
            target_topic="items",
            target_start=start,
            target_counts_from=counts_from,
            target_end=20,
        ).removed_at_target

    assert removed(5, 5) == 0
    assert removed(6, 5) == 1
    assert removed(1, 0) == 1
