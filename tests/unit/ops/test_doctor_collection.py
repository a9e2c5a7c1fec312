"""The doctor adds its probes to a snapshot: each cluster, Connect and the mirror's resource are read once."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.connector_status import ConnectorState, ResourceStatus
from kafka.errors import ClusterError
from ops.doctor import cluster_probes, command, connect_probes, log_probes
from ops.errors import OpsError
from ops.inspection import probes, snapshot
from ops.recovery import break_glass, fencing, target_fence
from ops.recovery.fencing import FenceStatus
from ops.recovery.mirror_context import MirrorContext

from ...support.mirror_symptoms import EXPIRED, NO_CLASS, SOURCE, issues_found
from ...support.recovery_pair import known, resource


class Counted:
    """A cluster with one topic and one group that counts what it is asked; `error` makes it unreachable."""

    def __init__(self, role: str) -> None:
        self.side = SimpleNamespace(role=role, alias=role, client_config={"bootstrap.servers": f"{role}:9094"})
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.leader = 1
        self.admin = SimpleNamespace(list_topics=self.list_topics)

    def connect(self, within_s: float) -> None:
        self.asked.append("connect")
        if self.error is not None:
            raise self.error

    def group_states(self) -> dict[str, str]:
        self.asked.append("groups")
        return {"orders": "EMPTY"}

    def list_topics(self, timeout: float) -> Any:
        self.asked.append("brokers and topics")
        partition = SimpleNamespace(leader=self.leader, replicas=[2, 1])
        topic = SimpleNamespace(partitions={0: partition}, error=None)
        broker = SimpleNamespace(id=1, host="127.0.0.1", port=1)  # nobody listens
        return SimpleNamespace(cluster_id=self.side.role, brokers={1: broker}, topics={"items": topic})


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the doctor asks: both clusters, and the numbers of readings of the resource and of Connect."""
    clusters = {role: Counted(role) for role in ("source", "target")}
    asked: dict[str, Any] = {**clusters, "resource": [], "connect": []}
    monkeypatch.setattr(MirrorContext, "source", lambda _: clusters["source"])
    monkeypatch.setattr(MirrorContext, "target", lambda _: clusters["target"])
    for name in ("rights", "policies", "assigned_tasks"):
        monkeypatch.setattr(cluster_probes, name, lambda *_: None)
    monkeypatch.setattr(cluster_probes, "groups", lambda readings, _: (readings.group_states(), []))
    monkeypatch.setattr(snapshot, "_until_deletion", lambda *_: ((), None))
    for name in ("replaced_logs", "large_records", "orphans"):
        monkeypatch.setattr(log_probes, name, lambda *_: None)
    monkeypatch.setattr(snapshot, "_lag_reading", lambda *_: (None, [], {}))
    monkeypatch.setattr(snapshot, "_recovery", lambda *_: (None, None))
    monkeypatch.setattr(break_glass, "active_side", lambda *_: None)
    monkeypatch.setattr(command, "certificates_of", lambda _: [])
    monkeypatch.setattr(command, "find_duplicate_records", lambda *_: None)
    monkeypatch.setattr(connect_probes, "others_and_logs", lambda mirror, _: mirror() and None)
    monkeypatch.setattr(connect_probes, "task_partitions", lambda *_: {"task 0": frozenset({("items", 0)})})

    def connect(*_: Any) -> list[ConnectorState]:
        asked["connect"].append("connectors")
        status = {"connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "FAILED", "trace": EXPIRED}]}
        return [ConnectorState(SOURCE, "RUNNING", ("FAILED",), status)]

    def status(*_: Any) -> ResourceStatus:
        asked["resource"].append("resource")
        return resource(ready=False, document={"status": {"conditions": [{"type": "NotReady", "message": NO_CLASS}]}})

    monkeypatch.setattr(probes, "read_connectors", connect)
    monkeypatch.setattr(probes, "resource_status", status)
    return asked


def test_each_cluster_connect_and_the_resource_are_asked_once(counted: dict[str, Any]) -> None:
    found = command.collect(known({"connect_url": "http://x"}, groupId="mm2"), {}, lambda _: None)
    for role in ("source", "target"):
        assert sorted(counted[role].asked) == ["brokers and topics", "connect", "groups"]
    assert (counted["resource"], counted["connect"]) == (["resource"], ["connectors"])
    assert (found.source.groups, found.target.topics, found.unseen) == ({"orders": "EMPTY"}, {"items": 1}, ())
    (source,) = found.connectors or ()
    assert (source.parts[1].trace, source.parts[1].partitions) == (EXPIRED, {("items", 0)})
    assert found.resource is not None
    assert found.resource.reason == NO_CLASS, "the whole message: the cause is at its end"


def test_a_cluster_that_is_unreachable_is_asked_nothing_else_and_is_a_finding(counted: dict[str, Any]) -> None:
    counted["source"].error = ClusterError("source es-src: nobody listens")
    found = command.collect(known(), {}, lambda _: None)
    assert (found.source.refusal, found.target.refusal) == ("source es-src: nobody listens", None)
    assert counted["source"].asked == ["connect"]
    assert (found.unseen, found.target.topics) == ((), {"items": 1})
    assert issues_found(found)[0] == "source-unreachable"


def test_a_partition_without_a_leader_is_seen_and_its_records_are_not_asked_for(
    counted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_probes, "silent_brokers", lambda _: ())
    scans: list[str] = []
    monkeypatch.setattr(command, "find_duplicate_records", lambda *_: scans.append("duplicates"))
    assert (command.collect(known(), {}, lambda _: None).target.leaderless, scans) == ({}, ["duplicates"])
    counted["target"].leader = -1
    found = command.collect(known(), {}, lambda _: None)
    assert (found.source.leaderless, found.target.leaderless) == ({}, {("items", 0): (2, 1)})
    assert scans == ["duplicates"]
    assert "partition-without-leader" in issues_found(found)


def test_a_resource_that_cannot_be_read_was_not_inspected(
    counted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "resource_status", lambda *_: resource(silent="refused"))
    found = command.collect(known(), {}, lambda _: None)
    assert (found.resource, found.unseen) == (None, ("resource: KafkaMirrorMaker2 rt-inventory-stg/mm2: refused",))


FENCED = FenceStatus(cluster="rt-inventory-dev", stack="dev", users={"app": False}, declared=True)


def test_a_fence_is_where_it_must_be_after_a_failover_that_pulumi_does_not_know_of(
    counted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fencing, "observe", lambda *_: FENCED)
    assert "fence-left-behind" in issues_found(command.collect(known(), {}, lambda _: None))
    monkeypatch.setattr(break_glass, "active_side", lambda *_: "target")
    found = issues_found(command.collect(known(), {}, lambda _: None))
    assert ("fence-left-behind" in found, "pulumi-state-behind" in found) == (False, True)


@pytest.mark.parametrize(
    ("module", "name", "unknown", "reported"),
    [
        (break_glass, "active_side", OpsError("get on secrets is refused"), "active side: get on secrets is refused"),
        (snapshot, "_recovery", (None, "the journal is away"), "recovery: the journal is away"),
    ],
    ids=["active side", "recovery"],
)
@pytest.mark.parametrize("active", ["source", "target"])
def test_a_fence_is_not_judged_where_the_active_side_or_what_is_under_way_is_unknown(
    counted: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    active: str,
    module: Any,
    name: str,
    unknown: Any,
    reported: str,
) -> None:
    def answer(*_: Any) -> Any:
        if isinstance(unknown, Exception):
            raise unknown
        return unknown

    fence = replace(FENCED, users={"app": active == "target"})
    monkeypatch.setattr(fencing, "observe", lambda *_: fence)
    monkeypatch.setattr(target_fence, "observe", lambda *_: None)
    monkeypatch.setattr(module, name, answer)
    found = command.collect(known(active=active), {}, lambda _: None)
    assert (found.fence_issue, found.unseen) == (None, (reported,))
