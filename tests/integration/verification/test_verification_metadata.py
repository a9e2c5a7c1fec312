"""What the verification says of a pair besides its records, against real brokers, Connect and API server.

Each check is seen to hold, to fail on one fault with the object named, and to hold again once that is put right.
"""

import copy
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ops.connection import from_outputs
from tests.support.waiting import wait_until

from ...support.running_sandbox import Pair, Sandbox
from ...support.written_topics import TESTER, Bench, add_tester, own_name
from ..control_plane.test_control_plane import command

MIRROR = ("kafkamirrormaker2", "-n", "rt-inventory-stg", "mm2")
STUCK_S = 20.0  # longer than the 5 s that Connect gives a task to stop
SETTLED_S = 120


@pytest.fixture(scope="module")
def bench(pair: Pair, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The pair's own request, made by a user on each side that may also make ACLs."""
    request = copy.deepcopy(pair.stg["verificationRequests"]["mm2"])
    environment = dict(pair.stg["verificationEnvironment"]["mm2"])
    clusters = {"source": pair.dev["cluster"], "target": pair.stg["cluster"]}
    for side, cluster in clusters.items():
        config = request[side]["client_config"]
        config["sasl.username"] = TESTER
        password = add_tester(sandbox, cluster["namespace"], cluster["name"], ("Alter", "Describe"))
        environment[config["sasl.password"]["env"]] = password
    yield Bench(request, environment, tmp_path_factory.mktemp("metadata"))
    for cluster in clusters.values():
        sandbox.kubectl("delete", f"kafkauser/{TESTER}", f"secret/{TESTER}-credentials", "-n", cluster["namespace"])


def make(bench: Bench, side: str, name: str, replicas: int = 1, **config: str) -> str:
    """Make a topic of one partition on one side."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    client = AdminClient(bench.client(side))
    client.create_topics([NewTopic(name, 1, replicas, config=settings)])[name].result(30)
    return name


def configure(bench: Bench, side: str, topic: str, name: str, value: str | None) -> None:
    """Set a property of a topic, or take it away."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient(bench.client(side))
    for future in client.incremental_alter_configs([resource]).values():
        future.result(30)


def judged(bench: Bench, name: str, topics: list[str], mirror: Mapping[str, Any], **environment: str) -> dict[str, Any]:
    """One check of a run; unknown if the run could judge nothing, while a leader moves for example."""
    result, report = bench.verify(topics, mirror, **environment)
    assert report, result.stderr
    unknown = {"ok": None, "observed": report["error"]}
    found = next((one for one in report["checks"] if one["name"] == name), unknown)
    if found["ok"] is False:
        assert result.returncode == 1
        assert f"{name} failed: {found['observed']}" in result.stdout
    return dict(found)


def test_a_property_that_was_changed_on_the_copy_is_reported_with_both_values(bench: Bench) -> None:
    topic = own_name("config")
    for side in ("source", "target"):
        make(bench, side, topic, retention_ms="3600000")
    assert judged(bench, "topic_config", [topic], {})["ok"] is True

    configure(bench, "target", topic, "retention.ms", "7200000")
    configure(bench, "target", topic, "min.insync.replicas", "2")  # MirrorMaker leaves it alone
    found = judged(bench, "topic_config", [topic], {})
    assert (found["ok"], found["observed"]) == (
        False,
        f"{topic}: retention.ms is 7200000 on the target, 3600000 at the source",
    )
    assert [(one["property"], one["source"], one["target"]) for one in found["evidence"]] == [
        ("retention.ms", "3600000", "7200000")
    ]
    own = {"exclude": ["retention.*"]}  # instead of MirrorMaker's own exclusions
    found = judged(bench, "topic_config", [topic], {"topic_configs": own})
    assert found["observed"] == f"{topic}: min.insync.replicas is 2 on the target, 1 at the source"
    own = {"exclude": ["retention.*", "min.insync.replicas"]}
    assert judged(bench, "topic_config", [topic], {"topic_configs": own})["ok"] is True

    configure(bench, "target", topic, "retention.ms", "3600000")
    assert judged(bench, "topic_config", [topic], {})["ok"] is True


def test_a_property_that_only_the_copy_sets_is_reported_until_it_is_taken_away(bench: Bench) -> None:
    topic = bench.topic(own_name("only"))
    configure(bench, "target", topic, "max.message.bytes", "5000")
    found = judged(bench, "topic_config", [topic], {})
    assert found["ok"] is False
    assert f"{topic}: max.message.bytes is 5000 on the target, 1048588 at the source" in found["observed"]
    configure(bench, "target", topic, "max.message.bytes", None)
    assert judged(bench, "topic_config", [topic], {})["ok"] is True


def test_without_the_copying_of_configuration_the_check_is_left_out_with_the_reason(bench: Bench) -> None:
    topic = bench.topic(own_name("off"))
    configure(bench, "target", topic, "retention.ms", "5")
    _, report = bench.verify([topic], {"topic_configs": {"sync": False}})
    assert "topic_config" not in {one["name"] for one in report["checks"]}
    (left,) = [one for one in report["not_judged"] if one["name"] == "topic_config"]
    assert "sync.topic.configs" in left["reason"]


def test_a_replica_that_is_out_of_sync_is_named_until_it_is_back(bench: Bench, sandbox: Sandbox, pair: Pair) -> None:
    topic = own_name("replicas")
    make(bench, "source", topic)
    make(bench, "target", topic, replicas=3)
    wanted = {"replication_factor": 3, "internal_topics": [{"name": topic, "replication_factor": 3}]}
    assert judged(bench, "replication_factor", [topic], wanted)["ok"] is True

    cluster = pair.stg["cluster"]
    prefix = f"kafka.{cluster['namespace']}.{cluster['name']}."
    broker = next(name for name in sorted(sandbox.processes.names()) if name.startswith(prefix))
    sandbox.processes.kill(broker, hold=True)
    try:
        low = f"{topic}-0 is under-replicated: 2 of 3 replicas in sync"
        found = wait_until(
            "the brokers miss a replica",
            lambda: (one := judged(bench, "replication_factor", [topic], wanted))["ok"] is False and one,
            60,
        )
        assert found["observed"] == low
        assert found["evidence"][0] | {"replicas": 3, "in_sync": 2, "online": True} == found["evidence"][0]
    finally:
        sandbox.processes.release(broker)
        wait_until("the broker runs again", lambda: sandbox.processes.alive(broker), SETTLED_S)
    wait_until(
        "all replicas are in sync", lambda: judged(bench, "replication_factor", [topic], wanted)["ok"], SETTLED_S
    )


def test_a_factor_that_is_too_small_is_named(bench: Bench) -> None:
    topic = bench.topic(own_name("factor"))
    found = judged(bench, "replication_factor", [topic], {"replication_factor": 3})
    assert (found["ok"], found["observed"]) == (False, f"{topic}-0 has 1 replicas of 3")


def test_an_internal_topic_that_is_not_compacted_or_missing_is_named(bench: Bench) -> None:
    topic, name, other = bench.topic(own_name("carried")), own_name("internal"), own_name("syncs")
    wanted = [
        {"name": name, "replication_factor": 3},
        {"name": other, "location": "source", "replication_factor": 1},
        {"name": own_name("heartbeats"), "required": False},
    ]
    make(bench, "target", name, replicas=3, cleanup_policy="compact")
    found = judged(bench, "internal_topics", [topic], {"internal_topics": wanted})
    assert (found["ok"], found["observed"]) == (False, f"{other} on the source does not exist")

    make(bench, "source", other, cleanup_policy="compact")
    configure(bench, "target", name, "cleanup.policy", "delete")
    found = judged(bench, "internal_topics", [topic], {"internal_topics": wanted})
    assert found["ok"] is False
    assert found["observed"] == f"{name} on the target has cleanup.policy delete, not compact"

    configure(bench, "target", name, "cleanup.policy", "compact")
    assert judged(bench, "internal_topics", [topic], {"internal_topics": wanted})["ok"] is True
    wanted[1] |= {"replication_factor": 2}
    found = judged(bench, "internal_topics", [topic], {"internal_topics": wanted})
    assert found["observed"] == f"{other} on the source partition 0 has 1 replicas of 2"


def acl(
    topic: str,
    operation: AclOperation,
    principal: str = "User:verify-app",
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        pattern,
        principal,
        "*",
        operation,
        AclPermissionType.ALLOW,
    )


def grant(bench: Bench, side: str, *acls: AclBinding) -> None:
    client = AdminClient(bench.client(side))
    for future in client.create_acls(list(acls)).values():
        future.result(30)


def take_back(bench: Bench, side: str, binding: AclBinding) -> None:
    place = (binding.restype, binding.name, binding.resource_pattern_type, binding.principal, binding.host)
    wanted = AclBindingFilter(*place, binding.operation, binding.permission_type)
    client = AdminClient(bench.client(side))  # must outlive the answer
    for future in client.delete_acls([wanted]).values():
        assert future.result(30)


def test_an_acl_that_is_missing_on_the_target_is_named_by_the_rules_of_mirror_maker(bench: Bench) -> None:
    topic, copying = bench.topic(own_name("acls")), {"sync_topic_acls": True}
    grant(bench, "source", acl(topic, AclOperation.ALL), acl(topic, AclOperation.WRITE, "User:verify-writer"))
    found = judged(bench, "acls_synced", [topic], copying)
    missing = f"missing: ALLOW READ on topic {topic} for User:verify-app from *"
    assert (found["ok"], found["observed"]) == (False, missing)

    grant(bench, "target", acl(topic, AclOperation.READ))
    found = judged(bench, "acls_synced", [topic], copying)
    assert (found["ok"], found["observed"]) == (True, "1 ACLs")


def test_acls_that_the_user_may_not_describe_are_unknown(bench: Bench, pair: Pair) -> None:
    request = copy.deepcopy(pair.stg["verificationRequests"]["mm2"])
    own = replace(bench, request=request, environment=dict(pair.stg["verificationEnvironment"]["mm2"]))
    found = judged(own, "acls_synced", ["items"], {"sync_topic_acls": True})
    assert found["ok"] is None
    assert "user rt-inv-dev-user may not describe ACLs, grant it DESCRIBE on the cluster" in found["observed"]


def test_the_pair_itself_holds(pair: Pair, bench: Bench, sandbox: Sandbox) -> None:
    request = copy.deepcopy(pair.stg["verificationRequests"]["mm2"])
    own = replace(bench, request=request, environment=dict(pair.stg["verificationEnvironment"]["mm2"]))
    own.environment.update(sandbox.tools.spark_environment)
    _, report = own.verify(list(request["mirror"]["topics"]), request["mirror"], KUBECONFIG=str(sandbox.kubeconfig))
    found = {one["name"]: (one["ok"], one["observed"]) for one in report["checks"]}
    names = ("replication_factor", "topic_config", "internal_topics", "connectors_running", "standby_read_only")
    assert [found[name][0] for name in names] == [True] * 5, found
    assert found["connectors_running"] == (True, "2 connectors run")


def test_whoever_may_write_on_the_standby_is_named_until_it_may_not(bench: Bench, pair: Pair) -> None:
    request = copy.deepcopy(pair.stg["verificationRequests"]["mm2"])
    own = replace(bench, request=request, environment=dict(pair.stg["verificationEnvironment"]["mm2"]))
    refused: list[KafkaError] = []
    producer = Producer(from_outputs("stg", pair.stg).client_config())
    producer.produce("items", b"nobody reads this", on_delivery=lambda error, _: refused.append(error))
    producer.flush(30)
    assert [error.code() for error in refused] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    asked = {"active": "source"}
    found = judged(own, "standby_read_only", ["items", "items.inventory"], asked)
    assert found["ok"] is True, found
    assert found["observed"].startswith("no rule lets anybody write 2 topics of target es-tgt")

    stray = acl("items.", AclOperation.WRITE, "User:by-hand", ResourcePatternType.PREFIXED)
    grant(bench, "target", stray)
    try:
        found = judged(own, "standby_read_only", ["items", "items.inventory"], asked)
        assert found["ok"] is False
        assert [row["principal"] for row in found["evidence"]] == ["User:by-hand"]
    finally:
        take_back(bench, "target", stray)
    assert judged(own, "standby_read_only", ["items", "items.inventory"], asked)["ok"] is True


def test_acls_of_a_standby_that_are_not_shown_make_it_unknown(bench: Bench, pair: Pair) -> None:
    request = copy.deepcopy(pair.stg["verificationRequests"]["mm2"])
    own = replace(bench, request=request, environment=dict(pair.stg["verificationEnvironment"]["mm2"]))
    # An active target: the source is asked, whose user may read ACLs only while it is fenced.
    found = judged(own, "standby_read_only", ["items"], {"active": "target"})
    assert found["ok"] is None
    assert "Describe on cluster" in found["observed"]


@pytest.fixture
def unwatched(sandbox: Sandbox, pair: Pair) -> Iterator[None]:
    """An operator that is away; afterwards it is back and has put the mirror right."""
    command(sandbox.state, "kill", "operator")
    try:
        yield
    finally:
        assert command(sandbox.state, "start", "operator").returncode == 0
        wait_until("the mirror runs again", lambda: set(tasks(pair)) == {"RUNNING"}, SETTLED_S)


def connector(pair: Pair, part: str) -> str:
    name = pair.stg["verificationRequests"]["mm2"]["mirror"]["connectors"]["source"]
    return f"{pair.stg['mirrors']['mm2']['connectUrl']}/connectors/{quote(name, safe='')}/{part}"


def broken_for_good(pair: Pair, sandbox: Sandbox) -> None:
    """Give the connector a configuration with which its task fails; returns when Connect says that it has.

    On a busy machine Connect was seen to say UNASSIGNED for minutes: the connector is restarted once then.
    """
    config = httpx.get(connector(pair, "config"), timeout=10).json()
    broken = config | {"consumer.isolation.level": "no-such-level"}
    assert httpx.put(connector(pair, "config"), json=broken, timeout=30).is_success
    restarted, restart_at = False, time.monotonic() + STUCK_S

    def failed() -> bool:
        nonlocal restarted
        states = tasks(pair)
        if states == ["UNASSIGNED"] and not restarted and time.monotonic() > restart_at:
            with suppress(httpx.HTTPError):  # it is asked again
                restarted = httpx.post(connector(pair, "restart?includeTasks=true"), timeout=30).is_success
        return "FAILED" in states

    wait_until("the task has failed", failed, 60, otherwise=lambda: f"{tasks(pair)}\n{sandbox.tails()}")


def tasks(pair: Pair) -> list[str]:
    answer = httpx.get(connector(pair, "status"), timeout=10)
    return [task["state"] for task in answer.json().get("tasks", [])] if answer.is_success else []


def test_a_failed_task_of_a_ready_mirror_is_named_from_both_sides(
    bench: Bench, pair: Pair, sandbox: Sandbox, unwatched: None
) -> None:
    topic = bench.topic(own_name("tasks"))
    asked = pair.stg["verificationRequests"]["mm2"]["mirror"]
    mirror = {key: asked[key] for key in ("connect_url", "connectors", "resource")}
    access = {"KUBECONFIG": str(sandbox.kubeconfig)}
    found = judged(bench, "connectors_running", [topic], mirror, **access)
    assert (found["ok"], found["observed"]) == (True, "2 connectors run")

    broken_for_good(pair, sandbox)

    found = judged(bench, "connectors_running", [topic], mirror, **access)
    resource = "KafkaMirrorMaker2 rt-inventory-stg/mm2"
    assert found["ok"] is False
    assert f"task 0 of {asked['connectors']['source']} is FAILED, although {resource} is Ready" in found["observed"]

    found = judged(bench, "connectors_running", [topic], mirror | {"connect_url": "http://127.0.0.1:9"}, **access)
    assert found["ok"] is True  # all that the resource tells: its operator is away
    assert "Connect at http://127.0.0.1:9 does not answer" in found["observed"]

    nowhere = {"KUBECONFIG": str(bench.folder / "no-kubeconfig")}
    found = judged(bench, "connectors_running", [topic], mirror, **nowhere)
    assert found["ok"] is False
    assert f"{resource} is not known: no Kubernetes access" in found["observed"]
    found = judged(bench, "connectors_running", [topic], mirror | {"connect_url": "http://127.0.0.1:9"}, **nowhere)
    assert found["ok"] is None

    status = sandbox.get(*MIRROR)["status"]
    for one in status["connectors"]:
        for task in one["tasks"]:
            task["state"] = "FAILED"
    patch = json.dumps({"status": {"connectors": status["connectors"]}})
    kind, *rest = MIRROR
    sandbox.kubectl("patch", f"{kind}.kafka.strimzi.io", *rest, "--subresource=status", "--type=merge", "-p", patch)
    found = judged(bench, "connectors_running", [topic], mirror | {"connect_url": None}, **access)
    assert found["ok"] is False
    assert f"{resource} is Ready, yet task 0 of {asked['connectors']['source']} is FAILED" in found["observed"]


def test_the_mirror_that_was_put_right_passes(bench: Bench, pair: Pair, sandbox: Sandbox) -> None:
    asked = pair.stg["verificationRequests"]["mm2"]["mirror"]
    mirror = {key: asked[key] for key in ("connect_url", "connectors", "resource")}
    topic = bench.topic(own_name("mended"))
    wait_until(
        "both sides tell that all runs",
        lambda: judged(bench, "connectors_running", [topic], mirror, KUBECONFIG=str(sandbox.kubeconfig))["ok"],
        SETTLED_S,
    )
