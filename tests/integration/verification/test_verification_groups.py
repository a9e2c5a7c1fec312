"""Groups, lag, canary and MirrorMaker's offset translation on the real pair: a mirror that runs, and a stopped one."""

import copy
import json
import struct
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.producers import RaisingProducer
from tests.support.waiting import wait_until

from ...support import records
from ...support.running_sandbox import Pair, Sandbox
from ...support.verification_runs import JobBench
from ...support.written_topics import TESTER, add_tester

TOPIC = "items"
CHECKPOINTS = "es-src.checkpoints.internal"
READER = "verification-reader"
RECORDS = 60
LATER = 40


class Bench(JobBench):
    """The pair's own request; at the source as a user that may also write, commit and send a canary."""

    def ends(self, side: str) -> list[int]:
        """End of each partition of the topic."""
        consumer = Consumer(self.client(side) | {"group.id": "ends"})
        try:
            known = consumer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
            return [consumer.get_watermark_offsets(TopicPartition(TOPIC, n), timeout=10)[1] for n in sorted(known)]
        finally:
            consumer.close()

    def commit(self, side: str, group: str, offsets: dict[int, int]) -> None:
        """Set positions of a group without members."""
        consumer = Consumer(self.client(side) | {"group.id": group, "enable.auto.commit": False})
        try:
            records.commit(consumer, [TopicPartition(TOPIC, number, offset) for number, offset in offsets.items()])
        finally:
            consumer.close()

    @contextmanager
    def member(self, side: str, group: str) -> Iterator[None]:
        """A member of the group that stays in it and commits nothing."""
        joined, leave = threading.Event(), threading.Event()

        def stay() -> None:
            consumer = Consumer(self.client(side) | {"group.id": group, "enable.auto.commit": False})
            consumer.subscribe([TOPIC], on_assign=lambda *_: joined.set())
            while not leave.is_set():
                consumer.poll(0.2)
            consumer.close()

        thread = threading.Thread(target=stay, daemon=True)
        thread.start()
        try:
            assert joined.wait(60), "the member was given no partition"
            yield
        finally:
            leave.set()
            thread.join(20)

    def verify(self, mirror: dict[str, Any], limits: dict[str, Any], **environment: str) -> dict[str, Any]:
        """Run the job with other settings of mirror and limits; returns the report."""
        request = copy.deepcopy(self.request)
        request["mirror"] |= {"topics": [TOPIC], **mirror}
        request["limits"] |= limits
        result, found = self.run_job(request, (), environment)
        assert found, result.stderr
        found["by_name"] = {one["name"]: one for one in found["checks"]}
        return found


