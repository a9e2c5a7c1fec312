"""Spark expressions for the identity of a record: hashes of its parts, and two words over all of them.

XXH64 of Spark, evaluated in generated code. The words differ in their seed and in how they take the value, so that
together they are a digest of 128 bits, of at least 96 for records that differ in their values alone. It tells apart
what faults do to records; it is no defence against records forged on purpose.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from kafka.raw_consumer import REPLACED
from spark.comparison.hashing import NULL, SECOND

NAMES_APART = 4  # names of headers of a record that are looked at one by one
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
