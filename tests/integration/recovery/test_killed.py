"""Failovers and failbacks that are killed in the middle of their steps, cut off from the API server, or frozen.

A nightly run kills them in every step, the others in some.

What counts at the end is the truth: each record that was acknowledged is once on the side that is active, each group
has left to read what it had left, and no fence is left behind. The tests come in the order of a site's life.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from ops.doctor.command import collect
from ops.doctor.diagnosis import diagnose
from ops.recovery import fencing, mirror_context
from ops.recovery.journal import Journal
from ops.recovery.operation import INTERRUPTED, NOTHING_CHANGED, UNDER_WAY, Progress, of_journal
from ops.recovery.target_fence import TARGET_FENCED
from tests.support.waiting import wait_until

from ...support import records
from ...support.api_proxy import ApiServerProxy
from ...support.killed_commands import (
    API,
    BOTH,
    PULUMI,
    Interruption,
    Killer,
    change_of,
    notes,
    pulumis,
)
from ...support.projects import KEY, TESTER, Project
from ...support.running_sandbox import Sandbox

SOURCE, TARGET, MIRROR, TOPIC = "dev", "stg", "mm2", "items"
BOSS = "boss"
GROUPS = [f"group-{number}" for number in range(6)]
FAILOVER = ("failover", "--to", TARGET, "--exact", "--yes", "--json")
UNPLANNED = ("failover", "--to", TARGET, "--unplanned", "--yes", "--json")
FAILBACK = ("failback", "--to", SOURCE, "--yes", "--json")
OTHER_MACHINE = ("unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh")
NOTHING_WRITTEN, VERIFYING, GROUP_SET = "nothing written for", r"^  \S", "^  group "
USERS, COPY, CLIENTS, ANY_MIRROR = "kafkausers/", "secrets/mm2-break-glass", "secrets/mm2-clients", "kafkamirrormaker2s"
FENCE_GOES_UP, FENCE_GOES_DOWN = change_of(USERS), change_of(USERS)

FAILOVER_KILLED = [
    Interruption(step="fence", at=FENCE_GOES_UP, passed=True, nightly=True),
    # It is asked to end, and killed while it takes the fence down.
    Interruption(step="drain", line=NOTHING_WRITTEN, number=signal.SIGTERM, at=FENCE_GOES_DOWN, passed=True),
    Interruption(step="drain", line=NOTHING_WRITTEN, nightly=True),
    Interruption(step="prove", line=VERIFYING, nightly=True),
    Interruption(step="stop", at=change_of(f"{ANY_MIRROR}/"), passed=True, nightly=True),
    Interruption(step="stop", who=API, nightly=True),
    Interruption(step="offsets", line=GROUP_SET),
    Interruption(step="switch", at=change_of(CLIENTS), passed=True),
    Interruption(step="switch", who=API),
    Interruption(step="confirm", nightly=True),
    Interruption(step="reconcile", at=pulumis, nightly=True),
    Interruption(step="reconcile", who=PULUMI, at=pulumis, nightly=True),
    Interruption(step="reconcile", who=BOTH, at=pulumis),
]
PULUMI_CHANGES = change_of(ANY_MIRROR, by_pulumi=True)
FAILBACK_KILLED = [
    Interruption(step="fence", nightly=True),
    Interruption(step="survey", line="were not copied before the failover", nightly=True),
    Interruption(step="realign", nightly=True),
    Interruption(step="settle", who=PULUMI, at=PULUMI_CHANGES, passed=True),
    Interruption(step="settle", nightly=True),
    Interruption(step="prepare", who=BOTH, at=PULUMI_CHANGES, passed=True, nightly=True),
    Interruption(step="position", at=change_of(f"{ANY_MIRROR}/mm2-failback"), passed=True, nightly=True),
    Interruption(step="copy", at=PULUMI_CHANGES),
    Interruption(step="fence-target", at=FENCE_GOES_UP, passed=True),
    Interruption(step="drain", line=NOTHING_WRITTEN, nightly=True),
    Interruption(step="prove", line=VERIFYING, nightly=True),
    Interruption(step="stop", who=PULUMI, at=PULUMI_CHANGES, nightly=True),
    Interruption(step="stop", who=API, nightly=True),
    Interruption(step="offsets", line=GROUP_SET, nightly=True),
    Interruption(step="forward", nightly=True),
    Interruption(step="switch", at=change_of(USERS), passed=True, nightly=True),
    Interruption(step="switch", who=BOTH, at=PULUMI_CHANGES, passed=True),
    Interruption(step="switch", at=change_of(USERS), passed=True, nightly=True),
    Interruption(step="confirm", nightly=True),
]


def tried(every: Sequence[Interruption], nightly: bool) -> list[Interruption]:
    """The interruptions of this run."""
    return [one for one in every if nightly or not one.nightly]


class Site:
    """The pair. `acknowledged` are the records that the brokers have taken, wherever that was."""

    def __init__(self, project: Project, killer: Killer) -> None:
        self.project = project
        self.killer = killer
        self.acknowledged: set[str] = set()

    def write(self, stack: str, number: int = 1, user: str = TESTER) -> bool:
        """Write records that are new; return whether the user is allowed to."""
        values = [f"record {len(self.acknowledged) + each}" for each in range(number)]
        try:
            records.write(self.project.client(stack, user), TOPIC, values)
        except AssertionError as error:
            if "TOPIC_AUTHORIZATION_FAILED" not in str(error):
                raise
            return False
        self.acknowledged.update(values)
        return True

    def held(self, stack: str) -> set[str]:
        """The records of a side; each must be there once."""
        found = records.read(self.project.client(stack), TOPIC)
        assert len(found) == len(set(found)), "a record stands twice"
        return set(found)

    def offsets(self, stack: str) -> dict[str, dict[str, int]]:
        """Where each group stands on a side, as a journal has it."""
        admin = AdminClient(self.project.client(stack))
        found = {}
        for group in GROUPS:
            answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=10)
            of_group = answer[group].result(20).topic_partitions
            found[group] = {f"{each.topic}-{each.partition}": each.offset for each in of_group}
        return found

    def unread(self, stack: str) -> dict[str, set[str]]:
        """What each group has left to read on a side."""
        return {group: self._from(stack, offsets) for group, offsets in self.offsets(stack).items()}

    def read_on(self, stack: str, group: str, number: int) -> None:
        """Let a group read some records of each partition, as far as there are any."""
        consumer = Consumer(self.project.client(stack) | {"group.id": group, "enable.auto.commit": False})
        try:
            partitions = [
                TopicPartition(TOPIC, number) for number in consumer.list_topics(TOPIC).topics[TOPIC].partitions
            ]
            wanted = []
            for at in records.committed_by(consumer, partitions):
                begin, end = consumer.get_watermark_offsets(at, timeout=10)
                wanted.append(TopicPartition(TOPIC, at.partition, min(end, max(begin, at.offset) + number)))
            records.commit(consumer, wanted)
        finally:
            consumer.close()

    def _from(self, stack: str, offsets: dict[str, int]) -> set[str]:
        """The records of a side from these offsets on."""
        client = self.project.client(stack) | {"group.id": "reader", "enable.auto.commit": False}
        consumer = Consumer(client)
        found = set[str]()
        try:
            for place, offset in offsets.items():
                part = TopicPartition(TOPIC, int(place.rpartition("-")[2]), offset)
                _, end = consumer.get_watermark_offsets(part, timeout=10)
                consumer.assign([part])
                wait_until(f"{place} is read", partial(_read, consumer, found, part, end), 30)
        finally:
            consumer.close()
        return found

    def journal(self) -> Journal:
        return Journal.load(self.project.namespace(TARGET), MIRROR, self.killer.environment)

    def progress(self) -> Progress | None:
        """How far the operation is, as `status` reports it."""
        journal = self.journal()
        return of_journal(journal, TARGET, self.project.folder, journal.holder)

    def interrupt(self, one: Interruption, *words: str) -> None:
        """Let it happen; afterwards the step must be reported as the one that the next command goes on with."""
        began = time.monotonic()
        self.killer.interrupt(one, *words)
        sys.stderr.write(f"{words[0]}: {one.who} ended in {one.step}, after {time.monotonic() - began:.0f} s\n")
        found, journal = self.progress(), self.journal()
        assert found is not None, one
        assert (found.step, one.step in journal.steps) == (one.step, False), one
        assert found.state == (INTERRUPTED if journal.may_have_changed else NOTHING_CHANGED), one

    def status(self) -> dict[str, Any]:
        code, found, said = self.killer.finish("status", "--stack", TARGET, "--json")
        assert code in (0, 1), said
        return found

    def findings(self) -> list[str]:
        """Names of the doctor's findings about the fence."""
        environment = {**os.environ, **self.killer.environment}
        pair = mirror_context.load(TARGET, MIRROR, environment, self.project.folder)
        found = diagnose(collect(pair, environment, lambda _: None, debug=True))
        about = (fencing.LEFT_BEHIND, fencing.TAKES_WRITES, TARGET_FENCED)
        return [one.trouble for one in found if one.trouble in about]

    def require_nothing_left_to_deploy(self, stack: str) -> None:
        """Assert that Pulumi agrees with all that was changed."""
        result = subprocess.run(
            ["pulumi", "preview", "--refresh", "--expect-no-changes", "--diff", "--non-interactive", "-s", stack],
            cwd=self.project.folder,
            env=dict(self.killer.environment),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr

    @property
    def is_fenced(self) -> bool:
        """Whether the source is, by its stack file and by its users."""
        found = self.project.sandbox.get("kafkauser", "-n", self.project.namespace(SOURCE), TESTER)
        rules = (found["spec"].get("authorization") or {}).get("acls") or []
        declared = f"{KEY}fence" in (self.project.folder / f"Pulumi.{SOURCE}.yaml").read_text("utf-8")
        assert any(rule["type"] == "deny" for rule in rules) == declared, "stack file and KafkaUser differ"
        return declared


def _read(consumer: Consumer, found: set[str], part: TopicPartition, end: int) -> bool:
    """Whether the partition is read to its end."""
    for message in consumer.consume(500, timeout=0.2):
        assert message.error() is None, message.error()
        found.add((message.value() or b"").decode())
    (at,) = consumer.position([part])
    return max(at.offset, part.offset) >= end


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, whose source has a super user and an application user, TESTER, with rights on all topics."""
    folder = tmp_path_factory.mktemp("killed")
    project = Project.of_example(sandbox, "active-passive", folder)
    for config in project.config.values():
        config[f"{KEY}cluster"].pop("expose")
    project.config[SOURCE][f"{KEY}cluster"]["superUsers"] = [BOSS]
    project.config[SOURCE][f"{KEY}users"].append({"name": BOSS})
    proxy = ApiServerProxy(sandbox.kubeconfig, folder)
    try:
        project.up(SOURCE)
        found = Site(project, Killer(folder, without_shim(sandbox), proxy))
        assert found.write(SOURCE, 120)
        project.up(TARGET)
        for number, group in enumerate(GROUPS):
            found.read_on(SOURCE, group, 3 * number + 1)
        yield found
    finally:
        proxy.close()
        project.destroy(TARGET, SOURCE)


def without_shim(sandbox: Sandbox) -> dict[str, str]:
    """The environment of Pulumi itself: the sandbox's own would give it a kubeconfig, and be killed in its place."""
    environment = sandbox.environment()
    shim = f"{sandbox.state.path / 'bin'}:"
    assert environment["PATH"].startswith(shim)
    return {**environment, "PATH": environment["PATH"].removeprefix(shim)}


def test_a_planned_failover_that_is_killed_in_its_steps_loses_and_claims_nothing(site: Site, nightly: bool) -> None:
    refused, killed = 0, tried(FAILOVER_KILLED, nightly)
    for one in killed:
        site.interrupt(one, *FAILOVER)
        may_write = site.write(SOURCE)
        refused += not may_write
        assert not may_write or one.at in (FENCE_GOES_UP, FENCE_GOES_DOWN), one
    left = site.unread(SOURCE)

    code, done, said = site.killer.finish(*FAILOVER)

    assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "target", 0, {}), said
    assert refused >= len(killed) - 2
    assert site.held(TARGET) == site.acknowledged
    assert site.unread(TARGET) == left
    assert {group: (done["groups"][group]["repeated"], done["groups"][group]["skipped"]) for group in GROUPS} == (
        dict.fromkeys(GROUPS, (0, 0))
    )
    claimed = site.journal().steps["offsets"]["groups"]
    assert {group: claimed[group]["offsets"] for group in GROUPS} == site.offsets(TARGET)
    assert site.is_fenced
    assert not site.write(SOURCE)
    assert site.write(TARGET)
    assert site.progress() is None
    assert site.status()["problems"] == []
    assert site.findings() == []
    site.require_nothing_left_to_deploy(TARGET)


