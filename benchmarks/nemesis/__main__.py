"""Faults from a seed while traffic flows, and after each phase the verification held against the truth.

Run: `python -m benchmarks.nemesis --seed 1 --minutes 3`. Truth is what the brokers acknowledged to the producers, and a
plain reading of both sides. In each phase a random schedule cuts, delays and resets the line between the sites, and
stops or kills the brokers and the worker, lets the disk of a broker be full, renews certificates, rolls brokers and
worker to the other version of Kafka, lets members leave their groups, adds partitions, creates a topic again, and
turns a producer's clock. Then all of it is healed, and the job must find what is true, to the record: nothing
acknowledged is lost, no group skips. In odd seeds a follower sets the groups on the target, in even ones MirrorMaker.
The same seed has the same faults. Needs no running sandbox, uses free ports of 127.0.0.1, stops by itself and leaves
nothing but the results file. That keeps the rows of other seeds, so that many seeds can be run a few at a time.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
from confluent_kafka import KafkaException

from benchmarks import tables
from benchmarks.certificates import CLIENTS
from benchmarks.clusters import SOURCE, TARGET, WORKER, BenchmarkError, Clusters, running
from benchmarks.line import ToxiproxyLine, toxiproxy_line
from benchmarks.nemesis.injection import inject
from benchmarks.nemesis.maintenance import Maintenance
from benchmarks.nemesis.schedule import LONGEST_S, PROCESSES, Fault, ScheduledFault, schedule
from benchmarks.nemesis.traffic import RECREATED, SKEW_MS, NemesisTraffic
from benchmarks.nemesis.watchers import Watchers
from benchmarks.soak import CONNECTORS, WORKER_SETTINGS, Soak
from sandbox.network import Conditions, NetworkError
from sandbox.operator.java_processes import kafka_version
from sandbox.processes import ProcessError
from sandbox.toolchain import ToolchainError, Tools, locate, pins

RESULT = tables.RESULTS / "nemesis.json"
MINUTES, ANSWER_S = 3.0, 150.0
FULL_BYTES = 4096  # of a file, beyond which a write fails; logs and the index of one are larger
RUNS_WITHIN_S, LOOK_S = 180.0, 2.0
INDEXES = shutil.ignore_patterns("*.index", "*.timeindex")  # 10 MiB each, with holes that a copy fills
LINES = {
    Fault.CUT: Conditions(cut=True),
    Fault.DELAY: Conditions(latency_ms=500, jitter_ms=50),
    Fault.RESET: Conditions(reset=True),
}


class Nemesis:
    """A soak whose line and processes suffer the faults of a seed."""

    def __init__(self, soak: Soak, traffic: NemesisTraffic, line: ToxiproxyLine, seed: int) -> None:
        self._soak, self._clusters, self._line, self._traffic = soak, soak.clusters, line, traffic
        self._seed, self.maintenance = seed, Maintenance(soak.clusters)
        self.injected = Counter[str]()

    def run(self, phases: int, seconds: float) -> None:
        """Let the traffic flow, and judge after each phase; raises BenchmarkError if something does not heal."""
        soak = self._soak
        soak.began = time.monotonic()
        with soak.traffic.flowing():
            for phase in range(phases):
                inject(schedule(self._seed, phase, seconds), self._begin, self._end)
                self.heal()
                row = soak.verify()
                soak.rows.append(row)
                word = "agrees" if row["agrees"] else row["differences"]
                tables.log(f"seed {self._seed}, phase {phase}: {row['verdict']}, found {row['found']}: {word}")
        soak.traffic.require_no_problems()

    def _begin(self, fault: ScheduledFault) -> None:
        if fault.on in PROCESSES:
            self.maintenance.start_ended(fault.on)
        tables.log(f"{time.monotonic() - self._soak.began:5.0f} s: {fault.fault} {fault.on}")
        self.injected[f"{fault.fault} {fault.on}"] += 1
        match fault.fault:
            case Fault.CUT | Fault.DELAY | Fault.RESET:
                self._line.change(LINES[fault.fault])
            case Fault.PAUSE:
                os.kill(self._clusters.pid(fault.on), signal.SIGSTOP)
            case Fault.KILL:
                self._clusters.processes.kill(fault.on)
            case Fault.FULL_DISK:
                self._fill_disk(fault.on, full=True)
            case Fault.LEAVE:
                self._traffic.away.add(fault.on)
            case Fault.ADD_PARTITION:
                self._traffic.partitions += 1
            case Fault.RECREATE:
                self._traffic.recreations += 1
            case Fault.AHEAD | Fault.BEHIND:
                self._traffic.skew_ms = SKEW_MS if fault.fault is Fault.AHEAD else -SKEW_MS
            case Fault.RENEW:
                self.maintenance.renew(fault.on)
                if fault.on == CLIENTS:
                    self._traffic.renew(client(self._clusters))
            case Fault.ROLL:
                self.maintenance.roll(fault.on)

    def _end(self, fault: ScheduledFault) -> None:
        match fault.fault:
            case Fault.CUT | Fault.DELAY | Fault.RESET:
                self._line.change(Conditions())
            case Fault.PAUSE:
                os.kill(self._clusters.pid(fault.on), signal.SIGCONT)
            case Fault.KILL | Fault.ROLL:
                self.maintenance.start(fault.on)
            case Fault.RENEW if fault.on == WORKER:
                self.maintenance.start(fault.on)
            case Fault.FULL_DISK if self._clusters.processes.alive(fault.on):
                self._fill_disk(fault.on, full=False)
            case Fault.FULL_DISK:
                self.maintenance.start(fault.on)
            case Fault.LEAVE:
                self._traffic.away.remove(fault.on)
            case Fault.AHEAD | Fault.BEHIND:
                self._traffic.skew_ms = 0

    def _fill_disk(self, broker: str, *, full: bool) -> None:
        """Let each write to a file of a broker fail, or let it write as this process may.

        The system's error is another one (EFBIG) than where the disk is full (ENOSPC), and the broker does the same: it
        takes the folder of its logs offline, and ends because it has no other. It needs no disk of its own, nor root.
        """
        now, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        limits = (FULL_BYTES if full else now, most)
        with suppress(ProcessLookupError):  # it may end just now, for what it could not write before
            resource.prlimit(self._clusters.pid(broker), resource.RLIMIT_FSIZE, limits)

    def heal(self) -> None:
        """Wait until everything answers and copies: a worker that ended is started, a task that failed restarted."""
        clusters = self._clusters
        for name in (SOURCE, TARGET):
            self.maintenance.start_ended(name)
            clusters.wait_for_broker(name)
        self._await_worker()
        self.maintenance.require_newest()
        end = time.monotonic() + RUNS_WITHIN_S
        while (states := self._states()) != {"RUNNING"}:
            if time.monotonic() > end:
                raise BenchmarkError(f"mirror: must run within {RUNS_WITHIN_S:.0f} s after the faults (got {states}).")
            if "FAILED" in states:
                self._restart()
            time.sleep(LOOK_S)
        while not self._traffic.changed:
            self._traffic.require_no_problems()
            if time.monotonic() > end:
                raise BenchmarkError(f"topics: must be changed within {RUNS_WITHIN_S:.0f} s after the faults.")
            time.sleep(LOOK_S)
        self._soak.sides[SOURCE].forget(RECREATED)

    def _await_worker(self) -> None:
        """Wait until the worker answers; raises BenchmarkError. One that ends is started again, as a pod is."""
        end = time.monotonic() + RUNS_WITHIN_S
        while True:
            self.maintenance.start_ended(WORKER)  # it ends where it has no cluster for too long
            try:
                return self._clusters.wait_for_worker()
            except BenchmarkError:
                if self._clusters.processes.alive(WORKER) or time.monotonic() > end:
                    raise

    def _states(self) -> set[str]:
        """States of connectors and tasks; a worker that finds its group again answers with an error."""
        found = set[str]()
        for name in CONNECTORS:
            try:
                status = self._clusters.connect("GET", f"/connectors/{name}/status")
            except httpx.HTTPError as error:
                return {type(error).__name__}
            found |= {status["connector"]["state"], *(task["state"] for task in status["tasks"])}
            found |= set() if status["tasks"] else {"no tasks"}
        return found

    def _restart(self) -> None:
        for name in CONNECTORS:
            try:
                self._clusters.connect("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
            except httpx.HTTPError:
                continue  # it is asked again


def ran(tools: Tools, seed: int, minutes: float, evidence: Path | None = None) -> dict[str, Any]:
    """Return the row of a seed, on clusters of its own. Of one that does not hold, `evidence` gets their files."""
    phases, before, row = max(1, round(minutes)), _cpu_seconds(), dict[str, Any]()
    with (
        tempfile.TemporaryDirectory(prefix="rt-inventory-nemesis-") as folder,
        toxiproxy_line(tools, Path(folder)) as line,
        running(tools, WORKER_SETTINGS, far=line.far, features_of=pins.KAFKA_BEFORE, starts_fast=True) as clusters,
        kept(row, evidence, Path(folder), clusters.folder),
    ):
        traffic = NemesisTraffic(client(clusters), answer_s=ANSWER_S)
        followed = seed % 2 == 1
        place, source = Path(folder), line.far.bootstrap
        soak = Soak(clusters, place, source=source, traffic=traffic, followed=followed, brokers_end=True)
        soak.prepare()
        nemesis, watchers = Nemesis(soak, traffic, line, seed), Watchers(soak, place)
        with watchers.running():
            nemesis.run(phases, minutes * 60 / phases)
            watched = watchers.judge()
            cpu_s = _cpu_seconds() - before
        last = soak.rows[-1]
        row |= {
            "seed": seed,
            "faults": dict(sorted(nemesis.injected.items())),
            "verdicts": len(soak.rows),
            "agree": sum(row["agrees"] for row in soak.rows),
            "acknowledged": soak.traffic.ledger.records,
            "timedOut": sum(map(len, traffic.ledger.timed_out.values())),
            "abortedByBroker": traffic.ledger.revoked,
            "committedByBroker": traffic.ledger.restored,
            "unacknowledged": sum(map(len, traffic.ledger.unacknowledged.values())),
            "lost": _of_lasting_topics(row["lost"] for row in soak.rows),
            "skipped": _of_lasting_topics(row["skips"] for row in soak.rows),
            "lostRecreated": max(row["lost"].get(RECREATED, 0) for row in soak.rows),
            "groups": last["groups"],
            "doubled": last["truth"].get("doubled", 0),
            "aborted": last["truth"].get("aborted", 0),
            "shared": watched["shared"],
            "versions": nemesis.maintenance.versions,
            "cpuSeconds": round(cpu_s),
            "audit": watched["audit"],
            "follower": watched["follower"],
            "differences": [*(one for row in soak.rows for one in row["differences"]), *watched["differences"]],
        }
    return row


@contextmanager
def kept(row: Mapping[str, Any], evidence: Path | None, *folders: Path) -> Iterator[None]:
    """Copy these folders to `evidence` at the end of the block if the row is not there then, or does not hold."""
    try:
        yield
    finally:
        if evidence is not None and not (row and holds(row)):
            for folder in folders:
                try:
                    shutil.copytree(folder, evidence / folder.name, ignore=INDEXES, ignore_dangling_symlinks=True)
                except OSError as error:  # files that were gone meanwhile, or no room
                    tables.log(f"{folder} is not kept as a whole in {evidence}: {error}")


def client(clusters: Clusters) -> dict[str, Any]:
    """Configuration of the source's clients. Each would log each try to reach a broker that is gone."""
    return {**clusters.client(SOURCE), "log_level": 0}


