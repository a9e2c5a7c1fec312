"""Spark as the engine of a comparison."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from spark.clusters.cluster import Partition
from spark.progress import Progress
from spark.records import digests, rows, watching
from spark.records.engine import Digest, Occurrences, Pieces
from spark.records.extents import Extent, Reader
from spark.records.local_frames import LocalFrames
from spark.records.pairing import Row
from spark.records.ranges import Range
from spark.records.scan import scan
from spark.records.sources import read
from spark.request.model import Request, Side


class SparkEngine:
    """An `Engine` whose frames are Spark's: what they stand for is read when a job needs it.

    `local` reads at once what Spark's Kafka source does not read as it is.
    """

    def __init__(self, spark: SparkSession, local: LocalFrames) -> None:
        self.spark = spark
        self._local = local
        self._inexact: set[Partition] = set()

    def read(self, side: Side, ranges: Sequence[Range], isolation: str, names: Mapping[str, str]) -> DataFrame:
        """Return the hashed records of these ranges."""
        here: list[Range] = []
        there: list[Range] = []
        for one in ranges:
            local = self._local.holds((names.get(one.topic, one.topic), one.partition))
            (here if local else there).append(one)
        frames = [digests.hashed(read(self.spark, side, there, isolation, names))] if there else []
        frames += [self._local.frame(self.spark, side, here, isolation, names)] if here else []
        return reduce(DataFrame.unionByName, frames)

    def union(self, frames: Iterable[DataFrame | None]) -> DataFrame | None:
        """Return the records of all of these, None if there are none."""
        held = [frame for frame in frames if frame is not None]
        return reduce(DataFrame.unionByName, held) if held else None

    def watched(self, progress: Progress, stage: str, partitions: int, records: int) -> AbstractContextManager[None]:
        """Advance the progress while the block reads."""
        return watching.watched(self.spark, progress, stage, partitions, records)

    def scan(self, logs: Mapping[str, DataFrame], places: Sequence[Partition], bits: int) -> dict[str, Pieces]:
        """Return the pieces of chunks of each named log and partition."""
        found, inexact = scan(self.spark, logs, places, bits)
        self._inexact = self._local.take(inexact)
        return found

    def inexact(self) -> set[Partition]:
        """Return the partitions with a record that the last scan may have held otherwise than Kafka does."""
        return self._inexact

    def rows(self, records: DataFrame | None) -> dict[Partition, list[Row]]:
        """Return the records of each partition."""
        return rows.rows(records)

    def offsets(self, records: DataFrame | None) -> dict[Partition, list[int]]:
        """Return the offsets of the records of each partition."""
        return rows.offsets(records)

    def occurrences(self, logs: Mapping[str, DataFrame], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
        """Return where digests occur in whole logs."""
        return rows.occurrences(self.spark, logs, wanted)


class SparkReader(Reader[DataFrame]):
    """Rows of both sides as Spark reads them."""

    def __init__(self, spark: SparkSession, request: Request, extents: Iterable[Extent], local: LocalFrames) -> None:
        super().__init__(SparkEngine(spark, local), request, extents)
        self.spark = spark
