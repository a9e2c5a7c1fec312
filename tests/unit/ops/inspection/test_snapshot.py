"""A snapshot runs all its probes, reads each thing once, and a probe that fails or hangs affects no other."""

import time
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from kafka.errors import ClusterError, DeniedError
from ops.inspection import probes, snapshot
from ops.inspection.probes import MirrorReadings, once
from ops.recovery import break_glass
from ops.recovery.mirror_context import MirrorContext
from tests.support.recovery_pair import connectors, group, known, lag, resource


class FakeCluster:
    """A cluster that answers, has no topics, or fails with an error when it is connected."""

    def __init__(self, role: str, error: Exception | None = None) -> None:
        self.side = SimpleNamespace(role=role)
        self.error = error
        self.asked: list[str] = []
        self.admin = SimpleNamespace(list_topics=self.list_topics)

    def connect(self, within_s: float) -> None:
        self.asked.append("connect")
        if self.error is not None:
            raise self.error

    def topics(self, *_: object) -> dict[str, Any]:
        return {}

    def group_states(self) -> dict[str, str]:
        self.asked.append("group states")
        return {"orders": "STABLE"}

    def list_topics(self, timeout: float) -> Any:
        self.asked.append("layout")
        broker = SimpleNamespace(id=1, host=self.side.role, port=9094)
        return SimpleNamespace(cluster_id="id", brokers={1: broker}, topics={})


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeCluster]:
    """Both clusters of a pair whose mirror, journal and resources are well."""
    found = {role: FakeCluster(role) for role in ("source", "target")}
    monkeypatch.setattr(MirrorContext, "source", lambda _: found["source"])
    monkeypatch.setattr(MirrorContext, "target", lambda _: found["target"])
    monkeypatch.setattr(snapshot, "_connectors", lambda _: (list(connectors()), None))
    monkeypatch.setattr(snapshot, "_recovery", lambda *_: (None, None))
    monkeypatch.setattr(break_glass, "active_side", lambda *_: None)
    monkeypatch.setattr(snapshot, "_source_status", lambda *_: resource("Kafka"))
    monkeypatch.setattr(snapshot, "resource_status", lambda wanted, *_: resource(wanted.kind))
    monkeypatch.setattr(probes, "resource_status", lambda wanted, *_: resource(wanted.kind))
    monkeypatch.setattr(snapshot, "_lag", lambda *_: lag(7))
    monkeypatch.setattr(snapshot.retention, "observe", lambda *_: ((), None))
    monkeypatch.setattr(snapshot, "mirrored_groups", lambda *_: (group(),))
    monkeypatch.setattr(snapshot, "groups_on_target", lambda *_: (group(source_state=None),))
    return found


def test_a_snapshot_of_a_healthy_pair_has_everything(clusters: dict[str, FakeCluster]) -> None:
    seen = snapshot.collect(known(), {})
    assert (seen.source_alive, seen.target_alive, seen.unknown, seen.faults) == (True, True, {}, [])
    assert (seen.lag, seen.groups, seen.connectors) == (lag(7), (group(),), connectors())
    assert (seen.mirror, seen.target.resource) == (resource(), resource("Kafka"))
    assert (seen.source.name, seen.target.alias) == ("rt-inventory-dev", "es-tgt")


def test_without_the_source_the_groups_of_the_target_are_known(clusters: dict[str, FakeCluster]) -> None:
    clusters["source"].error = ClusterError("source es-src: is down")
    seen = snapshot.collect(known(), {})
    assert (seen.source.problem, seen.target.problem) == ("source es-src: is down", None)
    assert (seen.lag, seen.groups) == (None, (group(source_state=None),))
    assert seen.unknown == {"lag": "the source does not answer"}


def test_without_the_target_lag_and_groups_are_unknown(clusters: dict[str, FakeCluster]) -> None:
    clusters["target"].error = ClusterError("target es-tgt: is down")
    seen = snapshot.collect(known(), {})
    why = "the target does not answer (target es-tgt: is down)"
    assert (seen.lag, seen.groups, seen.unknown) == (None, None, {"lag": why, "groups": why})


def test_a_right_that_is_missing_is_the_reason_for_what_is_unknown(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object) -> None:
        raise DeniedError("grant Read")

    monkeypatch.setattr(clusters["source"], "topics", deny)
    seen = snapshot.collect(known(), {})
    assert (seen.source_alive, seen.unknown) == (True, {"lag": "grant Read", "groups": "grant Read"})


