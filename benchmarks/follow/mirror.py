"""The mirror whose groups are followed: its topics, its connectors, and the follower as a process of its own.

Owns how they are started. Does not own what flows, nor what is judged.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # the package does not list what it re-exports

from benchmarks.clusters import SOURCE, TARGET, BenchmarkError, Clusters
from ops.recovery import mirror_context
from ops.recovery.mirror_context import MirrorContext
from sandbox.state import PROJECT

WORKER_SETTINGS = {
    "offset.flush.interval.ms": 10_000,
    "scheduled.rebalance.max.delay.ms": 0,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 2000,
}
"""A worker that comes back gets its tasks as soon as the group has lost the one that was killed, and copies again what
it has copied in the last 10 s."""
KINDS = ("Source", "Checkpoint")
GONE_WITHIN_S, ROUND_WITHIN_S, END_WITHIN_S, AGAIN_AFTER_S = 60.0, 120.0, 1.0, 1.0


def connector_name(kind: str) -> str:
    """Return the name of a connector, as Strimzi makes it."""
    return f"source->target.Mirror{kind}Connector"


def create_topics(clusters: Clusters, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
    """Make topics at the source, each with so many partitions and a configuration; raises KafkaException."""
    wanted = [NewTopic(name, number, 1, config=dict(config)) for name, (number, config) in topics.items()]
    admin = clusters.admin(SOURCE)  # named, because its futures end with it
    for future in admin.create_topics(wanted).values():
        future.result(timeout=30)


def delete_topic(clusters: Clusters, topic: str) -> None:
    """Delete a topic of the source and wait until it is gone; raises BenchmarkError."""
    admin = clusters.admin(SOURCE)
    for future in admin.delete_topics([topic]).values():
        future.result(timeout=30)
    end = time.monotonic() + GONE_WITHIN_S
    while topic in admin.list_topics(timeout=10).topics:
        if time.monotonic() > end:
            raise BenchmarkError(f"topic {topic}: must be gone within {GONE_WITHIN_S:.0f} s after it was deleted.")
        time.sleep(0.2)


def start_mirror(clusters: Clusters, topics: Sequence[str], groups: Sequence[str]) -> None:
    """Make the connectors; MirrorMaker translates each second, but sets no group."""
    sides = {
        f"{side}.cluster.{key}": value
        for side, broker in (("source", SOURCE), ("target", TARGET))
        for key, value in {
            **clusters.java_client(),
            "bootstrap.servers": clusters.bootstrap(broker),
            "alias": side,
        }.items()
    }
    for kind in KINDS:
        config = {
            **sides,
            "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
            "tasks.max": "1",
            "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "topics": ",".join(topics),
            "groups": ",".join(groups),
            "consumer.isolation.level": "read_committed",
            "source.consumer.isolation.level": "read_committed",
            "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "offset-syncs.topic.location": "target",
            "checkpoints.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            "sync.group.offsets.enabled": "false",
            "emit.checkpoints.interval.seconds": "1",
            "refresh.groups.interval.seconds": "2",
            "refresh.topics.interval.seconds": "2",
        }
        clusters.connect("PUT", f"/connectors/{connector_name(kind)}/config", config)


def runs(clusters: Clusters) -> bool:
    """Whether connectors and tasks run; what has failed is restarted: a worker that starts needs both clusters."""
    found = True
    for kind in KINDS:
        path = f"/connectors/{connector_name(kind)}"
        try:
            status = clusters.connect("GET", f"{path}/status")
            states = {status["connector"]["state"], *(task["state"] for task in status["tasks"])}
            if "FAILED" in states:
                clusters.connect("POST", f"{path}/restart?includeTasks=true&onlyFailed=true")
        except httpx.HTTPError:  # it starts, or rebalances
            return False
        found = found and states == {"RUNNING"} and bool(status["tasks"])
    return found


def outputs(clusters: Clusters, topics: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    """Return the mirror as a stack's outputs describe it."""
    request = {
        "source": {"alias": "source", "client_config": clusters.client(SOURCE)},
        "target": {"alias": "target", "client_config": clusters.client(TARGET)},
        "mirror": {
            "name": "mm2",
            "topics": list(topics),
            "groups": list(groups),
            "naming": "identity",
            "source_alias": "source",
            "target_alias": "target",
            "checkpoints_topic": "source.checkpoints.internal",
            "offset_syncs_topic": {"name": "mm2-offset-syncs.source.internal", "location": "target"},
            "sync_group_offsets": False,
        },
    }
    return {"verificationRequests": {"mm2": request}, "mirrors": {"mm2": {"active": "source"}}}


