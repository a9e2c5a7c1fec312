"""What is said of a mirror after a wait in vain is what it does then, not what it did when the wait began."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from contract.documents import parse
from kafka import cluster, connector_status, groups, mirror_metadata, mirror_position
from kafka.connector_status import ConnectorState, ResourceStatus
from kafka.groups import Groups
from kafka.mirror_metadata import Metadata
from kafka.mirror_position import CutState
from kafka.topic_metadata import HiddenTopics
from kafka.topic_partition import TopicPartition
from spark import job
from spark.checks.registry import judge
from spark.comparison.spark_session import SessionStart
from spark.progress import Progress
from spark.run_context import RunContext

SOURCE = "a->b.MirrorSourceConnector"
PLACE = TopicPartition("x", 0)
RAN = [ConnectorState(SOURCE, "RUNNING", ("RUNNING",))]
FAILED = [ConnectorState(SOURCE, "RUNNING", ("FAILED",))]
RESOURCE = {"api_version": "kafka.strimzi.io/v1", "kind": "KafkaMirrorMaker2", "namespace": "home", "name": "mm2"}
States = list[ConnectorState] | None


def waited(
    monkeypatch: pytest.MonkeyPatch, answers: list[States], *, behind: bool, later: dict[str, Any] | None = None
) -> RunContext:
    """What a run knows after its waits: Connect answers one look after the other, the resource at the end `later`."""
    side = {"client_config": {"bootstrap.servers": "h:1"}}
    mirror = {"topics": ["x"], "connectors": [SOURCE], "connect_url": "http://c", "resource": RESOURCE}
    request = parse({"source": side | {"alias": "a"}, "target": side | {"alias": "b"}, "mirror": mirror}, {})
    resource = request.mirror.resource
    assert resource is not None
    before = ResourceStatus(resource=resource, ready=True, connectors=tuple(RAN))
    after = ResourceStatus(resource=resource, **(later or {"ready": True, "connectors": tuple(RAN)}))
    cut = CutState({PLACE: 9}, {PLACE: 3}, [PLACE] if behind else [], 600.0)
    meter = SimpleNamespace(at_cut=lambda: None, sample=None)
    given = iter(answers)
    monkeypatch.setattr(connector_status, "connector_states", lambda *_: next(given))
    monkeypatch.setattr(mirror_metadata, "resource_status", lambda *_: after)
    monkeypatch.setattr(mirror_metadata, "wait_until_synced", lambda *_: Metadata(resource=before))
    monkeypatch.setattr(mirror_position, "open_reader", lambda *_: (None, ""))
    monkeypatch.setattr(job, "LagMeter", lambda *_: meter)
    monkeypatch.setattr(mirror_position, "target_topics", lambda *_: {})
    monkeypatch.setattr(mirror_position, "past_cut", lambda *_: cut)
    monkeypatch.setattr(groups, "read", lambda *_: Groups())
    monkeypatch.setattr(groups, "absent", lambda *_: [])
    monkeypatch.setattr(cluster.Cluster, "names", lambda *_: [])
    monkeypatch.setattr(job, "hidden_topics", lambda *_: HiddenTopics())
    context, progress = RunContext(request=request), Progress()
    run = job._Run(context, {}, progress, cast("SessionStart", SimpleNamespace(begin=lambda **_: None)), None)
    run.wait()
    return context


def running_check(context: RunContext) -> tuple[bool | None, str]:
    (check,) = [one for one in judge(context) if one.name == "connectors_running"]
    return check.ok, check.observed


def test_a_task_that_failed_while_its_records_were_waited_for_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    context = waited(monkeypatch, [RAN, FAILED], behind=True)
    assert running_check(context) == (
        False,
        f"task 0 of {SOURCE} is FAILED, although KafkaMirrorMaker2 home/mm2 is Ready",
    )


def test_a_resource_that_failed_while_its_records_were_waited_for_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    context = waited(monkeypatch, [RAN, RAN], behind=True, later={"reason": "Held", "connectors": tuple(RAN)})
    assert running_check(context) == (False, "KafkaMirrorMaker2 home/mm2 is not Ready: Held")


def test_a_mirror_that_went_silent_while_its_records_were_waited_for_is_not_said_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = waited(monkeypatch, [RAN, None], behind=True, later={"silent": "Kubernetes does not answer"})
    ok, observed = running_check(context)
    assert ok is None
    assert observed.startswith("Connect at http://c does not answer")


def test_a_mirror_that_copied_everything_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    context = waited(monkeypatch, [RAN], behind=False, later={"ready": False, "reason": "Held"})
    assert running_check(context) == (True, "1 connectors run")


def test_a_fault_that_was_seen_is_not_forgotten_for_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    request: Any = SimpleNamespace(
        mirror=SimpleNamespace(connect_url="http://c", connector_names=(SOURCE,), resource=None),
    )
    monkeypatch.setattr(connector_status, "connector_states", lambda *_: None)
    assert mirror_position.connectors_now(request, FAILED) == FAILED
    assert mirror_position.connectors_now(request, RAN) is None
    request.mirror.connect_url = None
    assert mirror_position.connectors_now(request, None) is None
    assert mirror_metadata.resource_now(request, {}, None) is None
