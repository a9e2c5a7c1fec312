"""What a mirror copies from a source at a distance: with Kafka's defaults, and with what `ops size` recommends.

Run: `python -m benchmarks.distance`. Takes about forty minutes, needs no running sandbox, leaves only the results
file. For each round trip it measures Kafka's consumer tool and a mirror, and the mirror's replication latency at 80 %
of what it copied, all over one line (`benchmarks.line`). Judges whether `ops size` comes within 20 % of the mirror.
"""

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from benchmarks import tables
from benchmarks.clusters import SOURCE, TARGET, TOOL_HEAP_MIB, WORKER, BenchmarkError, Clusters, running
from benchmarks.distance_settings import (
    BROKER_BUFFERS,
    DEFAULTS,
    MIRROR_ONLY,
    PARTITIONS,
    RECORD_BYTES,
    Setting,
    setting,
)
from benchmarks.line import Line, toxiproxy_line, tunnel_line, tunnel_problem
from benchmarks.mirror_throughput import arrived, finished
from benchmarks.pace import BEGINS_WITHIN_S, SETTLE_S, longest_pause, rate, watched
from ops.sizing.clients import Clients, Point, Throughput
from sandbox.operator.java_processes import kafka_version
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "distance.json"
ROUND_TRIPS_MS = (0, 20, 50, 100, 150)
STREAM_ROUND_TRIPS_MS = (100, 150)
RECORDS = 1_200_000  # more than a mirror copies in the ten seconds for which it is watched
WARM_UPS = 4
SHARE, HIGHEST_RATE = 0.8, 8000.0  # of the latency's load: producer, brokers and mirror share the machine
LATENCY_S, FILLED_WITHIN_S = 10.0, 600.0
STREAM_BYTES, STREAM_S, STREAM_BEHIND_S = 5_000_000, 40.0, 5.0  # 5 MB/s
STREAM = STREAM_BYTES / RECORD_BYTES
NEARLY_ALL = RECORDS * 98 // 100  # the consumer tool reports up to its poll before
WITHIN = 0.2
_POLL_S = 0.1
_runs = count(1)


def consumed_until_now(printed: str) -> int:
    """Return the records that the consumer's performance tool has read, from the detailed lines that it prints.

    A line is time, thread, MB, MB a second, records, and so on; the last one may not be whole yet.
    """
    whole = printed.rpartition("\n")[0]
    found = re.findall(r"^[^,]+, \d+, [^,]+, [^,]+, (\d+), ", whole[-1000:], re.MULTILINE)
    return int(found[-1]) if found else 0


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def is_within(expected: float, measured: float) -> bool:
    """Whether `ops size` comes within 20 % of what was measured."""
    return abs(expected - measured) <= WITHIN * measured


@dataclass(frozen=True)
class Copied:
    """Records a second, the worker's CPU seconds a record, and the longest time in which none arrived."""

    records_per_second: float
    cpu_seconds: float
    pause_s: float


