"""Rows between the driver and Spark: hashed records, small tables of the driver's values, and the signatures of chunks.

A record is identified by hashes of its parts, and by two words over all of them: XXH64 of Spark, evaluated in generated
code. The words differ in their seed and in how they take the value, so that together they are a digest of 128 bits, of
at least 96 for records that differ in their values alone. It distinguishes what faults do to records; it is no defence
against records forged on purpose.

Arrow gives Spark the tables: no job and no Python worker makes them.
`window_sums` and `scan` read logs once and return the sums of their windows or the signatures of their chunks, nothing
of the records themselves.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, cast

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka.raw_consumer import REPLACED
from kafka.topic_partition import TopicPartition
from spark.comparison import chunks
from spark.comparison.difference import Row
from spark.comparison.offset_ranges import Digest, Occurrences, Pieces, Windows, WindowSum
from spark.comparison.reading import NULL, SECOND, digest_of, log_number

NAMES_APART = 4  # names of headers of a record that are checked one by one
# Spark moves older timestamps from Java's calendar to its own, where some of them meet.
OLDEST = "1900-01-01 00:00:00"
HASHED = (
    "topic string, partition int, offset long, a long, b long, key long, value long, headers long, timestamp long, "
    "inexact boolean"
)


def _headers() -> Column:
    """Hash of all headers in their order; 0 for none. A null value is not an empty one, and stays in its place.

    Hashes pass over nulls, so that the values are hashed a second time with a word in the place of each null. No
    higher-order function does it: Spark would interpret that for each record instead of generating code.
    """
    values = F.array_join(F.col("headers")["value"].cast("array<string>"), ",", NULL)
    none = F.col("headers").isNull() | (F.size("headers") == 0)
    return F.when(none, F.lit(0).cast("long")).otherwise(F.xxhash64("headers", F.size("headers"), values))


def _content(value: Column) -> list[Column]:
    key = F.col("key")
    return [F.col("timestamp"), key.isNull(), key, F.col("value").isNull(), value, _headers()]


def words() -> list[Column]:
    """The two words of a record's digest, `a` and `b`: signed 64-bit numbers.

    Values are most of what is hashed: the second word takes them by their CRC-32, which processors compute.
    """
    second = _content(F.crc32("value"))
    return [F.xxhash64(*_content(F.col("value"))).alias("a"), F.xxhash64(F.lit(SECOND), *second).alias("b")]


def hashes() -> list[Column]:
    """Hashes of `key`, `value` and `headers` (null stays null), and `timestamp` in milliseconds."""
    return [
        F.when(F.col("key").isNotNull(), F.xxhash64("key")).alias("key"),
        F.when(F.col("value").isNotNull(), F.xxhash64("value")).alias("value"),
        _headers().alias("headers"),
        F.unix_millis(F.col("timestamp").cast("timestamp")).alias("timestamp"),
    ]


def inexact() -> Column:
    """Whether Spark may hold the record otherwise than Kafka does: its digest may then be that of another record."""
    replaced, size = F.lit(REPLACED), F.size("headers")
    unnamed = F.col("headers").isNull() | (size == 0)
    # Without a copy of the names, as long as there are few.
    first = [F.get("headers", F.lit(at))["key"] for at in range(NAMES_APART)]
    found = [F.coalesce(F.contains(name, replaced), F.lit(False)) for name in first]
    names = F.array_join(F.col("headers")["key"], ",")
    found.append(F.when(size > NAMES_APART, F.contains(names, replaced)).otherwise(F.lit(False)))
    undecodable = F.when(unnamed, F.lit(False)).otherwise(reduce(Column.__or__, found))
    return (undecodable | (F.col("timestamp") < F.lit(OLDEST).cast("timestamp"))).alias("inexact")


def hashed(records: DataFrame) -> DataFrame:
    """Return rows of the Kafka source as the comparison takes them; the columns are HASHED."""
    return records.select("topic", "partition", "offset", *words(), *hashes(), inexact())


def digest() -> Column:
    """Both words of a hashed row as 32 hexadecimal digits."""
    return F.concat(*(F.lpad(F.lower(F.hex(word)), 16, "0") for word in ("a", "b"))).alias("digest")


TP_SCHEMA = "topic string, partition int"


def table(spark: SparkSession, values: Iterable[Sequence[Any]], schema: str) -> DataFrame:
    """Return these rows; `schema` as Spark writes it: `topic string, cut long`."""
    fields = cast("StructType", StructType.fromDDL(schema))
    rows = list(values)
    columns = zip(*rows, strict=True) if rows else ((),) * len(fields.names)
    types: Any = to_arrow_schema(fields)
    arrays = [pa.array(list(column), one.type) for column, one in zip(columns, types, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=types), schema)


_COLUMNS = ("topic", "partition", "offset", "a", "b", "key", "value", "headers", "timestamp")


def rows(records: DataFrame | None) -> dict[TopicPartition, list[Row]]:
    """Return the records of each partition in the order of their offsets, each once."""
    found: dict[TopicPartition, dict[int, Row]] = defaultdict(dict)
    if records is None:
        return {}
    table = records.select(*_COLUMNS).toArrow()
    columns = (table.column(name).to_pylist() for name in _COLUMNS)
    for topic, partition, offset, a, b, *parts in zip(*columns, strict=True):
        found[TopicPartition(topic, partition)][offset] = Row(offset, digest_of(a, b), *parts)
    return {tp: [held[offset] for offset in sorted(held)] for tp, held in found.items()}


def offsets(records: DataFrame | None) -> dict[TopicPartition, list[int]]:
    """Return the offsets of the records of each partition, sorted."""
    found: dict[TopicPartition, set[int]] = defaultdict(set)
    if records is None:
        return {}
    table = records.select("topic", "partition", "offset").toArrow()
    for topic, partition, offset in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[TopicPartition(topic, partition)].add(offset)
    return {tp: sorted(held) for tp, held in found.items()}


def occurrences(spark: SparkSession, logs: Mapping[str, DataFrame], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
    """Return where digests occur in whole logs: how often, and the first offset, per named log and partition."""
    found: dict[str, Occurrences] = {name: {} for name in logs}
    words = [_words_of(digest) for digest in sorted(set(wanted))]
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
        found[row.log][TopicPartition(row.topic, row.partition), digest_of(row.a, row.b)] = (row.records, row.first)
    return found


def _words_of(digest: Digest) -> tuple[int, int]:
    a, b = (int.from_bytes(bytes.fromhex(half), signed=True) for half in (digest[:16], digest[16:]))
    return a, b


# Executors need NumPy, Arrow and pandas, without which PySpark runs no mapInArrow, but nothing of this package:
# what runs there travels with the task.
cloudpickle.register_pickle_by_value(chunks)  # type: ignore[no-untyped-call]  # the package has no types here


def scan(
    logs: Mapping[str, DataFrame], partitions: Collection[TopicPartition], bits: int
) -> tuple[dict[str, Pieces], set[TopicPartition]]:
    """Return, for each named log, the pieces of chunks of each partition in the order of their offsets.

    `logs` are hashed rows, `partitions` all of theirs. One Spark job for all of them. Also returned are
    the partitions with a record that Spark may hold otherwise than Kafka does; their pieces prove nothing.
    """
    found: dict[str, Pieces] = {name: {} for name in logs}
    inexact: set[TopicPartition] = set()
    if not logs:
        return found, inexact
    rows = reduce(DataFrame.unionByName, [_hashed(name, records) for name, records in logs.items()])
    table = rows.mapInArrow(partial(chunks.cut_batches, bits=bits), chunks.SCHEMA).toArrow()
    columns = [table.column(name).to_numpy() for name in table.column_names]
    named = _numbers(logs, partitions)
    by_log = np.argsort(columns[0], kind="stable")
    ordered = [column[by_log] for column in columns]
    edges = np.flatnonzero(np.diff(ordered[0])) + 1
    for part in np.split(np.arange(len(by_log)), edges):
        if len(part):
            number = int(ordered[0][part[0]])
            name, tp = named[number & ~chunks.INEXACT]
            if number & chunks.INEXACT:
                inexact.add(tp)
            else:
                found[name][tp] = chunks.in_order(column[part] for column in ordered[1:])
    for pieces in found.values():
        for tp in inexact & pieces.keys():
            del pieces[tp]
    return found, inexact


def window_sums(
    logs: Mapping[str, tuple[DataFrame, int]], partitions: Collection[TopicPartition], bits: int
) -> tuple[dict[str, Windows], set[TopicPartition]]:
    """Return, for each named log, the sums of each partition's windows of 2**bits offsets.

    `logs` are hashed rows and their shift: their offset less that of the same record at the source. One Spark job for
    all of them, in generated code: no row leaves it. Also returned are the partitions with a record that Spark may hold
    otherwise than Kafka does; their windows prove nothing and are left out.
    """
    found: dict[str, Windows] = {name: defaultdict(dict) for name in logs}
    inexact: set[TopicPartition] = set()
    frames = [_summed(name, records, shift, bits) for name, (records, shift) in logs.items()]
    table = reduce(DataFrame.unionByName, frames).toArrow()
    named = _numbers(logs, partitions)
    for number, window, *sums in zip(*(column.to_pylist() for column in table.columns), strict=True):
        name, tp = named[number & ~chunks.INEXACT]
        if number & chunks.INEXACT:
            inexact.add(tp)
        found[name][tp][window] = WindowSum(*sums)
    kept = {name: {tp: sums for tp, sums in held.items() if tp not in inexact} for name, held in found.items()}
    return kept, inexact


def _summed(name: str, records: DataFrame, shift: int, bits: int) -> DataFrame:
    at_source = F.col("offset") - F.lit(shift)
    words = [F.xxhash64(at_source, word).alias(word) for word in ("a", "b")]
    window = F.shiftright(at_source, bits).alias("window")
    return (
        records.select(_log(name), window, "offset", *words)
        .groupBy("log", "window")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("*").alias("records"),
            F.bit_xor("a").alias("a"),
            F.bit_xor("b").alias("b"),
        )
    )


def _hashed(name: str, records: DataFrame) -> DataFrame:
    return records.select(_log(name), "offset", "a", "b")


def _log(name: str) -> Column:
    """The number of a partition of a named log, with the bit INEXACT for a record that is."""
    return (_number(name) + F.col("inexact").cast("long")).alias("log")


def _number(name: str) -> Column:
    """An even number for a partition of a named log, as `reading.log_number` computes it."""
    return F.shiftleft(F.xxhash64(F.lit(name), "topic", "partition"), 1)


def _numbers(names: Iterable[str], partitions: Collection[TopicPartition]) -> dict[int, tuple[str, TopicPartition]]:
    """Return which log and partition each number stands for. Spark is not asked: its first query takes a while."""
    return {log_number(name, *tp): (name, TopicPartition(*tp)) for name in names for tp in partitions}
