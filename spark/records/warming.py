"""Runs what a comparison runs, on rows made up for it.

The JVM has loaded its classes, and Spark its workers, when the real rows come.
"""

from pyspark.sql import DataFrame, SparkSession

from spark.records import digests
from spark.records.chunks import mask_bits
from spark.records.scan import scan

TOPIC, RECORDS = "made-up", 1000
ROWS = f"""
SELECT '{TOPIC}' AS topic, 0 AS partition, id AS offset, timestamp_millis(id) AS timestamp,
       CAST(NULL AS BINARY) AS key, CAST(CAST(id AS STRING) AS BINARY) AS value,
       array(struct('name' AS key, CAST('value' AS BINARY) AS value)) AS headers
FROM range({RECORDS})
"""  # noqa: S608 - made of this module's own words


def warm(spark: SparkSession) -> None:
    """Scan made-up rows."""
    rows = made_up(spark)
    scan(spark, {"before": rows, "target": rows}, [(TOPIC, 0)], mask_bits(RECORDS))


def made_up(spark: SparkSession) -> DataFrame:
    """Records as a comparison gets them: with the digest and the hashes of their parts."""
    return digests.hashed(spark.sql(ROWS))