class Distance:
    """The measurements on one pair of clusters, whose source is at the end of a line."""

    def __init__(self, clusters: Clusters, line: Line) -> None:
        self._clusters, self._line = clusters, line
        self._admin = clusters.admin(SOURCE)

    def fill(self) -> None:
        """Write the records that are copied, over no distance."""
        finished(self._admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("stored",)]))
        subprocess.run(self._produce("stored", RECORDS, -1), check=True, capture_output=True, timeout=FILLED_WITHIN_S)

    def consumer(self, chosen: Setting) -> float:
        """Records a second that Kafka's consumer tool reads over the line, with the mirror's buffers."""
        printed = self._clusters.folder / "consumer.txt"
        command = self._clusters.command(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", self._line.far.bootstrap, "--topic", "stored", "--num-records", str(RECORDS)),
            f"--socket-buffer-size={chosen.consumer.get('receive.buffer.bytes', Clients.receive_buffer)}",
            f"--fetch-size={chosen.consumer.get('max.partition.fetch.bytes', Clients.max_partition_fetch)}",
            *("--timeout", str(int(BEGINS_WITHIN_S * 1000)), "--show-detailed-stats", "--reporting-interval", "10"),
            *("--command-config", str(self._clusters.folder / "client.properties")),
            heap_mib=TOOL_HEAP_MIB,
        )
        with printed.open("wb") as output, subprocess.Popen(command, stdout=output) as tool:
            try:
                return rate(
                    watched("consumer tool", lambda: (consumed_until_now(printed.read_text()), 0.0), NEARLY_ALL)
                )
            finally:
                tool.kill()

    def mirror(self, chosen: Setting) -> Copied:
        """What a mirror copies over the line."""
        worker = psutil.Process(self._clusters.pid(WORKER))
        with self._connector("stored", chosen) as topic, self._reader() as reader:

            def read() -> tuple[int, float]:
                cpu = worker.cpu_times()
                return arrived(reader, topic, PARTITIONS), cpu.user + cpu.system

            samples = watched("mirror", read, RECORDS)
        found, first, last = rate(samples), samples[0], samples[-1]
        cpu_seconds = (last.cpu_s - first.cpu_s) / (last.records - first.records)
        return Copied(found, cpu_seconds, longest_pause(samples))

    def here(self) -> Throughput:
        """What one task copies over no distance, now: the machine may have other work."""
        self._line.set_round_trip(0)
        copied = self.mirror(Setting(DEFAULTS, 1, {}, {}))
        return Throughput((Point(RECORD_BYTES, 1 / copied.records_per_second, copied.cpu_seconds),), "this run")

    def latency(self, chosen: Setting, records_per_second: float) -> tuple[float, float]:
        """Milliseconds from the producer to a reader of the target, half of the records and 99 % of them below."""
        with self._paced(chosen) as (source, target), self._reader() as reader:
            reader.assign([TopicPartition(target, number, OFFSET_END) for number in range(PARTITIONS)])
            with self._producer(source, records_per_second, LATENCY_S + 2 * SETTLE_S):
                return self._delays(reader)

    def stream(self, chosen: Setting) -> tuple[float, float]:
        """Records by which a mirror of a steady stream falls behind each second, and those that lack at the end."""
        moments, behind = list[float](), list[float]()
        with (
            self._paced(chosen) as (source, target),
            self._reader() as copied,
            self._reader(SOURCE) as written,
            self._producer(source, STREAM, STREAM_S + BEGINS_WITHIN_S),
        ):
            began, end = math.inf, time.monotonic() + BEGINS_WITHIN_S
            while (now := time.monotonic()) < began + STREAM_S:
                here, there = arrived(copied, target, PARTITIONS), arrived(written, source, PARTITIONS)
                if here:
                    began = min(began, now)
                    moments.append(now)
                    behind.append(there - here)
                elif now > end:
                    raise BenchmarkError(f"mirror: records must arrive within {BEGINS_WITHIN_S:.0f} s (got none).")
                time.sleep(_POLL_S)
        settled = [(at, lag) for at, lag in zip(moments, behind, strict=True) if at >= began + 2 * SETTLE_S]
        return statistics.linear_regression(*zip(*settled, strict=True)).slope, behind[-1]

    def _delays(self, reader: Consumer) -> tuple[float, float]:
        delays: list[float] = []
        began, end = math.inf, time.monotonic() + BEGINS_WITHIN_S
        while time.monotonic() < min(end, began + 2 * SETTLE_S + LATENCY_S):
            for message in reader.consume(500, timeout=0.1):
                if message.error():
                    continue
                now = time.time()
                began = min(began, time.monotonic())
                if time.monotonic() >= began + 2 * SETTLE_S:
                    delays.append(now * 1000 - message.timestamp()[1])
        if not delays:
            raise BenchmarkError("mirror: records must arrive while their latency is measured (got none).")
        return percentile(delays, 50), percentile(delays, 99)

    @contextmanager
    def _paced(self, chosen: Setting) -> Iterator[tuple[str, str]]:
        """A topic of its own and its mirror: their names. What another measurement wrote would be copied first."""
        source = f"paced{next(_runs)}"
        finished(self._admin.create_topics([NewTopic(source, PARTITIONS, 1)]))
        try:
            with self._connector(source, chosen) as target, self._reader() as reader:
                end = time.monotonic() + BEGINS_WITHIN_S
                while target not in reader.list_topics(timeout=5).topics:
                    if time.monotonic() > end:
                        raise BenchmarkError(f"mirror: {target} must exist within {BEGINS_WITHIN_S:.0f} s (got none).")
                    time.sleep(_POLL_S)
                yield source, target
        finally:
            finished(self._admin.delete_topics([source]))

    @contextmanager
    def _connector(self, topic: str, chosen: Setting) -> Iterator[str]:
        alias = f"run{next(_runs)}"
        config = self._clusters.mirror(alias, topic, chosen.tasks, self._line.far.bootstrap, **chosen.overrides())
        self._clusters.connect("PUT", f"/connectors/{alias}/config", config)
        remote = f"{alias}.{topic}"
        try:
            yield remote
        finally:
            self._clusters.connect("DELETE", f"/connectors/{alias}")
            admin = self._clusters.admin(TARGET)
            for future in admin.delete_topics([remote]).values():
                if error := future.exception(timeout=30):
                    tables.log(f"{remote} stays: {error}")

    @contextmanager
    def _reader(self, cluster: str = TARGET) -> Iterator[Consumer]:
        reader = Consumer(self._clusters.client(cluster) | {"group.id": "benchmark", "log_level": "0"})
        try:
            yield reader
        finally:
            reader.close()

    @contextmanager
    def _producer(self, topic: str, records_per_second: float, seconds: float) -> Iterator[None]:
        pace = int(max(1, records_per_second))
        command = self._produce(topic, int(pace * seconds), pace)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as producer:
            try:
                yield
            finally:
                producer.terminate()

    def _produce(self, topic: str, records: int, records_per_second: int) -> list[str]:
        return self._clusters.command(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--bootstrap-server", self._clusters.bootstrap(SOURCE), "--topic", topic),
            *("--num-records", str(records), "--record-size", str(RECORD_BYTES)),
            *("--throughput", str(records_per_second)),
            *("--command-config", str(self._clusters.folder / "client.properties")),
            heap_mib=TOOL_HEAP_MIB,
        )


