"""Two hundred groups of fifty partitions on two real brokers: all are seen, set exactly, and kept in a small journal.

A small form of `benchmarks.groups`: each command's own functions, in processes of their own.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from benchmarks import groups
from benchmarks.clusters import SOURCE, TARGET, Clusters, running
from benchmarks.groups import Shape
from ops.recovery.journal_store import BYTES_PER_POSITION
from sandbox.toolchain import Tools

pytestmark = pytest.mark.nightly

SHAPE = Shape(200, 50)
POSITIONS = SHAPE.groups * SHAPE.partitions


@pytest.fixture(scope="module")
def done(
    tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Clusters, dict[str, dict[str, Any]]]]:
    """The clusters after status, plan, both failovers and the failback, and what was measured of each by its name."""
    with running(tools, with_worker=False) as clusters:
        groups.fill(clusters, SHAPE)
        rows = groups.measure(clusters, SHAPE, tmp_path_factory.mktemp("many-groups"))
        yield clusters, {row["what"]: row for row in rows}


def offsets(clusters: Clusters, side: str) -> dict[tuple[int, int], int]:
    """Where each group stands in each partition, as a plain client finds it."""
    admin, found = clusters.admin(side), {}
    for at in range(SHAPE.groups):
        asked = [ConsumerGroupTopicPartitions(SHAPE.name(at))]
        answer = admin.list_consumer_group_offsets(asked, request_timeout=30)[SHAPE.name(at)].result()
        found |= {(at, part.partition): part.offset for part in answer.topic_partitions}
    return found


def test_every_position_is_seen_and_set(done: tuple[Clusters, dict[str, dict[str, Any]]]) -> None:
    clusters, rows = done
    offsets_of = ("unplanned failover: offsets", "planned failover: offsets", "failback: offsets")
    assert {what: rows[what]["positions"] for what in ("read", "status", *offsets_of)} == dict.fromkeys(
        ("read", "status", *offsets_of), POSITIONS
    )
    assert rows["failback: forward"]["checkpoints"] == POSITIONS
    everywhere = [(at, number) for at in range(SHAPE.groups) for number in range(SHAPE.partitions)]
    exact = {place: SHAPE.committed(*place) for place in everywhere}
    assert offsets(clusters, TARGET) == exact, "what the planned failover has set, by the records"
    assert offsets(clusters, SOURCE) == {place: offset + 1 for place, offset in exact.items()}


def test_the_journal_of_many_groups_is_small(done: tuple[Clusters, dict[str, dict[str, Any]]]) -> None:
    _, rows = done
    kept = {what: row["journalBytes"] for what, row in rows.items() if "journalBytes" in row}
    assert len(kept) == 3
    assert max(kept.values()) <= 2 * POSITIONS * BYTES_PER_POSITION, kept
