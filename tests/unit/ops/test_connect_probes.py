"""What the workers' group and Connect say of tasks is read as Kafka writes it."""

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ops.doctor import connect_probes
from ops.doctor.cluster_probes import assigned_tasks, of_members
from ops.doctor.diagnosis import diagnose
from ops.doctor.observations import AssignedTasks, Observations
from ops.errors import OpsError

from ...support.mirror_symptoms import connector, issues_found, seen, side, with_partitions

SOURCE, CHECKPOINT = "es-src->es-tgt.MirrorSourceConnector", "es-src->es-tgt.MirrorCheckpointConnector"


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def connectors(tasks: dict[str, list[int]]) -> bytes:
    return struct.pack(">i", len(tasks)) + b"".join(
        text(name) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers) for name, numbers in tasks.items()
    )


def assignment(
    tasks: dict[str, list[int]], given_away: dict[str, list[int]] | None = None, *, version: int = 2, delay_ms: int = 0
) -> bytes:
    """As ExtendedAssignment writes it; version 0 is the eager protocol. -1 is the connector itself."""
    start = struct.pack(">hh", version, 0) + text("worker-1") + text("http://worker:8083/") + struct.pack(">q", 7)
    if version == 0:
        return start + connectors(tasks)
    revoked = struct.pack(">i", -1) if given_away is None else connectors(given_away)
    return start + connectors(tasks) + revoked + struct.pack(">i", delay_ms)


def joined(tasks: dict[str, list[int]] | None, version: int = 2) -> bytes:
    """What a worker says when it joins, as ExtendedWorkerState writes it: a new one has no assignment."""
    start = struct.pack(">h", version) + text("http://worker:8083/") + struct.pack(">q", 7)
    if version == 0:
        return start
    held = None if tasks is None else assignment(tasks)
    return start + (struct.pack(">i", -1) if held is None else struct.pack(">i", len(held)) + held)


def cluster(*groups: Any, error: KafkaException | None = None) -> Any:
    def listed(**_: Any) -> list[Any]:
        if error is not None:
            raise error
        return list(groups)

    return SimpleNamespace(admin=SimpleNamespace(list_groups=listed))


def group(*members: tuple[bytes, bytes], state: str = "Stable") -> Any:
    reported = [SimpleNamespace(metadata=metadata, assignment=given) for metadata, given in members]
    return SimpleNamespace(id="mm2", state=state, members=reported)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_tasks_of_all_workers_count_and_the_connector_itself_does_not(version: int) -> None:
    one = joined(None, version), assignment({SOURCE: [-1, 0], CHECKPOINT: [0, 5]}, version=version)
    two = joined(None, version), assignment({SOURCE: [2]}, version=version, delay_ms=27_000)
    found = AssignedTasks(tasks=frozenset({0, 2}), delay_ms=27_000 if version else 0)
    assert assigned_tasks(cluster(group(one, two)), "mm2", SOURCE) == found


def test_a_worker_keeps_what_it_had_but_for_what_it_gives_away() -> None:
    one = joined({SOURCE: [-1, 0, 1, 2]}), assignment({}, {SOURCE: [1]})
    two = joined(None), assignment({SOURCE: [3]})
    assert of_members(SOURCE, [one, two]).tasks == {0, 2, 3}


def test_a_group_without_a_member_has_no_task() -> None:
    assert assigned_tasks(cluster(group(state="Empty")), "mm2", SOURCE) == AssignedTasks(tasks=frozenset())
    assert assigned_tasks(cluster(), "mm2", SOURCE) == AssignedTasks(tasks=frozenset())


def test_while_the_group_rebalances_nobody_knows() -> None:
    with pytest.raises(OpsError, match="group mm2 is PreparingRebalance"):
        assigned_tasks(cluster(group((b"", b""), state="PreparingRebalance")), "mm2", SOURCE)


def test_a_group_that_cannot_be_described_and_another_format_are_no_answer() -> None:
    denied = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(OpsError, match="group mm2 cannot be described"):
        assigned_tasks(cluster(error=denied), "mm2", SOURCE)
    state, whole = joined({SOURCE: [0]}), assignment({SOURCE: [0]})
    broken = [(state[:end], whole) for end in range(len(state))] + [(state, whole[:end]) for end in range(len(whole))]
    for one in broken:
        with pytest.raises(OpsError, match="has an unknown format"):
            of_members(SOURCE, [one])


