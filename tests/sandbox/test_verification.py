"""The verification job against real brokers: each fault is found with its partition, offset and exact number.

The topics with faults are written by hand on both sides under own names, so the mirror never touches them. Their
request is that of the pair, without the mirror's position: nothing carries these topics.
"""

import copy
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    NewTopic,
)

from .harness import Pair, Sandbox

TESTER = "verification-tester"
PREFIX = "verify-"
ROOT = Path(__file__).parent.parent.parent
START_MS = int(time.time() * 1000) - 3_600_000  # young enough for every retention
Record = dict[str, Any]


@dataclass
class Bench:
    """Two clusters and a request between them."""

    request: dict[str, Any]
    environment: dict[str, str]
    folder: Path

    def client(self, side: str) -> dict[str, Any]:
        """Client configuration of one side with its secrets."""
        config = self.request[side]["client_config"]
        return {
            name: self.environment[value["env"]] if isinstance(value, dict) else value for name, value in config.items()
        }

    def topic(self, name: str) -> str:
        """Make a topic of one partition on both sides."""
        for side in ("source", "target"):
            admin = AdminClient(self.client(side))
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        return name

    def write(self, side: str, topic: str, records: list[Record]) -> None:
        """Write records to partition 0."""
        producer = Producer(self.client(side))
        for record in records:
            producer.produce(topic, partition=0, **record)
        assert producer.flush(30) == 0

    def verify(
        self, topics: list[str], mirror: Mapping[str, Any] | None = None, /, **environment: str
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Run the job on hand-written topics, with changes of the request's mirror; returns process and report."""
        request = copy.deepcopy(self.request)
        nothing: dict[str, Any] = {"connect_url": None, "offset_storage_topic": None, "connectors": {}}
        nothing |= {"internal_topics": [], "resource": None}
        request["mirror"] |= nothing | {"topics": topics, "replication_factor": 1} | dict(mirror or {})
        groups = ["groups_synced", "groups_no_loss", "groups_reread_bounded", "checkpoints_consistent"]
        allowed = ["connectors_running", *groups]
        request["limits"] |= {"mirror_wait_seconds": 2, "allow_unknown": allowed, "duplicates_max": 0}
        run = self.folder / uuid.uuid4().hex
        run.mkdir()
        path, report = run / "request.json", run / "report"
        path.write_text(json.dumps(request))
        result = subprocess.run(
            [sys.executable, "-m", "spark", "--request", str(path), "--report-dir", str(report)],
            cwd=ROOT,
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        document = report / "report.json"
        return result, json.loads(document.read_text()) if document.exists() else {}


@pytest.fixture(scope="module")
def bench(pair: Pair, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The pair's own request, made by a user on each side that may write topics of its own."""
    request = copy.deepcopy(pair.stg["verificationRequests"]["mm2"])
    environment = dict(pair.stg["verificationEnvironment"]["mm2"])
    environment["RT_INVENTORY_SPARK_JARS"] = str(sandbox.tools.spark_jars)
    clusters = {"source": pair.dev["cluster"], "target": pair.stg["cluster"]}
    for side, cluster in clusters.items():
        config = request[side]["client_config"]
        config["sasl.username"] = TESTER
        environment[config["sasl.password"]["env"]] = add_tester(sandbox, cluster["namespace"], cluster["name"])
    yield Bench(request, environment, tmp_path_factory.mktemp("verification"))
    for cluster in clusters.values():
        sandbox.kubectl("delete", f"kafkauser/{TESTER}", f"secret/{TESTER}-credentials", "-n", cluster["namespace"])


def add_tester(sandbox: Sandbox, namespace: str, cluster: str, on_cluster: tuple[str, ...] = ()) -> str:
    """Add a user that owns the topics with the test's prefix, with rights on the cluster; return its password."""
    password = uuid.uuid4().hex
    acls = [
        *([{"resource": {"type": "cluster"}, "operations": list(on_cluster)}] if on_cluster else []),
        {"resource": {"type": "topic", "name": PREFIX, "patternType": "prefix"}, "operations": ["All"]},
        {"resource": {"type": "group", "name": "*", "patternType": "literal"}, "operations": ["Read", "Describe"]},
    ]
    reference = {"name": f"{TESTER}-credentials", "key": "password"}
    objects = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": reference["name"], "namespace": namespace},
         "stringData": {"password": password}},
        {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser",
         "metadata": {"name": TESTER, "namespace": namespace, "labels": {"strimzi.io/cluster": cluster}},
         "spec": {"authentication": {"type": "scram-sha-512", "password": {"valueFrom": {"secretKeyRef": reference}}},
                  "authorization": {"type": "simple", "acls": acls}}},
    ]  # fmt: skip
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    sandbox.kubectl("wait", "-n", namespace, f"kafkauser/{TESTER}", "--for=condition=Ready", "--timeout=60s")
    return password


def record(number: int, **changes: Any) -> Record:
    fields: Record = {"key": b"k%d" % number, "value": b'{"n": %d}' % number, "timestamp": START_MS + number}
    return fields | {"headers": [("h", b"%d" % number)]} | changes


def findings(report: dict[str, Any], topic: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for part in report["partitions"]:
        for finding in part["findings"]:
            if finding["topic"] == topic:
                found.setdefault(finding["kind"], []).append(finding)
    return found


def own_name(fault: str) -> str:
    return f"{PREFIX}{fault}-{uuid.uuid4().hex[:6]}"


def test_equal_logs_pass(bench: Bench) -> None:
    topic = bench.topic(own_name("equal"))
    for side in ("source", "target"):
        bench.write(side, topic, [record(n) for n in range(500)])
    result, report = bench.verify([topic])
    assert result.returncode == 0, result.stderr + result.stdout
    assert report["records_compared"] == 500
    assert not findings(report, topic)


FAULTS: dict[str, tuple[str, str, Callable[[Record], list[Record]], tuple[int | None, int | None]]] = {
    "deleted": ("lost", "records_complete", lambda old: [], (200, None)),
    "doubled": ("doubled", "records_unique", lambda old: [old, old], (200, 201)),
    "key": ("altered", "records_intact", lambda old: [old | {"key": b"other"}], (200, 200)),
    "value": ("altered", "records_intact", lambda old: [old | {"value": None}], (200, 200)),
    "headers": ("altered", "records_intact", lambda old: [old | {"headers": [("h", b"x")]}], (200, 200)),
    "timestamp": ("altered", "records_intact", lambda old: [old | {"timestamp": START_MS}], (200, 200)),
    "foreign": ("foreign", "records_foreign", lambda old: [old, record(9999)], (None, 201)),
}


@dataclass(frozen=True)
class Judged:
    """One run of the job over one topic a fault."""

    topics: dict[str, str]
    result: subprocess.CompletedProcess[str]
    report: dict[str, Any]


@pytest.fixture(scope="module")
def judged(bench: Bench) -> Judged:
    """Each fault is made in a topic of its own, to record 200 of 500; one run looks at all of them."""
    topics = {fault: bench.topic(own_name(fault)) for fault in FAULTS}
    records = [record(n) for n in range(500)]
    for fault, topic in topics.items():
        change = FAULTS[fault][2]
        bench.write("source", topic, records)
        bench.write("target", topic, [*records[:200], *change(records[200]), *records[201:]])
    result, report = bench.verify(list(topics.values()))
    return Judged(topics, result, report)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_one_fault_is_found_with_its_partition_and_offsets(judged: Judged, fault: str) -> None:
    kind, _, _, offsets = FAULTS[fault]
    topic = judged.topics[fault]
    found = findings(judged.report, topic)
    assert list(found) == [kind]
    (finding,) = found[kind]
    assert (finding["partition"], finding["count"]) == (0, 1)
    sample = finding["samples"][0]
    assert (sample["source_offset"], sample["target_offset"]) == offsets
    if kind == "altered":
        assert sample["differs"] == [fault]


def test_each_check_counts_its_own_faults_and_names_their_partitions(judged: Judged) -> None:
    assert judged.result.returncode == 1
    failed = {one["name"]: one["observed"] for one in judged.report["checks"] if one["ok"] is False}
    assert set(failed) == {check for _, check, _, _ in FAULTS.values()}
    for fault, (_, check, _, _) in FAULTS.items():
        assert f"{judged.topics[fault]}-0" in failed[check]
        assert f"{judged.topics[fault]}-0" in judged.result.stdout


def test_a_wrong_password_ends_in_one_message_without_the_password(bench: Bench) -> None:
    name = bench.request["target"]["client_config"]["sasl.password"]["env"]
    result, report = bench.verify(["items"], **{name: "made-up-wrong-password"})
    assert result.returncode == 2
    assert "authentication failed" in result.stderr
    assert "made-up-wrong-password" not in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert report == {}


def test_no_secret_stands_in_a_report(bench: Bench) -> None:
    texts = [path.read_text() for path in bench.folder.rglob("*") if path.is_file()]
    secrets = [value for name, value in bench.environment.items() if name.endswith("PASSWORD")]
    assert secrets
    assert not any(secret in text for secret in secrets for text in texts)
