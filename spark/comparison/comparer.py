"""The comparison of one run: what an earlier run verified is left out, the rest is compared.

Owns what is compared at all, and whether by this process alone or by Spark. Does not own how, see compare.py,
nor the state, see state/.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contract.verification_request import Request
from kafka.checkpoints import SourceOffset
from kafka.cluster import Cluster
from kafka.group_positions import NONE, GroupPosition, GroupPositions
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
_MIRROR_MAKERS = "\0"  # no group's name


class TrueOffsets(Mapping[SourceOffset, tuple[int | None, int | None]]):
    """The lowest and the highest target offset of source offsets, by column: there may be a million."""

    def __init__(self, judged: GroupPositions) -> None:
        """Take the positions of a partition behind each other, sorted by their offset at the source."""
        self._offsets, self._lowest, self._highest = (
            judged.numbers[name] for name in ("committed", "lowest", "highest")
        )
        self._places = {tp: (int(places[0]), int(places[-1]) + 1) for tp, places in by_partition(judged)}

    def __getitem__(self, key: SourceOffset) -> tuple[int | None, int | None]:
        topic, number, offset = key
        low, high = self._places[TopicPartition(topic, number)]
        at = bisect_left(self._offsets, offset, low, high)
        if at == high or self._offsets[at] != offset:
            raise KeyError(key)
        lowest, highest = self._lowest[at], self._highest[at]
        return None if lowest == NONE else lowest, None if highest == NONE else highest

    def __iter__(self) -> Iterator[SourceOffset]:
        return ((*tp, self._offsets[at]) for tp, held in self._places.items() for at in range(*held))

    def __len__(self) -> int:
        return len(self._offsets)


def parted(judged: GroupPositions) -> tuple[GroupPositions, TrueOffsets]:
    """Return the groups' positions, and the true target offsets of MirrorMaker's checkpoints and offset syncs."""
    others, mirror_makers = judged.parted(lambda group: group == _MIRROR_MAKERS)
    return others, TrueOffsets(mirror_makers)


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
        mirror_makers: Mapping[TopicPartition, Sequence[int]],
        progress: Progress,
        ledger: Ledger | None,
    ) -> Compared:
        """Return the result of each partition and each position; raises SessionError when it cannot be done.

        `mirror_makers` are source offsets of checkpoints and offset syncs, sorted. They become positions behind those
        of `groups`, which are judged in their place if they are by column; `parted` takes both apart again.
        """
        whole = offset_ranges
        if ledger is not None:
            began = time.monotonic()
            offset_ranges = ledger.forward(whole, groups, progress)
            progress.step("load the state", began)
        # What MirrorMaker translated within what an earlier run verified is worth no second reading: it is not judged.
        starts = {TopicPartition(one.topic, one.partition): one.source_start for one in offset_ranges}
        positions = GroupPositions.of(groups)
        for tp, offsets in mirror_makers.items():
            held = offsets[bisect_left(offsets, starts[tp]) :]
            nowhere, number = [NONE] * len(held), len(held)
            positions.add_group(_MIRROR_MAKERS, [tp] * number, held, nowhere, [False] * number, active=False)
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