def test_partitions_are_read_by_the_task_that_connect_has_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    status = {
        "connector": {"state": "RUNNING"},
        "tasks": [{"id": 0, "state": "RUNNING"}, {"id": 1, "state": "RUNNING"}],
    }
    tasks = [
        {"id": {"connector": SOURCE, "task": 1}, "config": {"task.assigned.partitions": "items-0,items.a-b-12"}},
        {"id": {"connector": SOURCE, "task": 0}, "config": {}},
    ]

    def answer(url: str, **_: Any) -> Any:
        assert url == "http://x/connectors/es-src-%3Ees-tgt.MirrorSourceConnector/tasks"
        return SimpleNamespace(json=lambda: tasks, status_code=200)

    monkeypatch.setattr("httpx.get", answer)
    partitions = connect_probes.task_partitions("http://x/", SOURCE)
    assert partitions == {"task 0": frozenset(), "task 1": {("items", 0), ("items.a-b", 12)}}
    found = connect_probes.connector(SOURCE, status, partitions)
    assert [part.partitions for part in found.parts] == [frozenset(), partitions["task 0"], partitions["task 1"]]
    monkeypatch.setattr("httpx.get", lambda *_, **__: SimpleNamespace(status_code=404))
    assert connect_probes.task_partitions("http://x", SOURCE) == {}


def reading(*tasks: dict[str, int], state: str = "RUNNING", **known: Any) -> Observations:
    """A mirror whose tasks are to read some partitions of each topic: topic and how many from 0 on."""
    return seen(connectors=(with_partitions(connector(SOURCE, *([state] * len(tasks))), *tasks),), **known)


WHOLE = {"items": 3, "items.inventory": 3}


def test_a_task_that_connect_calls_running_while_no_worker_has_it_is_named_with_its_partitions() -> None:
    nobody = AssignedTasks(tasks=frozenset(), delay_ms=30_000)
    (finding,) = diagnose(reading(WHOLE, assigned=nobody))
    assert finding.what == (
        "no worker has it, so nothing reads items-0, items-1, items-2, items.inventory-0, items.inventory-1, "
        "items.inventory-2; Connect planned to give it to another worker after 30 s"
    )
    assert issues_found(reading(WHOLE, assigned=AssignedTasks(tasks=frozenset({0})))) == []
    assert issues_found(reading(WHOLE)) == [], "the workers' group is not known, and Connect calls the task RUNNING"
    assert issues_found(reading(WHOLE, state="UNASSIGNED")) == ["partitions-without-task"]
    assert issues_found(reading(WHOLE, assigned=nobody, state="PAUSED")) == []
    failing = reading(WHOLE, assigned=nobody, state="FAILED")
    assert issues_found(failing) == ["connectors-failed-under-ready"], "a failure is a trouble of its own"
    assert issues_found(replace(reading(WHOLE, assigned=nobody), state="stopped")) == []


def test_a_copied_partition_that_no_task_is_configured_with_is_named() -> None:
    (finding,) = diagnose(reading({"items": 3, "items.inventory": 2}))
    assert finding.what == "none of its tasks is configured to read items.inventory-2"
    missing = side("target", topics={"items": 3, "items.inventory": 2})
    (finding,) = diagnose(reading({"items": 3, "items.inventory": 2}, target=missing))
    assert finding.trouble == "unknown-topic-or-partition", "the connector finds a new partition at its next refresh"


@pytest.mark.parametrize(
    ("carrier", "copies"),
    [
        ({}, True),
        ({"state": "running"}, True),
        ({"state": "paused"}, False),
        ({"state": "stopped"}, False),
        ({"pause": True}, False),
        ({"pause": False}, True),
        ({"pause": True, "state": "running"}, True),
        ({"pause": False, "state": "stopped"}, False),
    ],
)
def test_a_direction_at_rest_is_none_and_the_state_counts_before_the_earlier_pause(
    carrier: dict[str, Any], copies: bool
) -> None:
    flow = {"source": {"alias": "a", "bootstrapServers": "a:1"}, "sourceConnector": carrier}
    spec = {"target": {"alias": "b", "bootstrapServers": "b:1"}, "mirrors": [flow]}
    found = connect_probes.directions({"metadata": {"namespace": "ns", "name": "m"}, "spec": spec})
    assert bool(found) is copies
