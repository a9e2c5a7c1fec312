"""How far workers may be scaled: what is accepted, what is refused, and what is only hinted at."""

from typing import Any

import pytest

from monitoring.alerts.mirror import RECORDINGS
from ops.metrics.mirror_metrics import HELP, PREFIX
from settings import SettingsError, hints, parse
from settings.mirrors import Mirror

from ...support.stack_values import TARGET, Values, with_value

KEDA = {"through": "keda", "maxReplicas": 2, "lagRecords": 1000, "prometheus": "http://prometheus.monitoring.svc:9090"}
HPA = {"through": "hpa", "maxReplicas": 2, "lagRecords": 1000}


def values(scaling: dict[str, Any], **settings: Any) -> Values:
    """A good file whose mirror is scaled."""
    found = with_value(TARGET, "mirrors/0/scaling", scaling)
    for key, value in settings.items():
        found = with_value(found, f"mirrors/0/{key}", value)
    return found


def watched(scaling: dict[str, Any], **settings: Any) -> Values:
    """The settings of a stack with the lag's rules, and with metrics wherever monitoring asks for them."""
    found = with_value(values(scaling, metrics={}, **settings), "cluster/metrics", {})
    return with_value(found, "monitoring", {})


def mirror(scaling: dict[str, Any], **settings: Any) -> Mirror:
    return parse(values(scaling, **settings), "stg").mirrors[0]


def reported(scaling: dict[str, Any], **settings: Any) -> dict[str, str]:
    """What is wrong, by key below the mirror."""
    with pytest.raises(SettingsError) as error:
        parse(values(scaling, **settings), "stg")
    return {problem.key.removeprefix("mirrors[0]."): problem.message for problem in error.value.problems}


@pytest.mark.parametrize("scaling", [KEDA, HPA, {**HPA, "metric": "mirror:lag:sum"}])
def test_as_many_workers_as_there_are_tasks_are_accepted(scaling: dict[str, Any]) -> None:
    found = mirror(scaling).scaling
    assert found is not None
    assert (found.min_replicas, found.max_replicas, found.lag_records) == (1, 2, 1000)


@pytest.mark.parametrize(
    ("settings", "tasks", "counted"),
    [
        ({}, 2, "sourceTasksMax 1, checkpointTasksMax 1"),
        ({"sourceTasksMax": 3, "checkpointTasksMax": 2}, 5, "sourceTasksMax 3, checkpointTasksMax 2"),
        ({"emitCheckpoints": False, "syncGroupOffsets": False}, 1, "sourceTasksMax 1"),
    ],
)
def test_more_workers_than_tasks_are_refused(settings: dict[str, Any], tasks: int, counted: str) -> None:
    assert mirror({**HPA, "maxReplicas": tasks}, **settings).scaling is not None
    found = reported({**HPA, "maxReplicas": tasks + 1}, **settings)
    assert list(found) == ["scaling.maxReplicas"]
    assert f"got {tasks + 1}, tasks {tasks}: {counted})" in found["scaling.maxReplicas"]


def test_heartbeats_are_a_task_where_the_api_has_them() -> None:
    heartbeats = with_value(values({**HPA, "maxReplicas": 3}, heartbeats=True), "platform", {"version": "0.51.0"})
    assert parse(heartbeats, "stg").mirrors[0].scaling is not None


@pytest.mark.parametrize(("low", "high", "replicas"), [(1, 2, 3), (2, 2, 1)])
def test_a_new_mirror_begins_within_the_bounds(low: int, high: int, replicas: int) -> None:
    found = reported({**HPA, "minReplicas": low, "maxReplicas": high}, replicas=replicas)
    assert list(found) == ["replicas"]
    assert f"(got {replicas}, allowed {low}..{high})" in found["replicas"]


def test_no_mirror_is_scaled_to_nothing() -> None:
    assert "must be >= 1 (got 0)" in reported({**HPA, "minReplicas": 0})["scaling.minReplicas"]


def test_a_password_in_the_address_of_prometheus_is_never_printed() -> None:
    found = reported({**KEDA, "prometheus": "http://reader:made-up@prometheus:9090"})
    assert list(found) == ["scaling.prometheus"]
    assert "made-up" not in found["scaling.prometheus"]


def test_lag_in_records_is_the_one_that_is_recorded_and_in_seconds_that_of_ops() -> None:
    seconds = {key: value for key, value in HPA.items() if key != "lagRecords"} | {"lagSeconds": 30}
    found = [mirror(each).scaling for each in (HPA, seconds, {**HPA, "metric": "own"})]
    assert [each.series for each in found if each is not None] == [
        "mirror:lag_records:sum",
        "rt_inventory_mirror_lag_seconds",
        "own",
    ]


def test_neither_the_opposite_direction_nor_the_way_back_is_scaled() -> None:
    both = mirror(HPA, naming="prefixed", reverse={"topics": ["audit"]})
    assert both.reverse_mirror().scaling is None
    back = mirror(HPA, active="target", state="stopped", failback="prepared")
    assert back.failback_mirror().scaling is None


def test_workers_that_copy_nothing_are_hinted_at() -> None:
    found = {hint.key: hint.message for hint in hints(watched(HPA), "stg", {})}
    assert list(found) == ["mirrors[0].scaling.maxReplicas"]
    assert "of 2 workers (scaling.maxReplicas) only 1 copy records" in found["mirrors[0].scaling.maxReplicas"]
    assert hints(watched(HPA, sourceTasksMax=2), "stg", {}) == ()


def test_a_lag_that_nobody_records_is_hinted_at() -> None:
    (found,) = hints(values(HPA, sourceTasksMax=2), "stg", {})
    assert found.key == "mirrors[0].scaling"
    assert "its autoscaler reads mirror:lag_records:sum, and the stack has no monitoring" in found.message
    assert hints(values({**HPA, "metric": "own"}, sourceTasksMax=2), "stg", {}) == ()


def test_what_is_read_without_a_setting_is_recorded_or_known_to_ops() -> None:
    recorded = {each.name for each in RECORDINGS}
    seconds = {key: value for key, value in HPA.items() if key != "lagRecords"} | {"lagSeconds": 30}
    by_default = [mirror(each).scaling for each in (HPA, seconds)]
    known = recorded | {f"{PREFIX}_{name}" for name in HELP}
    assert {each.series for each in by_default if each is not None} <= known
