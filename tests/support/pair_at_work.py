"""The default pair with an application at work, which follows the active side, and recovery commands typed on it.

Owns a project folder of its own, whose stack files the commands may change, and how a source is lost. Does not own what
must hold afterwards.
"""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ops.recovery.journal import HARMLESS
from sandbox.state import PROJECT

from . import records
from .applications import Application
from .running_sandbox import Pair, Sandbox
from .waiting import at_most, lines, wait_until

TOPIC = "items"
DONE = re.compile(r"\[(\d+)/(\d+)\] (\w+): done in")
ENDS_S, PRODUCES_S, READS_S, FOLLOWS_S, ANSWERS_S = 300, 2.5, 60, 30, 90


@dataclass
class Site:
    """The pair with a project folder of its own and an application, whose group gives its records their names."""

    sandbox: Sandbox
    pair: Pair
    folder: Path
    group: str
    application: Application
    lost: list[str] = field(default_factory=list)
    """Names of the source's brokers that were killed."""

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a recovery command on this site's folder."""
        return [sys.executable, "-m", "ops", *arguments, "-C", str(self.folder), "--json", "--yes"]

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a recovery command; its progress is to be read from stderr."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=PROJECT,
            env=self.sandbox.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, at: dict[str, Callable[[], None]] | None = None) -> dict[str, Any]:
        """Run a recovery command to its end, which must be good; `at` acts when a step begins."""
        child = self.start(*arguments)
        said = []
        for line in _lines(child):
            said.append(line)
            for step, act in (at or {}).items():
                if re.match(rf"\[\d+/\d+\] {step}: (?!done)", line):
                    act()
        stdout = (child.stdout.read() if child.stdout else "") or ""
        assert child.wait(at_most(ENDS_S)) == 0, f"{arguments}: {stdout}\n{''.join(said)}\n\n{self.sandbox.tails()}"
        document: dict[str, Any] = json.loads(stdout)
        return document

    def run_interrupted(self, *arguments: str) -> tuple[dict[str, Any], list[str]]:
        """Run a command again and again, ended each time after one more step; return its result and the steps.

        Of steps that change nothing it is ended after the first: whoever goes on after the next one finds the same.
        The fence of one that ends before its switch is taken down, so that it is put up again each time.
        """
        steps: list[str] = []
        harmless = HARMLESS[arguments[0]]
        while True:
            child = self.start(*arguments)
            ended = False
            for line in _lines(child):
                found = DONE.match(line)
                if found and found[3] in ("fence", "fence-target") and found[3] in steps:
                    assert "switch" not in steps, "a fence that stays was put up twice"
                elif found:
                    assert found[3] not in steps, f"{found[3]} was done twice"
                    steps.append(found[3])  # a short step may be done before the signal is there
                    seen_before = found[3] in harmless and not {*harmless}.isdisjoint(steps[:-1])
                    if found[1] != found[2] and not ended and not seen_before:
                        child.send_signal(signal.SIGTERM)
                        ended = True
            stdout = (child.stdout.read() if child.stdout else "") or ""
            code = child.wait(at_most(ENDS_S))
            if not ended:
                assert code == 0, f"{arguments} after {steps}: {stdout}\n\n{self.sandbox.tails()}"
                return json.loads(stdout), steps

    def work(self, seconds: float = PRODUCES_S) -> None:
        """Let the application write for a while, then read everything there is."""
        before = {*self.application.sent}  # a lost source may have acknowledged what nobody heard of until now
        self.application.resume()
        wait_until("the application has written", lambda: self.application.acknowledged - before, READS_S)
        time.sleep(seconds)
        self.rest(before)
        # A connector without groups has no task, and Connect goes on giving an earlier one's last state.
        wait_until("every task has a worker", lambda: "UNASSIGNED" not in self.task_states(), READS_S)

    def task_states(self) -> list[str]:
        """The states of the mirror's tasks."""
        connectors = (self.sandbox.mirror(self.pair.stg["cluster"]["namespace"], "mm2").get("status") or {}).get(
            "connectors"
        )
        return [task["state"] for connector in connectors or [] for task in connector["tasks"]]

    def wait_for(self, side: str) -> None:
        """Wait until the application has followed the Secret to a side."""
        # On the target they run beside the brokers; the source's, in another cluster, are reached from outside.
        wanted = {
            "source": self.pair.dev["cluster"]["bootstrapServers"],
            "target": self.pair.stg["cluster"]["internalBootstrapServers"],
        }[side]
        wait_until(f"the application is on the {side}", lambda: self.application.side == wanted, FOLLOWS_S)

    def rest(self, before: set[str] | None = None) -> None:
        """Stop the producer and let the consumer read to the end; what was sent after `before`, for certain."""
        self.application.pause()

        def unread() -> set[str]:
            return self.application.acknowledged - before - set(self.application.read) if before is not None else set()

        wait_until(
            "the application has read everything",
            lambda: self.application.idle(3.0) and not unread(),
            READS_S,
            otherwise=lambda: f"{len(unread())} of its records are unread, on the side {self.application.side}",
        )

    @property
    def source_brokers(self) -> list[str]:
        """Names of the source's brokers."""
        return self.sandbox.brokers(self.pair.dev["cluster"]["namespace"])

    def lose_source(self) -> None:
        """Kill the source's brokers while the application writes; some records were not copied."""
        self.lost = self.source_brokers
        self.application.resume()
        time.sleep(PRODUCES_S)
        worker = next(name for name in self.sandbox.processes.names() if name.startswith("mirror.") and ".mm2." in name)
        self.sandbox.processes.kill(worker, hold=True)  # the mirror goes first: records stay behind for certain
        time.sleep(PRODUCES_S)
        for name in self.lost:
            self.sandbox.processes.kill(name, hold=True)
        self.application.pause()
        self.sandbox.processes.release(worker)

    def find_source(self) -> None:
        """Let the source's brokers run again."""
        for name in self.lost:
            self.sandbox.processes.release(name)
        wait_until("the source answers again", lambda: records.admits(self.client("dev")), ANSWERS_S)

    def go_on_at_target(self) -> tuple[set[str], set[str]]:
        """Let the application work at the target; return what that holds, and what of the acknowledged it lacks."""
        self.wait_for("target")
        self.work()
        held = self.held("stg")
        return held, self.application.acknowledged - held

    def active(self) -> str:
        """The side that the stack's last update made active."""
        found: str = self.sandbox.pulumi.outputs("stg")["mirrors"]["mm2"]["active"]
        return found

    def held(self, stack: str) -> set[str]:
        """Ids of this application's records that a side holds; each must be there once."""
        every = records.read(self.client(stack), TOPIC, self.group)
        found = [value for value in every if value.startswith(f"{self.group}-")]
        assert len(found) == len(set(found)), "a record is there twice"
        return set(found)

    def client(self, stack: str) -> dict[str, Any]:
        """Properties of a client at a side."""
        outputs = getattr(self.pair, stack)
        user = next(iter(outputs["userPasswords"]))
        return {
            "bootstrap.servers": outputs["cluster"]["bootstrapServers"],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": outputs["userPasswords"][user],
            "ssl.ca.pem": outputs["clusterCaCertificate"],
            "log_level": 0,
        }


