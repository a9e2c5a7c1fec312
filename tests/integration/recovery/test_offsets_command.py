"""Offsets of groups shown, translated and set on the running pair, held against the records' own content."""

import json
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from components.kafka import follower
from sandbox.demo import measurements
from sandbox.state import PROJECT
from tests.support.waiting import wait_until

from ...support import records
from ...support.ops_commands import ops, run
from ...support.running_sandbox import Pair, Sandbox
from ...support.written_topics import PREFIX, TESTER, add_tester

TOPIC = "items.inventory"
BATCHES, BATCH, RECORDS = 4, 30, 60
ARRIVE_S = 60
Placed = dict[int, list[tuple[int, bytes]]]


def placed(client: dict[str, Any]) -> Placed:
    """Offset and value of every record of the topic, by partition."""
    consumer = Consumer(client | {"group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True})
    try:
        numbers = sorted(consumer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions)
        consumer.assign([TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in numbers])
        found: Placed = {number: [] for number in numbers}
        ended, until = 0, time.monotonic() + 30
        while ended < len(numbers):
            assert time.monotonic() < until, f"the end of {TOPIC} was not reached in time"
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found[int(message.partition() or 0)].append((int(message.offset() or 0), message.value() or b""))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error.str()
                ended += 1
        return found
    finally:
        consumer.close()


@dataclass
class Scene:
    """A group that stands unevenly at the source, on a topic whose offsets differ between the sides."""

    group: str
    clients: dict[str, dict[str, Any]]
    committed: dict[int, int]
    source: Placed
    target: Placed

    def commit(self, side: str, offsets: dict[int, int]) -> None:
        """Set the group's positions without a command of ours."""
        consumer = Consumer(self.clients[side] | {"group.id": self.group, "enable.auto.commit": False})
        try:
            records.commit(consumer, [TopicPartition(TOPIC, number, offset) for number, offset in offsets.items()])
        finally:
            consumer.close()

    def counterpart(self, side: str, partition: int, offset: int) -> int:
        """Where who has read up to an offset goes on at the other side, by the records' values."""
        ours, theirs = (self.source, self.target) if side == "source" else (self.target, self.source)
        places = {value: at for at, value in theirs[partition]}
        unread = [places[value] for at, value in ours[partition] if at >= offset]
        return min(unread, default=theirs[partition][-1][0] + 1)

    def stands_on_target(self) -> dict[int, int]:
        """Where the group is set on the target, by partition."""
        consumer = Consumer(self.clients["target"] | {"group.id": self.group})
        try:
            found = consumer.committed([TopicPartition(TOPIC, number) for number in self.committed], timeout=10)
            return {one.partition: one.offset for one in found}
        finally:
            consumer.close()

    def unread(self) -> list[tuple[int, int]]:
        """Partition and offset on the target of each record that the group has not read at the source."""
        places = {value: (number, at) for number, rows in self.target.items() for at, value in rows}
        rows = ((number, at, value) for number, rows in self.source.items() for at, value in rows)
        return sorted(places[value] for number, at, value in rows if at >= self.committed[number])


def _in_transactions(client: dict[str, Any], password: str) -> list[bytes]:
    """Write records whose transactions' markers take offsets at the source that no record on the target takes."""
    written = []
    own = {"sasl.username": TESTER, "sasl.password": password, "transactional.id": f"{PREFIX}{uuid.uuid4().hex}"}
    producer = Producer(client | own)
    producer.init_transactions(30)
    for batch in range(BATCHES):
        producer.begin_transaction()
        for number in range(BATCH):
            value = f"offsets-{batch}-{number}-{uuid.uuid4().hex}"
            producer.produce(TOPIC, key=value, value=value, partition=number % 3)
            written.append(value.encode())
        producer.commit_transaction(30)
    return written


@pytest.fixture(scope="module")
def scene(sandbox: Sandbox, pair: Pair) -> Iterator[Scene]:
    clients = {"source": measurements.client_config(pair.dev), "target": measurements.client_config(pair.stg)}
    cluster = pair.dev["cluster"]
    password = add_tester(sandbox, cluster["namespace"], cluster["name"], prefixes=(TOPIC,))
    try:
        written = set(_in_transactions(clients["source"], password))
    finally:
        sandbox.kubectl("delete", f"kafkauser/{TESTER}", f"secret/{TESTER}-credentials", "-n", cluster["namespace"])
    records.write(clients["source"], TOPIC, [f"offsets-plain-{n}-{uuid.uuid4().hex}" for n in range(RECORDS)])
    source = placed(clients["source"])
    values = {value for rows in source.values() for _, value in rows}

    def arrived() -> Placed | None:
        there = placed(clients["target"])
        return there if values <= {value for rows in there.values() for _, value in rows} else None

    target: Placed = wait_until("all records are on the target", arrived, ARRIVE_S)
    # Among what the mirror has copied since it runs: it translates no older offsets.
    own = {number: [at for at, value in rows if value in written] for number, rows in source.items()}
    committed = {0: own[0][len(own[0]) // 3], 1: own[1][-2] + 1, 2: source[2][-4][0]}
    scene = Scene(f"test-offsets-{uuid.uuid4().hex[:6]}", clients, committed, source, target)
    scene.commit("source", committed)
    measurements.wait_until_synced(pair.dev, pair.stg, scene.group, ARRIVE_S)
    yield scene
    # At the source the group follows, or later verifications would meet one that skips.
    scene.commit("source", {part: rows[-1][0] + 1 for part, rows in placed(clients["source"]).items()})


def test_offsets_differ_between_the_sides(scene: Scene) -> None:
    """Else the tests below would hold for a command that copies offsets."""
    assert all(scene.counterpart("source", number, at) != at for number, at in scene.committed.items())


def test_show_prints_both_clusters_and_the_offset_records(sandbox: Sandbox, scene: Scene, tmp_path: Path) -> None:
    show = ["offsets", "show", "-s", "stg", "--group", scene.group]
    plain = ops(sandbox, *show)["positions"]
    assert {one["partition"]: one["source"]["offset"] for one in plain} == scene.committed
    for one in plain:
        assert one["target"]["lag"] == scene.target[one["partition"]][-1][0] + 1 - one["target"]["offset"]
    rows = ops(sandbox, *show, "--exact", "--report-dir", str(tmp_path))["positions"]
    for one in rows:
        number, target = one["partition"], one["target"]
        exact = scene.counterpart("source", number, scene.committed[number])
        assert (target["exact"], one["skipped"]) == (exact, 0)
        assert one["repeated"] == sum(target["offset"] <= at < exact for at, _ in scene.target[number])
        assert (one["source"]["state"], target["state"]) == ("EMPTY", "EMPTY")
    assert sum(one["repeated"] for one in rows) > 0


@pytest.mark.parametrize("side", ["source", pytest.param("target", marks=pytest.mark.nightly)])
def test_any_offset_is_translated_to_that_of_the_same_record(
    sandbox: Sandbox, scene: Scene, tmp_path: Path, side: str
) -> None:
    ours = scene.source if side == "source" else scene.target
    wanted = [
        (number, offset)
        for number, rows in ours.items()
        for offset in (0, rows[len(rows) // 2][0], rows[-2][0] - 1, rows[-1][0], rows[-1][0] + 1)
    ]
    file = tmp_path / "wanted.csv"
    file.write_text("".join(f"{TOPIC},{number},{offset}\n" for number, offset in wanted))
    there = "target" if side == "source" else "source"
    arguments = ["--from", side, "--file", str(file), "--report-dir", str(tmp_path / "report")]
    rows = ops(sandbox, "offsets", "translate", "-s", "stg", *arguments)["positions"]
    assert [(one["partition"], one[side]["offset"]) for one in rows] == wanted
    assert [one[there]["offset"] for one in rows] == [scene.counterpart(side, *one) for one in wanted]


@dataclass
class FollowerProcess:
    """What a follower's pod starts, in a process."""

    process: "subprocess.Popen[bytes]"
    said: Path

    def url(self) -> str | None:
        """Where it says whether it is ready; None until it serves."""
        found = re.search(r"serving (http://\S+)/metrics", self.said.read_text("utf-8"))
        assert self.process.poll() is None, self.said.read_text("utf-8")
        return found and f"{found[1]}/ready"


@contextmanager
def followed(pair: Pair, group: str, folder: Path) -> Iterator[FollowerProcess]:
    """Run a follower of one group, with the files and variables of its pod and nothing else."""
    (name,) = pair.stg["verificationRequests"]
    request = pair.stg["verificationRequests"][name]
    mirror = {**request["mirror"], "groups": [group], "exact_offsets": True, "sync_group_offsets": False}
    document = follower.of_request(name, {**request, "mirror": mirror}, exactly_once=False)
    outputs, said = folder / "outputs.json", folder / "said.txt"
    outputs.write_text(json.dumps(document), encoding="utf-8")
    arguments = ["--stack", "stg", "--mirror", name, "--outputs", str(outputs), "--listen", "127.0.0.1:0"]
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "ops.follow", *arguments],
            cwd=PROJECT,
            env={"PATH": "/usr/bin:/bin", **pair.stg["verificationEnvironment"][name]},
            stderr=stderr,
        )
    try:
        yield FollowerProcess(process, said)
    finally:
        process.kill()
        process.wait(10)


def test_what_a_followers_pod_starts_sets_a_group_exactly_and_ends_when_it_is_asked_to(
    pair: Pair, scene: Scene, tmp_path: Path
) -> None:
    own = replace(scene, group=f"test-follower-{uuid.uuid4().hex[:6]}")
    own.commit("source", own.committed)
    exact = {number: own.counterpart("source", number, at) for number, at in own.committed.items()}
    try:
        with followed(pair, own.group, tmp_path) as pod:
            url = wait_until("it serves", pod.url, 60)
            wait_until("it is ready", lambda: httpx.get(url, timeout=5).status_code == 200, 60)
            wait_until("the group is exact", lambda: own.stands_on_target() == exact, 60)
            pod.process.send_signal(signal.SIGTERM)
            assert pod.process.wait(follower.GRACE_S) == 0, pod.said.read_text("utf-8")
    finally:
        own.commit("source", {number: rows[-1][0] + 1 for number, rows in placed(own.clients["source"]).items()})


def test_after_set_exact_a_consumer_on_the_target_reads_exactly_the_rest(
    sandbox: Sandbox, pair: Pair, scene: Scene, tmp_path: Path
) -> None:
    order = ["offsets", "set", "-s", "stg", "--group", scene.group, "--exact", "--yes", "--report-dir", str(tmp_path)]
    assert ops(sandbox, *order)["set"] > 0
    assert ops(sandbox, *order)["set"] == 0

    kept, read = tmp_path / "kept.csv", tmp_path / "read.tsv"
    ops(sandbox, "offsets", "export", "-s", "stg", "--group", scene.group, "--out", str(kept))
    exact = {part: scene.counterpart("source", part, at) for part, at in scene.committed.items()}
    assert kept.read_text() == "".join(f"{TOPIC},{part},{at}\n" for part, at in exact.items())

    ops(sandbox, "consume", "-s", "stg", "-t", TOPIC, "-g", scene.group, "--until-end", "--keys-out", str(read))
    got = sorted((int(line.split("\t")[0]), int(line.split("\t")[1])) for line in read.read_text().splitlines())
    assert got == scene.unread()

    again = ops(sandbox, "offsets", "import", "-s", "stg", "-g", scene.group, "--file", str(kept), "--dry-run")
    assert [one["wanted"] for one in again["changes"]] == list(exact.values())
    assert not any(one["done"] for one in again["changes"])

    # The way back: what was read on the target is read at the source too.
    ops(sandbox, *order, "--on", "source")
    stands = measurements.positions(pair.dev, scene.group)
    assert stands == {(TOPIC, number): rows[-1][0] + 1 for number, rows in scene.source.items()}


def test_all_invalid_offsets_are_reported_together_and_none_is_set(sandbox: Sandbox, pair: Pair, scene: Scene) -> None:
    before = measurements.positions(pair.stg, scene.group)
    position = ["-t", TOPIC, "-p", "0", "-o", "999999999", "-p", "1", "-o", "0", "-p", "77", "-o", "0"]
    refused = run(sandbox, "offsets", "set", "-s", "stg", "-g", scene.group, *position, "--yes")
    assert refused.returncode == 2
    assert f"{TOPIC}-0: offset must be from 0 to {scene.target[0][-1][0] + 1}" in refused.stderr
    assert f"{TOPIC}-77: partition must exist" in refused.stderr
    assert measurements.positions(pair.stg, scene.group) == before

    member = Consumer(scene.clients["target"] | {"group.id": scene.group, "enable.auto.commit": False})
    joined: list[Any] = []
    try:
        member.subscribe([TOPIC], on_assign=lambda *_: joined.append(True))
        wait_until("the member has partitions", lambda: member.poll(0.2) is None and joined, ARRIVE_S)
        refused = run(
            sandbox, "offsets", "set", "-s", "stg", "-g", scene.group, "-t", TOPIC, "-p", "1", "-o", "0", "-y"
        )
        assert refused.returncode == 2
        assert f"got members in {scene.group}" in refused.stderr
    finally:
        member.close()
