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
from spark.records import chunks, digests
from spark.records.engine import Pieces

# Executors need NumPy, Arrow and pandas, without which PySpark runs no mapInArrow, but nothing of this package:
# what runs there travels with the task.
cloudpickle.register_pickle_by_value(chunks)  # type: ignore[no-untyped-call]  # the package has no types here


def scan(
    spark: SparkSession, logs: Mapping[str, DataFrame], places: Iterable[Partition], bits: int
) -> dict[str, Pieces]:
    """Return, for each named log, the pieces of chunks of each partition in the order of their offsets.

    `logs` are rows of the Kafka source, `places` all their topics and partitions. One Spark job for all of them.
    """
    found: dict[str, Pieces] = {name: {} for name in logs}
    if not logs:
        return found
    rows = reduce(DataFrame.unionByName, [_hashed(name, records) for name, records in logs.items()])
    table = rows.mapInArrow(partial(chunks.cut_batches, bits=bits), chunks.SCHEMA).toArrow()
    columns = [table.column(name).to_numpy() for name in table.column_names]
    named = _numbers(spark, list(logs), list(places))
    by_place = np.argsort(columns[0], kind="stable")
    ordered = [column[by_place] for column in columns]
    edges = np.flatnonzero(np.diff(ordered[0])) + 1
    for part in np.split(np.arange(len(by_place)), edges):
        if len(part):
            name, place = named[int(ordered[0][part[0]])]
            found[name][place] = chunks.in_order(column[part] for column in ordered[1:])
    return found


def _hashed(name: str, records: DataFrame) -> DataFrame:
    return records.select(_place(name), "offset", *digests.words())


def _place(name: str) -> Column:
    return F.xxhash64(F.lit(name), "topic", "partition").alias("place")


def _numbers(spark: SparkSession, names: list[str], places: list[Partition]) -> dict[int, tuple[str, Partition]]:
    """The number that stands for each log and partition: a table of literals, for which no job runs."""
    values = ", ".join(f"('{topic}', {partition})" for topic, partition in places)
    table = spark.sql(f"SELECT * FROM VALUES {values} AS places(topic, partition)")  # noqa: S608 - topics' own letters
    found: dict[int, tuple[str, Partition]] = {}
    for name in names:
        for row in table.select(_place(name), "topic", "partition").collect():
            found[row.place] = (name, (row.topic, row.partition))
    return found
