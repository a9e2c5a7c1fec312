"""Spark expressions for the identity of a record: hashes of its parts, and two words over all of them.

XXH64 of Spark, evaluated in generated code. The words differ in their seed and in how they take the value, so that
together they are a digest of 128 bits, of at least 96 for records that differ in their values alone. It tells apart
what faults do to records; it is no defence against somebody who forges records on purpose.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

SECOND = 7_046_029_254_386_353_131  # any constant: it seeds the second word
NULL = "\0null-dd1c2b4f5a7e\0"  # any text that is no header's value


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


def digest() -> Column:
    """Both words as 32 hexadecimal digits."""
    return F.concat(*(F.lpad(F.lower(F.hex(word)), 16, "0") for word in words())).alias("digest")
