"""What a mirror copies from a source at a distance: with Kafka's defaults, and with what `ops size` recommends.

Run: `python -m benchmarks.distance`. Takes about ten minutes, needs no running sandbox, leaves nothing but the results
file. For each round trip it measures Kafka's consumer tool and a mirror, and the mirror's replication latency at 80 %
of what it copied, all over one line (`benchmarks.line`). Judges whether `ops size` comes within 20 % of the mirror.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from benchmarks import tables
from benchmarks.clusters import SOURCE, TARGET, TOOL_HEAP_MIB, WORKER, BenchmarkError, Clusters, running
from benchmarks.line import Line, toxiproxy_line, tunnel_line, tunnel_problem
from benchmarks.mirror_throughput import Sample, arrived, consumed, finished
from ops.sizing.clients import BROKER_BUFFER, NOTHING, Clients, Point, Throughput, consumer_bound
from ops.sizing.model import Workload, copied, size
from sandbox.operator.java_processes import kafka_version
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "distance.json"
ROUND_TRIPS_MS = (0, 20, 50, 100, 150)
PARTITIONS, RECORD_BYTES, RECORDS = 8, 1024, 400_000
DEFAULTS, RECOMMENDED = "defaults", "recommended"
NEAR_MS = 0.2  # a round trip on one machine
SHARE, HIGHEST_RATE = 0.8, 8000.0  # of the latency's load: producer, brokers and mirror share the machine
COPIED_S, SETTLE_S, LATENCY_S, BEGINS_WITHIN_S = 8.0, 2.0, 10.0, 90.0
WITHIN = 0.2
_POLL_S = 0.1
_runs = count(1)


@dataclass(frozen=True)
class Setting:
    """Tasks and clients of a mirror, the same as connector's options, and what `ops size` expects of it."""

    name: str
    tasks: int
    consumer: dict[str, int | str]
    producer: dict[str, int | str]
    fetch: float
    """Records a second that the consumer of one task can fetch; infinite without a distance."""
    expected: float

    def overrides(self) -> dict[str, object]:
        """Options of the connector."""
        return {
            **{f"consumer.{key}": value for key, value in self.consumer.items()},
            **{f"producer.override.{key}": value for key, value in self.producer.items()},
        }


def setting(name: str, round_trip_ms: int, here: Throughput) -> Setting:
    """Return what a mirror is configured with for this distance; `here` is what a task copies without one.

    Recommended is for a load of which the double, the catch-up factor, is all that this machine can copy.
    """
    most = here.records_per_second(RECORD_BYTES)
    load = Workload(
        topics=1,
        partitions=PARTITIONS,
        record_bytes=RECORD_BYTES,
        records_per_second=most / 2,
        latency_ms=round_trip_ms,
        local_ms=NEAR_MS,
        source_brokers=1,
        target_brokers=1,
        broker_buffer=BROKER_BUFFER if name == DEFAULTS else -1,
    )
    consumer: dict[str, int | str] = {}
    producer: dict[str, int | str] = {}
    tasks = 1
    if name == RECOMMENDED:
        found = size(load, here)
        tasks, consumer, producer = found.tasks, found.consumer, found.producer
    clients = Clients(
        receive_buffer=int(consumer.get("receive.buffer.bytes", Clients.receive_buffer)),
        max_partition_fetch=int(consumer.get("max.partition.fetch.bytes", Clients.max_partition_fetch)),
        batch=int(producer.get("batch.size", Clients.batch)),
        in_flight=int(producer.get("max.in.flight.requests.per.connection", Clients.in_flight)),
        send_buffer=int(producer.get("send.buffer.bytes", Clients.send_buffer)),
    )
    bound = consumer_bound(clients, load.network(), PARTITIONS).bytes_per_second
    return Setting(
        name=name,
        tasks=tasks,
        consumer=consumer,
        producer=producer,
        fetch=math.inf if bound is None else bound / RECORD_BYTES,
        expected=min(copied(load, here, clients, tasks), most),  # the tasks share the machine that one task fills
    )


