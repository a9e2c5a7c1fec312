"""The known issues of the doctor, caused in real clusters and reported; and no finding where all is well.

Not brought about here: connectors-failed, connector-without-tasks, partitions-without-task, groups-not-carried
(test_group_kinds.py lists such a group), mirror-not-ready, authentication-refused, broker-out-of-workers-reach,
mirror-maker-1-beside (Kafka 4 has no MirrorMaker 1), pulumi-state-in-one-place, which is a note in a sandbox,
pulumi-state-behind (test_break_glass.py sees it), fence-left-behind, source-still-takes-writes and target-fenced
(test_killed.py sees them), mirror-runs-behind-failover,
groups-not-followed (a sandbox runs no pods), retention-overtakes-mirror, retention-overtook-mirror,
source-topic-recreated, source-log-truncated, record-too-large, record-time-refused and orphan-remote-topic
(test_lost_records.py sees them), partition-without-leader (test_full_disk.py sees it).
tests/unit/ops/test_doctor.py judges what their signs look like; test_operator_mirrors.py has a worker that crashed.
"""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafka import cluster
from ops.doctor.known_issues import Finding
from sandbox.control_plane import OPERATOR
from sandbox.toolchain import Tools
from tests.support.http_client import HTTP
from tests.support.mirror_symptoms import inspected
from tests.support.producers import RaisingProducer
from tests.support.small_cluster import ALL_RIGHTS, USER, Kit, user_spec
from tests.support.waiting import wait_until

from ...support import guarded_brokers as guarded
from ...support.failing_mirror import (
    BOSS,
    BOSS_PASSWORD,
    CHECKPOINTS,
    COMMIT_MS,
    COPY,
    NAME,
    SOURCE,
    TOPIC,
    Patient,
    patient_spec,
)
from ...support.guarded_brokers import Guarded
from ...support.ops_commands import ops, run
from ...support.running_sandbox import Pair, Sandbox

KAFKAS_POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
STRIMZIS_POLICY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
COUNT, HOUR_MS = 300, 3_600_000
OUT_OF_TIME = {"connectors-failed-under-ready", "flush-time-out", "offset-commit-time-out"}


@pytest.fixture(scope="module")
def patient(sandbox: Sandbox) -> Iterator[Patient]:
    kit = Kit(sandbox.state, namespace="doctor-tests")
    kit.create_cluster()
    kit.secret(f"{BOSS}-credentials", {"password": BOSS_PASSWORD})
    kit.apply("KafkaUser", BOSS, user_spec(f"{BOSS}-credentials", ALL_RIGHTS))
    kit.apply("KafkaTopic", TOPIC, {"partitions": 2, "replicas": 1})
    for kind, name in (("KafkaUser", BOSS), ("KafkaTopic", TOPIC)):
        kit.ready(kind, name)
    kit.apply("KafkaMirrorMaker2", NAME, patient_spec(kit))
    kit.ready("KafkaMirrorMaker2", NAME)
    made = Patient(kit)
    made.produce(COUNT)
    wait_until("the records are copied", lambda: made.written(COPY) == COUNT)
    yield made
    kit.remove_cluster(("KafkaMirrorMaker2", NAME), ("KafkaTopic", TOPIC), ("KafkaUser", BOSS))


def by_trouble(findings: list[Finding]) -> dict[str, Finding]:
    """The findings by name; of one that was found at several places, the first."""
    return {one.trouble: one for one in reversed(findings)}


def test_a_mirror_that_is_well_has_no_trouble(patient: Patient) -> None:
    assert patient.examined() == []


def test_patterns_and_names_that_stand_for_nothing(patient: Patient) -> None:
    found = by_trouble(patient.examined(topics=[TOPIC, r"no\.such\..*", "not-there"]))
    assert set(found) == {"pattern-matches-nothing", "unknown-topic-or-partition"}
    assert r"no\.such\..*" in found["pattern-matches-nothing"].what
    assert found["unknown-topic-or-partition"].where == "topic not-there of the source"


def test_an_internal_topic_that_is_not_compacted(patient: Patient) -> None:
    set_policy(patient, "delete")
    try:
        (finding,) = patient.examined()
    finally:
        set_policy(patient, "compact")
    assert (finding.trouble, finding.where) == ("internal-topic-not-compacted", f"topic {CHECKPOINTS} of the target")
    assert f"--entity-name {CHECKPOINTS}" in finding.remedy


def set_policy(patient: Patient, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, CHECKPOINTS, incremental_configs=[entry])
    admin = AdminClient(patient.boss)
    admin.incremental_alter_configs([resource])[resource].result(20)


