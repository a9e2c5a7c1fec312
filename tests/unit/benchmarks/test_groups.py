"""The arithmetic of the benchmark of many groups, and that its records are those that a mirror writes."""

import json
from typing import Any

import pytest

from benchmarks import groups
from benchmarks.groups import Shape, ratios
from contract.verification_request import Mirror
from kafka import checkpoints, mirror_position
from kafka.topic_partition import TopicPartition

MIRROR = Mirror(name="mm2", source_alias="source", target_alias="target", topics=(groups.TOPIC,))


def row(number: int, what: str, seconds: float, of: int | None = None) -> dict[str, Any]:
    return {"groups": of or number, "partitions": 100, "what": what, "seconds": seconds}


def test_ten_times_the_groups_are_held_against_ten_times_the_seconds() -> None:
    found = ratios([row(1000, "status", 2.0), row(10_000, "status", 24.0), row(10_000, "plan", 9.0)])
    assert [(one["name"], one["value"], one["holds"]) for one in found] == [
        ("status: 10000 groups, to ten times 1000", pytest.approx(1.2), True)
    ]
    assert ratios([row(1000, "status", 2.0), row(10_000, "status", 27.0)])[0]["holds"] is False


def test_a_group_among_many_is_held_against_one_read_alone() -> None:
    alone = row(300, "read, one group at a time", 3.0)
    assert [one["value"] for one in ratios([alone, row(10_000, "read", 50.0)])] == [0.5]
    assert ratios([alone, row(10_000, "read", 90.0)])[0]["holds"] is False


def test_what_is_written_is_read_as_a_mirrors() -> None:
    shape = Shape.of("3x4")
    read = checkpoints.checkpoints((key, value) for _, _, key, value, _ in groups._checkpoints(shape))
    assert len(read) == 12
    last = read["group-00002", groups.TOPIC, 3].last
    assert last is not None
    assert (last.upstream, last.downstream) == (shape.committed(2, 3), shape.committed(2, 3) - 1)
    positions: dict[TopicPartition, int] = {}
    rows = ((key, value) for _, _, key, value, _ in groups._positions(shape))
    mirror_position.apply_positions(positions, rows, MIRROR)
    assert positions == {(groups.TOPIC, number): groups.RECORDS - 1 for number in range(4)}
    committed = {shape.committed(group, number) for group in range(50) for number in range(50)}
    assert min(committed) >= 1
    assert max(committed) < groups.RECORDS
    assert MIRROR.checkpoints_name == groups.CHECKPOINTS_TOPIC
    assert json.loads(next(groups._positions(shape))[2])[0] == MIRROR.source_connector
