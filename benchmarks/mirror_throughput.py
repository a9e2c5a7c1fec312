"""How many records a second a mirror task copies, and at what CPU, beside a plain producer and consumer.

Run: `python -m benchmarks.mirror_throughput`. Takes under four minutes, needs no running sandbox, leaves nothing but
the results file, on which `python -m ops size` rests.
"""

import argparse
import itertools
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import tables
from benchmarks.clusters import SOURCE, TARGET, WORKER, WORKER_HEAP_MIB, BenchmarkError, Clusters, running
from sandbox.operator.java_processes import kafka_version
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "mirror_throughput.json"
PARTITIONS = 4
# Record sizes in bytes, and as many records as a task copies in six to eight seconds on two cores.
RECORDS = {100: 1_000_000, 1024: 300_000, 10240: 40_000}
TASKS = (1, 2)
WARM_UP_BYTES, WARM_UP_RECORDS = 1000, 300_000
MIRRORED_WITHIN_S = 90.0
_BEGIN = 0.15  # of the records: the first ones wait for the connector to start
_POLL_S = 0.1


@dataclass(frozen=True)
class Sample:
    """Records that have arrived at a moment, and CPU seconds that the worker has used until then."""

    at_s: float
    records: int
    cpu_s: float


@dataclass(frozen=True)
class Speed:
    """What a mirror did while it was busy."""

    records_per_second: float
    cpu_seconds_per_100k: float


def speed(samples: Sequence[Sample], records: int) -> Speed:
    """Return the speed between the first sample with 15 % of the records and the first with all of them.

    Raises BenchmarkError if there are no two such samples.
    """
    first = next((sample for sample in samples if sample.records >= _BEGIN * records), None)
    last = next((sample for sample in samples if sample.records >= records), None)
    if first is None or last is None or last.records <= first.records or last.at_s <= first.at_s:
        raise BenchmarkError(f"mirror: {records} records must arrive in more than one step. Take more records.")
    copied = last.records - first.records
    return Speed(copied / (last.at_s - first.at_s), (last.cpu_s - first.cpu_s) * 100_000 / copied)


def baseline(produced_per_second: float, consumed_per_second: float) -> float:
    """Return records a second through a producer and then a consumer, one after the other, on the same machine."""
    return 1 / (1 / produced_per_second + 1 / consumed_per_second)


def produced(output: str) -> float:
    """Return records a second of the last line that the producer's performance tool printed."""
    found = re.findall(r"records sent, ([\d.]+) records/sec", output)
    if not found:
        raise BenchmarkError("ProducerPerformance: must print records/sec (got none).")
    return float(found[-1])


def consumed(output: str) -> float:
    """Return records a second while fetching, as the consumer's performance tool printed them; joining left out."""
    lines = [line.split(", ") for line in output.strip().splitlines()]
    for head, values in itertools.pairwise(lines):
        if "fetch.nMsg.sec" in head:
            return float(values[head.index("fetch.nMsg.sec")])
    raise BenchmarkError("ConsumerPerformance: must print fetch.nMsg.sec (got none).")


