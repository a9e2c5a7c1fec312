"""Planned failovers and failbacks of a real pair, while the line is long and operator and API server are killed.

Run: `python -m benchmarks.nemesis.recovery --seed 1`. The default pair runs in a sandbox of its own, and an application
produces and consumes at the side that the Secret names. Around each command a schedule from the seed delays the line
and stops or kills the operator and the API server. A command that fails is given again, as a person would. Truth is
what the brokers acknowledged: afterwards all of it is on the active side, and the application's group has been given
all of it. The same seed has the same faults.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from benchmarks import tables
from benchmarks.clusters import BenchmarkError
from benchmarks.failover import TOPIC, Client, Site, site
from benchmarks.nemesis.injection import inject
from benchmarks.nemesis.schedule import API_SERVER, COMMAND_AT_S, OPERATOR, Fault, ScheduledFault, recovery_schedule
from sandbox import control_plane
from sandbox.network import Conditions, NetworkError, change
from sandbox.operator.java_processes import kafka_version
from sandbox.processes import HOST, Process, ProcessError, Processes
from sandbox.pulumi import PulumiError
from sandbox.state import PROJECT
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "nemesis_recovery.json"
COMMANDS = {
    "failover": ("failover", "--to", "stg", "--exact"),
    "failback": ("failback", "--to", "dev"),
}
TRIES, FLOWS_S, SETTLED_WITHIN_S, READ_WITHIN_S, LOOK_S = 4, 5.0, 120.0, 60.0, 0.2
PROBE_EVERY_S, PROBES, PROBES_AT_START = 3.0, 4, 40


class Recovery:
    """The pair, its application, and the faults of a seed."""

    def __init__(self, here: Site, client: Client, seed: int) -> None:
        self._here, self._client, self._seed = here, client, seed
        self._processes = Processes(here.state)
        self._pids: dict[str, int] = {}
        self._suffers: set[str] = set()
        self._restarts = 0
        self._starts = False
        """Whether the operator was started and has not answered since: on a busy machine that takes its time."""

    def turn(self, number: int, command: str, ends_at: str) -> dict[str, Any]:
        """Give the command under its faults, and return what is true afterwards; raises BenchmarkError."""
        round_trip_ms, faults = recovery_schedule(self._seed, number)
        self._wait("the active side accepts and is read", self._flows(self._client.servers))
        self._client.clear()
        time.sleep(FLOWS_S)
        change(self._here.state, Conditions(latency_ms=round_trip_ms), None, tables.log)
        tables.log(f"{command}: a round trip takes {round_trip_ms} ms more; faults {list(map(_text, faults))}")
        thread = threading.Thread(target=inject, args=(faults, self._begin, self._end))
        over = threading.Event()
        kubelet = threading.Thread(target=self._restart_dead, args=(over,))
        thread.start()
        kubelet.start()
        try:
            time.sleep(COMMAND_AT_S)
            began, tries = time.monotonic(), list[str]()
            done = self._given(command, tries, thread)
        finally:
            thread.join()
            over.set()
            kubelet.join()
            self._all_run()
        seconds = round(time.monotonic() - began, 1)
        change(self._here.state, Conditions(), None, tables.log)
        self._wait(f"{command} ends at {ends_at}", lambda: self._client.servers == ends_at)
        self._wait("the new side accepts and is read", self._flows(ends_at))
        return self._judged(
            {
                "seed": self._seed,
                "turn": number,
                "command": command,
                "roundTripMs": round_trip_ms,
                "faults": list(map(_text, faults)),
                "failedTries": tries,
                "operatorRestarted": self._restarts,
                "seconds": seconds,
                "recordsLost": done["recordsLost"],
            }
        )

    def _given(self, command: str, failed: list[str], faults: threading.Thread) -> dict[str, Any]:
        """Give a command until it exits with 0; why it did not, the times before, is added to `failed`."""
        while True:
            try:
                return self._here.ops(*COMMANDS[command])
            except (BenchmarkError, subprocess.TimeoutExpired) as error:
                failed.append(str(error)[-400:])
                tables.log(f"{command}: {failed[-1]}")
                faults.join()  # a person looks first whether all is there again
                self._all_run()
                if len(failed) == TRIES:
                    raise

    def _judged(self, row: dict[str, Any]) -> dict[str, Any]:
        """Add what is true: everything that was acknowledged until now must be on this side, and be read."""
        acknowledged = set(self._client.acknowledged)
        held = self._held()
        end = time.monotonic() + READ_WITHIN_S
        while (unread := acknowledged - self._client.read) and time.monotonic() < end:
            time.sleep(LOOK_S)
        row |= {
            "acknowledged": len(acknowledged),
            "lost": len(acknowledged - held.keys()),
            "skipped": len(unread),
            "doubled": sum(number - 1 for value, number in held.items() if value in acknowledged),
        }
        row["holds"] = row["lost"] == row["skipped"] == row["recordsLost"] == 0
        tables.log(f"{row['command']}: {'holds' if row['holds'] else 'does not hold'}: {row}")
        return row

    def _held(self) -> Counter[bytes]:
        """All values on the active side, and how often each is there."""
        found = Counter[bytes]()
        consumer = Consumer({**self._client.config(), "group.id": "nemesis-reading", "enable.auto.commit": False})
        end = time.monotonic() + READ_WITHIN_S
        try:
            for number in consumer.list_topics(TOPIC, READ_WITHIN_S).topics[TOPIC].partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=READ_WITHIN_S)
                consumer.assign([TopicPartition(TOPIC, number, low)])
                at = low
                while at < high:
                    for message in consumer.consume(1000, timeout=1.0):
                        if message.error() is None:
                            found[message.value() or b""] += 1
                    position = consumer.position([TopicPartition(TOPIC, number)])[0].offset
                    at = max(at, position)
                    if time.monotonic() > end:
                        raise BenchmarkError(f"{TOPIC}-{number}: must be read up to {high} (got to {at}).")
        finally:
            consumer.close()
        return found

    def _restart_dead(self, over: threading.Event) -> None:
        """Start the operator again when it has ended or does not live, as a kubelet does, unless it is under a fault.

        It waits for an API server that is away, and ends if a watch is refused for another reason.
        """
        failed = 0
        while not over.wait(PROBE_EVERY_S):
            if OPERATOR in self._suffers:
                failed = 0
            elif self._lives():
                failed, self._starts = 0, False
            else:
                failed += 1
            if failed == (PROBES_AT_START if self._starts else PROBES):
                failed = 0
                self._restarts += 1
                with suppress(ProcessError):
                    self._processes.kill(OPERATOR)
                self._start(OPERATOR)

    def _lives(self) -> bool:
        entry = self._entry(OPERATOR)
        port = entry.argv[entry.argv.index("--liveness-port") + 1]
        try:
            return httpx.get(f"http://{HOST}:{port}/healthz", timeout=PROBE_EVERY_S, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def _begin(self, fault: ScheduledFault) -> None:
        tables.log(f"  {fault.fault} {fault.on}")
        self._suffers.add(fault.on)
        self._pids[fault.on] = self._entry(fault.on).pid
        with suppress(ProcessLookupError, ProcessError):  # it may have ended by itself
            if fault.fault is Fault.PAUSE:
                os.kill(self._pids[fault.on], signal.SIGSTOP)
            else:
                self._processes.kill(fault.on)

    def _end(self, fault: ScheduledFault) -> None:
        if fault.fault is Fault.KILL:
            self._start(fault.on)
        else:
            with suppress(ProcessLookupError):
                os.kill(self._pids[fault.on], signal.SIGCONT)
            self._starts = self._starts or fault.on == OPERATOR
        self._suffers.remove(fault.on)

    def _entry(self, name: str) -> Process:
        return next(one for one in self._processes.entries() if one.name == name)

    def _start(self, name: str) -> None:
        """Start a process of the control plane as it was started before: an API server has its data in its folder."""
        tables.log(f"  {name}: started again")
        self._starts = self._starts or name == OPERATOR
        entry = self._entry(name)
        context = control_plane.SandboxContext(self._here.state, locate(), os.environ, tables.log)
        environment = context.inherited() | {"PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"}
        self._processes.start(name, list(entry.argv), environment, Path(entry.log))

    def _all_run(self) -> None:
        """Wait for API server and operator; one that ended, because the other was away, is started again."""
        for name in (API_SERVER, OPERATOR):
            if not self._processes.alive(name):
                self._start(name)
        self._wait("API server and operator answer", lambda: control_plane.is_up(self._here.state))

    def _flows(self, servers: str) -> Callable[[], bool]:
        client = self._client
        return lambda: bool(client.accepted.get(servers)) and bool(client.consumed.get(servers))

    def _wait(self, what: str, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + SETTLED_WITHIN_S
        while not holds():
            if time.monotonic() > end:
                raise BenchmarkError(f"recovery: {what} must hold within {SETTLED_WITHIN_S:.0f} s.")
            time.sleep(LOOK_S)


def _text(fault: ScheduledFault) -> str:
    return f"{fault.fault} {fault.on} at {fault.at_s - COMMAND_AT_S:.1f} s for {fault.until_s - fault.at_s:.1f} s"


def kept(read: Callable[[], Mapping[str, str]]) -> Callable[[], Mapping[str, str]]:
    """Read the Secret as pods do: while the API server does not answer, they go on with what they have."""
    last = read()

    def again() -> Mapping[str, str]:
        nonlocal last
        try:
            last = read()
        except (ApiException, HTTPError, OSError):
            return last
        return last

    return again


def measure(seed: int, seeds: int, rounds: int, rows: list[dict[str, Any]]) -> None:
    """Add a row for each command: what was seen counts, also if a later one does not end."""
    with site(Conditions()) as here:
        servers = here.servers()
        client = Client(kept(here.read_secret()))
        with client.working():
            for each in range(seed, seed + seeds):
                recovery = Recovery(here, client, each)
                for number in range(rounds):
                    rows.append(recovery.turn(2 * number, "failover", servers["target"]))
                    rows.append(recovery.turn(2 * number + 1, "failback", servers["source"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds and write the result; return the exit code (0 all hold, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nemesis.recovery", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from the first on (default: 1)")
    parser.add_argument("--rounds", type=int, default=1, help="failovers and failbacks of a seed (default: 1)")
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    given = parser.parse_args(arguments)
    tables.clean_up_on_sigterm()
    described, rows, stopped = tables.describe(), list[dict[str, Any]](), None
    try:
        tools = locate()
        measure(given.seed, given.seeds, given.rounds, rows)
    except (BenchmarkError, ToolchainError, PulumiError, ProcessError, NetworkError, KafkaException) as error:
        stopped = str(error)
        seed = given.seed + len(rows) // (2 * given.rounds)
        tables.log(f"error: {error} Replay: {_replay(seed, given.rounds)}")
        if not rows:
            return 2
    tables.keep(
        given.output,
        {
            "benchmark": "nemesis_recovery",
            "date": tables.today(),
            "machine": described,
            "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
            "rows": rows,
            "stoppedBy": stopped,
        },
    )
    for row in rows:
        if not row["holds"]:
            tables.log(f"does not hold: {row}. Replay: {_replay(row['seed'], given.rounds)}")
    tables.log(f"{sum(row['holds'] for row in rows)} of {len(rows)} commands hold; written: {given.output}")
    return 2 if stopped else 0 if all(row["holds"] for row in rows) else 1


def _replay(seed: int, rounds: int) -> str:
    return f"python -m benchmarks.nemesis.recovery --seed {seed} --rounds {rounds}"


if __name__ == "__main__":
    sys.exit(main())
