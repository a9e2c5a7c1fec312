"""Sources of earlier Kafka versions: records and groups arrive, a loss is found, and `ops` reports the mirror.

docs/compatibility.md has a row for each case.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # the package does not list what it re-exports

from sandbox.toolchain import pins
from tests.support import records
from tests.support.compatibility import CASES, MIRROR, Case
from tests.support.producers import RaisingProducer
from tests.support.waiting import wait_until

from ...support.ops_commands import run
from ...support.projects import Project
from ...support.running_sandbox import Sandbox
from ...support.written_topics import Bench, findings, own_name, record
from ...support.zookeeper_cluster import ZooKeeperCluster, install, running

STACK, TOPIC, GROUP, BEHIND = "target", "shop.orders", "shop-readers", "shop-late"
PARTITIONS, COUNT, START_MS = 2, 300, 1_700_000_000_000
LOST, REPORTS_RIGHTS = 41, (2, 3)
Place = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...], tuple[int, int]]
"""Partition, offset, key, value, headers, kind of the timestamp and timestamp."""


@dataclass(frozen=True)
class Flow:
    """A mirror from a cluster of that version, while it runs."""

    case: Case
    source: ZooKeeperCluster
    project: Project
    bench: Bench

    def client(self, side: str) -> dict[str, Any]:
        return self.bench.client(side)


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, id=case.source, marks=[pytest.mark.nightly] * case.nightly) for case in CASES],
)
def flow(request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    case: Case = request.param
    folder = tmp_path_factory.mktemp(f"source-{case.source}")
    if case.mirror in pins.KAFKA_WITH_ZOOKEEPER:
        install(case.mirror)
    with running(sandbox, case.source, folder) as source:
        admin = AdminClient(source.client)  # must outlive the answer
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config={"retention.ms": "-1"})])[TOPIC].result(30)
        project = Project.of_settings(sandbox, f"compatibility-{case.name}", folder, {STACK: case.settings(source)})
        try:
            project.up(STACK)
            outputs = project.outputs(STACK)
            environment = outputs["verificationEnvironment"][MIRROR] | sandbox.tools.spark_environment
            bench = Bench(outputs["verificationRequests"][MIRROR], environment, folder)
            yield Flow(case, source, project, bench)
        finally:
            project.destroy(STACK)


def write(client: dict[str, Any], numbers: range, behind: int) -> None:
    """Write records, one of all without a value and one without headers, and commit both groups' positions."""
    producer = RaisingProducer(client | {"acks": "all", "max.in.flight.requests.per.connection": 1})
    for number in numbers:
        headers = [] if number == 7 else [("number", b"%d" % number), ("\u00e4", b"\x00\xff"), ("number", b"again")]
        value = None if number == 9 else b"value %d" % number
        producer.produce(
            TOPIC, value, b"key-%d" % number, number % PARTITIONS, headers=headers, timestamp=START_MS + number
        )
    producer.deliver(60)
    for group, offset in ((GROUP, numbers.stop // PARTITIONS), (BEHIND, behind)):
        member = Consumer(client | {"group.id": group, "enable.auto.commit": False})
        records.commit(member, [TopicPartition(TOPIC, number, offset) for number in range(PARTITIONS)])
        member.close()


def log_of(client: dict[str, Any]) -> list[Place]:
    """All records of the topic, by partition and offset."""
    consumer = Consumer(client | {"group.id": "shop-test", "enable.auto.commit": False})
    found: list[Place] = []
    try:
        for number in range(PARTITIONS):
            _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=20)
            consumer.assign([TopicPartition(TOPIC, number, 0)])
            while not found or found[-1][:2] != (number, end - 1):
                place = [as_place(one) for one in consumer.consume(COUNT, timeout=5) if one.error() is None]
                assert place, f"{TOPIC}-{number}: must be readable to its end {end}"
                found += place
    finally:
        consumer.close()
    return found


def as_place(message: Any) -> Place:
    at = message.partition(), message.offset(), message.key(), message.value()
    return (*at, tuple(message.headers() or ()), message.timestamp())


def copied(flow: Flow) -> int:
    """Number of records of the topic on the target."""
    consumer = Consumer(flow.client("target") | {"group.id": "shop-test"})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, at), timeout=10)[1] for at in range(PARTITIONS)]
    finally:
        consumer.close()
    return sum(ends)