def measure(
    clusters: Clusters, line: Line, names: Sequence[str], trips: Sequence[int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return rows, and the table that each belongs to.

    What a task copies over no distance is measured before the rows of a round trip and after them, for the machine may
    have other work: `ops size` is judged by the mean.
    """
    distance = Distance(clusters, line)
    distance.fill()
    line.set_round_trip(0)
    for _ in range(WARM_UPS):
        distance.mirror(Setting("warm-up", 2, {}, {}))
    before = distance.here()
    for trip in trips:
        line.set_round_trip(trip)
        rows = list[tuple[Setting, dict[str, Any]]]()
        for name in names:
            if name == MIRROR_ONLY and trip not in STREAM_ROUND_TRIPS_MS:
                continue
            chosen = setting(name, trip, before)
            rows.append((chosen, _copied(distance, chosen, trip)))
            if trip in STREAM_ROUND_TRIPS_MS:
                yield "streams", _stream(distance, setting(name, trip, before, STREAM), trip)
        after = distance.here()
        mean = _mean(before, after)
        for chosen, row in rows:
            yield "rows", _judged(row, chosen, mean)
        before = after


def _copied(distance: Distance, chosen: Setting, trip: int) -> dict[str, Any]:
    consumer, mirror = distance.consumer(chosen), distance.mirror(chosen)
    pace = min(HIGHEST_RATE, SHARE * mirror.records_per_second)
    half, most = distance.latency(chosen, pace)
    return {
        **_configured(chosen),
        "roundTripMs": trip,
        "consumer": round(consumer),
        "mirror": round(mirror.records_per_second),
        "longestPauseSeconds": round(mirror.pause_s, 1),
        "loadAverage": round(os.getloadavg()[0], 1),
        "latencyAt": round(pace),
        "latencyP50Ms": round(half),
        "latencyP99Ms": round(most),
    }


def _judged(row: Mapping[str, Any], chosen: Setting, here: Throughput) -> dict[str, Any]:
    expected = chosen.expected(row["roundTripMs"], here)
    judged = {
        **row,
        "oneTaskHere": round(here.records_per_second(RECORD_BYTES)),
        "expected": round(expected),
        "holds": is_within(expected, row["mirror"]),
    }
    tables.log(
        "{roundTripMs} ms, {name}, {tasks} tasks: here {oneTaskHere}, consumer {consumer}, mirror {mirror}, expected "
        "{expected} records/s, pauses to {longestPauseSeconds} s; latency {latencyP50Ms} and {latencyP99Ms} ms at "
        "{latencyAt} records/s".format(**judged)
    )
    return judged


def _mean(before: Throughput, after: Throughput) -> Throughput:
    """What a task copies over no distance, between two measurements."""
    (one,), (other,) = before.points, after.points
    rate = statistics.mean(found.records_per_second(RECORD_BYTES) for found in (before, after))
    return Throughput(
        (Point(RECORD_BYTES, 1 / rate, statistics.mean((one.cpu_seconds, other.cpu_seconds))),), "this run"
    )


def _configured(chosen: Setting) -> dict[str, Any]:
    return {
        "name": chosen.name,
        "tasks": chosen.tasks,
        "consumerOptions": chosen.consumer,
        "producerOptions": chosen.producer,
    }


def _stream(distance: Distance, chosen: Setting, trip: int) -> dict[str, Any]:
    grows, behind = (records / STREAM for records in distance.stream(chosen))
    row = {
        **_configured(chosen),
        "roundTripMs": trip,
        "grows": round(grows, 3),
        "behindSeconds": round(behind, 1),
        "holds": behind <= STREAM_BEHIND_S,
    }
    tables.log(
        "{roundTripMs} ms, {name}, {tasks} tasks, 5 MB/s: each second {grows} s more behind, {behindSeconds} s at the "
        "end".format(**row)
    )
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its result; return the exit code (0 done, 2 it could not be made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distance", description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    parser.add_argument("--line", choices=("tunnel", "toxiproxy"), help="(default: tunnel where it can be)")
    parser.add_argument(
        "--round-trips", type=int, nargs="+", default=ROUND_TRIPS_MS, help="in ms (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    tables.clean_up_on_sigterm()
    began, described, problem = time.monotonic(), tables.describe(), tunnel_problem()
    if options.line == "tunnel" and problem:
        tables.log(f"error: line: packets cannot be delayed here ({problem}). Take --line toxiproxy.")
        return 2
    by_tunnel = options.line == "tunnel" or (options.line is None and problem is None)
    found: dict[str, list[dict[str, Any]]] = {"rows": [], "streams": []}
    try:
        tools = locate()
        with tempfile.TemporaryDirectory(prefix="rt-inventory-line-") as folder:
            opened = tunnel_line() if by_tunnel else toxiproxy_line(tools, Path(folder))
            with opened as line:
                for buffer in dict.fromkeys(BROKER_BUFFERS.values()):
                    names = [name for name, theirs in BROKER_BUFFERS.items() if theirs == buffer]
                    sent = {"socket.send.buffer.bytes": buffer}
                    with running(tools, far=line.far, source_settings=sent) as clusters:
                        for table, row in measure(clusters, line, names, options.round_trips):
                            found[table].append(row)
                            document = {
                                "benchmark": "distance",
                                "date": tables.today(),
                                "machine": described,
                                "versions": {
                                    "kafka": kafka_version(tools.kafka_libs),
                                    "python": sys.version.split()[0],
                                },
                                "line": line.name,
                                "partitions": PARTITIONS,
                                "recordBytes": RECORD_BYTES,
                                "stream": {"bytesPerSecond": STREAM_BYTES, "seconds": STREAM_S},
                                **found,
                                "seconds": round(time.monotonic() - began),
                            }
                            tables.keep(options.output, document)  # a run that is stopped leaves what it measured
    except (BenchmarkError, ToolchainError, KafkaException, OSError, subprocess.SubprocessError) as error:
        tables.log(f"error: {error}")
        return 2
    tables.log(f"written: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
