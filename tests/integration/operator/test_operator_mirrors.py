"""The operator on a mirror of its own: connectors, refused passwords, dead workers, replicas."""

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from contract.verification_request import ClusterConfig
from kafka.cluster import Cluster
from kafka.connector_status import read_connectors
from ops.doctor.cluster_probes import assigned_tasks
from ops.doctor.connect_probes import task_partitions
from ops.doctor.observations import AssignedTasks
from ops.errors import OpsError
from sandbox.state import read_json
from sandbox.toolchain import locate, pins
from tests.support.producers import RaisingProducer
from tests.support.small_cluster import NAMESPACE, PASSWORD, USER, Kit, mirror_spec
from tests.support.waiting import wait_until

NAME = GROUP = "copy"
SOURCE, CHECKPOINT = "here->there.MirrorSourceConnector", "here->there.MirrorCheckpointConnector"
BEFORE, PRESENT = pins.KAFKA_BEFORE, pins.KAFKA
EXPORTER = "jmxPrometheusExporter"
WRONG = "certainly-not-the-password"


@pytest.fixture(scope="module")
def kit(sandbox: Any) -> Iterator[Kit]:
    kit = Kit(sandbox.state)
    kit.create_cluster()
    kit.apply("KafkaTopic", "mirrored", {"partitions": 2, "replicas": 1})
    kit.ready("KafkaTopic", "mirrored")
    kit.secret("source-password", {"password": PASSWORD})
    kit.apply("KafkaMirrorMaker2", NAME, mirror_spec(kit, "source-password"))
    kit.ready("KafkaMirrorMaker2", NAME)
    yield kit
    kit.remove_cluster(("KafkaMirrorMaker2", NAME), ("KafkaTopic", "mirrored"))


def worker(replica: int) -> str:
    return f"mirror.{NAMESPACE}.{NAME}.{replica}"


def running_tasks(kit: Kit) -> int:
    status = (kit.get("KafkaMirrorMaker2", NAME) or {}).get("status") or {}
    tasks = [task for entry in status.get("connectors", []) if entry["name"] == SOURCE for task in entry["tasks"]]
    return sum(task["state"] == "RUNNING" for task in tasks)


def has_no_task(kit: Kit) -> bool:
    """Whether the status tells of the source connector and of no task of it."""
    status = (kit.get("KafkaMirrorMaker2", NAME) or {}).get("status") or {}
    return [entry["tasks"] for entry in status.get("connectors", []) if entry["name"] == SOURCE] == [[]]


def test_the_connectors_have_strimzis_names_and_carry_records(kit: Kit) -> None:
    status = kit.ready("KafkaMirrorMaker2", NAME)["status"]
    assert {entry["name"] for entry in status["connectors"]} == {SOURCE, CHECKPOINT}
    producer = RaisingProducer(kit.client_config())
    producer.produce("mirrored", key="a", value="b")
    producer.deliver()
    admin = AdminClient(kit.client_config())
    wait_until("the copy exists", lambda: "here.mirrored" in admin.list_topics(timeout=5).topics)


def test_no_password_stands_in_what_connect_answers_or_logs(kit: Kit) -> None:
    url = kit.ready("KafkaMirrorMaker2", NAME)["status"]["url"]
    paths = ["connectors?expand=info&expand=status"]
    paths += [
        f"connectors/{name.replace('>', '%3E')}/{what}" for name in (SOURCE, CHECKPOINT) for what in ("tasks", "config")
    ]
    for path in paths:
        answer = httpx.get(f"{url}/{path}")
        assert answer.status_code == 200
        assert PASSWORD not in answer.text
    for log in kit.state.logs.glob("*.log"):
        assert PASSWORD not in log.read_text(encoding="utf-8", errors="replace"), log