@pytest.fixture(scope="module")
def mirrored(flow: Flow, sandbox: Sandbox) -> Flow:
    """The mirror once it has copied all, which was written while it translated the offsets of both groups.

    MirrorMaker starts its checkpoint task with the first group that it finds, and again with each new one. Of what was
    copied before, the task knows the newest offset sync of each partition only: a group behind it is not translated.
    """
    client = flow.client("target")
    wait_until("the topic is on the target", lambda: TOPIC in records.topics(client), 90, otherwise=sandbox.tails)
    write(flow.source.client, range(PARTITIONS), behind=1)
    wait_until(
        "the offsets of both groups are translated",
        lambda: all(records.committed(client, group) == {TOPIC: PARTITIONS} for group in (GROUP, BEHIND)),
        otherwise=sandbox.tails,
    )
    write(flow.source.client, range(PARTITIONS, COUNT), behind=COUNT // PARTITIONS // 3)
    wait_until("all records are copied", lambda: copied(flow) >= COUNT, 60, otherwise=sandbox.tails)
    return flow


def test_records_are_mirrored_exactly(mirrored: Flow) -> None:
    assert log_of(mirrored.client("target")) == log_of(mirrored.source.client)


def test_offsets_of_groups_are_translated(mirrored: Flow) -> None:
    client, positions = mirrored.client("target"), {GROUP: COUNT, BEHIND: COUNT // PARTITIONS // 3 * PARTITIONS}
    assert all(records.committed(mirrored.source.client, one) == {TOPIC: at} for one, at in positions.items())
    wait_until("a group at the end is there exactly", lambda: records.committed(client, GROUP) == {TOPIC: COUNT}, 60)
    # One that is behind may read records again, and skips none.
    assert PARTITIONS <= records.committed(client, BEHIND)[TOPIC] <= positions[BEHIND]


def test_the_verification_passes(mirrored: Flow) -> None:
    result, report = mirrored.bench.run_job(mirrored.bench.request, [], {})
    assert (result.returncode, report["verdict"]) == (0, "pass"), result.stdout + result.stderr
    assert report["records_compared"] == COUNT
    unproved = {check["name"]: check["observed"] for check in report["checks"] if check["ok"] is not True}
    assert unproved == {}, report["checks"]


def test_the_verification_finds_a_lost_record(mirrored: Flow) -> None:
    topic = mirrored.bench.topic(own_name("loss"))
    for side, lost in (("source", None), ("target", LOST)):
        mirrored.bench.write(side, topic, [record(n) for n in range(80) if n != lost])
    result, report = mirrored.bench.verify([topic])
    assert result.returncode == 1, result.stdout + result.stderr
    found = findings(report, topic)
    assert {kind: sum(one["count"] for one in ones) for kind, ones in found.items()} == {"lost": 1}


def test_status_reports_the_mirror_and_the_groups(mirrored: Flow, sandbox: Sandbox) -> None:
    found = of_command(mirrored, sandbox, "status", "--stack", STACK)
    assert (found["health"], found["problems"], found["unknown"]) == ("healthy", [], {})
    assert found["lag"]["records"] == 0
    states = {one["group"]: (one["sourceState"], one["targetState"]) for one in found["groups"]}
    assert states == dict.fromkeys((GROUP, BEHIND), ("EMPTY", "EMPTY"))


def test_the_doctor_finds_nothing_wrong(mirrored: Flow, sandbox: Sandbox) -> None:
    found = of_command(mirrored, sandbox, "doctor", "--stack", STACK)
    assert (found["findings"], found["notLookedAt"]) == ([], [])
    unreported = [note for note in found["notes"] if "brokers before Kafka 2.3 do not report it" in note]
    assert bool(unreported) == (version_of(mirrored.case) < REPORTS_RIGHTS), found["notes"]


def test_offsets_are_shown_exactly(mirrored: Flow, sandbox: Sandbox) -> None:
    reports = str(mirrored.project.folder / "offsets")
    found = of_command(mirrored, sandbox, "offsets", "show", "--stack", STACK, "--exact", "--report-dir", reports)
    assert found["unseen"] == []
    exact = {(one["group"], one["partition"]): one["target"]["exact"] for one in found["positions"]}
    # Names are kept and the log is complete: the offsets of both sides are the same.
    places = ((GROUP, COUNT // PARTITIONS), (BEHIND, COUNT // PARTITIONS // 3))
    assert exact == {(group, number): at for group, at in places for number in range(PARTITIONS)}


def test_a_failover_is_planned(mirrored: Flow, sandbox: Sandbox) -> None:
    found = of_command(mirrored, sandbox, "failover", "--to", STACK, "--dry-run")
    assert found["path"] == "planned", found


def version_of(case: Case) -> tuple[int, ...]:
    return tuple(map(int, case.source.split(".")))


def of_command(flow: Flow, sandbox: Sandbox, *arguments: str) -> Any:
    """The document of a command about the mirror, which must succeed."""
    result = run(sandbox, *arguments, "--mirror", MIRROR, "-C", str(flow.project.folder), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)