@pytest.fixture(scope="module")
def bench(pair: Pair, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    request, cluster = copy.deepcopy(pair.stg["verificationRequests"]["mm2"]), pair.dev["cluster"]
    environment = dict(pair.stg["verificationEnvironment"]["mm2"])
    environment |= sandbox.tools.spark_environment
    config, namespace = request["source"]["client_config"], cluster["namespace"]
    config["sasl.username"] = TESTER
    password = add_tester(sandbox, namespace, cluster["name"], prefixes=(TOPIC,))
    environment[config["sasl.password"]["env"]] = password
    yield Bench(request, environment, tmp_path_factory.mktemp("groups"))
    sandbox.kubectl("delete", f"kafkauser/{TESTER}", f"secret/{TESTER}-credentials", "-n", namespace)


@pytest.fixture(scope="module")
def groups(bench: Bench) -> Iterator[dict[str, str]]:
    """Groups with a position at the source, by what they are there for.

    In the end they have read everything there, so that no later run meets one that would skip records.
    """
    records.write(bench.client("source"), TOPIC, [f"group-{n}-{uuid.uuid4().hex}" for n in range(RECORDS)])
    names = {kind: f"{kind}-{uuid.uuid4().hex[:6]}" for kind in ("ready", "lagging", "active")}
    ends = bench.ends("source")
    behind = {number: end // 2 for number, end in enumerate(ends)}
    for kind, name in names.items():
        bench.commit("source", name, behind if kind == "lagging" else dict(enumerate(ends)))
    yield names
    for name in names.values():
        bench.commit("source", name, dict(enumerate(bench.ends("source"))))


@pytest.fixture(scope="module")
def running(bench: Bench, groups: dict[str, str]) -> dict[str, Any]:
    """The report of a run while the mirror works and one group has a member on the target."""
    with bench.member("target", groups["active"]):
        return bench.verify(
            {"groups": [*groups.values(), "nowhere"], "canary": {"topic": TOPIC, "records": 30}},
            {"mirror_wait_seconds": 120, "lag_records_max": 100_000, "canary_p99_ms_max": 120_000},
        )


def rows(report: dict[str, Any], group: str) -> list[dict[str, Any]]:
    found = [row for row in report["by_name"]["groups_synced"]["evidence"] if row["group"] == group]
    assert found
    return found


def test_a_canary_flies_through_the_mirror_and_its_latency_is_measured(running: dict[str, Any]) -> None:
    check = running["by_name"]["canary_latency"]
    assert check["ok"] is True, check["observed"]
    canary = running["canary"]
    assert (canary["records"], canary["arrived"]) == (30, 30)
    assert 0 < canary["p50_ms"] <= canary["p95_ms"] <= canary["p99_ms"] <= canary["latencies_ms"][-1]


def test_canary_records_are_neither_lost_nor_foreign(running: dict[str, Any]) -> None:
    for name in ("records_complete", "records_unique", "records_intact"):
        assert running["by_name"][name]["ok"] is True, running["by_name"][name]


def test_the_lag_of_a_mirror_that_runs_is_shown_over_time(running: dict[str, Any]) -> None:
    assert running["by_name"]["lag"]["ok"] is True
    assert running["lag"]["at_end"]["records"] >= 0
    stamps = [at for at, _ in running["lag"]["series"]]
    assert len(stamps) >= 2
    assert stamps == sorted(stamps)


def test_groups_that_lag_are_active_or_do_not_exist_are_reported(
    running: dict[str, Any], groups: dict[str, str]
) -> None:
    check = running["by_name"]["groups_synced"]
    assert check["ok"] is None
    assert "no group nowhere at the source" in check["observed"]
    assert all(row["lag"] > 0 and row["unread"] > 0 for row in rows(running, groups["lagging"]))
    assert {row["target_state"] for row in rows(running, groups["active"])} == {"STABLE"}
    assert all(row["active_on_target"] for row in rows(running, groups["active"]))
    assert not any(row["active_on_target"] for row in rows(running, groups["ready"]))


def test_what_mirrormaker_claims_is_true_to_the_records(running: dict[str, Any]) -> None:
    check = running["by_name"]["checkpoints_consistent"]
    assert check["ok"] is True, check


def test_nothing_is_skipped_and_a_group_that_does_not_exist_keeps_that_from_being_proved(
    running: dict[str, Any],
) -> None:
    check = running["by_name"]["groups_no_loss"]
    assert check["ok"] is None
    assert "0 skipped" in check["observed"]
    assert "no group nowhere at the source" in check["observed"]


@pytest.fixture(scope="module")
def reader(sandbox: Sandbox, pair: Pair) -> Iterator[str]:
    """Password of a user of the source that may read everything and write nothing."""
    cluster, password = pair.dev["cluster"], uuid.uuid4().hex
    namespace, reference = cluster["namespace"], {"name": f"{READER}-credentials", "key": "password"}
    acls = [
        {"resource": {"type": "topic", "name": "*", "patternType": "literal"},
         "operations": ["Read", "Describe", "DescribeConfigs"]},
        {"resource": {"type": "group", "name": "*", "patternType": "literal"}, "operations": ["Describe", "Read"]},
    ]  # fmt: skip
    objects = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": reference["name"], "namespace": namespace},
         "stringData": {"password": password}},
        {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser",
         "metadata": {"name": READER, "namespace": namespace, "labels": {"strimzi.io/cluster": cluster["name"]}},
         "spec": {"authentication": {"type": "scram-sha-512", "password": {"valueFrom": {"secretKeyRef": reference}}},
                  "authorization": {"type": "simple", "acls": acls}}},
    ]  # fmt: skip
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    sandbox.wait_ready(namespace, f"kafkauser/{READER}")
    yield password
    sandbox.kubectl("delete", f"kafkauser/{READER}", f"secret/{reference['name']}", "-n", namespace)


