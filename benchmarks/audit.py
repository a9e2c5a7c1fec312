"""The audit under traffic: whether it finds every fault in its bucket, and what it costs.

Run: `python -m benchmarks.audit --minutes 10`. A producer writes each record to both of two clusters, as a mirror that
keeps timestamps does, and injects faults on the target at random moments from a seed: records are lost, doubled,
altered, or held back until their time is over. The audit is killed with SIGKILL once in the middle and started again.
At the end the state, the count and the bucket of each fault must be what was injected, and no other bucket may be at
fault. CPU and memory are those of the audit's processes; the baseline is the same audit while nothing is written.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka.cimpl import NewTopic

from benchmarks import tables
from benchmarks.audited_traffic import BUCKET_S, PARTITIONS, TOPIC, WITHIN_S, Bucket, Traffic, expected, schedule
from benchmarks.clusters import SOURCE, TARGET, BenchmarkError, Clusters, running
from sandbox.operator.java_processes import kafka_version
from sandbox.toolchain import ToolchainError, locate

ROOT = Path(__file__).resolve().parents[1]
RESULT = tables.RESULTS / "audit.json"
RATE, MINUTES, EVERY_S = 5000, 10, 20
IDLE_S = 60.0
PARTS, GROWN_MAX = 12, 1.1
CPU_MAX = 0.05  # of all cores, beyond what the audit takes while nothing is written
CLOSED_WITHIN_S, STOPPED_WITHIN_S, STARTED_WITHIN_S = 300.0, 60.0, 120.0


@dataclass
class Meter:
    """CPU seconds and memory of the audit's processes, over all of its starts."""

    cpu_s: float = 0.0
    samples_mib: list[int] = field(default_factory=list)
    _last: dict[int, float] = field(default_factory=dict)

    def sample(self, pid: int) -> None:
        """Add what the process and its children have used since the last sample."""
        held = 0
        try:
            family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            return
        for member in family:
            try:
                used = sum(member.cpu_times()[:2])
                held += member.memory_info().rss
            except psutil.Error:
                continue
            self.cpu_s += max(0.0, used - self._last.get(member.pid, 0.0))
            self._last[member.pid] = used
        self.samples_mib.append(held >> 20)


