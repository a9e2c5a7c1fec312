"""Brings single records of the two sides to the driver: their digests and the hashes of their parts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.clusters.cluster import Partition
from spark.records.engine import Digest, Occurrences
from spark.records.hashing import digest_of
from spark.records.pairing import Row

_COLUMNS = ("topic", "partition", "offset", "a", "b", "key", "value", "headers", "timestamp")


def rows(records: DataFrame | None) -> dict[Partition, list[Row]]:
    """Return the records of each partition in the order of their offsets, each once."""
    found: dict[Partition, dict[int, Row]] = defaultdict(dict)
    if records is None:
        return {}
    table = records.select(*_COLUMNS).toArrow()
    columns = (table.column(name).to_pylist() for name in _COLUMNS)
    for topic, partition, offset, a, b, *parts in zip(*columns, strict=True):
        found[topic, partition][offset] = Row(offset, digest_of(a, b), *parts)
    return {place: [held[offset] for offset in sorted(held)] for place, held in found.items()}


def offsets(records: DataFrame | None) -> dict[Partition, list[int]]:
    """Return the offsets of the records of each partition, sorted."""
    found: dict[Partition, set[int]] = defaultdict(set)
    if records is None:
        return {}
    table = records.select("topic", "partition", "offset").toArrow()
    for topic, partition, offset in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[topic, partition].add(offset)
    return {place: sorted(held) for place, held in found.items()}


def occurrences(spark: SparkSession, logs: Mapping[str, DataFrame], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
    """Return where digests occur in whole logs: how often, and the first offset, per named log and partition."""
    found: dict[str, Occurrences] = {name: {} for name in logs}
    words = [_words(digest) for digest in sorted(set(wanted))]
    if not words or not logs:
        return found
    table = pa.table({"a": [a for a, _ in words], "b": [b for _, b in words]})
    sought = F.broadcast(spark.createDataFrame(table))
    frames = [
        records.select("topic", "partition", "offset", "a", "b")
        .join(sought, ["a", "b"], "left_semi")
        .select(F.lit(name).alias("log"), "*")
        for name, records in logs.items()
    ]
    counted = (
        reduce(DataFrame.unionByName, frames)
        .groupBy("log", "topic", "partition", "a", "b")
        .agg(F.count("*").alias("records"), F.min("offset").alias("first"))
    )
    for row in counted.collect():
        found[row.log][(row.topic, row.partition), digest_of(row.a, row.b)] = (row.records, row.first)
    return found


def _words(digest: Digest) -> tuple[int, int]:
    a, b = (int.from_bytes(bytes.fromhex(half), signed=True) for half in (digest[:16], digest[16:]))
    return a, b
