"""Who compares: this process alone few records, Spark many."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from io import StringIO
from typing import Any, cast

import pytest

from kafka.group_positions import GroupPosition, GroupPositions
from kafka.topic_partition import TopicPartition
from spark.comparison import comparer as comparison
from spark.comparison.compare import Compared
from spark.comparison.comparer import ABOVE, ABOVE_RECORDS, Comparer, TrueOffsets, parted
from spark.comparison.offset_ranges import OffsetRange
from spark.comparison.reading import SessionError
from spark.comparison.spark_engine import SMALL_PARTITIONS, SparkEngine, SparkReader
from spark.comparison.spark_session import SessionStart
from spark.progress import Progress

from ...support.compared_logs import MadeUpSide, request


class Begun:
    """Notes with what Spark is begun."""

    def __init__(self) -> None:
        self.small: list[bool] = []

    def begin(self, *, small: bool) -> Future[Any]:
        self.small.append(small)
        return Future()


def begun(records: int, **environment: str) -> list[bool]:
    session_start = Begun()
    Comparer(cast("Any", None), environment, cast("SessionStart", session_start), cast("Any", ())).begin(records)
    return session_start.small


def test_spark_is_begun_for_many_records_only_and_compiles_well_for_very_many() -> None:
    assert begun(ABOVE_RECORDS) == []
    assert begun(ABOVE_RECORDS + 1) == [False]
    assert begun(999_999, RT_INVENTORY_SPARK_ABOVE="0") == [True]
    assert begun(1_000_000, RT_INVENTORY_SPARK_ABOVE="0") == [False]


def test_the_environment_says_above_how_many() -> None:
    assert begun(1, RT_INVENTORY_SPARK_ABOVE="0") == [True]
    assert begun(0, RT_INVENTORY_SPARK_ABOVE="0") == []
    assert begun(2_000_000, RT_INVENTORY_SPARK_ABOVE="2000000") == []


@pytest.mark.parametrize("value", ["many", "-1", "", "1e6"])
def test_what_is_no_number_of_records_is_refused(value: str) -> None:
    with pytest.raises(SessionError, match=f"^{ABOVE}: must be a number of records from 0"):
        begun(1, **{ABOVE: value})


class Ready(Begun):
    """Has a session at once, which nothing is asked of."""

    def session(self, *, small: bool) -> Any:
        return None


@dataclass
class Late:
    """A cluster whose partition 1 has a timestamp that Spark cannot hold."""

    side: MadeUpSide
    asked: int = 0

    def offsets(self, partitions: Sequence[TopicPartition], *_: object) -> dict[TopicPartition, int]:
        self.asked += 1
        return {tp: 0 if tp[1] == 1 else -1 for tp in partitions}


@pytest.mark.parametrize(("above", "local", "asked"), [("0", [False, True], 1), ("1000", [True, True], 0)])
def test_spark_reads_no_partition_that_it_cannot_and_none_at_all_of_a_run_without_it(
    monkeypatch: pytest.MonkeyPatch, above: str, local: list[bool], asked: int
) -> None:
    opened: list[Callable[[], SparkReader]] = []

    class Compares:
        def __init__(self, _: object, on_spark: Callable[[], SparkReader]) -> None:
            opened.append(on_spark)

        def run(self, *_: object) -> Compared:
            return Compared([], [])

    monkeypatch.setattr(comparison, "Comparison", Compares)
    clusters = [Late(MadeUpSide(role)) for role in ("source", "target")]
    comparer = Comparer(
        cast("Any", request()), {ABOVE: above}, cast("SessionStart", Ready()), cast("Any", tuple(clusters))
    )
    offset_ranges = [
        OffsetRange(topic="t", partition=number, source_start=0, cut=9, source_end=9, target_topic="t", target_start=0,
               target_end=9)
        for number in range(2)
    ]  # fmt: skip
    comparer.compare(offset_ranges, [], {}, Progress(), None)
    engine = cast("SparkEngine", opened[0]().engine)
    assert [engine._local.holds(one.topic_partition) for one in offset_ranges] == local
    assert [one.asked for one in clusters] == [asked, asked]


def test_many_partitions_with_few_records_are_read_without_spark_though_it_compares_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readers: list[SparkReader] = []

    class Compares:
        def __init__(self, reader: SparkReader, _: object) -> None:
            readers.append(reader)

        def run(self, *_: object) -> Compared:
            return Compared([], [])

    monkeypatch.setattr(comparison, "Comparison", Compares)
    clusters = tuple(Late(MadeUpSide(role)) for role in ("source", "target"))
    comparer = Comparer(cast("Any", request()), {ABOVE: "0"}, cast("SessionStart", Ready()), cast("Any", clusters))
    offset_ranges = [
        OffsetRange(topic="t", partition=number, source_start=0, cut=1, source_end=1, target_topic="t", target_start=0,
               target_end=1)
        for number in range(SMALL_PARTITIONS)
    ]  # fmt: skip
    stream = StringIO()
    comparer.compare(offset_ranges, [], {}, Progress(stream), None)
    engine = cast("SparkEngine", readers[0].engine)
    assert all(engine._local.holds(one.topic_partition) for one in offset_ranges)
    assert f"{SMALL_PARTITIONS - 1} partitions hold few records: they are read without Spark" in stream.getvalue()


def test_offsets_of_checkpoints_and_syncs_are_translated_from_where_the_comparison_begins() -> None:
    comparer = Comparer(cast("Any", request()), {}, cast("SessionStart", Ready()), cast("Any", ()))
    offset_ranges = [
        OffsetRange(topic="t", partition=number, source_start=5, cut=5, source_end=5, target_topic="t", target_start=0,
               target_end=0)
        for number in range(3)
    ]  # fmt: skip
    group = GroupPosition(group="g", topic="t", partition=1, committed=5, synced=None)
    wanted = {TopicPartition("t", 0): [3, 5, 9], TopicPartition("t", 1): [4], TopicPartition("t", 2): [7]}
    others, found = parted(comparer.compare(offset_ranges, [group], wanted, Progress(), None).groups)
    assert others == [group]
    assert dict(found) == dict.fromkeys([("t", 0, 5), ("t", 0, 9), ("t", 2, 7)], (None, None))
    assert len(found) == 3


def test_the_true_offsets_of_a_source_offset_are_found_by_it() -> None:
    images = {("t", 0, 5): (6, 8), ("t", 0, 9): (None, None), ("u", 0, 5): (0, 0)}
    judged = GroupPositions()
    for (topic, number, offset), (lowest, highest) in images.items():
        fields: dict[str, Any] = {"topic": topic, "partition": number, "committed": offset, "synced": None}
        judged.append(GroupPosition(group="", lowest=lowest, highest=highest, **fields))
    found = TrueOffsets(judged)
    assert found == images
    assert not any(other in found for other in [("t", 0, 4), ("t", 0, 6), ("t", 0, 10), ("t", 1, 5)])