def test_a_failback_that_is_killed_in_its_steps_brings_everything_back_once(site: Site, nightly: bool) -> None:
    assert site.write(SOURCE, 15, BOSS), "what nobody copies any more is stranded there"
    assert site.write(TARGET, 30)
    site.read_on(TARGET, GROUPS[0], 5)
    left = {}
    for one in tried(FAILBACK_KILLED, nightly):
        site.interrupt(one, *FAILBACK)
        if one.step not in ("switch", "confirm"):
            assert not site.write(SOURCE), f"{one}: the target is active"
        if one.step in ("fence", "settle", "copy") or (one.step, one.who) == ("stop", PULUMI):
            assert site.write(TARGET), f"{one}: applications go on, for nothing was fenced or the command has lifted it"
            left = site.unread(TARGET) if one.step in ("copy", "stop") else left
        elif one.step in ("drain", "prove", "stop", "offsets"):
            assert not site.write(TARGET), f"{one}: it is fenced"
        if (one.step, one.who) == ("stop", API):
            assert [problem for problem in site.status()["problems"] if "a failback has fenced it" in problem]
            assert site.findings() == [TARGET_FENCED]

    code, done, said = site.killer.finish(*FAILBACK)

    assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "source", 0, {}), said
    assert done["recordsBroughtOver"] == 15
    assert site.held(SOURCE) == site.acknowledged
    assert site.unread(SOURCE) == left
    claimed = site.journal().steps["offsets"]["groups"]
    assert {group: claimed[group]["offsets"] for group in GROUPS} == site.offsets(SOURCE)
    assert not site.is_fenced
    assert site.write(SOURCE)
    assert not site.write(TARGET)
    wait_until("the target has everything once", lambda: site.held(TARGET) == site.acknowledged, 60)
    assert site.progress() is None
    assert site.status()["problems"] == []
    assert site.findings() == []
    site.require_nothing_left_to_deploy(SOURCE)
    site.require_nothing_left_to_deploy(TARGET)


