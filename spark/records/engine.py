"""What a comparison asks of whatever reads the records: Spark for many, this process alone for few."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from spark.clusters.cluster import Partition
from spark.progress import Progress
from spark.records.chunks import Chunk
from spark.records.pairing import Row
from spark.records.ranges import Range
from spark.request.model import Side

Frame = TypeVar("Frame")
Pieces = dict[Partition, list[Chunk]]
Digest = str
Occurrences = dict[tuple[Partition, Digest], tuple[int, int]]


class Engine(Protocol[Frame]):
    """Reads records and says what is asked of them. A `Frame` is what stands for records that are to be read."""

    def read(self, side: Side, ranges: Sequence[Range], isolation: str, names: Mapping[str, str]) -> Frame:
        """The data records of exactly these ranges; `names` maps a topic of this cluster to the source's name."""

    def union(self, frames: Iterable[Frame | None]) -> Frame | None:
        """The records of all of these, None if there are none to read."""

    def watched(self, progress: Progress, stage: str, partitions: int, records: int) -> AbstractContextManager[None]:
        """Advance the progress while the block reads this many partitions and records."""

    def scan(self, logs: Mapping[str, Frame], places: Sequence[Partition], bits: int) -> dict[str, Pieces]:
        """For each named log, the pieces of chunks of each partition in the order of their offsets."""

    def inexact(self) -> set[Partition]:
        """The partitions whose pieces of the last scan prove nothing: from now on they are read in another way."""

    def rows(self, records: Frame | None) -> dict[Partition, list[Row]]:
        """The records of each partition in the order of their offsets, each once."""

    def offsets(self, records: Frame | None) -> dict[Partition, list[int]]:
        """The offsets of the records of each partition, sorted, each once."""

    def occurrences(self, logs: Mapping[str, Frame], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
        """Where digests occur in whole logs: how often, and the first offset, per named log and partition."""
