"""Made-up logs as the reader of both clusters gives them to Spark."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from contract.verification_request import Request
from kafka.topic_partition import TopicPartition
from sandbox.toolchain import java, maven
from sandbox.toolchain.paths import here
from spark.comparison import spark_engine
from spark.comparison.findings import PartitionResult
from spark.comparison.record_rows import table
from spark.comparison.spark_engine import LocalFrames, SparkReader

from .compared_logs import Brokers, offset_range, request
from .oracle import Logs

SCHEMA = (
    "topic string, partition int, offset long, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>, timestamp timestamp"
)
EPOCH = datetime(2026, 1, 2, tzinfo=UTC)
# Made-up logs are tiny: generated Java and many tasks cost more than they save. Two partitions still meet in a shuffle.
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
# Spark's jars are what they were when they were built: their bytecode is not verified at every start.
TRUSTED = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")


def class_archive() -> dict[str, str]:
    """Variables with which Spark's JVM starts from the archive of classes that the set-up keeps; empty without one.

    The archive was made with the connector's jars on the class path, and a JVM passes it over without them.
    """
    tp = here()
    archive, jars = java.spark_classes_archive(tp), maven.spark(tp).path / maven.LIBS
    if not (archive.is_file() and jars.is_dir()):
        return {}
    return {"RT_INVENTORY_SPARK_CLASSES": str(archive), "RT_INVENTORY_SPARK_JARS": str(jars)}


def reader(
    spark: SparkSession, patch: pytest.MonkeyPatch, partitions: Mapping[int, Logs]
) -> tuple[SparkReader, dict[TopicPartition, PartitionResult]]:
    """A reader of these logs, and the results that their comparison fills."""
    brokers = Brokers(partitions)

    def read(_: SparkSession, *asked: object) -> DataFrame:
        rows = [
            (*tp, at, one.key, one.value, [*one.headers], EPOCH + timedelta(milliseconds=one.timestamp))
            for tp, at, one in brokers.read(*asked)  # type: ignore[arg-type]
        ]
        return table(spark, rows, SCHEMA)

    patch.setattr(spark_engine, "read", read)
    held = [offset_range(number, logs) for number, logs in partitions.items()]
    results = {
        one.topic_partition: PartitionResult(
            *one.topic_partition,
            one.source_start,
            one.cut,
            one.target_start,
            one.target_end,
            *_records(partitions[one.partition]),
        )
        for one in held
    }
    return SparkReader(spark, cast("Request", request()), held, LocalFrames(())), results


def _records(logs: Logs) -> tuple[int, int]:
    return sum(at < logs.cut for at, _ in logs.source), len(logs.target)