def rate(samples: Sequence[Sample], settled_at: float) -> float:
    """Return records a second from the first sample at `settled_at` to the last one, also if it stands at its end.

    Raises BenchmarkError if nothing arrived between them.
    """
    first = next((sample for sample in samples if sample.at_s >= settled_at), samples[-1])
    last = samples[-1]  # where all has arrived nothing is sampled any more
    if last.at_s <= first.at_s or last.records <= first.records:
        raise BenchmarkError("mirror: records must arrive while it is measured (got none). Take more records.")
    return (last.records - first.records) / (last.at_s - first.at_s)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def is_within(expected: float, measured: float) -> bool:
    """Whether `ops size` comes within 20 % of what was measured."""
    return abs(expected - measured) <= WITHIN * measured


class Distance:
    """The measurements on one pair of clusters, whose source is at the end of a line."""

    def __init__(self, clusters: Clusters, line: Line) -> None:
        self._clusters, self._line = clusters, line
        self._admin = clusters.admin(SOURCE)

    def fill(self) -> None:
        """Write the records that are copied, over no distance."""
        finished(self._admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("stored", "paced")]))
        subprocess.run(self._produce("stored", RECORDS, -1), check=True, capture_output=True, timeout=BEGINS_WITHIN_S)

    def consumer(self, chosen: Setting) -> float:
        """Records a second that Kafka's consumer tool reads over the line, with the mirror's buffers."""
        few = RECORDS if math.isinf(chosen.fetch) else min(RECORDS, max(1000, int(chosen.fetch * COPIED_S)))
        output = self._clusters.tool(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", self._line.far.bootstrap, "--topic", "stored", "--num-records", str(few)),
            f"--socket-buffer-size={chosen.consumer.get('receive.buffer.bytes', Clients.receive_buffer)}",
            f"--fetch-size={chosen.consumer.get('max.partition.fetch.bytes', Clients.max_partition_fetch)}",
            *("--timeout", str(int(BEGINS_WITHIN_S * 1000))),
            *("--command-config", str(self._clusters.folder / "client.properties")),
        )
        return consumed(output)

    def mirror(self, chosen: Setting, seconds: float = COPIED_S) -> tuple[float, float]:
        """Records a second that a mirror copies over the line, and the worker's CPU seconds a record."""
        worker, samples = psutil.Process(self._clusters.pid(WORKER)), list[Sample]()
        with self._connector("stored", chosen) as topic, self._reader() as reader:
            end = time.monotonic() + BEGINS_WITHIN_S
            began = math.inf
            while time.monotonic() < min(end, began + SETTLE_S + seconds):
                cpu = worker.cpu_times()
                samples.append(Sample(time.monotonic(), arrived(reader, topic, PARTITIONS), cpu.user + cpu.system))
                if samples[-1].records and math.isinf(began):
                    began = samples[-1].at_s
                if samples[-1].records == RECORDS:
                    break
                time.sleep(_POLL_S)
            if math.isinf(began):
                raise BenchmarkError(f"mirror: records must arrive within {BEGINS_WITHIN_S:.0f} s (got none).")
        found = rate(samples, began + SETTLE_S)
        settled = next(sample for sample in samples if sample.at_s >= began + SETTLE_S)
        return found, (samples[-1].cpu_s - settled.cpu_s) / max(1, samples[-1].records - settled.records)

    def latency(self, chosen: Setting, records_per_second: float) -> tuple[float, float]:
        """Milliseconds from the producer to a reader of the target, half of the records and 99 % of them below."""
        with self._connector("paced", chosen) as topic, self._reader() as reader:
            end = time.monotonic() + BEGINS_WITHIN_S
            while topic not in reader.list_topics(timeout=5).topics:
                if time.monotonic() > end:
                    raise BenchmarkError(f"mirror: {topic} must exist within {BEGINS_WITHIN_S:.0f} s (got none).")
                time.sleep(_POLL_S)
            reader.assign([TopicPartition(topic, number, OFFSET_END) for number in range(PARTITIONS)])
            pace = int(max(1, records_per_second))
            records = int(pace * (LATENCY_S + 2 * SETTLE_S))
            with subprocess.Popen(self._produce("paced", records, pace), stdout=subprocess.DEVNULL) as producer:
                try:
                    return self._delays(reader)
                finally:
                    producer.terminate()

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
    def _reader(self) -> Iterator[Consumer]:
        reader = Consumer(self._clusters.client(TARGET) | {"group.id": "benchmark", "log_level": "0"})
        try:
            yield reader
        finally:
            reader.close()

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
    clusters: Clusters, line: Line, name: str, trips: Sequence[int], here: Throughput
) -> Iterator[dict[str, Any]]:
    """Return a row for each round trip; what a task copies over none is measured first unless it is known."""
    distance = Distance(clusters, line)
    distance.fill()
    line.set_round_trip(0)
    distance.mirror(Setting("warm-up", 2, {}, {}, math.inf, math.inf))
    if here is NOTHING:
        found, cpu = distance.mirror(Setting(DEFAULTS, 1, {}, {}, math.inf, math.inf))
        here = Throughput((Point(RECORD_BYTES, 1 / found, cpu),), "this run")
    for trip in trips:
        line.set_round_trip(trip)
        chosen = setting(name, trip, here)
        consumer, (mirror, _) = distance.consumer(chosen), distance.mirror(chosen)
        pace = min(HIGHEST_RATE, SHARE * mirror)
        half, most = distance.latency(chosen, pace)
        row = {
            **{key: value for key, value in asdict(chosen).items() if key != "fetch"},
            "roundTripMs": trip,
            "expected": round(chosen.expected),
            "consumer": round(consumer),
            "mirror": round(mirror),
            "holds": is_within(chosen.expected, mirror),
            "latencyAt": round(pace),
            "latencyP50Ms": round(half),
            "latencyP99Ms": round(most),
            "oneTaskHere": here.records_per_second(RECORD_BYTES),
            "cpuSecondsHere": here.cpu_seconds(RECORD_BYTES),
        }
        tables.log(
            "{roundTripMs} ms, {name}, {tasks} tasks: consumer {consumer}, mirror {mirror}, expected {expected} "
            "records/s; latency {latencyP50Ms} and {latencyP99Ms} ms at {latencyAt} records/s".format(**row)
        )
        yield row


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
    rows: list[dict[str, Any]] = []
    try:
        tools = locate()
        with tempfile.TemporaryDirectory(prefix="rt-inventory-line-") as folder:
            opened = tunnel_line() if by_tunnel else toxiproxy_line(tools, Path(folder))
            with opened as line:
                named, here = line.name, NOTHING
                for name, buffer in ((DEFAULTS, BROKER_BUFFER), (RECOMMENDED, -1)):
                    sent = {"socket.send.buffer.bytes": buffer}
                    with running(tools, far=line.far, source_settings=sent) as clusters:
                        rows += measure(clusters, line, name, options.round_trips, here)
                    point = Point(RECORD_BYTES, 1 / rows[0]["oneTaskHere"], rows[0]["cpuSecondsHere"])
                    here = Throughput((point,), "this run")
    except (BenchmarkError, ToolchainError, KafkaException, OSError, subprocess.SubprocessError) as error:
        tables.log(f"error: {error}")
        return 2
    tables.keep(
        options.output,
        {
            "benchmark": "distance",
            "date": tables.today(),
            "machine": described,
            "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
            "line": named,
            "partitions": PARTITIONS,
            "recordBytes": RECORD_BYTES,
            "rows": rows,
            "seconds": round(time.monotonic() - began),
        },
    )
    tables.log(f"written: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
