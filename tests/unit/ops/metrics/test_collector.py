"""One collection of metrics: all mirrors of a stack, and errors that are reported as metrics."""

from pathlib import Path
from typing import Any

import pytest

from kafka.errors import ClusterError
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.metrics import collector
from ops.metrics.collector import MetricsSnapshot, collect
from ops.pulumi.stack import NotDeployedError
from tests.support.recovery_pair import SECRETS, mirror_outputs, observe, outputs, request

ENVIRONMENT: dict[str, str] = {}


def values(found: MetricsSnapshot) -> dict[tuple[str, str], float]:
    """Values by name and mirror of what has no other label."""
    return {
        (family.name.removeprefix("rt_inventory_"), labels["mirror"]): value
        for family in found.families
        for labels, value in family.samples
        if set(labels) == {"stack", "mirror"}
    }


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Outputs of stack stg with one mirror, which is healthy in every snapshot; no report lies in the folder."""
    monkeypatch.chdir(tmp_path)
    found = outputs()
    monkeypatch.setattr(collector, "stack_outputs", lambda *_: found)
    monkeypatch.setattr(snapshot, "collect", lambda pair, *_, **__: observe(pair))
    return found


def test_metrics_hold_the_mirror_the_snapshot_and_the_last_verification(stack: dict[str, Any]) -> None:
    found = collect("stg", None, ENVIRONMENT)
    reported = values(found)
    assert reported["mirror_up", "mm2"] == 1
    assert reported["status_error", "mm2"] == 0
    assert reported["status_timestamp_seconds", "mm2"] == 1_790_000_000
    assert reported["status_duration_seconds", "mm2"] < 5
    assert reported["verification_finished_timestamp_seconds", "mm2"] == 1_790_000_000 - 60
    assert (found.mirrors, found.errors, found.unknown) == (("mm2",), {}, ())


def test_the_verification_is_left_out_if_asked_for(stack: dict[str, Any]) -> None:
    found = collect("stg", None, ENVIRONMENT, verified=False)
    assert not [family.name for family in found.families if "verification" in family.name]


def two_mirrors(stack: dict[str, Any]) -> None:
    stack["verificationRequests"] = {"mm2": request(), "lob": request("lob"), "mm2-failback": request("mm2-failback")}
    stack["verificationEnvironment"] = {name: dict(SECRETS) for name in stack["verificationRequests"]}
    stack["mirrors"] = {"mm2": mirror_outputs(), "lob": mirror_outputs(state="stopped")}


def test_all_mirrors_of_a_stack_are_looked_at_but_what_a_failback_makes(stack: dict[str, Any]) -> None:
    two_mirrors(stack)
    found = collect("stg", None, ENVIRONMENT)
    assert found.mirrors == ("lob", "mm2")
    assert [mirror for name, mirror in values(found) if name == "status_error"] == ["lob", "mm2"]
    assert collect("stg", "lob", ENVIRONMENT).mirrors == ("lob",)


def test_a_mirror_that_cannot_be_looked_at_takes_nothing_from_the_others(
    stack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(pair: Any, *_: Any, **__: Any) -> Any:
        if pair.mirror == "lob":
            raise ClusterError("the source has gone")
        return observe(pair)

    two_mirrors(stack)
    monkeypatch.setattr(snapshot, "collect", one)
    found = collect("stg", None, ENVIRONMENT)
    assert found.errors == {"lob": "the source has gone"}
    reported = values(found)
    assert (reported["status_error", "lob"], reported["status_error", "mm2"]) == (1, 0)
    assert [name for name, mirror in reported if mirror == "lob"] == ["status_error"]


@pytest.mark.parametrize("error", [OpsError("stack stg: is not there"), NotDeployedError("stack stg: no outputs")])
def test_without_the_outputs_only_the_error_is_reported(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(collector, "stack_outputs", fail)
    assert collect("stg", "mm2", ENVIRONMENT).errors == {"mm2": str(error)}
    found = collect("stg", None, ENVIRONMENT)
    assert (found.errors, found.mirrors) == ({"": str(error)}, ())
    assert values(found) == {("status_error", ""): 1}


def test_a_stack_without_a_mirror_is_reported_as_that(stack: dict[str, Any]) -> None:
    stack["verificationRequests"] = {}
    assert "must hold a mirror" in collect("stg", None, ENVIRONMENT).errors[""]


def test_an_unforeseen_error_is_reported_by_its_type_unless_its_trace_is_asked_for(
    stack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRETS["SOURCE_PASSWORD"])

    monkeypatch.setattr(snapshot, "collect", fail)
    (why,) = collect("stg", None, ENVIRONMENT).errors.values()
    assert "ZeroDivisionError" in why
    assert SECRETS["SOURCE_PASSWORD"] not in why
    with pytest.raises(ZeroDivisionError):
        collect("stg", None, ENVIRONMENT, debug=True)


def test_what_could_not_be_learned_is_reported_in_words(stack: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    without_kubernetes = {"recovery": "no access", "active side": "no access"}
    seen: dict[str, Any] = {"lag": None, "unknown": {"lag": "no Read", **without_kubernetes}}
    monkeypatch.setattr(snapshot, "collect", lambda pair, *_, **__: observe(pair, **seen))
    assert collect("stg", None, ENVIRONMENT).unknown == ("mirror mm2: lag is unknown: no Read",)
