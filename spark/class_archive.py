"""Writes the archive of classes from which the job's JVM starts sooner: `python -m spark.class_archive --out FILE`.

Starts a session, uses what a comparison uses, and lets the JVM keep the classes it has loaded by then. The archive
holds for this JVM, this PySpark and these jars; a JVM that finds another one of them passes it over.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from contract.fields import VerificationError
from kafka.topic_partition import TopicPartition
from spark.comparison.chunks import mask_bits
from spark.comparison.record_rows import rows, scan
from spark.comparison.spark_session import RECORDS, TOPIC, made_up, session, warm

WRITTEN_WITHIN_S = 300
UNREACHABLE = "127.0.0.1:1"  # no broker answers here: the classes of the clients are loaded before they find out


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the archive; return the exit code (0 written, 2 not)."""
    parser = argparse.ArgumentParser(prog="python -m spark.class_archive", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    out = parser.parse_args(arguments).out.absolute()
    environment = {name: value for name, value in os.environ.items() if name != "RT_INVENTORY_SPARK_CLASSES"}
    try:
        keep = [f'"-XX:ArchiveClassesAtExit={out}"']
        with session(environment, options=keep, stop_s=WRITTEN_WITHIN_S) as spark:
            load_classes(spark)
    except VerificationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not out.is_file():
        sys.stderr.write(f"--out: the JVM must write its classes to {out} (got no file). Use Java 17 or later.\n")
        return 2
    return 0


def load_classes(spark: SparkSession) -> None:
    """Load the classes of a comparison and of the Kafka source. No broker is asked."""
    warm(spark)
    scan({"before": made_up(spark)}, [TopicPartition(TOPIC, 0)], mask_bits(RECORDS))
    rows(made_up(spark))
    load_clients(spark)


def load_clients(spark: SparkSession) -> None:
    """Load the classes of the Kafka source, which needs the connector on the class path."""
    with suppress(PySparkException, Py4JError):
        _unreachable_source(spark).count()
    _consumer(spark)


def _unreachable_source(spark: SparkSession) -> DataFrame:
    patience = {
        "kafka.default.api.timeout.ms": "1000",
        "kafka.request.timeout.ms": "900",
        "fetchOffset.numRetries": "1",
    }
    where = {"kafka.bootstrap.servers": UNREACHABLE, "assign": '{"made-up":[0]}', "includeHeaders": "true"}
    ranges = {"startingOffsets": '{"made-up":{"0":0}}', "endingOffsets": '{"made-up":{"0":1}}'}
    return spark.read.format("kafka").options(**where, **ranges, **patience).load()


def _consumer(spark: SparkSession) -> None:
    """Load the classes of a consumer that polls, which the source only makes once it knows the offsets."""
    java = spark._jvm
    if java is None:
        return
    properties = java.java.util.HashMap()
    decoder = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    for name, value in {
        "bootstrap.servers": UNREACHABLE,
        "security.protocol": "SSL",
        "key.deserializer": decoder,
        "value.deserializer": decoder,
    }.items():
        properties.put(name, value)
    consumer = java.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
    try:
        partitions = java.java.util.ArrayList()
        partitions.add(java.org.apache.kafka.common.TopicPartition("made-up", 0))
        consumer.assign(partitions)
        consumer.seekToEnd(partitions)
        consumer.poll(java.java.time.Duration.ofMillis(100))
    finally:
        consumer.close(java.java.time.Duration.ofMillis(100))


if __name__ == "__main__":
    sys.exit(main())
