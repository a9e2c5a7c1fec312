"""Spark as the engine of a comparison."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from spark.clusters.cluster import Partition
from spark.progress import Progress
from spark.records import rows, watching
from spark.records.engine import Digest, Occurrences, Pieces
from spark.records.extents import Extent, Reader
from spark.records.pairing import Row
from spark.records.ranges import Range
from spark.records.scan import scan
from spark.records.sources import read
from spark.request.model import Request, Side


class SparkEngine:
    """An `Engine` whose frames are Spark's: what they stand for is read when a job needs it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def read(self, side: Side, ranges: Sequence[Range], isolation: str, names: Mapping[str, str]) -> DataFrame:
        """Return the records of these ranges, which a job reads when it needs them."""
        return read(self.spark, side, ranges, isolation, names)

    def union(self, frames: Iterable[DataFrame | None]) -> DataFrame | None:
        """Return the records of all of these, None if there are none."""
        held = [frame for frame in frames if frame is not None]
        return reduce(DataFrame.unionByName, held) if held else None

    def watched(self, progress: Progress, stage: str, partitions: int, records: int) -> AbstractContextManager[None]:
        """Advance the progress while the block reads."""
        return watching.watched(self.spark, progress, stage, partitions, records)

    def scan(self, logs: Mapping[str, DataFrame], places: Sequence[Partition], bits: int) -> dict[str, Pieces]:
        """Return the pieces of chunks of each named log and partition."""
        return scan(self.spark, logs, places, bits)

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

    def __init__(self, spark: SparkSession, request: Request, extents: Iterable[Extent]) -> None:
        super().__init__(SparkEngine(spark), request, extents)
        self.spark = spark