def context(found: Mapping[str, Any]) -> MirrorContext:
    """Return the only mirror of these outputs."""
    (name,) = found["mirrors"]
    return mirror_context.of_outputs("benchmark", found, name, {})


@dataclass(frozen=True)
class FollowRound:
    """A round of the follower that both clusters answered: when it began and ended, by `time.monotonic`.

    `cpu_s` and `peak_mib` are those of its process until then.
    """

    began: float
    ended: float
    positions: Mapping[str, int]
    groups: int
    cpu_s: float
    peak_mib: int
    problems: Sequence[str] = ()


LIBRDKAFKA_ENDED_IT = (-signal.SIGABRT, -signal.SIGSEGV)
"""By a failed assertion (its issue 4605), or because a broker that comes back says that it is not the coordinator."""


@dataclass
class FollowProcess:
    """A running follower, and its rounds so far."""

    command: Sequence[str]
    starts_again: bool
    rounds: list[FollowRound] = field(default_factory=list)
    aborts: int = 0
    """How often it was started again, as a pod is: librdkafka can end its process where a broker comes back."""
    is_over: bool = False
    """Whether the process has ended and is not started again."""
    _ends: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.child = self._started()

    def _started(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(self.command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)

    def collect(self) -> None:
        """Take in the rounds until the process ends and is not started again."""
        while True:
            before = len(self.rounds)
            with self.child as child:
                for line in child.stdout or ():
                    self.rounds.append(FollowRound(**json.loads(line)))
            # One that was started while a broker is away may end before its first round, as a pod does.
            begins = self.starts_again and len(self.rounds) == before
            if begins:
                time.sleep(AGAIN_AFTER_S)
            with self._lock:
                aborted = child.returncode in LIBRDKAFKA_ENDED_IT
                self.is_over = self._ends or not self.starts_again or not (aborted or begins)
                if self.is_over:
                    return
                self.aborts += aborted
                self.child = self._started()

    def end(self) -> None:
        """End the process: it is killed if it does not end at once."""
        with self._lock:
            self._ends = True
            self.child.terminate()
        try:
            self.child.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:  # it waits for a source that was killed
            self.child.kill()

    def wait_for_round(
        self, after: float, is_it: Callable[[FollowRound], bool] = lambda _: True, within_s: float = ROUND_WITHIN_S
    ) -> FollowRound:
        """Return the first round that began after a time, and is such a one; raises BenchmarkError."""
        end, seen = time.monotonic() + within_s, 0
        while True:
            rounds = list(self.rounds)
            found = next((one for one in rounds[seen:] if one.began > after and is_it(one)), None)
            if found is not None:
                return found
            seen = len(rounds)
            if time.monotonic() > end or self.is_over:
                raise BenchmarkError(
                    f"follower: such a round must end within {within_s:.0f} s "
                    f"(got exit code {self.child.poll()}, last {rounds[-1:]}). See follower.log above."
                )
            time.sleep(0.05)


@contextmanager
def following(
    folder: Path, outputs: Mapping[str, Any], interval_s: float, *, starts_again: bool = False
) -> Iterator[FollowProcess]:
    """Run a follower while the block runs.

    Args:
        folder: for the outputs.
        outputs: those of a stack, which describe the mirror.
        interval_s: seconds from round to round.
        starts_again: whether it is started again where librdkafka ends it.
    """
    path = folder / "outputs.json"
    path.write_text(json.dumps(outputs), encoding="utf-8")
    found = FollowProcess([sys.executable, "-m", "benchmarks.follow.process", str(path), str(interval_s)], starts_again)
    thread = threading.Thread(target=found.collect, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.end()
        thread.join(END_WITHIN_S)
