"""What a verification costs, fixed and by records, beside Kafka's own consumer tool and a plain comparison; its memory.

Run: `python -m benchmarks.verification`. Takes about a quarter of an hour, needs no running sandbox, leaves nothing but
the results file. Exit 1 if a bound is missed.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from benchmarks import tables
from benchmarks.clusters import SOURCE, TARGET, BenchmarkError, Clusters, running
from sandbox.operator.java_processes import kafka_version
from sandbox.toolchain import ToolchainError, java, locate
from sandbox.toolchain.__main__ import ensure
from sandbox.toolchain.paths import here

RESULT = tables.RESULTS / "verification.json"
PARTITIONS = 4
MILLION = 1_000_000
SIZES = {100: (1, 3, 10), 1024: (1, 3)}  # bytes of a record, millions of records on each side
LARGE_BYTES, LARGE = 100, 10
WITHOUT_SPARK = ((100, 1), (100, 3), (1024, 1), (1024, 3))  # bytes and millions of what is compared without it too
ROUNDS = 3  # a line through three points bends with one outlier: each point is the median of so many
FIXED_S_MAX = 8.0
TO_CONSUMER_MAX = 1.3
MIDDLE_S_MAX = 10.0
TO_PLAIN_MIN = 5.0
INCREMENTAL_MAX = 0.05
MEMORY_MAX = 1.3
RUN_WITHIN_S = 900
_SAMPLE_S = 0.5
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Run:
    """One verification: seconds of the whole process, of its session's start, and of what came after; MiB at most."""

    seconds: float
    session_s: float
    records: int
    peak_mib: int

    @property
    def after_session_s(self) -> float:
        """Seconds after the session had started."""
        return self.seconds - self.session_s


@dataclass(frozen=True)
class Cost:
    """What every run pays, in seconds, and what a million records on each side cost besides."""

    fixed_s: float
    per_million_s: float


def cost(points: Mapping[int, float]) -> Cost:
    """Fit a line through seconds by millions of records, by least squares."""
    mean_x, mean_y = (sum(values) / len(points) for values in (points.keys(), points.values()))
    above = sum((x - mean_x) * (y - mean_y) for x, y in points.items())
    slope = above / sum((x - mean_x) ** 2 for x in points)
    return Cost(mean_y - slope * mean_x, slope)