def test_a_mirror_whose_source_refuses_its_user_is_ready_without_a_task(kit: Kit) -> None:
    kit.secret("source-password", {"password": WRONG})
    wait_until("the source connector has no task", lambda: has_no_task(kit), 90)
    kit.ready("KafkaMirrorMaker2", NAME)
    assert WRONG not in str(kit.get("KafkaMirrorMaker2", NAME))
    kit.secret("source-password", {"password": PASSWORD})
    kit.ready("KafkaMirrorMaker2", NAME)
    wait_until("the source connector has tasks again", lambda: running_tasks(kit))


def test_a_target_that_refuses_the_user_is_named_too(kit: Kit) -> None:
    kit.secret("wrong-target", {"password": WRONG})

    def target(secret: str) -> dict[str, Any]:
        return {"spec": {"target": {"authentication": {"passwordSecret": {"secretName": secret}}}}}

    kit.change("KafkaMirrorMaker2", NAME, target("missing-target"))
    assert "missing-target" in kit.refused("KafkaMirrorMaker2", NAME, "SecretNotFound")
    kit.change("KafkaMirrorMaker2", NAME, target("wrong-target"))
    message = kit.refused("KafkaMirrorMaker2", NAME, "AuthenticationFailed", 90)
    assert all(word in message for word in (USER, "there", "wrong-target"))
    kit.change("KafkaMirrorMaker2", NAME, target(USER))
    kit.ready("KafkaMirrorMaker2", NAME)


def test_a_dead_worker_is_started_again(kit: Kit) -> None:
    kit.processes.kill(worker(0))
    wait_until("the worker runs again", lambda: kit.processes.alive(worker(0)), 20)
    kit.ready("KafkaMirrorMaker2", NAME)
    wait_until("its tasks run again", lambda: running_tasks(kit))


def test_workers_come_and_go_and_tasks_of_a_crashed_one_are_seen_while_connect_calls_them_running(
    kit: Kit,
) -> None:
    delay = {"scheduled.rebalance.max.delay.ms": 30_000, "session.timeout.ms": 6000, "heartbeat.interval.ms": 2000}
    mirrors = mirror_spec(kit, "source-password")["mirrors"]
    mirrors[0]["sourceConnector"]["tasksMax"] = 2
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"replicas": 2, "target": {"config": delay}, "mirrors": mirrors}})
    wait_until("a second worker", lambda: kit.processes.alive(worker(1)))
    kit.ready("KafkaMirrorMaker2", NAME)
    cluster = Cluster(ClusterConfig(role="target", alias="there", client_config=kit.client_config()))
    cluster.connect()

    def seen() -> AssignedTasks | None:
        with contextlib.suppress(OpsError):  # it rebalances
            return assigned_tasks(cluster, GROUP, SOURCE)
        return None

    wait_until("both tasks have a worker", lambda: seen() == AssignedTasks(tasks=frozenset({0, 1})), 60)
    urls = {replica: f"http://127.0.0.1:{port}" for replica, port in rest_ports(kit).items()}

    def read() -> list[tuple[str, int]]:
        tasks = task_partitions(urls["0"], SOURCE)
        return sorted(partition for partitions in tasks.values() for partition in partitions)

    wait_until("Connect says what they read", lambda: read() == [("mirrored", 0), ("mirrored", 1)], 20)

    def following() -> tuple[str, str, set[int]] | None:
        """The worker that leads the group, the other one, and its tasks; None as long as it has none."""
        with pytest.warns(DeprecationWarning, match="list_groups"):
            members = cluster.admin.list_groups(group=GROUP, timeout=10)[0].members
        leading = {number for number, url in urls.items() for one in members if url.encode() in one.assignment}
        if len(leading) != 1:  # it rebalances
            return None
        (leader,), (other,) = leading, urls.keys() - leading
        status = httpx.get(f"{urls[leader]}/connectors/{SOURCE.replace('>', '%3E')}/status").json()
        own = {task["id"] for task in status.get("tasks", ()) if urls[other].endswith(task["worker_id"])}
        return (leader, other, own) if own else None

    # Without its leader the group begins anew and gives away everything at once: it is another worker that crashes.
    leader, crashed, lost = wait_until("the worker that does not lead has a task", following, 60)
    kit.processes.kill(worker(int(crashed)), hold=True)
    found = wait_until("its tasks have no worker", lambda: (one := seen()) and not lost & one.tasks and one, 30)
    assert 0 < found.delay_ms <= delay["scheduled.rebalance.max.delay.ms"]
    (source,) = read_connectors(urls[leader], [SOURCE])
    assert {source.state, *source.tasks} == {"RUNNING"}, "Connect reports nothing of it"
    kit.processes.release(worker(int(crashed)))
    wait_until("all tasks have a worker again", lambda: (one := seen()) and len(one.tasks) == 2, 60)
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"replicas": 1}})
    wait_until("one worker", lambda: worker(1) not in kit.processes.names())
    assert kit.processes.alive(worker(0))
    kit.ready("KafkaMirrorMaker2", NAME)