def test_a_canary_without_the_right_to_write_names_the_right_and_the_topic(bench: Bench, reader: str) -> None:
    lesser = Bench(copy.deepcopy(bench.request), dict(bench.environment), bench.folder)
    config = lesser.request["source"]["client_config"]
    config["sasl.username"] = READER
    lesser.environment[config["sasl.password"]["env"]] = reader
    report = lesser.verify(
        {"groups": ["nobody.*"], "canary": {"topic": TOPIC, "records": 3}}, {"mirror_wait_seconds": 60}
    )
    check = report["by_name"]["canary_latency"]
    assert check["ok"] is None
    assert f"user {READER} must have Write on topic {TOPIC}" in check["observed"]


@pytest.fixture(scope="module")
def held(sandbox: Sandbox, bench: Bench, running: dict[str, Any]) -> Iterator[None]:
    """The mirror's worker, held down until the end of the module."""
    (name,) = [name for name in sandbox.processes.names() if name.startswith("mirror.rt-inventory-stg.mm2.")]
    time.sleep(10)  # positions and checkpoints are written every five seconds
    sandbox.processes.kill(name, hold=True)
    yield
    sandbox.processes.release(name)
    wait_until("the worker runs again", lambda: sandbox.processes.alive(name), 60)
    sandbox.wait_ready("rt-inventory-stg", "kafkamirrormaker2/mm2", 100)


def checkpoint(group: str, partition: int, upstream: int, downstream: int) -> tuple[bytes, bytes]:
    """A checkpoint as org.apache.kafka.connect.mirror.Checkpoint writes it."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    key = text(group) + text(TOPIC) + struct.pack(">i", partition)
    return key, struct.pack(">hqq", 0, upstream, downstream) + text("")


@pytest.fixture(scope="module")
def stopped(bench: Bench, groups: dict[str, str], held: None) -> dict[str, Any]:
    """The report of a run while the mirror is down, a new group is on its way and a checkpoint points too far."""
    new = f"missing-{uuid.uuid4().hex[:6]}"
    bench.commit("source", new, dict(enumerate(bench.ends("source"))))
    upstream, far = bench.ends("source")[0] // 2, bench.ends("target")[0]
    producer = RaisingProducer(bench.client("target"))
    key, value = checkpoint(groups["lagging"], 0, upstream, far)
    producer.produce(CHECKPOINTS, key=key, value=value)
    producer.deliver()
    bench.commit("target", groups["lagging"], {0: far})
    records.write(bench.client("source"), TOPIC, [f"later-{n}-{uuid.uuid4().hex}" for n in range(LATER)])
    report = bench.verify(
        {"groups": [new, *groups.values()], "canary": {"topic": TOPIC, "records": 5, "partition": 1}},
        {"mirror_wait_seconds": 5, "lag_records_max": LATER - 1, "lag_seconds_max": 1},
    )
    report["new"] = new
    return report


def test_the_lag_of_a_mirror_that_is_down_is_counted(stopped: dict[str, Any]) -> None:
    at_cut, at_end = stopped["lag"]["at_cut"], stopped["lag"]["at_end"]
    assert at_cut["records"] >= LATER
    assert at_end["records"] == at_cut["records"] + stopped["canary"]["records"]
    assert at_end["seconds"] > at_cut["seconds"] > 0
    check = stopped["by_name"]["lag"]
    assert check["ok"] is False
    assert f"{at_end['records']} records" in check["observed"]


def test_a_canary_that_does_not_arrive_fails(stopped: dict[str, Any]) -> None:
    assert stopped["canary"]["arrived"] == 0
    check = stopped["by_name"]["canary_latency"]
    assert check["ok"] is False
    assert "5 of 5 records not on the target" in check["observed"]


def test_a_group_that_the_target_does_not_know_is_missing(stopped: dict[str, Any]) -> None:
    check = stopped["by_name"]["groups_synced"]
    assert check["ok"] is False
    assert f"missing on the target: {stopped['new']}" in check["observed"]


def test_an_offset_that_a_wrong_checkpoint_set_too_far_is_found_as_a_skip(
    stopped: dict[str, Any], groups: dict[str, str]
) -> None:
    (row,) = [row for row in rows(stopped, groups["lagging"]) if row["partition"] == 0]
    assert row["skipped"] > 0
    assert row["active_on_target"] is False
    assert stopped["by_name"]["groups_no_loss"]["ok"] is False
    consistent = stopped["by_name"]["checkpoints_consistent"]
    assert consistent["ok"] is False
    wrong = [one for one in consistent["evidence"] if one["problem"] == "checkpoint skips records"]
    assert [(one["group"], one["partition"]) for one in wrong] == [(groups["lagging"], 0)]
