"""Frames of records that this process reads, for partitions that Spark's Kafka source does not read as they are.

Kafka's Java client decodes the names of headers, so that bytes that are not UTF-8 become one character, whatever they
were. Spark keeps timestamps in microseconds: one that is too large for that ends its job. This process reads such
partitions, and Spark gets the hashes: 60 bytes and the topic's name for each record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it
from pyspark.sql import DataFrame, SparkSession

from contract.verification_request import ClusterConfig
from kafka.cluster import Cluster, Partition
from spark.comparison.digests import HASHED
from spark.comparison.offset_ranges import UNCOMMITTED, Extent, Range
from spark.comparison.reading import HEADERS, KEY, NULL_KEY, NULL_VALUE, NULLS, OFFSET, TIMESTAMP, VALUE, A, B, Log
from spark.comparison.without_spark import LogCache, parts

TIMESTAMP_MAX_MS = (2**63 - 1) // 1000


class LocalFrames:
    """Knows which partitions (by the source's names) this process reads, and reads them.

    With a `cache` it reads all of them, and each range once. Without one, what a frame was made of is not kept: there
    may be more of it than of what is compared without Spark.
    """

    def __init__(self, clusters: Sequence[Cluster], cache: LogCache | None = None) -> None:
        self._clusters = {cluster.side.role: cluster for cluster in clusters}
        self._cache = cache
        self._places: set[Partition] = set()

    def holds(self, place: Partition) -> bool:
        """Return whether this process reads the partition."""
        return self._cache is not None or place in self._places

    def take(self, places: Iterable[Partition]) -> set[Partition]:
        """Read these partitions from now on; return those that were not read here before."""
        new = {place for place in places if not self.holds(place)}
        self._places |= new
        return new

    def take_late(self, extents: Sequence[Extent]) -> set[Partition]:
        """Take the partitions with a timestamp that Spark cannot hold, on either side: their brokers know them."""
        ends = {
            "source": {one.place: (one.place, one.source_last) for one in extents},
            "target": {(one.target_topic, one.partition): (one.place, one.target_end) for one in extents},
        }
        late = OffsetSpec.for_timestamp(TIMESTAMP_MAX_MS + 1)
        found: set[Partition] = set()
        for role, logs in ends.items():
            held = [place for place, (_, end) in logs.items() if end > 0]
            first = self._clusters[role].offsets(held, late, UNCOMMITTED) if held else {}
            found |= {logs[place][0] for place, offset in first.items() if 0 <= offset < logs[place][1]}
        return self.take(found)

    def frame(
        self,
        spark: SparkSession,
        side: ClusterConfig,
        ranges: Sequence[Range],
        isolation: str,
        names: Mapping[str, str],
    ) -> DataFrame:
        """Return the records of these ranges as `digests.hashed` does; `names` maps topics to the source's names."""
        cache = self._cache or LogCache(self._clusters.values())
        logs = cache.logs(parts(side, ranges, isolation, names))
        batches = [batch for place, log in logs.items() for batch in _batches(place, log)]
        table = pa.Table.from_batches(batches, schema=_SCHEMA)
        return spark.createDataFrame(table, HASHED)


_NUMBERS = ("offset", "a", "b", "key", "value", "headers", "timestamp")
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in _NUMBERS),
        ("inexact", pa.bool_()),
    ]
)


def _batches(place: Partition, log: Log) -> Iterator[pa.RecordBatch]:
    if len(log):
        absent = {KEY: NULL_KEY, VALUE: NULL_VALUE}
        numbers = [
            pa.array(np.ascontiguousarray(log[:, at]), mask=(log[:, NULLS] & absent[at]) != 0 if at in absent else None)
            for at in (OFFSET, A, B, KEY, VALUE, HEADERS, TIMESTAMP)
        ]
        topic, partition = pa.repeat(place[0], len(log)), pa.repeat(pa.scalar(place[1], pa.int32()), len(log))
        flags = pa.repeat(pa.scalar(False), len(log))
        yield pa.RecordBatch.from_arrays([topic, partition, *numbers, flags], schema=_SCHEMA)