def measure(clusters: Clusters) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the baselines and the mirror's speeds, a dictionary a row."""
    baselines, mirrors = [], []
    admin = clusters.admin(SOURCE)
    _fill(clusters, admin, WARM_UP_BYTES, WARM_UP_RECORDS)
    _mirror(clusters, WARM_UP_BYTES, WARM_UP_RECORDS, tasks=max(TASKS))
    for record_bytes, records in RECORDS.items():
        produce = _fill(clusters, admin, record_bytes, records)
        topic = _topic(record_bytes)
        consume = consumed(
            clusters.tool(
                "org.apache.kafka.tools.ConsumerPerformance",
                *("--bootstrap-server", clusters.bootstrap(SOURCE), "--topic", topic, "--num-records", str(records)),
                *("--command-config", str(clusters.folder / "client.properties")),
            )
        )
        plain = baseline(produce, consume)
        row = {"producerRecordsPerSecond": produce, "consumerRecordsPerSecond": consume, "recordsPerSecond": plain}
        baselines.append({"recordBytes": record_bytes, **{key: round(value) for key, value in row.items()}})
        for tasks in TASKS:
            found = _mirror(clusters, record_bytes, records, tasks)
            mirrors.append(
                {
                    "recordBytes": record_bytes,
                    "tasks": tasks,
                    "records": records,
                    "recordsPerSecond": round(found.records_per_second),
                    "cpuSecondsPer100kRecords": round(found.cpu_seconds_per_100k, 3),
                    "ratioToBaseline": round(found.records_per_second / plain, 2),
                }
            )
            tables.log("{recordBytes} bytes, {tasks} tasks: {recordsPerSecond} records/s".format(**mirrors[-1]))
        finished(admin.delete_topics([topic]))
    return baselines, mirrors


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its result; return the exit code (0 done, 2 it could not be made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mirror_throughput", description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    output = parser.parse_args(arguments).output
    tables.clean_up_on_sigterm()
    began, described = time.monotonic(), tables.describe()
    try:
        tools = locate()
        with running(tools) as clusters:
            baselines, mirrors = measure(clusters)
            resident = psutil.Process(clusters.pid(WORKER)).memory_info().rss
    except (BenchmarkError, ToolchainError, KafkaException) as error:
        tables.log(f"error: {error}")
        return 2
    tables.keep(
        output,
        {
            "benchmark": "mirror_throughput",
            "date": tables.today(),
            "machine": described,
            "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
            "setup": {
                "clusters": "2 of one broker, TLS, on the machine of the worker",
                "partitions": PARTITIONS,
                "compression": "none",
                "clientSettings": "Kafka's defaults",
                "workerHeapMib": WORKER_HEAP_MIB,
                "workerResidentMib": resident // 2**20,
            },
            "baseline": baselines,
            "mirror": mirrors,
            "seconds": round(time.monotonic() - began),
        },
    )
    tables.log(f"written: {output}")
    return 0


def _topic(record_bytes: int) -> str:
    return f"bytes-{record_bytes}"


def _fill(clusters: Clusters, admin: AdminClient, record_bytes: int, records: int) -> float:
    """Make the source topic of a record size and write its records; return how many a second."""
    finished(admin.create_topics([NewTopic(_topic(record_bytes), PARTITIONS, 1)]))
    return produced(
        clusters.tool(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--bootstrap-server", clusters.bootstrap(SOURCE), "--topic", _topic(record_bytes)),
            *("--num-records", str(records), "--record-size", str(record_bytes), "--throughput", "-1"),
            *("--command-config", str(clusters.folder / "client.properties")),
        )
    )


def _mirror(clusters: Clusters, record_bytes: int, records: int, tasks: int) -> Speed:
    """Let a new connector copy one topic from its beginning, into a target topic of its own, and watch it."""
    alias = f"run-{record_bytes}-{tasks}"
    config = clusters.mirror(alias, _topic(record_bytes), tasks, clusters.bootstrap(SOURCE))
    worker = psutil.Process(clusters.pid(WORKER))
    topic = f"{alias}.{_topic(record_bytes)}"
    clusters.connect("PUT", f"/connectors/{alias}/config", config)
    consumer = Consumer(clusters.client(TARGET) | {"group.id": "benchmark", "log_level": "0"})
    samples: list[Sample] = []
    end = time.monotonic() + MIRRORED_WITHIN_S
    try:
        while not samples or samples[-1].records < records:
            if time.monotonic() > end:
                count = samples[-1].records if samples else 0
                raise BenchmarkError(
                    f"mirror: {records} records of {topic} must arrive within {MIRRORED_WITHIN_S:.0f} s (got {count})."
                )
            cpu = worker.cpu_times()
            samples.append(Sample(time.monotonic(), arrived(consumer, topic), cpu.user + cpu.system))
            time.sleep(_POLL_S)
    finally:
        consumer.close()
        clusters.connect("DELETE", f"/connectors/{alias}")
    admin = clusters.admin(TARGET)  # named, because its futures end with it
    finished(admin.delete_topics([topic]))
    return speed(samples, records)


def arrived(consumer: Consumer, topic: str, partitions: int = PARTITIONS) -> int:
    """Records in a topic that nobody deletes from; 0 while it does not exist."""
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=5) for number in range(partitions)
        ]
    except KafkaException:
        return 0
    return sum(end for _, end in ends)


def finished(futures: dict[str, Any]) -> None:
    """Wait for what an admin client was asked for; raises KafkaException."""
    for future in futures.values():
        future.result(timeout=30)


if __name__ == "__main__":
    sys.exit(main())
