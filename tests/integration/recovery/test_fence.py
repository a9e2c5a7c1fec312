"""Producers that ignore everything, while a failover takes their right to write away, and a failback at the target.

The tests come in the order of a site's life: two failovers that end before their switch, one that was killed, one that
succeeds, and the failback.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from ops.doctor.command import collect
from ops.doctor.diagnosis import diagnose
from ops.recovery import fence, fencing, mirror_context
from ops.recovery.fence import SourceFence
from ops.recovery.mirror_context import MirrorContext
from sandbox.state import PROJECT
from tests.support.waiting import wait_until

from ...support import records
from ...support.projects import KEY, TESTER, Project
from ...support.running_sandbox import Sandbox

SOURCE, TARGET, MIRROR, TOPIC = "dev", "stg", "mm2", "items"
TOPICS = ["items", "items.inventory", "store.inventory"]
BOSS = "boss"
ENDS_S, REFUSED_S = 400, 60
FAILOVER = ("failover", "--to", TARGET, "--yes", "--json")


class Stubborn:
    """A producer that writes to one side for ever. `refused`: the names of the errors that it got."""

    def __init__(self, client: dict[str, Any], name: str, topic: str = TOPIC) -> None:
        self._topic = topic
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self._producer = Producer(client | {"enable.idempotence": True, "message.timeout.ms": 4000, "linger.ms": 5})
        self._name = name
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            value = f"{self._name}-{number}"
            try:
                self._producer.produce(self._topic, key=value, value=value, on_delivery=self._delivered)
            except KafkaException as error:  # an idempotent producer that was refused may do so at once
                self.refused.add(error.args[0].name())
            self._producer.poll(0.02)
        self._producer.flush(10)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.acknowledged.add(message.key().decode())
        else:
            self.refused.add(error.name())

    @contextmanager
    def at_work(self) -> Iterator["Stubborn"]:
        """Produce while the block runs."""
        self._thread.start()
        try:
            wait_until(f"{self._name} has written", lambda: len(self.acknowledged) > 20, 30)
            yield self
        finally:
            self._stopped.set()
            self._thread.join(30)
        assert not self._thread.is_alive()


class Site:
    """The pair, with commands that are typed on it."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command; its progress is to be read from stderr."""
        return subprocess.Popen(
            [sys.executable, "-m", "ops", *arguments, "-C", str(self.project.folder)],
            cwd=PROJECT,
            env=self.project.sandbox.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[Any, str]:
        """Run a command to its end; return its document and what it said."""
        stdout, said = self.start(*arguments).communicate(timeout=ENDS_S)
        found = json.loads(stdout)
        return found, said

    def until(self, pattern: str, *arguments: str, ended_by: int) -> int:
        """Run a command until it says something, then end it by a signal; return its exit code."""
        child = self.start(*arguments)
        watchdog = threading.Timer(ENDS_S, child.kill)
        watchdog.start()
        try:
            for line in child.stderr or ():
                if re.search(pattern, line):
                    child.send_signal(ended_by)
                    break
            child.communicate()
        finally:
            watchdog.cancel()
        return child.returncode

    def status(self) -> Any:
        return self.run("status", "--stack", TARGET, "--json")[0]

    def findings(self) -> list[str]:
        """Names of the doctor's findings about the fence."""
        pair, environment = self.pair()
        found = diagnose(collect(pair, environment, lambda _: None, debug=True))
        return [one.trouble for one in found if one.trouble in (fencing.LEFT_BEHIND, fencing.TAKES_WRITES)]

    def pair(self) -> tuple[MirrorContext, dict[str, str]]:
        """The mirror and the environment in this process."""
        environment = {**os.environ, **self.project.sandbox.environment()}
        return mirror_context.load(TARGET, MIRROR, environment, self.project.folder), environment

    def may_write(self, stack: str, topic: str = TOPIC) -> bool:
        """Whether an application may write at a side."""
        try:
            records.write(self.project.client(stack), topic, ["one more"])
        except AssertionError as error:
            if "TOPIC_AUTHORIZATION_FAILED" not in str(error):
                raise
            return False
        return True

    def rules(self, user: str) -> list[Any]:
        """The rules of a KafkaUser of the source."""
        found = self.project.sandbox.get("kafkauser", "-n", self.project.namespace(SOURCE), user)
        return (found["spec"].get("authorization") or {}).get("acls") or []

    def generation(self, user: str) -> int:
        """How often what is asked for a KafkaUser of the source has changed."""
        found = self.project.sandbox.get("kafkauser", "-n", self.project.namespace(SOURCE), user)
        return int(found["metadata"]["generation"])

    @property
    def declared(self) -> bool:
        return f"{KEY}fence" in (self.project.folder / f"Pulumi.{SOURCE}.yaml").read_text("utf-8")

    @property
    def is_fenced(self) -> bool:
        denied = any(rule["type"] == "deny" for rule in self.rules(TESTER))
        assert denied == self.declared, "stack file and KafkaUser differ"
        return denied

    def fence(self) -> SourceFence:
        """The fence of the source, in this process."""
        pair, environment = self.pair()
        found, why = fence.at_source(pair, self.project.folder, environment, print)
        assert found is not None, why
        return found


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, whose source has a super user and an application user, TESTER, with rights on all topics."""
    project = Project.of_example(sandbox, "active-passive", tmp_path_factory.mktemp("fence"))
    for config in project.config.values():
        config[f"{KEY}cluster"].pop("expose")
    project.config[SOURCE][f"{KEY}cluster"]["superUsers"] = [BOSS]
    project.config[SOURCE][f"{KEY}users"].append({"name": BOSS, "exported": True})
    try:
        project.up(SOURCE)
        records.write(project.client(SOURCE), TOPIC, [f"record {number}" for number in range(50)])
        project.up(TARGET)
        yield Site(project)
    finally:
        project.destroy(TARGET, SOURCE)


def test_a_super_user_that_bypasses_the_fence_is_named_and_the_failover_rolls_back(site: Site) -> None:
    with Stubborn(site.project.client(SOURCE, BOSS), "boss").at_work() as boss:
        failed, said = site.run(*FAILOVER, "--drain", "8")
        assert not boss.refused
    message = failed["error"]
    assert "items-" in message, message
    assert f"User:{BOSS} (super user)" in message, message
    assert "the fence at rt-inventory-dev is taken down" in said
    assert not site.is_fenced
    found = site.status()
    assert (found["active"], found["problems"]) == ("source", [])
    assert found["fence"]["mayWrite"], found["fence"]
    assert site.may_write(SOURCE)
    assert not site.may_write(TARGET), "the standby is read-only"


def test_a_command_killed_in_the_fence_is_reported_and_the_next_one_takes_it_down(site: Site) -> None:
    assert site.until("may not write", *FAILOVER, ended_by=signal.SIGKILL) == -signal.SIGKILL
    assert site.is_fenced
    found = site.status()
    assert found["recovery"]["step"] == "fence"
    assert found["recovery"]["state"] == "interrupted"
    assert [problem for problem in found["problems"] if "failover interrupted at 1/8 (fence)" in problem]
    code = site.until(r"\] drain: (?!done)", *FAILOVER, ended_by=signal.SIGTERM)
    assert code not in (0, -signal.SIGTERM)
    assert not site.is_fenced
    assert site.may_write(SOURCE)
    assert site.status()["problems"] == []


def test_a_fence_that_nobody_needs_is_found(site: Site) -> None:
    fenced = site.fence().of(TOPICS, [])
    site.fence().put_up(fenced)
    assert site.findings() == [fencing.LEFT_BEHIND]
    assert not site.may_write(SOURCE)
    site.fence().take_down(fenced)
    assert site.findings() == []
    assert site.may_write(SOURCE)


def test_a_producer_that_ignores_everything_is_refused_and_what_was_acknowledged_is_on_the_target(site: Site) -> None:
    with Stubborn(site.project.client(SOURCE), "stubborn").at_work() as producer:
        done, said = site.run(*FAILOVER)
        assert (done["active"], done["recordsLost"], done["stranded"]) == ("target", 0, {}), said
        assert producer.refused == {"TOPIC_AUTHORIZATION_FAILED"}
        acknowledged = set(producer.acknowledged)
        time.sleep(2.0)  # it goes on trying
        assert producer.acknowledged == acknowledged
    held = [value for value in records.read(site.project.client(TARGET), TOPIC) if value.startswith("stubborn-")]
    assert (len(held), set(held)) == (len(acknowledged), acknowledged)
    assert site.is_fenced
    assert not site.may_write(SOURCE)
    assert site.may_write(TARGET)
    found = site.status()
    assert (found["fence"]["inForce"], found["fence"]["declared"]) == (True, True)
    assert not [problem for problem in found["problems"] if "write" in problem]


def test_an_up_of_a_fenced_source_changes_no_user(site: Site) -> None:
    """Its preview lists the rules: a refresh reads only as many of a list as Pulumi had set."""
    before = {user: site.generation(user) for user in (TESTER, "rt-inv-dev-user", BOSS)}
    words = (["up", "--yes", "--skip-preview"], ["preview", "--expect-no-changes"])
    for command in words:
        result = subprocess.run(
            ["pulumi", *command, "--refresh", "--non-interactive", "-s", SOURCE],
            cwd=site.project.folder,
            env=site.project.sandbox.environment(),
            capture_output=True,
            text=True,
            timeout=ENDS_S,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
    assert {user: site.generation(user) for user in before} == before
    assert site.is_fenced


def test_a_source_that_takes_writes_again_is_found_and_fenced_by_who_watches(site: Site) -> None:
    opened = site.fence()
    opened.open_for_applications(opened.of(TOPICS, []))
    assert fencing.TAKES_WRITES in site.findings()
    watching = site.start("status", "--stack", TARGET, "--watch", "--every", "1")
    try:
        wait_until("the source is fenced", lambda: any(one["type"] == "deny" for one in site.rules(TESTER)), REFUSED_S)
    finally:
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    wait_until("it is refused", lambda: not site.may_write(SOURCE), REFUSED_S)


@pytest.mark.nightly
def test_a_failback_refuses_a_producer_that_ignores_it_and_what_was_acknowledged_is_at_the_source(site: Site) -> None:
    with Stubborn(site.project.client(TARGET), "stray").at_work() as producer:
        done, said = site.run("failback", "--to", SOURCE, "--yes", "--json")
        assert (done["active"], done["recordsLost"], done["stranded"]) == ("source", 0, {}), said
        assert producer.refused == {"TOPIC_AUTHORIZATION_FAILED"}
        acknowledged = set(producer.acknowledged)
        time.sleep(2.0)  # it goes on trying
        assert producer.acknowledged == acknowledged
    held = [value for value in records.read(site.project.client(SOURCE), TOPIC) if value.startswith("stray-")]
    assert (len(held), set(held)) == (len(acknowledged), acknowledged)
    assert not site.is_fenced
    assert site.may_write(SOURCE)
    assert not site.may_write(TARGET)
    assert site.status()["problems"] == []