@contextmanager
def at_work(sandbox: Sandbox, pair: Pair, folder: Path, group: str) -> Iterator[Site]:
    """The pair with an application, which must have a name that no other had."""
    text = (PROJECT / "Pulumi.yaml").read_text("utf-8").replace("virtualenv: venv", f"virtualenv: {PROJECT}/venv")
    (folder / "Pulumi.yaml").write_text(f"{text}main: {PROJECT}\n", "utf-8")
    for stack in ("dev", "stg"):
        (folder / f"Pulumi.{stack}.yaml").write_bytes((PROJECT / f"Pulumi.{stack}.yaml").read_bytes())
    application = Application(sandbox, pair.stg["mirrors"]["mm2"]["namespace"], "mm2-clients", TOPIC, group)
    application.start()
    try:
        yield Site(sandbox, pair, folder, group, application)
    finally:
        application.stop()


@contextmanager
def running_again(site: Site) -> Iterator[None]:
    """The source's brokers run again at the end of the block."""
    names = site.source_brokers
    yield
    for name in names:
        site.sandbox.processes.release(name)
    wait_until("the source's brokers run again", lambda: all(map(site.sandbox.processes.alive, names)), ANSWERS_S)


def _lines(child: "subprocess.Popen[str]") -> Iterator[str]:
    """What a command says, line by line; raises AssertionError if it does not end in time."""
    return lines(child, child.stderr, f"the end of {child.args}", ENDS_S)
