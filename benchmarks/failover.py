"""How long a failover keeps applications waiting, planned and unplanned, with a producing and a consuming client.

Run: `python -m benchmarks.failover --rounds 10`. It brings the default pair up in a sandbox of its own, fails over and
back again for each round, and leaves nothing but the results file. Seconds are what the clients see: they follow the
Secret of the active side, as applications do. Exit 1 if a bound is missed.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer

from benchmarks import tables
from benchmarks.clusters import BenchmarkError
from kafka import connectivity
from sandbox import control_plane
from sandbox.demo.in_sandbox import write_project_file
from sandbox.network import Conditions, change
from sandbox.operator.java_processes import kafka_version
from sandbox.operator.kubernetes_api import Kubernetes
from sandbox.processes import Processes
from sandbox.pulumi import Pulumi, PulumiError
from sandbox.state import PROJECT, SandboxState
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "failover.json"
ROUNDS = 10
PLANNED, UNPLANNED = "planned", "unplanned"
WAIT_S_MAX = {PLANNED: 20.0, UNPLANNED: 15.0}
TOPIC, GROUP = "items", "benchmark-failover"
UP_WITHIN_S, COMMAND_WITHIN_S, SETTLED_WITHIN_S = 600.0, 600.0, 120.0
FLOWS_S, FOLLOW_S, SEND_EVERY_S, POLL_S = 5.0, 0.2, 0.02, 0.1
DELIVERED_WITHIN_MS = 2000


@dataclass
class Client:
    """An application that produces and consumes, and follows the Secret of the active side every `FOLLOW_S` seconds.

    `accepted` and `consumed` are the times, by `time.monotonic`, of the records of each side, by its address.
    `acknowledged` and `read` are the values of all of them, on whichever side; each is produced once.
    """

    read_secret: Callable[[], Mapping[str, str]]
    accepted: dict[str, list[float]] = field(default_factory=dict)
    consumed: dict[str, list[float]] = field(default_factory=dict)
    acknowledged: set[bytes] = field(default_factory=set)
    read: set[bytes] = field(default_factory=set)
    paused: threading.Event = field(default_factory=threading.Event)
    """Set while nothing is produced: a failback asks for it."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Produce and consume until the block ends."""
        self._side = self.read_secret()
        threads = [threading.Thread(target=work, daemon=True) for work in (self._follow, self._produce, self._consume)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join(30)

    def clear(self) -> None:
        """Forget the times so far."""
        self.accepted, self.consumed = {}, {}

    @property
    def servers(self) -> str:
        """Address of the side that the Secret names."""
        return self._side["bootstrapServers"]

    def config(self, side: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Properties of a client of a side, by default of the one that the Secret names."""
        side = side or self._side
        return {
            "bootstrap.servers": side["bootstrapServers"],
            "security.protocol": side["securityProtocol"],
            "sasl.mechanism": side["saslMechanism"],
            "sasl.username": side["user"],
            "sasl.password": side["password"],
            "ssl.ca.pem": side["ca.crt"],
            "log_level": 0,
            "error_cb": lambda error: None,
        }

    def _follow(self) -> None:
        while not self._ended.wait(FOLLOW_S):
            self._side = self.read_secret()

    def _produce(self) -> None:
        while not self._ended.is_set():
            side = self._side
            servers = side["bootstrapServers"]
            producer = Producer({**self.config(side), "message.timeout.ms": DELIVERED_WITHIN_MS, "linger.ms": 0})

            def delivered(error: Any, message: Message, servers: str = servers) -> None:
                if error is None:
                    self.accepted.setdefault(servers, []).append(time.monotonic())
                    self.acknowledged.add(message.value() or b"")

            while self.servers == servers and not self._ended.is_set():
                if self.paused.is_set():
                    producer.poll(SEND_EVERY_S)
                    continue
                try:
                    producer.produce(TOPIC, b"%d" % next(self._numbers), on_delivery=delivered)
                except KafkaException:  # fenced: it goes on trying, as an application that nobody has stopped
                    time.sleep(SEND_EVERY_S)
                producer.poll(SEND_EVERY_S)
            producer.purge()
            self._end(partial(producer.flush, DELIVERED_WITHIN_MS / 1000))

    def _consume(self) -> None:
        while not self._ended.is_set():
            side = self._side
            servers = side["bootstrapServers"]
            consumer = Consumer({**self.config(side), "group.id": GROUP, "auto.offset.reset": "earliest"})
            consumer.subscribe([TOPIC])
            while self.servers == servers and not self._ended.is_set():
                message = consumer.poll(POLL_S)
                if message is not None and message.error() is None:
                    self.consumed.setdefault(servers, []).append(time.monotonic())
                    self.read.add(message.value() or b"")
            self._end(consumer.close)

    def _end(self, close: Callable[[], object]) -> None:
        """Close a client beside the next one, as pods that are rolled do: it may wait for brokers that are gone."""
        ending = threading.Thread(target=close, daemon=True)
        ending.start()
        if self._ended.is_set():
            ending.join(30)


@dataclass(frozen=True)
class Site:
    """The default pair in a sandbox, with a project folder whose stack files the commands may change."""

    state: SandboxState
    pulumi: Pulumi
    folder: Path

    def environment(self) -> dict[str, str]:
        """Environment of commands that a user would type."""
        return {**os.environ, **self.pulumi.environment()}

    def ops(self, *words: str) -> dict[str, Any]:
        """Run a command of `ops` with `--json --yes`; raises BenchmarkError with its last words unless it exits 0."""
        command = [sys.executable, "-m", "ops", *words, "-C", str(self.folder), "--json", "--yes"]
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_WITHIN_S,
            check=False,
        )
        if done.returncode != 0:
            last = " ".join((done.stdout + done.stderr).split())[-600:]
            raise BenchmarkError(f"ops {words[0]}: must exit with 0 (got {done.returncode}: {last}).")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def servers(self) -> dict[str, str]:
        """Address of each side, as the Secret of the active side has it."""
        return {
            "source": self.pulumi.outputs("dev")["cluster"]["bootstrapServers"],
            "target": self.pulumi.outputs("stg")["cluster"]["internalBootstrapServers"],
        }

    def source_brokers(self) -> list[str]:
        """Names of the source's processes."""
        namespace = self.pulumi.outputs("dev")["cluster"]["namespace"]
        return [name for name in Processes(self.state).names() if name.startswith(f"kafka.{namespace}.")]

    def read_secret(self) -> Callable[[], Mapping[str, str]]:
        """Return a function that reads the Secret of the active side."""
        secret = self.pulumi.outputs("stg")["mirrors"]["mm2"]["namespace"], "mm2-clients"
        kubernetes = Kubernetes(self.state.kubeconfig)

        def read() -> Mapping[str, str]:
            found = kubernetes.secret(*secret)
            if found is None:
                raise BenchmarkError(f"Secret {'/'.join(secret)}: must be there (got none).")
            return found

        return read


@contextmanager
def site(line: Conditions | None = None) -> Iterator[Site]:
    """Bring the default pair up, on a line of these conditions if there are any, and take everything away again."""
    home = Path(tempfile.mkdtemp(prefix="rt-inventory-failover-"))
    state, tools = SandboxState(home / "sandbox"), locate()
    try:
        control_plane.up(control_plane.SandboxContext(state, tools, os.environ, tables.log))
        if line is not None:
            change(state, line, None, tables.log)
        pulumi = Pulumi(state, tools)
        pulumi.write_shim()
        for stack in ("dev", "stg"):
            pulumi.ensure_stack(stack)
            pulumi.run(stack, "up", "--yes", "--skip-preview", timeout_s=UP_WITHIN_S)
        folder = home / "project"
        folder.mkdir()
        write_project_file(folder)
        for stack in ("dev", "stg"):
            shutil.copy(PROJECT / f"Pulumi.{stack}.yaml", folder)
        yield Site(state, pulumi, folder)
    finally:
        control_plane.down(state, tables.log)
        shutil.rmtree(home, ignore_errors=True)


def round_of(
    here: Site, client: Client, path: str, brokers: Sequence[str], servers: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Fail over once, yield the seconds that the client waited and those of the steps, and fail back."""
    processes = Processes(here.state)
    _until("the source accepts and is read", lambda: _flows(client, servers["source"]))
    client.clear()
    time.sleep(FLOWS_S)
    if path == UNPLANNED:
        for name in brokers:
            processes.kill(name, hold=True)
    began = time.monotonic()
    options = ["--exact"] if path == PLANNED else ["--unplanned"]
    done = here.ops("failover", "--to", "stg", *options)
    _until("the target accepts and is read", lambda: _flows(client, servers["target"]))
    first = {
        "accepted": client.accepted[servers["target"]][0],
        "consumed": client.consumed[servers["target"]][0],
    }
    last = max(client.accepted.get(servers["source"], [began]))
    row = {
        "path": path,
        "commandSeconds": _rounded(sum(done["seconds"].values())),
        "acceptedAfterSeconds": _rounded(first["accepted"] - began),
        "consumedAfterSeconds": _rounded(first["consumed"] - began),
        # Planned: from the last record that the source accepted. Unplanned: from the command, for both.
        "waitedSeconds": _rounded(first["accepted"] - last if path == PLANNED else max(first.values()) - began),
        "steps": done["seconds"],
        "recordsLost": done["recordsLost"],
    }
    tables.log(f"{path}: waited {row['waitedSeconds']} s, steps {row['steps']}")
    yield row
    for name in brokers:
        processes.release(name)
    _until("the source's brokers answer", lambda: all(map(processes.alive, brokers)) and _answers(servers["source"]))
    client.paused.set()
    here.ops("failback", "--to", "dev")
    client.paused.clear()


def _flows(client: Client, servers: str) -> bool:
    return bool(client.accepted.get(servers)) and bool(client.consumed.get(servers))


def _answers(server: str) -> bool:
    host, _, port = server.rpartition(":")
    return connectivity.unreachable(host, int(port)) is None


def _until(what: str, condition: Callable[[], bool]) -> None:
    end, reported_at = time.monotonic() + SETTLED_WITHIN_S, time.monotonic()
    while not condition():
        if time.monotonic() > end:
            raise BenchmarkError(f"failover: {what} must hold within {SETTLED_WITHIN_S:.0f} s.")
        if time.monotonic() - reported_at >= 10:
            reported_at = time.monotonic()
            tables.log(f"  waiting until {what}, for {end - reported_at:.0f} s at most")
        time.sleep(0.1)


def _rounded(seconds: float) -> float:
    return round(seconds, 1)


def measure(rounds: int, rows: list[dict[str, Any]]) -> None:
    """Add a row for each failover: what was measured counts, also if a later round does not end."""
    with site() as here:
        servers, brokers = here.servers(), here.source_brokers()
        client = Client(here.read_secret())
        with client.working():
            for path in list(WAIT_S_MAX) * rounds:
                rows.extend(round_of(here, client, path, brokers, servers))


def _judged(path: str, rounds: int, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    waited = [row["waitedSeconds"] for row in rows if row["path"] == path]
    within = sum(seconds <= WAIT_S_MAX[path] for seconds in waited)
    return {
        "path": path,
        "rounds": len(waited),
        "within": within,
        "medianSeconds": statistics.median(waited) if waited else None,
        "mostSeconds": max(waited, default=None),
        "boundSeconds": WAIT_S_MAX[path],
        "holds": within == rounds,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its result; return the exit code (0 all bounds hold, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="failovers of each kind (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    given = parser.parse_args(arguments)
    tables.clean_up_on_sigterm()
    began, described = time.monotonic(), tables.describe()
    rows, stopped = list[dict[str, Any]](), None
    try:
        tools = locate()
        measure(given.rounds, rows)
    except (BenchmarkError, ToolchainError, PulumiError) as error:
        tables.log(f"error: {error}")
        if not rows:
            return 2
        stopped = str(error)
    judged = [_judged(path, given.rounds, rows) for path in WAIT_S_MAX]
    tables.keep(
        given.output,
        {
            "benchmark": "failover",
            "date": tables.today(),
            "machine": described,
            "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
            "rows": rows,
            "judged": judged,
            "stoppedBy": stopped,
            "seconds": round(time.monotonic() - began),
        },
    )
    for one in judged:
        tables.log(
            f"{one['path']}: {one['within']} of {given.rounds} within {one['boundSeconds']} s, "
            f"{one['mostSeconds']} s at most"
        )
    tables.log(f"written: {given.output}")
    return 2 if stopped else 0 if all(one["holds"] for one in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