def test_a_mirror_that_lost_its_position_and_began_anew(patient: Patient) -> None:
    before = patient.written(COPY)
    with patient.stopped(OPERATOR):
        patient.connector("PUT", "stop")
        wait_until("the connector is stopped", lambda: not patient.tasks())
        wait_until("its offsets are deleted", lambda: deleted_offsets(patient), 20)
        patient.connector("PUT", "resume")
        wait_until("all is copied again", lambda: patient.written(COPY) == 2 * before)
        found = patient.examined()
    assert {one.trouble for one in found} == {"re-replicated-topic"}
    assert {one.where for one in found} == {f"topic {COPY} of the target, partition {number}" for number in (0, 1)}
    # The remedy: what stands in front of the second copy is deleted.
    cuts = [TopicPartition(COPY, int(one.where[-1]), int(one.what.split("again at ")[1].split()[0])) for one in found]
    admin = AdminClient(patient.boss)
    for future in admin.delete_records(cuts).values():
        future.result(20)
    patient.kit.ready("KafkaMirrorMaker2", NAME)
    assert patient.examined() == []


def deleted_offsets(patient: Patient) -> bool:
    url = f"{patient.url}/connectors/{SOURCE.replace('>', '%3E')}/offsets"
    return HTTP.delete(url, timeout=30).status_code == 200


def test_workers_that_ran_out_of_time_under_a_mirror_that_is_called_ready(patient: Patient) -> None:
    # A commit waits for a broker only if it begins just when the broker stands still, with records acknowledged before.
    # One that has a second runs out of it under the load already.
    patient.let_commit_take(1000)
    # Connect logs a stack trace for each record that the producer holds, and the doctor reads the end of a log only.
    patient.configure(
        producer_override_delivery_timeout_ms=4000,
        producer_override_request_timeout_ms=3000,
        producer_override_buffer_memory=256 * 1024,
    )
    wanted = {"producer.override.delivery.timeout.ms": "4000"}.items()
    patient.kit.ready("KafkaMirrorMaker2", NAME)
    wait_until("the producer has less patience", lambda: wanted <= patient.connector("GET", "config").items())
    wait_until("its task runs", lambda: patient.tasks() == ["RUNNING"])
    try:
        with patient.stopped(OPERATOR):
            found = by_trouble(patient.examined_after_standstills(OUT_OF_TIME))
    finally:
        patient.let_commit_take(COMMIT_MS)
        patient.configure()
        patient.restart()
        wait_until("the mirror has caught up", lambda: patient.written(COPY) >= patient.written(TOPIC))
    assert set(found) == OUT_OF_TIME
    assert found["connectors-failed-under-ready"].where == f"task 0 of connector {SOURCE}"
    assert "Expiring" in found["flush-time-out"].what
    assert "copy-offsets" in found["offset-commit-time-out"].remedy
    assert patient.examined() == []


def test_a_worker_that_answers_and_copies_nothing(patient: Patient) -> None:
    """It waits for more bytes at once than there ever are; Connect and the resource say that all of it runs."""
    patient.configure(
        consumer_fetch_min_bytes=50 * 2**20, consumer_fetch_max_wait_ms=600_000, consumer_request_timeout_ms=700_000
    )
    patient.kit.ready("KafkaMirrorMaker2", NAME)

    sent, copied = 0, patient.written(COPY)  # more than there are in the topic: some were copied again

    def copies_nothing() -> bool:
        """Whether a new record is not copied. The task with the former settings goes on for a moment."""
        nonlocal sent
        before, sender = patient.written(COPY), RaisingProducer(patient.boss)
        sender.produce(TOPIC, value=b"waits", timestamp=int(time.time() * 1000) - HOUR_MS)
        sender.deliver()
        sent += 1
        time.sleep(3)
        return patient.tasks() == ["RUNNING"] and patient.written(COPY) == before

    try:
        wait_until("the mirror copies nothing", copies_nothing)
        (finding,) = patient.examined()
    finally:
        patient.configure()
        wait_until("the mirror has caught up", lambda: patient.written(COPY) >= copied + sent)
    assert (finding.trouble, finding.where) == ("copies-nothing", f"connector {SOURCE}")
    assert f" of {TOPIC}-" in finding.what


