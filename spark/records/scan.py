"""Reads logs once with Spark and brings back the signatures of their chunks, nothing of the records themselves.

Each task reads one split of a partition in the order of its offsets, hashes in generated code, and cuts in NumPy.
"""

from collections.abc import Iterable, Mapping
from functools import partial, reduce

import numpy as np
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.clusters.cluster import Partition
from spark.records import chunks
from spark.records.engine import Pieces

# Executors need NumPy, Arrow and pandas, without which PySpark runs no mapInArrow, but nothing of this package:
# what runs there travels with the task.
cloudpickle.register_pickle_by_value(chunks)  # type: ignore[no-untyped-call]  # the package has no types here


def scan(
    spark: SparkSession, logs: Mapping[str, DataFrame], places: Iterable[Partition], bits: int
) -> tuple[dict[str, Pieces], set[Partition]]:
    """Return, for each named log, the pieces of chunks of each partition in the order of their offsets.

    `logs` are hashed rows, `places` all their topics and partitions. One Spark job for all of them. Also returned are
    the partitions with a record that Spark may hold otherwise than Kafka does; their pieces prove nothing.
    """
    found: dict[str, Pieces] = {name: {} for name in logs}
    inexact: set[Partition] = set()
    if not logs:
        return found, inexact
    rows = reduce(DataFrame.unionByName, [_hashed(name, records) for name, records in logs.items()])
    table = rows.mapInArrow(partial(chunks.cut_batches, bits=bits), chunks.SCHEMA).toArrow()
    columns = [table.column(name).to_numpy() for name in table.column_names]
    named = _numbers(spark, list(logs), list(places))
    by_place = np.argsort(columns[0], kind="stable")
    ordered = [column[by_place] for column in columns]
    edges = np.flatnonzero(np.diff(ordered[0])) + 1
    for part in np.split(np.arange(len(by_place)), edges):
        if len(part):
            number = int(ordered[0][part[0]])
            name, place = named[number & ~chunks.INEXACT]
            if number & chunks.INEXACT:
                inexact.add(place)
            else:
                found[name][place] = chunks.in_order(column[part] for column in ordered[1:])
    for pieces in found.values():
        for place in inexact & pieces.keys():
            del pieces[place]
    return found, inexact


def _hashed(name: str, records: DataFrame) -> DataFrame:
    place = (_number(name) + F.col("inexact").cast("long")).alias("place")
    return records.select(place, "offset", "a", "b")


def _number(name: str) -> Column:
    """An even number for a partition of a named log."""
    return F.shiftleft(F.xxhash64(F.lit(name), "topic", "partition"), 1)


def _numbers(spark: SparkSession, names: list[str], places: list[Partition]) -> dict[int, tuple[str, Partition]]:
    """The number that stands for each log and partition: a table of literals, for which no job runs."""
    values = ", ".join(f"('{topic}', {partition})" for topic, partition in places)
    table = spark.sql(f"SELECT * FROM VALUES {values} AS places(topic, partition)")  # noqa: S608 - topics' own letters
    found: dict[int, tuple[str, Partition]] = {}
    for name in names:
        for row in table.select(_number(name).alias("place"), "topic", "partition").collect():
            found[row.place] = (name, (row.topic, row.partition))
    return found
