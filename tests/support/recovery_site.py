"""A pair whose recovery commands are disturbed, and what is true of it: records, offsets of groups, fence, journal.

Owns what is written and read as a plain client. Does not own the disturbance, nor what must hold after it.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from ops.doctor.command import collect
from ops.doctor.diagnosis import diagnose
from ops.pulumi.stack import PulumiStack
from ops.recovery import fence, fencing, mirror_context
from ops.recovery.fence import SourceFence
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import INTERRUPTED, NOTHING_CHANGED, UNDER_WAY, Progress, of_journal
from ops.recovery.target_fence import TARGET_FENCED

from . import records
from .api_proxy import ApiServerProxy
from .killed_commands import Interruption, Killer
from .projects import KEY, TESTER, Project
from .running_sandbox import Sandbox
from .waiting import at_most, wait_until

SOURCE, TARGET, MIRROR, TOPIC = "dev", "stg", "mm2", "items"
TOPICS = [TOPIC, "items.inventory", "store.inventory"]
BOSS = "boss"
GROUPS = [f"group-{number}" for number in range(6)]
# One with a static member, and one of the protocol of KIP-848.
MEMBERS: dict[str, dict[str, Any]] = {
    GROUPS[1]: {"group.instance.id": "static", "session.timeout.ms": 6_000},
    GROUPS[2]: {"group.protocol": "consumer"},
}
WITH_METADATA, METADATA = GROUPS[3], "time-4711"
FAR_AHEAD = GROUPS[5]
SHARERS = "group-of-sharers"
FAILOVER = ("failover", "--to", TARGET, "--exact", "--yes", "--json")
UNPLANNED = ("failover", "--to", TARGET, "--unplanned", "--yes", "--json")
FAILBACK = ("failback", "--to", SOURCE, "--yes", "--json")
RECORD, MEMBER_WITHIN_S = "record ", 60


class Site:
    """The pair. `acknowledged` are the records that the brokers have taken, wherever that was."""

    def __init__(self, project: Project, killer: Killer) -> None:
        self.project = project
        self.killer = killer
        self.acknowledged: set[str] = set()

    def write(self, stack: str, number: int = 1, user: str = TESTER) -> bool:
        """Write records that are new; return whether the user is allowed to."""
        values = [f"{RECORD}{len(self.acknowledged) + each}" for each in range(number)]
        allowed = self._wrote(self.project.client(stack, user), TOPIC, values)
        self.acknowledged.update(values if allowed else ())
        return allowed

    def held(self, stack: str) -> set[str]:
        """The records of a side that `write` has written; each must be there once."""
        found = [value for value in records.read(self.project.client(stack), TOPIC) if value.startswith(RECORD)]
        assert len(found) == len(set(found)), "a record is there twice"
        return set(found)

    def offsets(self, stack: str) -> dict[str, dict[str, int]]:
        """Where each group stands on a side, as a journal has it."""
        admin = AdminClient(self.project.client(stack))
        found = {}
        for group in GROUPS:
            answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=10)
            of_group = answer[group].result(20).topic_partitions
            found[group] = {f"{each.topic}-{each.partition}": each.offset for each in of_group}
            if group == WITH_METADATA:
                assert {each.metadata for each in of_group} <= {METADATA}, "what a consumer keeps there is its own"
        return found

    def unread(self, stack: str) -> dict[str, set[str]]:
        """What each group has left to read on a side."""
        return {group: self._from(stack, offsets) for group, offsets in self.offsets(stack).items()}

    def read_on(self, stack: str, group: str, number: int) -> None:
        """Let a group read some records of each partition, as far as there are any."""
        own = MEMBERS.get(group, {})
        consumer = Consumer(self.project.client(stack) | {"group.id": group, "enable.auto.commit": False} | own)
        try:
            partitions = [
                TopicPartition(TOPIC, number) for number in consumer.list_topics(TOPIC).topics[TOPIC].partitions
            ]
            if own:
                consumer.subscribe([TOPIC])
                wait_until(f"{group} has all partitions", partial(_has_all, consumer, len(partitions)), MEMBER_WITHIN_S)
            wanted = []
            for at in records.committed_by(consumer, partitions):
                begin, end = consumer.get_watermark_offsets(at, timeout=10)
                to, metadata = min(end, max(begin, at.offset) + number), METADATA if group == WITH_METADATA else ""
                wanted.append(TopicPartition(TOPIC, at.partition, to, metadata=metadata))
            records.commit(consumer, wanted)
        finally:
            consumer.close()

    def jump_ahead(self, stack: str, group: str) -> None:
        """Set a group to the ends of the logs, where no checkpoint leads."""
        self.read_on(stack, group, 10**6)

    def require_shared(self, stack: str) -> None:
        """Let a share group read until it is given a record; it begins with what is written from then on."""
        with self._sharing(stack) as given:
            wait_until(
                f"{SHARERS} is given a record", lambda: self.write(stack) and bool(given & self.acknowledged), 60
            )

    @contextmanager
    def _sharing(self, stack: str) -> Iterator[set[str]]:
        given, ended = set[str](), threading.Event()

        def read() -> None:
            consumer = ShareConsumer(self.project.client(stack) | {"group.id": SHARERS})
            try:
                consumer.subscribe([TOPIC])
                while not ended.is_set():
                    messages: Iterable[Any] = consumer.poll(0.2)
                    given.update((one.value() or b"").decode() for one in messages if one.error() is None)
            finally:
                consumer.close()

        member = threading.Thread(target=read, daemon=True)
        member.start()
        try:
            yield given
        finally:
            ended.set()
            member.join(MEMBER_WITHIN_S)

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

    def interrupt(self, one: Interruption, *words: str, before: Iterable[str] = ()) -> None:
        """Let it happen; afterwards the step must be reported as the one that the next command goes on with.

        `before` are words in front of the command's own, which make it one of another machine: that is reported as at
        work until its Lease has run out by the API server's clock, whatever the clocks of both machines are.
        """
        began = time.monotonic()
        self.killer.interrupt(one, *words, before=before)
        sys.stderr.write(f"{words[0]}: {one.who} ended in {one.step}, after {time.monotonic() - began:.0f} s\n")
        found, journal = self.progress(), self.journal()
        assert found is not None, one
        assert (found.step, one.step in journal.steps) == (one.step, False), one
        ended = INTERRUPTED if journal.may_have_changed else NOTHING_CHANGED
        assert found.state == (UNDER_WAY if before else ended), one

    def run(self, *words: str) -> tuple[dict[str, Any], str]:
        """Run a command to its end; return its document and what it said."""
        _, document, said = self.killer.finish(*words)
        return document, said

    def ended(self, one: Interruption, *words: str) -> int:
        """Run a command that gets a signal at a line; return its exit code."""
        command = self.killer.start(*words, at=one, proxied=False)
        code, _ = command.end()
        assert command.reached.is_set(), command.said
        return code

    def status(self) -> dict[str, Any]:
        code, found, said = self.killer.finish("status", "--stack", TARGET, "--json")
        assert code in (0, 1), said
        return found

    def findings(self) -> list[str]:
        """Names of the doctor's findings about the fence."""
        pair, environment = self.pair()
        found = diagnose(collect(pair, environment, lambda _: None, debug=True))
        about = (fencing.LEFT_BEHIND, fencing.TAKES_WRITES, TARGET_FENCED)
        return [one.trouble for one in found if one.trouble in about]

    def pair(self) -> tuple[MirrorContext, dict[str, str]]:
        """The mirror and the environment in this process."""
        environment = {**os.environ, **self.killer.environment}
        return mirror_context.load(TARGET, MIRROR, environment, self.project.folder), environment

    def fence(self) -> SourceFence:
        """The fence of the source, in this process."""
        pair, environment = self.pair()
        found, why = fence.at_source(pair, self.project.folder, environment, print)
        assert found is not None, why
        return found

    def up(self, stack: str) -> None:
        """Bring a stack up as its settings say now, through the proxy; raises OpsError."""
        self.project.write()
        environment = {**self.killer.environment, "KUBECONFIG": str(self.killer.proxy.kubeconfig)}
        PulumiStack(folder=self.project.folder, name=stack, environment=environment).up(None, lambda _: None)

    @contextmanager
    def without_brokers(self, stack: str) -> Iterator[None]:
        """The brokers of a side are dead while the block runs; those that are not destroyed in it come back."""
        sandbox, namespace = self.project.sandbox, self.project.namespace(stack)
        assert sandbox.brokers(namespace)
        try:
            for name in sandbox.brokers(namespace):
                sandbox.processes.kill(name, hold=True)
            yield
        finally:
            for name in sandbox.brokers(namespace):
                sandbox.processes.release(name)

    def topic_settings(self, stack: str, name: str) -> set[str]:
        """The values that the KafkaTopics of a side have of a property."""
        namespace = self.project.namespace(stack)
        found = [self.project.sandbox.get("kafkatopic", "-n", namespace, topic) for topic in TOPICS]
        return {str((one["spec"].get("config") or {}).get(name)) for one in found}

    def user(self, name: str) -> dict[str, Any]:
        """A KafkaUser of the source."""
        found: dict[str, Any] = self.project.sandbox.get("kafkauser", "-n", self.project.namespace(SOURCE), name)
        return found

    def rules(self, user: str) -> list[Any]:
        """The rules of a KafkaUser of the source."""
        return (self.user(user)["spec"].get("authorization") or {}).get("acls") or []

    def may_write(self, stack: str, topic: str = TOPIC) -> bool:
        """Whether an application may write at a side; what it writes counts as nobody's."""
        return self._wrote(self.project.client(stack), topic, ["one more"])

    def _wrote(self, client: dict[str, Any], topic: str, values: list[str]) -> bool:
        """Write records; return whether the user is allowed to."""
        try:
            records.write(client, topic, values)
        except AssertionError as error:
            if "TOPIC_AUTHORIZATION_FAILED" not in str(error):
                raise
            return False
        return True

    def require_nothing_left_to_deploy(self, stack: str) -> None:
        """Assert that Pulumi agrees with all that was changed."""
        result = subprocess.run(
            ["pulumi", "preview", "--refresh", "--expect-no-changes", "--diff", "--non-interactive", "-s", stack],
            cwd=self.project.folder,
            env=dict(self.killer.environment),
            capture_output=True,
            text=True,
            timeout=at_most(240),
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr

    @property
    def is_fenced(self) -> bool:
        """Whether the source is, by its stack file and by its users."""
        declared = f"{KEY}fence" in (self.project.folder / f"Pulumi.{SOURCE}.yaml").read_text("utf-8")
        denied = any(rule["type"] == "deny" for rule in self.rules(TESTER))
        assert denied == declared, "stack file and KafkaUser differ"
        return declared


def _has_all(consumer: Consumer, partitions: int) -> bool:
    consumer.poll(0.2)
    return len(consumer.assignment()) == partitions


def _read(consumer: Consumer, found: set[str], part: TopicPartition, end: int) -> bool:
    """Whether the partition is read to its end."""
    for message in consumer.consume(500, timeout=0.2):
        assert message.error() is None, message.error()
        found.add((message.value() or b"").decode())
    (at,) = consumer.position([part])
    return max(at.offset, part.offset) >= end


@contextmanager
def disturbed_site(sandbox: Sandbox, folder: Path) -> Iterator[Site]:
    """The example's pair, described and not up yet; when the block ends, it and what its commands have left is gone."""
    project = Project.of_example(sandbox, "active-passive", folder)
    for config in project.config.values():
        config[f"{KEY}cluster"].pop("expose")
    proxy = ApiServerProxy(sandbox.kubeconfig, folder)
    killer = Killer(folder, _without_shim(sandbox), proxy)
    try:
        yield Site(project, killer)
    finally:
        killer.end_orphans()
        proxy.close()
        project.destroy(TARGET, SOURCE)


def _without_shim(sandbox: Sandbox) -> dict[str, str]:
    """The environment of Pulumi itself: the sandbox's own would give it a kubeconfig, and be killed in its place."""
    environment = sandbox.environment()
    shim = f"{sandbox.state.path / 'bin'}:"
    assert environment["PATH"].startswith(shim)
    return {**environment, "PATH": environment["PATH"].removeprefix(shim)}