def test_rights_that_are_missing(patient: Patient) -> None:
    topics = [{"resource": {"type": "topic", "name": name, "patternType": "prefix"}, "operations": ["All"]}
              for name in ("copy-", "mm2-", CHECKPOINTS)]  # fmt: skip
    reading = [{"resource": {"type": "topic", "name": "*"}, "operations": ["Read", "Describe", "DescribeConfigs"]}]
    allow(patient, [*topics, *reading, ALL_RIGHTS[1]])
    try:
        patient.produce(10)
        wait_until("the task failed", lambda: patient.tasks() == ["FAILED"])
        found = patient.examined()
    finally:
        allow(patient, ALL_RIGHTS)
    wheres = {one.where for one in found if one.trouble == "missing-acls"}
    assert {"target there", f"task 0 of connector {SOURCE}"} <= wheres
    lack = next(one for one in found if one.where == "target there")
    assert lack.what == f"user {USER} lacks Write and Alter and AlterConfigs on topic {COPY}"
    patient.restart()
    assert patient.examined() == []


def allow(patient: Patient, rights: list[dict[str, Any]]) -> None:
    patient.kit.change("KafkaUser", USER, {"spec": user_spec(f"{USER}-credentials", rights)})
    patient.kit.ready("KafkaUser", USER)


def test_a_class_that_no_plugin_has(patient: Patient) -> None:
    patient.configure(replication_policy_class=STRIMZIS_POLICY)
    try:
        patient.kit.refused("KafkaMirrorMaker2", NAME, "ConnectRestException")
        (finding,) = patient.examined()
    finally:
        patient.configure()
    patient.kit.ready("KafkaMirrorMaker2", NAME)
    assert finding.trouble == "plugin-not-found"
    assert f"Class {STRIMZIS_POLICY} could not be found" in finding.what


def test_a_copy_that_was_deleted_under_the_mirror(patient: Patient) -> None:
    admin = AdminClient(patient.boss)
    admin.delete_topics([COPY])[COPY].result(20)
    (finding,) = patient.examined()
    assert (finding.trouble, finding.where) == ("unknown-topic-or-partition", f"topic {COPY} of the target")


def test_clusters_that_do_not_answer(patient: Patient) -> None:
    with patient.stopped(patient.kit.broker()):
        found = by_trouble(patient.examined())
    assert {"source-unreachable", "target-unreachable"} <= set(found)
    assert "cannot be reached within" in found["source-unreachable"].what
    assert patient.written(TOPIC) >= COUNT, "the partitions have leaders again"


def test_a_mirror_that_copies_a_cluster_onto_itself(patient: Patient) -> None:
    """The last one: nothing ends this loop but the end of the mirror."""
    before = patient.written(TOPIC)
    # Connect may have asked for the topics while a broker that had stood still was not back: it asks again soon.
    patient.configure(replication_policy_class=KAFKAS_POLICY, refresh_topics_interval_seconds=5)
    patient.kit.ready("KafkaMirrorMaker2", NAME)
    produced = 0

    def came_back() -> bool:
        """Produces each time: the task of before the change may still copy what was produced first."""
        nonlocal produced
        patient.produce(10)
        produced += 10
        return patient.written(TOPIC) > before + produced + COUNT

    try:
        wait_until("records come back without end", came_back, otherwise=patient.state)
        found = by_trouble(patient.examined(naming="identity"))
    finally:
        patient.kit.delete("KafkaMirrorMaker2", NAME)  # it would take a core from all other tests
    assert "are one cluster" in found["identity-loop"].what
    assert TOPIC in found["identity-loop"].what


@pytest.fixture(scope="module")
def brokers(tools: Tools) -> Iterator[Guarded]:
    with guarded.running(tools) as brokers:
        brokers.user("reader", [("topic", "*", right) for right in ("DESCRIBE", "READ", "DESCRIBE_CONFIGS", "WRITE")])
        brokers.topic("near", [[1]], 5)
        brokers.topic("far", [[2]], 5)
        yield brokers


def examined(brokers: Guarded, source: Mapping[str, Any], password: str) -> dict[str, Finding]:
    document = {
        "source": {"alias": "src", "client_config": dict(source)},
        "target": {"alias": "tgt", "client_config": brokers.login("reader")},
        "mirror": {"name": "m", "topics": ["near"], "sync_group_offsets": False},
        "limits": {},
    }
    _, findings = inspected(document, {"PASSWORD": password, "KEY": "unused"})
    return by_trouble([one for one in findings if one.trouble not in ("identity-loop", "missing-acls")])


