"""Failing over and back with applications at work: what they lose, what they read again, and what an interruption does.

The tests come in the order of a site's life: there, back, there without the source, and back again.
"""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ops.recovery.journal import HARMLESS
from sandbox.state import PROJECT
from tests.support.waiting import wait_until

from ...support import records
from ...support.applications import Application
from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox

TOPIC, GROUP, LATE = "items", "recovery-app", "recovery-late"
DONE = re.compile(r"\[(\d+)/(\d+)\] (\w+): done in")
ENDS_S, PRODUCES_S, READS_S, FOLLOWS_S = 300, 2.5, 60, 30
# The steps after which a command is ended in every run; after each one at night.
ENDED_AFTER = {"failover": ("offsets",), "failback": ("copy",)}


@dataclass
class Site:
    """The pair with a project folder of its own, whose stack files the commands may change, and an application."""

    sandbox: Sandbox
    pair: Pair
    folder: Path
    application: Application
    nightly: bool

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
        assert child.wait(ENDS_S) == 0, f"{arguments}: {stdout}\n{''.join(said)}\n\n{self.sandbox.tails()}"
        document: dict[str, Any] = json.loads(stdout)
        return document

    def run_interrupted(self, *arguments: str) -> tuple[dict[str, Any], list[str]]:
        """Run a command again and again, ended each time after one more step, or one of `ENDED_AFTER`.

        Return its result and the steps.
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
                    chosen = self.nightly or found[3] in ENDED_AFTER[arguments[0]]
                    if chosen and found[1] != found[2] and not ended and not seen_before:
                        child.send_signal(signal.SIGTERM)
                        ended = True
            stdout = (child.stdout.read() if child.stdout else "") or ""
            code = child.wait(ENDS_S)
            if not ended:
                assert code == 0, f"{arguments} after {steps}: {stdout}\n\n{self.sandbox.tails()}"
                return json.loads(stdout), steps

    def work(self, seconds: float = PRODUCES_S) -> None:
        """Let the application write for a while, then read everything there is."""
        self.application.resume()
        time.sleep(seconds)
        self.rest()

    def wait_for(self, side: str) -> None:
        """Wait until the application has followed the Secret to a side."""
        # On the target they run beside the brokers; the source's, in another cluster, are reached from outside.
        wanted = {
            "source": self.pair.dev["cluster"]["bootstrapServers"],
            "target": self.pair.stg["cluster"]["internalBootstrapServers"],
        }[side]
        wait_until(f"the application is on the {side}", lambda: self.application.side == wanted, FOLLOWS_S)

    def rest(self) -> None:
        """Stop the producer and let the consumer read to the end."""
        self.application.pause()
        wait_until("the application has read everything", lambda: self.application.idle(3.0), READS_S)


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, pair: Pair, tmp_path_factory: pytest.TempPathFactory, nightly: bool) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("recovery")
    text = (PROJECT / "Pulumi.yaml").read_text("utf-8").replace("virtualenv: venv", f"virtualenv: {PROJECT}/venv")
    (folder / "Pulumi.yaml").write_text(f"{text}main: {PROJECT}\n", "utf-8")
    for stack in ("dev", "stg"):
        (folder / f"Pulumi.{stack}.yaml").write_bytes((PROJECT / f"Pulumi.{stack}.yaml").read_bytes())
    application = Application(sandbox, pair.stg["mirrors"]["mm2"]["namespace"], "mm2-clients", TOPIC, GROUP)
    application.start()
    try:
        yield Site(sandbox, pair, folder, application, nightly)
    finally:
        application.stop()


@pytest.fixture
def source_brokers(sandbox: Sandbox, pair: Pair) -> Iterator[list[str]]:
    """Names of the source's brokers, which run again afterwards."""
    cluster = pair.dev["cluster"]
    names = [name for name in sandbox.processes.names() if name.startswith(f"kafka.{cluster['namespace']}.")]
    yield names
    for name in names:
        sandbox.processes.release(name)
    wait_until("the source's brokers run again", lambda: all(map(sandbox.processes.alive, names)), 90)


def test_the_status_of_a_healthy_pair(site: Site) -> None:
    site.work()
    found = ops(site.sandbox, "status", "--stack", "stg")
    assert (found["health"], found["problems"], found["active"]) == ("healthy", [], "source")
    assert found["failover"]["path"] == "planned"
    assert {row["group"] for row in found["groups"]} >= {GROUP}


def test_a_planned_failover_loses_and_repeats_nothing_however_often_it_is_interrupted(site: Site) -> None:
    before = (site.folder / "Pulumi.stg.yaml").read_text("utf-8")
    planned = ops(site.sandbox, "failover", "--to", "stg", "--exact", "--dry-run", "-C", str(site.folder))
    wanted = ["fence", "drain", "prove", "stop", "offsets", "switch", "confirm", "reconcile"]
    assert [step["name"] for step in planned["steps"]] == wanted
    assert (site.folder / "Pulumi.stg.yaml").read_text("utf-8") == before

    site.work()
    done, steps = site.run_interrupted("failover", "--to", "stg", "--exact")

    assert steps == wanted
    assert (done["active"], done["recordsLost"], done["groups"][GROUP]["repeated"]) == ("target", 0, 0)
    site.wait_for("target")
    site.work()
    assert site.application.lost == set()
    assert site.application.repeated == 0
    assert active(site) == "target"
    series = {
        (
            one["name"].removeprefix("rt_inventory_"),
            *(value for name, value in sample["labels"].items() if name != "stack"),
        )
        for one in ops(site.sandbox, "metrics", "--stack", "stg", "--no-verification")["metrics"]
        for sample in one["samples"]
        if sample["value"] == 1 or "cost" in one["name"] or "running" in one["name"]
    }
    assert series >= {("mirror_state", "mm2", "stopped"), ("mirror_active", "mm2", "target")}
    assert not [key for key in series if key[0] in ("mirror_up", "connector_running", "failover_cost_records")]