def test_an_unplanned_failover_that_is_killed_while_it_measures_has_changed_nothing(site: Site) -> None:
    """The next test begins a planned one in its place."""
    site.interrupt(Interruption(step="measure"), *UNPLANNED)
    found = site.progress()
    assert found is not None
    assert (found.state, found.problem) == (NOTHING_CHANGED, None)
    assert not site.is_fenced
    assert site.write(SOURCE)
    assert not site.write(TARGET)


def test_a_failover_that_is_frozen_and_wakes_after_another_one_has_switched_does_nothing_more(site: Site) -> None:
    frozen = Interruption(step="offsets", line=GROUP_SET, number=signal.SIGSTOP)
    proxy = site.killer.proxy
    proxy.forget()
    with proxy.trap(notes("offsets")):
        first = site.killer.start(*FAILOVER, at=frozen)
        wait_until("the first one is frozen", lambda: first.reached.is_set() or first.ended, 120)
        assert not first.ended, first.said
    try:
        found = site.progress()
        assert found is not None
        assert (found.step, found.state) == ("offsets", UNDER_WAY)
        code, refused, _ = site.killer.finish(*FAILOVER)
        assert (code, "one command at a time" in refused["error"]) == (2, True), refused

        code, done, said = site.killer.finish(*FAILOVER, before=OTHER_MACHINE)

        assert (code, done["active"], done["recordsLost"]) == (0, "target", 0), said
        assert site.write(TARGET, 10)
        for group in GROUPS:  # applications work there: whoever sets a group now sets it back
            site.read_on(TARGET, group, 2)
        before = site.offsets(TARGET)
        journal = site.journal().entry
        proxy.calls = []
    finally:
        first.send(signal.SIGCONT)
    code, _ = first.end()

    # Its connections are as old as the Lease: whichever it finds out first, it may take down nothing without the Lease.
    assert (code, "must be held by this command to change anything" in first.said) == (2, True), first.said
    changed = [call for call in proxy.calls if call.changes and call.status != 409]
    assert changed == []
    assert "is taken down" not in first.said
    assert site.offsets(TARGET) == before
    assert site.journal().entry == journal
    assert site.is_fenced
    assert not site.write(SOURCE)
    assert site.held(TARGET) == site.acknowledged
    assert site.status()["problems"] == []
    site.require_nothing_left_to_deploy(TARGET)