def test_a_broker_out_of_reach_at_its_advertised_address(brokers: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    password = brokers.user("reader", [])
    assert examined(brokers, brokers.login("reader"), password) == {}
    # While a client waits for a broker that refuses it, it takes most of a core.
    monkeypatch.setattr(cluster, "CALL_DEADLINE_S", 8.0)
    monkeypatch.setattr(cluster.Cluster, "call_within_s", 8.0)
    found = examined(brokers, brokers.login("reader", "FAR"), password)
    assert set(found) == {"advertised-listener-unreachable"}
    assert f"broker 2 advertises {brokers.bootstrap('NOBODY', 2)}" in found["advertised-listener-unreachable"].what


def test_certificates_that_end(brokers: Guarded, tmp_path: Path) -> None:
    password = brokers.user("reader", [])
    expired = examined(brokers, brokers.login("reader", "STALE"), password)
    assert set(expired) == {"source-unreachable", "certificate-near-expiry"}
    assert "expired on" in expired["certificate-near-expiry"].what
    pair = brokers.authority.issue("client", ends_in_days=5)
    (tmp_path / "client.key").write_text(pair.key)
    brokers.grant("User:CN=client", [("topic", "*", right) for right in ("DESCRIBE", "READ", "DESCRIBE_CONFIGS")])
    config = {
        "bootstrap.servers": brokers.bootstrap("MUTUAL"),
        "security.protocol": "SSL",
        "ssl.ca.pem": brokers.authority.certificate,
        "ssl.certificate.pem": pair.certificate,
        "ssl.key.pem": {"file": str(tmp_path / "client.key")},
    }
    ending = examined(brokers, config, password)
    assert set(ending) == {"certificate-near-expiry"}
    assert "the client certificate CN=client ends on" in ending["certificate-near-expiry"].what
    assert "in 4 days" in ending["certificate-near-expiry"].what


def test_the_pair_that_is_well_has_no_trouble(sandbox: Sandbox, pair: Pair) -> None:
    answer = ops(sandbox, "doctor", "-s", "stg")
    assert (answer["findings"], answer["notLookedAt"], answer["healthy"]) == ([], [], True)


def test_a_group_that_is_active_on_the_target(sandbox: Sandbox, pair: Pair) -> None:
    group = "test-doctor-active"
    ops(sandbox, "produce", "-s", "dev", "-t", "items", "-n", "10")
    ops(sandbox, "consume", "-s", "dev", "-t", "items", "-g", group, "--max", "5")
    consumer = Consumer(target_client(pair) | {"group.id": group, "enable.auto.commit": False})
    consumer.subscribe(["items"])
    try:
        wait_until("the group has a member on the target", lambda: consumer.poll(0.2) or consumer.assignment(), 30)
        result = run(sandbox, "doctor", "-s", "stg", "--json")
    finally:
        consumer.close()
    (finding,) = json.loads(result.stdout)["findings"]
    assert (result.returncode, finding["trouble"]) == (1, "group-active-on-target")
    assert finding["where"] == f"group {group}"


def target_client(pair: Pair) -> dict[str, Any]:
    user, password = next(iter(pair.stg["userPasswords"].items()))
    return {
        "bootstrap.servers": pair.stg["cluster"]["bootstrapServers"],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.pem": pair.stg["clusterCaCertificate"],
        "log_level": 0,
    }


@pytest.mark.nightly
def test_two_mirrors_against_each_other(sandbox: Sandbox, pair: Pair) -> None:
    """The other one is only declared: nobody starts its workers, so that nothing goes round in the shared clusters."""
    namespace = pair.dev["cluster"]["namespace"]
    ends = {
        "source": {"alias": "es-tgt", "bootstrapServers": pair.stg["cluster"]["bootstrapServers"]},
        "target": {"alias": "es-src", "bootstrapServers": pair.dev["cluster"]["bootstrapServers"]},
    }
    topics = {f"{what}StorageTopic": f"back-{what}" for what in ("config", "offset", "status")}
    back = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {
            "name": "back",
            "namespace": namespace,
            "annotations": {"strimzi.io/pause-reconciliation": "true"},
        },
        "spec": {
            "replicas": 1,
            "target": {**ends["target"], "groupId": "back", **topics},
            "mirrors": [
                {
                    "source": ends["source"],
                    "topicsPattern": "items.*",
                    "sourceConnector": {"config": {"replication.policy.class": KAFKAS_POLICY}},
                }
            ],
        },
    }
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(back))
    try:
        result = run(sandbox, "doctor", "-s", "stg", "--json")
    finally:
        sandbox.kubectl("delete", "kafkamirrormaker2.kafka.strimzi.io/back", "-n", namespace)
    (finding,) = json.loads(result.stdout)["findings"]
    assert (result.returncode, finding["trouble"]) == (1, "identity-loop")
    assert f"{namespace}/back mirrors items, items.inventory the other way" in finding["what"]