def measure(clusters: Clusters, folder: Path) -> dict[str, Any]:
    """Return the rows of the result; what lines are fitted through is measured `ROUNDS` times, the median is kept."""
    topics = {_topic(size, millions): (size, millions) for size, every in SIZES.items() for millions in every}
    for topic, (size, millions) in topics.items():
        tables.log(f"writing {millions} million records of {size} bytes to both sides")
        _fill(clusters, topic, 0, millions * MILLION, size)
    spark_runs: dict[str, list[Run]] = {topic: [] for topic in topics}
    tool_runs: dict[str, list[float]] = {topic: [] for topic in topics}
    for number in range(1, ROUNDS + 1):
        for topic, (_, millions) in topics.items():
            spark_runs[topic].append(_verify(clusters, folder, topic, on_spark=True))
            tool_runs[topic].append(_consumed(clusters, topic, millions * MILLION))
            last = f"{spark_runs[topic][-1]}, consumer tool: {tool_runs[topic][-1]:.1f} s"
            tables.log(f"round {number} of {ROUNDS}: {topic}: {last}")
    runs = {topic: _median(every) for topic, every in spark_runs.items()}
    consumers = {topic: statistics.median(every) for topic, every in tool_runs.items()}
    without_spark = {one: _verify(clusters, folder, _topic(*one)) for one in WITHOUT_SPARK}
    tables.log(f"without Spark: {without_spark}")
    clients = clusters.client(SOURCE), clusters.client(TARGET)
    different, plain_s = compare_plainly(*clients, _topic(1024, 1), PARTITIONS)
    if different:
        raise BenchmarkError(f"plain comparison: both sides must be equal (got {different} records that differ).")
    state, large = folder / "state", _topic(LARGE_BYTES, LARGE)
    _verify(clusters, folder, large, state=state)
    _fill(clusters, large, LARGE * MILLION, LARGE * MILLION // 100, LARGE_BYTES)
    incremental = _verify(clusters, folder, large, state=state)
    rows = [
        {"bytes": size, "millions": millions, **_row(runs[topic]), "consumerSeconds": round(consumers[topic], 1)}
        for topic, (size, millions) in topics.items()
    ]
    costs = {size: _costs(size, runs, consumers) for size in SIZES}
    return {
        "runs": rows,
        "costs": [
            {"bytes": size, "of": of, "fixedSeconds": round(one.fixed_s, 1), "perMillion": round(one.per_million_s, 2)}
            for size, pair in costs.items()
            for of, one in zip(("verification", "consumer tool"), pair, strict=True)
        ],
        "withoutSpark": [
            {"bytes": size, "millions": millions, **_row(run)} for (size, millions), run in without_spark.items()
        ],
        "incremental": _row(incremental),
        "plainSeconds": round(plain_s, 1),
        "ratios": _ratios(runs, costs, plain_s, without_spark, incremental),
    }


def _median(runs: Sequence[Run]) -> Run:
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


def _topic(size: int, millions: int) -> str:
    return f"of-{size}-bytes-{millions}"


def _costs(size: int, runs: Mapping[str, Run], consumers: Mapping[str, float]) -> tuple[Cost, Cost]:
    """The cost of a verification and of the consumer tool, for records of one size."""
    verification = {millions: runs[_topic(size, millions)].seconds for millions in SIZES[size]}
    return cost(verification), cost({millions: consumers[_topic(size, millions)] for millions in SIZES[size]})


def _ratios(
    runs: Mapping[str, Run],
    costs: Mapping[int, tuple[Cost, Cost]],
    plain_s: float,
    without_spark: Mapping[tuple[int, int], Run],
    incremental: Run,
) -> list[dict[str, Any]]:
    small, large = (runs[_topic(LARGE_BYTES, millions)] for millions in (1, LARGE))
    verification, tool = costs[LARGE_BYTES]
    return [
        _ratio("every run, seconds beyond the consumer tool's", verification.fixed_s - tool.fixed_s, FIXED_S_MAX),
        *(
            _ratio(
                f"a million records of {size} B, to the consumer tool's",
                ours.per_million_s / theirs.per_million_s,
                TO_CONSUMER_MAX,
            )
            for size, (ours, theirs) in costs.items()
        ),
        _ratio("1 million of 100 B on each side, seconds", without_spark[100, 1].seconds, MIDDLE_S_MAX),
        _ratio(
            "times faster than the plain comparison, 1 million of 1 KiB",
            plain_s / without_spark[1024, 1].seconds,  # as its users run it: so few records take no Spark
            TO_PLAIN_MIN,
            least=True,
        ),
        _ratio(
            "1 % new data less its session's start, if it had one, of the full run",
            incremental.after_session_s / large.seconds,
            INCREMENTAL_MAX,
        ),
        _ratio("memory at ten times the data", large.peak_mib / small.peak_mib, MEMORY_MAX),
    ]


def _ratio(name: str, value: float, bound: float, *, least: bool = False) -> dict[str, Any]:
    holds = value >= bound if least else value <= bound
    return {"name": name, "value": round(value, 3), ("least" if least else "most"): bound, "holds": holds}


def _row(run: Run) -> dict[str, Any]:
    return {
        "records": run.records,
        "seconds": round(run.seconds, 1),
        "sessionSeconds": round(run.session_s, 1),
        "afterSessionSeconds": round(run.after_session_s, 1),
        "peakMib": run.peak_mib,
    }


def _fill(clusters: Clusters, topic: str, first: int, records: int, size: int) -> None:
    """Write the same records to both sides, each from a process of its own."""
    if not first:
        for side in (SOURCE, TARGET):
            admin = clusters.admin(side)  # named, because its futures end with it
            for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
                future.result(timeout=30)
    began_ms = int(time.time() * 1000) - 3_600_000
    with ProcessPoolExecutor(2) as pool:
        waiting = [
            pool.submit(_write, clusters.client(side), topic, range(first, first + records), size, began_ms)
            for side in (SOURCE, TARGET)
        ]
        for future in waiting:
            future.result(timeout=RUN_WITHIN_S)


def _write(client: dict[str, str], topic: str, numbers: range, size: int, began_ms: int) -> None:
    noise = bytes(range(256)) * (size // 256 + 2)
    producer = Producer({**client, "linger.ms": 20, "batch.size": 262_144, "queue.buffering.max.messages": 500_000})
    for number in numbers:
        value = number.to_bytes(8) + noise[number % 256 : number % 256 + size - 8]
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS, timestamp=began_ms + number // 1000)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise BenchmarkError(f"topic {topic}: all records must be written within 120 s of the last one.")


def _consumed(clusters: Clusters, topic: str, records: int) -> float:
    """Seconds in which Kafka's consumer tool reads the topic on both sides, one after the other, its start included."""
    began = time.monotonic()
    for side in (SOURCE, TARGET):
        clusters.tool(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", clusters.bootstrap(side), "--topic", topic, "--num-records", str(records)),
            *("--command-config", str(clusters.folder / "client.properties")),
        )
    return time.monotonic() - began


def _verify(clusters: Clusters, folder: Path, topic: str, *, state: Path | None = None, on_spark: bool = False) -> Run:
    """Run the job as its users do, or with Spark however little there is to read.

    Raises BenchmarkError unless it finds both sides equal.
    """
    request = {
        "source": {"alias": "source", "client_config": clusters.client(SOURCE)},
        "target": {"alias": "target", "client_config": clusters.client(TARGET)},
        "mirror": {"name": "benchmark", "topics": [topic], "replication_factor": 1, "sync_group_offsets": False},
        "limits": {"mirror_wait_seconds": 0, "allow_unknown": _UNKNOWN},
    }
    path, report = folder / f"{topic}.json", folder / f"report-{topic}"
    path.write_text(json.dumps(request), encoding="utf-8")
    command = [sys.executable, "-m", "spark", "--request", str(path), "--report-dir", str(report)]
    command += ["--state", str(state)] if state else []
    environment = (
        os.environ | clusters.tools.spark_environment | ({"RT_INVENTORY_SPARK_ABOVE": "0"} if on_spark else {})
    )
    began = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        memory = _Memory(process.pid)
        try:
            said, _ = process.communicate(timeout=RUN_WITHIN_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise BenchmarkError(f"verification of {topic}: must end within {RUN_WITHIN_S} s (got no end).") from error
        finally:
            memory.ended.set()
    seconds = time.monotonic() - began
    if process.returncode:
        last = " ".join(said.strip().splitlines()[-3:])
        raise BenchmarkError(f"verification of {topic}: must exit with 0 (got {process.returncode}: {last}).")
    document = json.loads((report / "report.json").read_text(encoding="utf-8"))
    session_s = sum(one["seconds"] for one in document["steps"] if one["step"] == "start Spark")  # 0 for few records
    return Run(seconds, session_s, document["records_compared"], memory.peak_mib)


_UNKNOWN = ["connectors_running", "checkpoints_consistent"]


class _Memory:
    """The most memory that a process and all its children held together, sampled twice a second."""

    def __init__(self, pid: int) -> None:
        self.ended = threading.Event()
        self.peak_mib = 0
        threading.Thread(target=self._sample, args=(pid,), daemon=True).start()

    def _sample(self, pid: int) -> None:
        while not self.ended.wait(_SAMPLE_S):
            held = 0
            try:
                family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
            except psutil.Error:
                return
            for member in family:
                try:
                    held += member.memory_info().rss
                except psutil.Error:
                    continue
            self.peak_mib = max(self.peak_mib, held // 2**20)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its result; return the exit code (0 all ratios hold, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verification", description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    output = parser.parse_args(arguments).output
    tables.clean_up_on_sigterm()
    began, described = time.monotonic(), tables.describe()
    try:
        if ensure(here(), [java.SPARK_CLASSES]) != 0:  # sessions start from the archive
            return 2
        tools = locate()
        with running(tools) as clusters, tempfile.TemporaryDirectory(prefix="rt-inventory-verification-") as name:
            found = measure(clusters, Path(name))
    except (BenchmarkError, ToolchainError) as error:
        tables.log(f"error: {error}")
        return 2
    tables.keep(
        output,
        {
            "benchmark": "verification",
            "date": tables.today(),
            "machine": described,
            "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
            "setup": {"clusters": "2 of one broker, TLS, on the machine of the job", "partitions": PARTITIONS},
            **found,
            "seconds": round(time.monotonic() - began),
        },
    )
    for row in found["ratios"]:
        tables.log(f"{row['name']}: {row['value']} {'holds' if row['holds'] else 'MISSED'}")
    tables.log(f"written: {output}")
    return 0 if all(row["holds"] for row in found["ratios"]) else 1


Digests = Counter[tuple[int, bytes]]
PLAIN_BATCH = 10_000


def compare_plainly(
    source: Mapping[str, str], target: Mapping[str, str], topic: str, partitions: int
) -> tuple[int, float]:
    """Return how many records differ between the clusters with these client properties, and the seconds it took.

    The baseline that anybody would write first: one process, one consumer a side, and a count of the digests of each
    partition, so that records are compared as multisets.
    """
    began = time.monotonic()
    left, right = (_read(client, topic, partitions) for client in (source, target))
    left.subtract(right)
    return sum(abs(number) for number in left.values()), time.monotonic() - began


def _read(client: Mapping[str, str], topic: str, partitions: int) -> Digests:
    consumer = Consumer({**client, "group.id": "plain", "enable.auto.commit": False, "enable.partition.eof": False})
    found: Digests = Counter()
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        ends = {place.partition: consumer.get_watermark_offsets(place, timeout=20) for place in places}
        consumer.assign([TopicPartition(topic, number, low) for number, (low, _) in ends.items()])
        missing = sum(high - low for low, high in ends.values())
        while missing:
            for message in consumer.consume(PLAIN_BATCH, timeout=20):
                digest = hashlib.blake2b(digest_size=16)
                for part in (message.key(), message.value(), repr(message.headers()), str(message.timestamp()[1])):
                    content = part if isinstance(part, bytes) else str(part).encode()
                    digest.update(len(content).to_bytes(4) + content)
                found[message.partition() or 0, digest.digest()] += 1
                missing -= 1
    finally:
        consumer.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