@contextmanager
def auditing(
    clusters: Clusters, folder: Path, request: Mapping[str, Any], **seconds: int
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the audit; when the block ends it is asked to end, or killed if it does not.

    `seconds` are its options `bucket`, `within` and `every`.
    """
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    command = [sys.executable, "-m", "spark", "audit", "--request", str(folder / "request.json")]
    command += ["--state", str(folder / "state"), "--report", str(folder / "audit.json")]
    for name, number in seconds.items():
        command += [f"--{name}", str(number)]
    with (folder / "audit.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            # What a killed one leaves goes with the folder.
            env=os.environ | clusters.tools.spark_environment | {"TMPDIR": str(folder)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOPPED_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def document(folder: Path) -> dict[str, Any] | None:
    """Return the newest report, None before the first."""
    try:
        found: dict[str, Any] = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    except OSError:
        return None
    return found


def found(audit: Mapping[str, Any]) -> dict[Bucket, dict[str, int]]:
    """Return the buckets at fault with what the audit says of them: records, by state."""
    return {(one["partition"], one["start_ms"]): {one["state"]: one["records"]} for one in audit["faults"]}


def measure(clusters: Clusters, folder: Path, minutes: float, rate: int, seed: int) -> dict[str, Any]:
    """Run idle, then under traffic with a kill in the middle, until all buckets are closed; return what was seen."""
    for side in (SOURCE, TARGET):
        admin = clusters.admin(side)  # named, because its futures end with it
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    chance = random.Random(seed)  # noqa: S311 - faults, no secrets
    idle, busy = Meter(), Meter()
    traffic = Traffic(clusters, schedule(chance, minutes * 60))
    request = {
        "source": {"alias": "source", "client_config": clusters.client(SOURCE)},
        "target": {"alias": "target", "client_config": clusters.client(TARGET)},
        "mirror": {"name": "benchmark", "topics": [TOPIC], "replication_factor": 1, "sync_group_offsets": False},
    }
    audited = partial(auditing, clusters, folder, request, bucket=BUCKET_S, within=WITHIN_S, every=EVERY_S)
    with audited() as process:
        _until("the audit has read both sides", process, lambda: document(folder) is not None, STARTED_WITHIN_S)
        idle_rate = _sampled(idle, process, IDLE_S)
        # An audit that fails ends the benchmark, whoever still writes.
        writer = threading.Thread(target=traffic.write, args=(minutes * 60, rate, chance), daemon=True)
        tables.log(f"traffic: {rate} records/s for {minutes:g} minutes, {len(traffic.faults)} faults")
        writer.start()
        rates = [_sampled(busy, process, minutes * 30)]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    with audited() as process:
        rates.append(_sampled(busy, process, minutes * 30))
        writer.join()
        if traffic.error is not None:
            raise traffic.error
        ended_ms = int(time.time() * 1000)
        _until("all buckets are closed", process, lambda: closed(document(folder), ended_ms), CLOSED_WITHIN_S)
        last = document(folder)
    if last is None:
        raise BenchmarkError("audit: its report must stay.")
    wanted, seen = expected(traffic.changed), found(last)
    buckets = Counter[str]()
    for topic in last["topics"]:
        buckets.update(topic["buckets"])
    return {
        "records": traffic.written,
        "recordsPerSecond": rate,
        "minutes": minutes,
        "seed": seed,
        "buckets": dict(sorted(buckets.items())),
        "faultyBuckets": len(wanted),
        "foundExactly": sum(seen.get(bucket) == one for bucket, one in wanted.items()),
        "falseBuckets": sorted(map(str, seen.keys() - wanted.keys())),
        "notExactly": {
            str(bucket): [one, seen.get(bucket)] for bucket, one in wanted.items() if seen.get(bucket) != one
        },
        "lateInjected": sum("late" in done and bucket not in wanted for bucket, done in traffic.changed.items()),
        "latencySeconds": {name: value and value / 1000 for name, value in last["latency_ms"].items()},
        "idleCores": round(idle_rate, 3),
        "busyCores": [round(one, 3) for one in rates],
        "shareOfMachine": round((rates[0] - idle_rate) / (os.cpu_count() or 1), 4),
        "memoryMib": parts(busy.samples_mib),
    }


def parts(samples: Sequence[int]) -> list[int]:
    """Return the medians of the twelfths of a run. The process of the second half is another one than the first's."""
    size = max(1, len(samples) // PARTS)
    return [round(statistics.median(samples[at : at + size] or samples[-1:])) for at in range(0, size * PARTS, size)]


def flat(memory_mib: Sequence[int]) -> bool:
    """Whether both processes hold no more at their end than when a third of their time was over."""
    half = len(memory_mib) // 2
    return all(one[-1] <= one[len(one) // 3] * GROWN_MAX for one in (memory_mib[:half], memory_mib[half:]))


def _sampled(meter: Meter, process: "subprocess.Popen[bytes]", seconds: float) -> float:
    """Sample the audit for some seconds; return how many cores it used. The progress says so for each minute."""
    meter.sample(process.pid)
    before, began = meter.cpu_s, time.monotonic()
    minute_s, used_s = began, before
    while (now := time.monotonic()) < began + seconds:
        if process.poll() is not None:
            raise BenchmarkError(f"audit: must run on (got exit code {process.returncode}).")
        time.sleep(min(1.0, began + seconds - now))
        meter.sample(process.pid)
        if time.monotonic() >= minute_s + 60:
            cores = (meter.cpu_s - used_s) / (time.monotonic() - minute_s)
            tables.log(f"  {(time.monotonic() - began) / 60:.0f} min: {cores:.3f} cores, {meter.samples_mib[-1]} MiB")
            minute_s, used_s = time.monotonic(), meter.cpu_s
    return (meter.cpu_s - before) / seconds


def closed(audit: Mapping[str, Any] | None, after_ms: int) -> bool:
    """Whether both sides were read after a time and no bucket is open."""
    if audit is None or any(at is None or at < after_ms for at in audit["read_through"].values()):
        return False
    return not any(topic["buckets"].get("open") for topic in audit["topics"])


def _until(what: str, process: "subprocess.Popen[bytes]", condition: Callable[[], bool], within_s: float) -> None:
    end, reported_at = time.monotonic() + within_s, time.monotonic()
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            raise BenchmarkError(f"audit: {what}: must hold within {within_s:.0f} s (got exit {process.poll()}).")
        if time.monotonic() - reported_at >= 10:
            reported_at = time.monotonic()
            tables.log(f"  waiting until {what}, for {end - reported_at:.0f} s at most")
        time.sleep(0.5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its result; return the exit code (0 all bounds hold, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of traffic (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=RATE, help="records a second (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    given = parser.parse_args(arguments)
    tables.clean_up_on_sigterm()
    described = tables.describe()
    try:
        tools = locate()
        with (
            tempfile.TemporaryDirectory(prefix="rt-inventory-audit-") as folder,
            running(tools, with_worker=False) as clusters,
        ):
            row = measure(clusters, Path(folder), given.minutes, given.rate, given.seed)
    except (BenchmarkError, ToolchainError) as error:
        tables.log(f"error: {error}")
        return 2
    exact = not row["falseBuckets"] and not row["notExactly"]
    exact = exact and row["buckets"].get("late", 0) == row["lateInjected"]
    judged = {"exact": exact, "cpu": row["shareOfMachine"] <= CPU_MAX, "memory": flat(row["memoryMib"])}
    versions = {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]}
    kept = {"benchmark": "audit", "date": tables.today(), "machine": described, "versions": versions}
    tables.keep(given.output, kept | {"row": row})
    tables.log(json.dumps({"row": row, "judged": judged}, indent=2))
    tables.log(f"written: {given.output}")
    return 0 if all(judged.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