def test_a_deleted_mirror_leaves_no_process_and_no_files(kit: Kit) -> None:
    kit.delete("KafkaMirrorMaker2", NAME)
    assert worker(0) not in kit.processes.names()
    assert not (kit.state.mirrors / NAMESPACE / NAME).exists()
    # As it was at first: the test before this one leaves it with other settings.
    kit.apply("KafkaMirrorMaker2", NAME, mirror_spec(kit, "source-password"))
    kit.ready("KafkaMirrorMaker2", NAME)


def test_a_changed_connector_option_reaches_connect(kit: Kit) -> None:
    mirrors = mirror_spec(kit, "source-password")["mirrors"]
    mirrors[0]["sourceConnector"]["config"]["refresh.topics.interval.seconds"] = 7
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"mirrors": mirrors}})
    url = kit.ready("KafkaMirrorMaker2", NAME)["status"]["url"]
    path = f"{url}/connectors/{SOURCE.replace('>', '%3E')}/config"
    # While it rebalances Connect answers with an error document.
    wait_until("the option", lambda: httpx.get(path).json().get("refresh.topics.interval.seconds") == "7")


def test_a_connector_is_paused_stopped_and_resumed_as_its_state_says(kit: Kit) -> None:
    for state in ("paused", "stopped", "running"):
        set_checkpoint_state(kit, state)
    kit.ready("KafkaMirrorMaker2", NAME)


def set_checkpoint_state(kit: Kit, state: str) -> None:
    """Ask for the state and wait until the checkpoint connector, and no other, has it."""
    mirrors = mirror_spec(kit, "source-password")["mirrors"]
    mirrors[0]["checkpointConnector"]["state"] = state
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"mirrors": mirrors}})
    wanted = {SOURCE: "RUNNING", CHECKPOINT: state.upper()}
    wait_until(f"only the checkpoint connector is {state}", lambda: states(kit) == wanted, 30)


def states(kit: Kit) -> dict[str, str]:
    status = (kit.get("KafkaMirrorMaker2", NAME) or {}).get("status") or {}
    return {entry["name"]: entry["connector"]["state"] for entry in status.get("connectors", [])}


def test_a_paused_mirror_is_left_alone(kit: Kit) -> None:
    kit.change("KafkaMirrorMaker2", NAME, {"metadata": {"annotations": {"strimzi.io/pause-reconciliation": "true"}}})

    def paused() -> bool:
        status = (kit.get("KafkaMirrorMaker2", NAME) or {}).get("status") or {}
        return any(entry["type"] == "ReconciliationPaused" for entry in status.get("conditions", []))

    wait_until("the operator says that it is paused", paused)
    kit.change("KafkaMirrorMaker2", NAME, {"metadata": {"annotations": {"strimzi.io/pause-reconciliation": None}}})
    kit.ready("KafkaMirrorMaker2", NAME)


