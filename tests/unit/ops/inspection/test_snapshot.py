"""A snapshot takes all its probes, and one that fails or hangs takes nothing from the others."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.errors import ClusterError, DeniedError
from ops.inspection import snapshot
from ops.recovery.mirror_context import MirrorContext
from tests.support.recovery_pair import connectors, group, known, lag, resource


class FakeCluster:
    """A cluster that answers, has no topics, or fails with an error when it is connected."""

    def __init__(self, role: str, error: Exception | None = None) -> None:
        self.side = SimpleNamespace(role=role)
        self.error = error

    def connect(self, within_s: float) -> None:
        if self.error is not None:
            raise self.error

    def topics(self, *_: object) -> dict[str, Any]:
        return {}


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeCluster]:
    """Both clusters of a pair whose mirror, journal and resources are well."""
    found = {role: FakeCluster(role) for role in ("source", "target")}
    monkeypatch.setattr(MirrorContext, "source", lambda _: found["source"])
    monkeypatch.setattr(MirrorContext, "target", lambda _: found["target"])
    monkeypatch.setattr(snapshot, "_connectors", lambda _: list(connectors()))
    monkeypatch.setattr(snapshot, "_recovery", lambda *_: (None, None))
    monkeypatch.setattr(snapshot, "_source_status", lambda *_: resource("Kafka"))
    monkeypatch.setattr(snapshot, "resource_status", lambda wanted, *_: resource(wanted.kind))
    monkeypatch.setattr(snapshot, "_lag", lambda *_: lag(7))
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
        ("_lag", {"lag": "no answer within 0 s", "groups": "no answer within 0 s"}),
        ("_connectors", {"connectors": "no answer within 1 s"}),
        ("_recovery", {"recovery": "no answer within 1 s"}),
        ("_source_status", {}),
    ],
)
def test_a_probe_that_hangs_is_left_behind_with_its_reason(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch, hanging: str, unknown: dict[str, str]
) -> None:
    monkeypatch.setattr(snapshot, "MEASURED_WITHIN_S", 0.2)
    monkeypatch.setattr(snapshot, "OBSERVED_WITHIN_S", 0.8)
    monkeypatch.setattr(snapshot, hanging, lambda *_: time.sleep(3))
    seen = snapshot.collect(known(), {})
    assert (seen.source_alive, seen.target_alive, seen.unknown) == (True, True, unknown)


def test_an_error_that_nobody_foresaw_is_raised(
    clusters: dict[str, FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(snapshot, "_connectors", fail)
    with pytest.raises(ZeroDivisionError):
        snapshot.collect(known(), {})
