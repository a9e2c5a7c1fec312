"""Small tables of the driver's own values as Spark's rows: given by Arrow, no job and no Python worker makes them."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

PLACES = "topic string, partition int"


def table(spark: SparkSession, values: Iterable[Sequence[Any]], schema: str) -> DataFrame:
    """Return these rows; `schema` as Spark writes it: `topic string, cut long`."""
    fields = cast("StructType", StructType.fromDDL(schema))
    rows = list(values)
    columns = zip(*rows, strict=True) if rows else ((),) * len(fields.names)
    types: Any = to_arrow_schema(fields)
    arrays = [pa.array(list(column), one.type) for column, one in zip(columns, types, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=types), schema)
