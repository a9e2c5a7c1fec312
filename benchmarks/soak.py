"""Minutes of traffic through a mirror whose worker is restarted twice, judged again and again by the verification job.

Run: `python -m benchmarks.soak --minutes 10`. Every run of the job must agree with the ledger, to the record: with what
the producers were acknowledged and with a plain reading of the target. Needs no running sandbox, uses free ports of
127.0.0.1, stops by itself and leaves nothing but the results file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic

from benchmarks import tables
from benchmarks.clusters import SOURCE, TARGET, WORKER, BenchmarkError, Clusters, running
from benchmarks.traffic import Reading, Traffic
from benchmarks.truth import Entry, Ledger, Position, TopicPartition, Truth, judge, never_read, position
from sandbox.operator.java_processes import kafka_version
from sandbox.processes import ProcessError
from sandbox.state import PROJECT
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "soak.json"
MINUTES, EVERY_S = 10.0, 40.0
MIRROR_WAIT_S = 120
RUN_WITHIN_S = 400.0
CONNECTORS = {
    "source->target.MirrorSourceConnector": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source->target.MirrorCheckpointConnector": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
}
# Positions are committed every five seconds instead of every minute: a run waits for them, and a worker that is killed
# copies again what came after the last one. A worker that comes back gets its tasks at once.
WORKER_SETTINGS = {"offset.flush.interval.ms": 5000, "scheduled.rebalance.max.delay.ms": 0}
RESTARTS = ((1 / 3, "stopped"), (2 / 3, "killed"))  # share of the time, and how the worker ends


@dataclass(frozen=True)
class Restart:
    """When the worker ended, in seconds from the start, and how."""

    at_s: float
    how: str


def differences(report: Mapping[str, Any], truths: Mapping[TopicPartition, Truth]) -> list[str]:
    """Return the differences between a report's partitions and the truth, one line each; none if they agree."""
    said = {(part["topic"], part["partition"]): part for part in report["partitions"]}
    found = [f"{_name(tp)}: must be in the report (got nothing)" for tp in sorted(truths.keys() - said.keys())]
    for tp, truth in sorted(truths.items()):
        if tp not in said:
            continue
        part = said[tp]
        counts: Counter[str] = Counter()
        for finding in part["findings"]:
            counts[finding["kind"]] += finding["count"]
        pairs = {
            "source records": (part["source_records"], truth.source_records),
            "target records": (part["target_records"], truth.target_records),
            "findings": (dict(sorted(counts.items())), dict(truth.found)),
        }
        found += [f"{_name(tp)}: {what} {got}, truth {true}" for what, (got, true) in pairs.items() if got != true]
    return found


def group_differences(row: Mapping[str, Any], truth: Position) -> list[str]:
    """Return the differences between a report's row of a group and partition and the truth, one line each."""
    where = f"{row['group']} on {row['topic']}-{row['partition']}"
    return [
        f"{where}: {name} {row[name]}, truth {true}"
        for name, true in vars(truth).items()
        if row[name] != true and not (name in ("skipped", "repeated") and row["synced"] is None)
    ]


