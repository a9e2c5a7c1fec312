"""The comparison of one run: what an earlier run verified is left out, the rest is compared.

Owns what is compared at all, and whether by this process alone or by Spark. Does not own how, see compare.py,
nor the state, see state/.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contract.verification_request import Request
from kafka import checkpoints
from kafka.cluster import Cluster
from kafka.group_positions import GroupPosition, GroupPositions
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from spark.comparison import session_end
from spark.comparison.compare import Compared, Comparison
from spark.comparison.findings import PartitionResult
from spark.comparison.offset_ranges import OffsetRange, Reader
from spark.comparison.position_columns import by_partition
from spark.comparison.reading import SessionError
from spark.comparison.spark_engine import LocalFrames, SparkReader
from spark.comparison.spark_session import SessionStart, is_submitted
from spark.comparison.without_spark import WithoutSpark
from spark.progress import Progress
from spark.state.ledger import Ledger

_SMALL_RECORDS = 1_000_000  # on both sides together
ABOVE = "RT_INVENTORY_SPARK_ABOVE"
ABOVE_RECORDS = 6_000_000  # on both sides together, unless the environment says otherwise
_MIRROR_MAKERS = "\0"  # begins no group's name
Truth = dict[tuple[str, int, int], tuple[int | None, int | None]]


def positions_to_translate(request: Request, groups: Groups, cut: Mapping[TopicPartition, int]) -> list[GroupPosition]:
    """Return the offsets of MirrorMaker's checkpoints and offset syncs as positions to translate from the records."""
    return [
        GroupPosition(group=f"{_MIRROR_MAKERS}{offset}", topic=topic, partition=number, committed=offset, synced=None)
        for topic, number, offset in checkpoints.offsets_to_verify(groups.translation, groups.keys(request.mirror), cut)
    ]


def parted(judged: GroupPositions) -> tuple[GroupPositions, Truth]:
    """Return the groups' positions, and the true target offsets of MirrorMaker's checkpoints and offset syncs."""
    others, mirror_makers = judged.parted(lambda group: group.startswith(_MIRROR_MAKERS))
    truth = {(one.topic, one.partition, one.committed): (one.lowest, one.highest) for one in mirror_makers}
    return others, truth


class Comparer:
    """Compares the records between the two clusters of a request. Spark starts only if there is enough to read."""

    def __init__(
        self,
        request: Request,
        environment: Mapping[str, str],
        session_start: SessionStart,
        clusters: tuple[Cluster, Cluster],
    ) -> None:
        self._request = request
        self._starting = session_start
        self._clusters = clusters
        self._above = _above(environment)
        self._spark: SparkSession | None = None

    def begin(self, records: int) -> None:
        """Let Spark start in the background, if about so many records on both sides together are for it."""
        if records > self._above:
            self._starting.begin(small=_is_small(records))

    def compare(
        self,
        offset_ranges: list[OffsetRange],
        groups: Sequence[GroupPosition],
        mirror_makers: list[GroupPosition],
        progress: Progress,
        ledger: Ledger | None,
    ) -> Compared:
        """Return the result of each partition and each position; raises SessionError when it cannot be done."""
        whole = offset_ranges
        if ledger is not None:
            began = time.monotonic()
            offset_ranges = ledger.forward(whole, groups, progress)
            progress.step("load the state", began)
        # What MirrorMaker translated within what an earlier run verified is worth no second reading: it is not judged.
        starts = {TopicPartition(one.topic, one.partition): one.source_start for one in offset_ranges}
        positions = GroupPositions.of(groups).with_these(
            one for one in mirror_makers if one.committed >= starts[TopicPartition(one.topic, one.partition)]
        )
        if all(one.cut == one.source_start and one.target_end == one.target_start for one in offset_ranges):
            return Compared([_nothing(one) for one in offset_ranges], positions)
        try:
            compared = self._compared(offset_ranges, positions, progress)
            if ledger is not None and (topics := ledger.again(compared.partitions)):
                progress(f"comparing {len(topics)} topics whole, to find out what their findings are")
                again = [one for one in whole if one.topic in topics]
                places = [at for tp, held in by_partition(positions) if tp.topic in topics for at in held.tolist()]
                there = positions.chosen(places)
                there.forget_judgement()
                compared = compared.replaced(self._compared(again, there, progress), places)
        except (PySparkException, Py4JError, OSError, EOFError) as error:  # the last two: a connection to the JVM ends
            death = session_end.death(self._spark) if self._spark else None
            raise SessionError(session_end.message(error, self._request, death)) from None
        return compared

    def _compared(self, offset_ranges: Sequence[OffsetRange], groups: GroupPositions, progress: Progress) -> Compared:
        records = sum(one.offsets for one in offset_ranges)
        alone = records <= self._above and self._spark is None
        without = WithoutSpark(*self._clusters)
        local = LocalFrames(self._clusters, without.cache if alone else None)
        if not alone and (late := local.take_late(offset_ranges)):
            progress(f"{len(late)} partitions have timestamps that Spark cannot hold: they are read without it")
        if not alone and (small := local.take_small(offset_ranges)):
            progress(f"{len(small)} partitions hold few records: they are read without Spark")

        def on_spark() -> SparkReader:
            if self._spark is None:
                progress("starting Spark")
                self._spark = self._starting.session(small=_is_small(records))
            return SparkReader(self._spark, self._request, offset_ranges, local)

        reader: Reader[Any] = Reader(without, self._request, offset_ranges) if alone else on_spark()
        began = time.monotonic()
        progress("comparing records")
        compared = Comparison(reader, on_spark).run(groups, progress)
        progress.step("compare", began)
        return compared


def _above(environment: Mapping[str, str]) -> int:
    """Above how many records on both sides together Spark compares them. What is submitted to Spark, it compares."""
    if is_submitted(environment):
        return 0
    text = environment.get(ABOVE, str(ABOVE_RECORDS))
    if not text.isdecimal():
        raise SessionError(f"{ABOVE}: must be a number of records from 0 (got {text!r}). Correct it, or unset it.")
    return int(text)


def _is_small(records: int) -> bool:
    """Whether so few records on both sides together are compared soonest by a JVM with the quick compiler only."""
    return records < _SMALL_RECORDS


def _nothing(one: OffsetRange) -> PartitionResult:
    return PartitionResult(one.topic, one.partition, one.source_start, one.cut, one.target_start, one.target_end)