def test_an_up_from_an_old_checkout_does_not_switch_back(site: Site) -> None:
    result = site.sandbox.pulumi.run("stg", "up", "--yes", "--skip-preview", check=False, timeout_s=120)
    assert result.returncode != 0
    assert "active" in result.stdout + result.stderr
    assert active(site) == "target"


def test_a_failback_brings_what_was_written_on_the_target(site: Site) -> None:
    planned = ops(site.sandbox, "failback", "--to", "dev", "--dry-run", "-C", str(site.folder))
    assert (planned["resumes"], [step["name"] for step in planned["steps"][:2]]) == (False, ["fence", "survey"])
    assert active(site) == "target"

    done = site.run("failback", "--to", "dev", at={"drain": site.rest})

    assert (done["active"], done["recordsLost"], done["recordsBroughtOver"]) == ("source", 0, 0)
    site.wait_for("source")
    site.work()
    assert site.application.lost == set()
    assert site.application.repeated == 0
    assert site.application.acknowledged == _held(site, "dev")
    wait_until("the target has everything once", lambda: site.application.acknowledged == _held(site, "stg"), 60)


def test_an_unplanned_failover_says_what_nobody_can_know_and_the_failback_brings_it(
    site: Site, source_brokers: list[str]
) -> None:
    site.work()
    late = ops(site.sandbox, "consume", "--stack", "dev", "--topic", TOPIC, "--group", LATE, "--max", "40")
    site.application.resume()
    time.sleep(PRODUCES_S)
    worker = next(name for name in site.sandbox.processes.names() if name.startswith("mirror.") and ".mm2." in name)
    site.sandbox.processes.kill(worker, hold=True)  # the mirror goes first: records stay behind for certain
    time.sleep(PRODUCES_S)
    for name in source_brokers:
        site.sandbox.processes.kill(name, hold=True)
    site.application.pause()
    site.sandbox.processes.release(worker)

    refused = subprocess.run(
        site.command("failover", "--to", "stg"),
        cwd=PROJECT,
        env=site.sandbox.environment(),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )
    assert refused.returncode == 2
    assert "--unplanned" in refused.stdout
    begun: list[str] = []
    steps = ["measure", "stop", "offsets", "switch", "confirm", "reconcile"]
    done = site.run("failover", "--to", "stg", "--unplanned", at={step: partial(begun.append, step) for step in steps})

    assert begun == steps
    assert (done["active"], done["recordsLost"], done["groups"][GROUP]["repeated"]) == ("target", None, None)
    assert TOPIC in done["newestMirrored"]
    site.wait_for("target")
    site.work()
    held = _held(site, "stg")
    stranded = site.application.acknowledged - held
    assert stranded
    assert site.application.repeated <= done["groups"][GROUP]["left"]
    for name in source_brokers:
        site.sandbox.processes.release(name)
    wait_until("the source answers again", lambda: records.admits(_client(site, "dev")), 90)

    back, steps = site.run_interrupted("failback", "--to", "dev")

    assert steps[:4] == ["fence", "survey", "realign", "settle"]
    assert steps[-2:] == ["switch", "confirm"]
    # A record may have been written whose acknowledgement the killed brokers no longer sent.
    assert len(stranded) <= back["recordsBroughtOver"] <= len(site.application.sent - held)
    site.wait_for("source")
    site.work()
    assert site.application.lost == set()
    assert site.application.acknowledged <= _held(site, "dev") <= site.application.sent
    assert late["records"] == 40  # a group that is far behind is put right as well, and stays so
    assert ops(site.sandbox, "verify", "--stack", "stg")["verdict"] == "pass"


def _lines(child: "subprocess.Popen[str]") -> Iterator[str]:
    """What a command says, line by line; one that does not end in time is killed."""
    watchdog = threading.Timer(ENDS_S, child.kill)
    watchdog.start()
    try:
        yield from child.stderr or ()
    finally:
        watchdog.cancel()


def active(site: Site) -> str:
    """The side that the stack's last update made active."""
    found: str = site.sandbox.pulumi.outputs("stg")["mirrors"]["mm2"]["active"]
    return found


def _held(site: Site, stack: str) -> set[str]:
    """Ids of this application's records that a side holds; each must be there once."""
    found = [value for value in records.read(_client(site, stack), TOPIC, GROUP) if value.startswith(f"{GROUP}-")]
    assert len(found) == len(set(found)), "a record stands twice"
    return set(found)


def _client(site: Site, stack: str) -> dict[str, Any]:
    outputs = getattr(site.pair, stack)
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