def test_metrics_of_a_worker_are_served_with_the_rules_of_the_config_map(kit: Kit) -> None:
    reference = {"configMapKeyRef": {"name": "rules", "key": "rules.yaml"}}
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"metricsConfig": {"type": EXPORTER, "valueFrom": reference}}})
    assert "ConfigMap rules" in kit.refused("KafkaMirrorMaker2", NAME, "ConfigMapNotFound")
    rules = "rules:\n- pattern: kafka.connect<type=connect-worker-metrics><>connector-count\n  name: connectors_here\n"
    kit.core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "rules"}, "data": {"rules.yaml": rules}})
    kit.ready("KafkaMirrorMaker2", NAME)
    port = read_json(kit.state.mirrors / NAMESPACE / NAME / "layout.json")["metrics_ports"]["0"]
    address = f"http://127.0.0.1:{port}/metrics"
    wait_until("both connectors are counted", lambda: "connectors_here 2.0" in httpx.get(address, timeout=30).text, 30)


def test_another_version_rolls_the_workers_one_after_the_other_and_repeats_no_record(kit: Kit) -> None:
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"version": "3.0.0"}})
    message = kit.refused("KafkaMirrorMaker2", NAME, "UnsupportedKafkaVersion")
    # Kafka 3.9.1 is a version of workers too where a test of earlier sources has installed it.
    installed = sorted(version for version, libs in locate().kafka_versions.items() if libs.is_dir())
    assert installed[-2:] == [BEFORE, PRESENT]
    assert f"allowed {', '.join(installed)}" in message
    assert kit.processes.alive(worker(0)), "an unknown version stops nothing"
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"version": BEFORE, "replicas": 2, "metricsConfig": None}})
    kit.ready("KafkaMirrorMaker2", NAME)
    assert versions(kit) == [BEFORE, BEFORE]
    produce(kit, 5)
    before = [kit.pid(worker(replica)) for replica in (0, 1)]
    copied = wait_until("the records are copied", lambda: count(kit, "here.mirrored") == count(kit, "mirrored"), 30)
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"version": PRESENT}})
    # The second worker is touched only when the first is back, with the new version, in the group.
    wait_until("the second worker is restarted", lambda: kit.pid(worker(1)) != before[1])
    assert versions(kit)[0] == PRESENT
    kit.ready("KafkaMirrorMaker2", NAME)
    wait_until("both run the new version", lambda: versions(kit) == [PRESENT, PRESENT], 20)
    assert kit.pid(worker(0)) != before[0]
    wait_until("its tasks run again", lambda: running_tasks(kit))
    produce(kit, 5)
    wait_until("the new records are copied", lambda: count(kit, "here.mirrored") >= count(kit, "mirrored"), 30)
    assert copied
    assert count(kit, "here.mirrored") == count(kit, "mirrored"), "nothing is copied twice"
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"replicas": 1}})
    kit.ready("KafkaMirrorMaker2", NAME)


def rest_ports(kit: Kit) -> dict[str, int]:
    """The ports of Connect's REST interface by the number of the worker."""
    found: dict[str, int] = read_json(kit.state.mirrors / NAMESPACE / NAME / "layout.json")["ports"]
    return found


def versions(kit: Kit) -> list[str]:
    ports = rest_ports(kit)
    found = []
    for replica in ("0", "1"):
        try:
            found.append(httpx.get(f"http://127.0.0.1:{ports[replica]}/", timeout=5).json()["version"])
        except httpx.HTTPError:
            found.append("")
    return found


def produce(kit: Kit, number: int) -> None:
    producer = RaisingProducer(kit.client_config())
    for value in range(number):
        producer.produce("mirrored", value=str(value))
    producer.deliver()


def count(kit: Kit, topic: str) -> int:
    consumer = Consumer(kit.client_config() | {"group.id": "counts", "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, entry), timeout=10) for entry in partitions]
        return sum(high - low for low, high in ends)
    finally:
        consumer.close()