class Soak:
    """The mirror, its traffic, and the runs of the job over it."""

    def __init__(
        self,
        clusters: Clusters,
        folder: Path,
        *,
        source: str | None = None,
        traffic: Traffic | None = None,
        followed: bool = False,
        brokers_end: bool = False,
    ) -> None:
        """Flow between the clusters.

        Args:
            clusters: both of them, and the worker.
            folder: for requests and reports.
            source: address by which mirror and job reach the source, if not that of its clients.
            traffic: of the source, if it is more than the soak's.
            followed: whether a follower sets the groups on the target in place of MirrorMaker, as with `exactOffsets`.
            brokers_end: whether brokers are killed. One of Kafka 4.3 that starts again may abort a transaction that
                it has acknowledged as committed, or commit one that it has acknowledged as aborted (KAFKA-20734): then
                the log's markers are the truth.
        """
        self.clusters = clusters
        self.folder = folder
        self.source = source or clusters.bootstrap(SOURCE)
        self.traffic = traffic or Traffic(dict(clusters.client(SOURCE)))
        self.followed = followed
        self._brokers_end = brokers_end
        self._log = Reading(dict(clusters.client(SOURCE)), "read_uncommitted")
        self.sides = {side: Reading(dict(clusters.client(side))) for side in (SOURCE, TARGET)}
        self.restarts: list[Restart] = []
        self.rows: list[dict[str, Any]] = []
        self.began = time.monotonic()

    def prepare(self) -> None:
        """Make the topics and the connectors."""
        admin = self.clusters.admin(SOURCE)  # named, because its futures end with it
        topics = [NewTopic(name, count, 1) for name, count in self.traffic.topics.items()]
        for future in admin.create_topics(topics).values():
            future.result(timeout=30)
        for name, kind in CONNECTORS.items():
            self.clusters.connect("PUT", f"/connectors/{name}/config", self._connector(kind))

    def run(self, minutes: float, every_s: float) -> None:
        """Let the traffic flow, restart the worker twice meanwhile, and let the job judge until the time is over."""
        self.began = time.monotonic()
        timers = [threading.Timer(share * minutes * 60, self._restart, (how,)) for share, how in RESTARTS]
        with self.traffic.flowing():
            for timer in timers:
                timer.start()
            try:
                while (start := time.monotonic()) - self.began < minutes * 60:
                    self.rows.append(self.verify())
                    tables.log("{second:4.0f} s: {verdict}, {sourceRecords} records, found {found}: {word}".format(
                        **self.rows[-1], word="agrees" if self.rows[-1]["agrees"] else self.rows[-1]["differences"]
                    ))  # fmt: skip
                    time.sleep(max(0.0, every_s - (time.monotonic() - start)))
            finally:
                for timer in timers:
                    timer.cancel()
                    if timer.is_alive():
                        timer.join(60)
        self.rows.append(self.verify())
        self.traffic.require_no_problems()

    def _restart(self, how: str) -> None:
        self.restarts.append(Restart(round(time.monotonic() - self.began, 1), how))
        tables.log(f"worker: {how} and started again")
        try:
            if how == "killed":
                self.clusters.processes.kill(WORKER)
            else:
                self.clusters.processes.stop(WORKER, 10)
            self.clusters.start_worker()
        except (ProcessError, BenchmarkError) as error:
            self.traffic.problems.append(f"worker: {error}")

    def verify(self) -> dict[str, Any]:
        """Run the job once, then compare its report with the ledger and a reading of both sides."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "request.json").write_text(json.dumps(self.request()), encoding="utf-8")
        second, load = time.monotonic() - self.began, os.getloadavg()[0]
        known = {tp for tp, entries in list(self.traffic.ledger.committed.items()) if entries}
        command = ["-m", "spark", "--request", str(folder / "request.json"), "--report-dir", str(folder / "report")]
        done = subprocess.run(
            [sys.executable, *command],
            cwd=PROJECT,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=RUN_WITHIN_S,
            check=False,
        )
        path = folder / "report" / "report.json"
        if done.returncode not in (0, 1) or not path.exists():
            raise BenchmarkError(f"verification: must end with 0 or 1 (got {done.returncode}: {done.stderr[-500:]}).")
        text = path.read_text(encoding="utf-8")
        report = json.loads(text)
        truths, wrong = self._judged(report)
        wrong += differences(report, truths)
        wrong += [f"{_name(tp)}: must be in the report (got nothing)" for tp in sorted(known - truths.keys())]
        wrong += [f"{name}: must not be in the report" for name in self.traffic.share_groups if name in text]
        synced = [row for row in report["groups"] if row["synced"] is not None]
        skips, lost = Counter[str](), Counter[str]()
        for (topic, _), truth in truths.items():
            lost[topic] += truth.found.get("lost", 0)
        for row in synced:
            tp = (row["topic"], row["partition"])
            source, target, cut = self._logs(report, tp)
            wrong += group_differences(row, position(source, target, cut, row["committed"], row["synced"]))
            unread = never_read(source, self.traffic.read[row["group"]][tp], target, cut, row["synced"])
            if unread > row["skipped"]:
                wrong.append(f"{row['group']} on {_name(tp)}: skipped {row['skipped']}, but {unread} were never read")
            skips[tp[0]] += max(unread, row["skipped"])
        return {
            "second": round(second, 1),
            "seconds": round(time.monotonic() - self.began - second, 1),
            "loadAverage": round(load, 2),
            "verdict": report["verdict"],
            "sourceRecords": sum(part["source_records"] for part in report["partitions"]),
            "targetRecords": sum(part["target_records"] for part in report["partitions"]),
            "found": total(part["findings"] for part in report["partitions"]),
            "truth": dict(sum((Counter(truth.found) for truth in truths.values()), Counter())),
            "lost": dict(+lost),
            "groups": sorted({row["group"] for row in synced}),
            "groupPositions": len(report["groups"]),
            "skips": dict(+skips),
            "skipped": sum(row["skipped"] for row in report["groups"]),
            "repeated": sum(row["repeated"] for row in report["groups"]),
            "behind": report["cut"]["behind"],
            "differences": wrong,
            "agrees": not wrong,
        }

    def _judged(self, report: Mapping[str, Any]) -> tuple[dict[TopicPartition, Truth], list[str]]:
        ledger: Ledger = self.traffic.ledger
        truths, wrong = {}, []
        for reading in (*self.sides.values(), self._log):
            reading.disconnect()
        for part in report["partitions"]:
            tp = (part["topic"], part["partition"])
            if missing := ledger.place(tp, partial(self.sides[SOURCE].everything, tp)):
                wrong.append(f"{_name(tp)}: the source lacks {missing} acknowledged records")
            read = self.sides[SOURCE].up_to(tp, part["cut"])
            if self._brokers_end:
                ledger.follow_markers(tp, part["cut"], read, partial(self._log.up_to, tp, part["cut"]))
            acknowledged, target, cut = self._logs(report, tp)
            if read != [entry for entry in acknowledged if entry[0] < cut]:
                wrong.append(f"{_name(tp)}: a plain reading of the source differs from the acknowledgements")
            truths[tp] = judge(acknowledged, sorted(ledger.aborted[tp]), target, cut)
        return truths, wrong

    def _logs(self, report: Mapping[str, Any], tp: TopicPartition) -> tuple[list[Entry], list[Entry], int]:
        part = next(one for one in report["partitions"] if (one["topic"], one["partition"]) == tp)
        return self.traffic.ledger.source(tp), self.sides[TARGET].up_to(tp, part["target_end"]), part["cut"]

    def _environment(self) -> dict[str, str]:
        return os.environ | self.clusters.tools.spark_environment

    def request(self) -> dict[str, Any]:
        """The verification request of the mirror."""
        worker = f"http://127.0.0.1:{self.clusters.ports[WORKER]}"
        return {
            "source": {
                "alias": "source",
                "client_config": self.clusters.client(SOURCE) | {"bootstrap.servers": self.source},
            },
            "target": {"alias": "target", "client_config": self.clusters.client(TARGET)},
            "mirror": {
                "name": "soak",
                "topics": list(self.traffic.topics),
                "groups": self.traffic.group_patterns,
                "naming": "identity",
                "replication_factor": 1,
                "connect_url": worker,
                "connectors": list(CONNECTORS),
                "offset_storage_topic": "worker-offsets",
                "sync_group_offsets": not self.followed,
                "exact_offsets": self.followed,
            },
            # Copies made again by a worker that was killed are to be counted, not to fail the run.
            "limits": {"mirror_wait_seconds": MIRROR_WAIT_S, "duplicates_max": 10**9, "reread_records_max": 10**9},
        }

    def _connector(self, kind: str) -> dict[str, str]:
        sides = {
            f"{side}.cluster.{key}": value
            for side, address in (("source", self.source), ("target", self.clusters.bootstrap(TARGET)))
            for key, value in {
                **self.clusters.java_client(),
                "bootstrap.servers": address,
                "alias": side,
            }.items()
        }
        return {
            **sides,
            "connector.class": kind,
            "tasks.max": "2",
            # Connect's default header converter writes a text for the bytes of a header: every copy would be altered.
            "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "topics": ",".join(name.replace(".", r"\.") for name in self.traffic.topics),
            "groups": ",".join(self.traffic.group_patterns),
            "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "offset.lag.max": "50",
            "sync.topic.acls.enabled": "false",
            "sync.group.offsets.enabled": str(not self.followed).lower(),
            "sync.group.offsets.interval.seconds": "2",
            "emit.checkpoints.interval.seconds": "2",
            "refresh.groups.interval.seconds": "5",
            "refresh.topics.interval.seconds": "5",
            # One request for all that came, where each record that waits would be one of its own.
            "source.consumer.fetch.min.bytes": "100000",
            "source.consumer.fetch.max.wait.ms": "500",
        }


def total(findings: Iterable[Iterable[Mapping[str, Any]]]) -> dict[str, int]:
    """Return the number of records of each kind in all partitions."""
    counts: Counter[str] = Counter()
    for of_partition in findings:
        for one in of_partition:
            counts[one["kind"]] += one["count"]
    return dict(sorted(counts.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak and write its result; return the exit code (0 every run agrees, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long the traffic flows (default: 10)")
    parser.add_argument("--every", type=float, default=EVERY_S, help="seconds from run to run (default: 40)")
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    options = parser.parse_args(arguments)
    tables.clean_up_on_sigterm()
    described = tables.describe()
    try:
        tools = locate()
        with running(tools, WORKER_SETTINGS) as clusters, tempfile.TemporaryDirectory() as folder:
            soak = Soak(clusters, Path(folder))
            soak.prepare()
            soak.run(options.minutes, options.every)
    except (BenchmarkError, ToolchainError, KafkaException) as error:
        tables.log(f"error: {error}")
        return 2
    agree = sum(row["agrees"] for row in soak.rows)
    tables.keep(
        options.output,
        {
            "benchmark": "soak",
            "date": tables.today(),
            "machine": described,
            "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
            "minutes": options.minutes,
            "restarts": [vars(restart) for restart in soak.restarts],
            "recordsAcknowledged": soak.traffic.ledger.records,
            "runs": len(soak.rows),
            "runsThatAgree": agree,
            "rows": soak.rows,
        },
    )
    tables.log(f"{agree} of {len(soak.rows)} runs agree with the truth; written: {options.output}")
    return 0 if agree == len(soak.rows) else 1


def _name(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"


if __name__ == "__main__":
    sys.exit(main())