@pytest.mark.parametrize(
    ("hanging", "unknown"),
    [
        ("_lag", {"lag": "no answer within 1 s", "groups": "no answer within 1 s"}),
        ("_connectors", {"connectors": "no answer within 1 s"}),
        ("_recovery", {"recovery": "no answer within 1 s"}),
        ("_source_status", {}),
    ],
)
def test_a_probe_that_hangs_is_left_behind_with_its_reason(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch, hanging: str, unknown: dict[str, str]
) -> None:
    for deadline in ("OBSERVED_WITHIN_S", "READ_WITHIN_S"):
        monkeypatch.setattr(snapshot, deadline, 0.8)
    monkeypatch.setattr(snapshot, hanging, lambda *_: time.sleep(3))
    seen = snapshot.collect(known(), {})
    assert (seen.source_alive, seen.target_alive, seen.unknown) == (True, True, unknown)


def test_lag_and_groups_may_take_longer_than_what_does_not_grow_with_the_groups(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, taken = snapshot._lag, list[float]()

    def slow(*arguments: Any) -> Any:
        time.sleep(1.2)
        taken.append(1.2)
        return read(*arguments)

    monkeypatch.setattr(snapshot, "OBSERVED_WITHIN_S", 0.8)
    monkeypatch.setattr(snapshot, "_lag", slow)
    seen = snapshot.collect(known(), {})
    assert (taken, seen.unknown.get("groups")) == ([1.2], None)


def test_what_several_probes_need_is_read_once(clusters: dict[str, FakeCluster]) -> None:
    def more(readings: MirrorReadings) -> dict[str, Any]:
        sides = readings.source, readings.target
        return {
            f"{name} of the {side.cluster.side.role}": read
            for side in sides
            for name, read in (("layout", side.layout), ("brokers", side.layout), ("groups", side.group_states))
        }

    seen = snapshot.collect(known(), {}, more=more)
    assert seen.more.problems == {}
    assert [one.host for one in seen.more.found["brokers of the target"].brokers] == ["target"]
    for cluster in clusters.values():
        assert sorted(cluster.asked) == ["connect", "group states", "layout"]


def test_only_the_parts_that_a_command_renders_are_read(clusters: dict[str, FakeCluster]) -> None:
    seen = snapshot.collect(known(), {}, parts=(snapshot.TARGET, snapshot.RESOURCE))
    assert (seen.mirror, seen.lag, seen.groups, seen.connectors, seen.unknown) == (resource(), None, None, None, {})
    assert (clusters["source"].asked, clusters["target"].asked) == ([], ["connect"])


def test_probes_of_a_command_that_fail_are_reported_apart(clusters: dict[str, FakeCluster]) -> None:
    clusters["source"].error = ClusterError("source es-src: is down")
    seen = snapshot.collect(known(), {}, more=lambda readings: {"brokers": readings.source.layout})
    assert seen.more.problems == {"brokers": "source es-src: is down"}
    assert set(seen.unknown) == {"lag"}
    assert clusters["source"].asked == ["connect"]


def test_an_error_of_what_is_read_once_is_raised_for_all_who_ask() -> None:
    asked: list[int] = []

    def fail() -> None:
        asked.append(len(asked))
        raise ClusterError("is down")

    read = once(fail)
    for _ in range(2):
        with pytest.raises(ClusterError):
            read()
    assert asked == [0]


def test_connect_that_does_not_answer_leaves_the_connectors_to_the_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(probes, "read_connectors", fail)
    monkeypatch.setattr(
        probes, "resource_status", lambda wanted, *_: resource(wanted.kind, connectors=connectors("FAILED"))
    )
    url = {"connect_url": "http://connect:8083"}
    seen = snapshot.collect(known(url), {}, parts=(snapshot.CONNECTORS, snapshot.RESOURCE))
    assert (seen.connectors, seen.unknown) == (connectors("FAILED"), {})
    assert seen.connect_problem == "Connect at http://connect:8083 does not answer (ConnectError)"


def test_an_error_that_nobody_foresaw_is_raised(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(snapshot, "_connectors", fail)
    with pytest.raises(ZeroDivisionError):
        snapshot.collect(known(), {})