def _cpu_seconds() -> float:
    """Return what this process and all that it has started have used."""
    used = sum(os.times()[:4])
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            used += sum(child.cpu_times()[:4])
    return used


def _of_lasting_topics(counts: Iterable[Mapping[str, int]]) -> int:
    """Return the most of all verdicts. What a mirror does with a topic that is created again is to be reported only."""
    return max(sum(of.values()) - of.get(RECREATED, 0) for of in counts)


def holds(row: Mapping[str, Any]) -> bool:
    """Whether every verdict was true, nothing acknowledged is lost, and no group skips."""
    return bool(not row["differences"] and row["lost"] == row["skipped"] == 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds and write the result; return the exit code (0 all hold, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nemesis", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from the first on (default: 1)")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of faults, for each seed (default: 3)")
    parser.add_argument("--evidence", type=Path, help="folder for the files of seeds that do not hold (default: none)")
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.minutes * 60 / max(1, round(options.minutes)) <= LONGEST_S:
        parser.error(f"--minutes must be more than {LONGEST_S / 60} (got {options.minutes})")
    tables.clean_up_on_sigterm()
    described, rows = tables.describe(), list[dict[str, Any]]()
    try:
        tools = locate()
        versions = {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]}
        for seed in range(options.seed, options.seed + options.seeds):
            evidence = options.evidence / f"seed-{seed}" if options.evidence else None
            found = ran(tools, seed, options.minutes, evidence)
            rows.append({"date": tables.today(), "minutes": options.minutes, **found})
            tables.log(f"seed {seed}: " + ("holds" if holds(rows[-1]) else f"does not hold: {rows[-1]['differences']}"))
            kept = {"benchmark": "nemesis", "date": tables.today(), "machine": described, "versions": versions}
            tables.keep(options.output, kept | {"rows": with_others(options.output, rows)})
    except (BenchmarkError, ToolchainError, ProcessError, NetworkError, KafkaException) as error:
        tables.log(f"error: {error} Replay: {_replay(options.seed + len(rows), options.minutes)}")
        return 2
    for row in rows:
        if not holds(row):
            tables.log(f"does not hold: {row}. Replay: {_replay(row['seed'], options.minutes)}")
    tables.log(f"{sum(map(holds, rows))} of {len(rows)} seeds hold; written: {options.output}")
    return 0 if all(map(holds, rows)) else 1


def with_others(result: Path, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows together with those of other seeds that a result has, by seed."""
    known = json.loads(result.read_text(encoding="utf-8"))["rows"] if result.exists() else []
    return sorted({row["seed"]: row for row in [*known, *rows]}.values(), key=lambda row: row["seed"])


def _replay(seed: int, minutes: float) -> str:
    return f"python -m benchmarks.nemesis --seed {seed} --minutes {minutes}"


if __name__ == "__main__":
    sys.exit(main())
