"""What scales a mirror's workers, and who sets their number from one update to the next."""

import itertools
import json
from typing import Any

import pytest

from components.__main__ import manifests
from components.custom_resource import READY
from examples.__main__ import FOLDER

from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import SOURCE_OUTPUTS, STATUS

PROMETHEUS = "http://prometheus.monitoring.svc:9090"
BOUNDS: dict[str, Any] = {"minReplicas": 2, "maxReplicas": 5}
KEDA = {"through": "keda", **BOUNDS, "lagRecords": 50_000, "prometheus": PROMETHEUS}
HPA = {"through": "hpa", **BOUNDS, "lagRecords": 50_000}
PLACE = ("stg", "mm2")
SERIES = "mirror:lag_records:sum"
FORCE, IGNORED = "pulumi.com/patchForce", ["spec.replicas"]


def made(before: str | None = None, **settings: Any) -> Engine:
    """What the program asks for, with a mirror of five tasks, two of whose workers are declared."""
    engine = Engine(stacks={"dev": SOURCE_OUTPUTS, "stg": {"mirrors": {"mm2": {"workersSetBy": before}}}})
    up(engine, target(mirrors=[mirror(**{"sourceTasksMax": 5, "replicas": 2, **settings})]))
    return engine


def keda(**scaling: Any) -> dict[str, Any]:
    found: dict[str, Any] = made(scaling={**KEDA, **scaling}).all("v1alpha1:ScaledObject")[PLACE]
    return found


def hpa(**scaling: Any) -> dict[str, Any]:
    found: dict[str, Any] = made(scaling={**HPA, **scaling}).all("v2:HorizontalPodAutoscaler")[PLACE]
    return found


def annotations(engine: Engine) -> dict[str, str]:
    found: dict[str, str] = engine.all("v1:KafkaMirrorMaker2")[PLACE]["metadata"]["annotations"]
    return found


def test_without_scaling_nothing_scales_and_pulumi_sets_the_workers() -> None:
    engine = made()
    assert not engine.all("v1alpha1:ScaledObject")
    assert not engine.all("v2:HorizontalPodAutoscaler")
    assert list(engine.asked("mm2-mirror").ignoreChanges) == []
    assert FORCE not in annotations(engine)


def test_a_scaled_object_asks_prometheus_for_this_mirrors_lag_and_is_waited_for() -> None:
    found = keda()
    assert found["apiVersion"] == "keda.sh/v1alpha1"
    assert json.loads(found["metadata"]["annotations"]["pulumi.com/waitFor"]) == [*READY]
    spec = found["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaMirrorMaker2", "name": "mm2"}
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 5)
    assert spec["triggers"] == [
        {
            "type": "prometheus",
            "metricType": "AverageValue",
            "metadata": {
                "serverAddress": PROMETHEUS,
                "query": f'sum({SERIES}{{stack="stg",mirror="mm2"}} >= 0)',
                "threshold": "50000",
                "ignoreNullValues": "false",
            },
        }
    ]


def test_a_scaled_object_shows_a_token_where_prometheus_asks_for_one() -> None:
    (trigger,) = keda(triggerAuthentication="monitoring")["spec"]["triggers"]
    assert trigger["authenticationRef"] == {"name": "monitoring"}
    assert trigger["metadata"]["authModes"] == "bearer"


def test_a_horizontal_pod_autoscaler_reads_the_same_lag_as_an_external_metric() -> None:
    found = hpa()
    assert found["apiVersion"] == "autoscaling/v2"
    assert "annotations" not in found["metadata"]
    spec = found["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaMirrorMaker2", "name": "mm2"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 5)
    metric = {"name": SERIES, "selector": {"matchLabels": {"stack": "stg", "mirror": "mm2"}}}
    wanted = {"type": "AverageValue", "averageValue": "50000"}
    assert spec["metrics"] == [{"type": "External", "external": {"metric": metric, "target": wanted}}]


def test_seconds_are_those_of_the_mirror_as_a_whole() -> None:
    (trigger,) = keda(lagRecords=None, lagSeconds=60)["spec"]["triggers"]
    assert trigger["metricType"] == "Value"
    assert trigger["metadata"]["threshold"] == "60"
    assert trigger["metadata"]["query"] == 'max(rt_inventory_mirror_lag_seconds{stack="stg",mirror="mm2"} >= 0)'
    (metric,) = hpa(lagRecords=None, lagSeconds=60)["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] == "rt_inventory_mirror_lag_seconds"
    assert metric["external"]["target"] == {"type": "Value", "value": "60"}


def test_workers_are_added_at_once_and_removed_one_by_one() -> None:
    pace = {"cooldownSeconds": 900, "stabilizationSeconds": 1200}
    wanted = {
        "scaleUp": {
            "stabilizationWindowSeconds": 60,
            "policies": [{"type": "Pods", "value": 3, "periodSeconds": 900}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 1200,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 900}],
        },
    }
    assert hpa(**pace)["spec"]["behavior"] == wanted
    assert keda(**pace)["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == wanted


@pytest.mark.parametrize(
    ("platform", "version"),
    [
        ({"version": "0.51.0"}, "kafka.strimzi.io/v1beta2"),
        (
            {"type": "event-streams", "version": "12.0.0", "license": {"accept": True, "id": "L-ABCD"}},
            "eventstreams.ibm.com/v1beta2",
        ),
    ],
)
def test_the_target_is_the_mirror_in_the_platforms_api(platform: dict[str, Any], version: str) -> None:
    engine = Engine(status=STATUS)
    settings = mirror(sourceTasksMax=5, replicas=2, scaling=HPA)
    up(engine, target(platform=platform, mirrors=[settings]))
    assert engine.all("v2:HorizontalPodAutoscaler")[PLACE]["spec"]["scaleTargetRef"]["apiVersion"] == version


def test_an_autoscaler_comes_after_its_mirror_and_lies_beside_it() -> None:
    engine = made(scaling=HPA, namespace="mirrors")
    assert list(engine.all("v2:HorizontalPodAutoscaler")) == [("mirrors", "mm2")]
    component = engine.asked("mm2-scaling")
    assert [urn for urn in component.dependencies if urn.endswith("::mm2-mirror")]


@pytest.mark.parametrize(
    "state",
    [
        {"state": "paused"},
        {"state": "stopped"},
        {"active": "target", "state": "stopped"},
        {"active": "target", "failback": "settling"},
        {"active": "target", "state": "stopped", "failback": "copying"},
    ],
)
def test_a_mirror_at_rest_or_on_its_way_back_has_no_autoscaler_and_keeps_its_workers(state: dict[str, Any]) -> None:
    engine = made(scaling=HPA, **state)
    assert not engine.all("v2:HorizontalPodAutoscaler")
    assert list(engine.asked("mm2-mirror").ignoreChanges) == IGNORED
    if state.get("failback") == "copying":
        assert list(engine.asked("mm2-failback-mirror").ignoreChanges) == []


def test_the_direction_back_has_the_workers_that_are_declared() -> None:
    engine = made(scaling=HPA, naming="prefixed", reverse={"topics": ["audit"]})
    assert list(engine.all("v2:HorizontalPodAutoscaler")) == [PLACE]
    assert list(engine.asked("mm2-mirror").ignoreChanges) == IGNORED
    assert list(engine.asked("mm2-reverse-mirror").ignoreChanges) == []


def test_pulumi_sets_the_workers_again_one_update_after_the_autoscaler_has_gone() -> None:
    owners, seen = [], []
    before: str | None = None
    for settings in ({"scaling": HPA}, {}, {}, {}):
        engine = Engine(stacks={"dev": SOURCE_OUTPUTS, "stg": {"mirrors": {"mm2": {"workersSetBy": before}}}})
        run = up(engine, target(mirrors=[mirror(**{"sourceTasksMax": 5, "replicas": 2, **settings})]))
        before = run.exports["mirrors"]["mm2"]["workersSetBy"]
        owners.append(before)
        seen.append((list(engine.asked("mm2-mirror").ignoreChanges), FORCE in annotations(engine)))
    assert owners == ["autoscaler", "leaving", "settings", "settings"]
    assert seen == [(IGNORED, False), (IGNORED, False), ([], True), ([], False)]


def test_a_mirror_of_which_nothing_is_known_is_not_taken_over() -> None:
    for before, scaled in itertools.product((None, "settings"), (False, True)):
        engine = made(before, **({"scaling": HPA} if scaled else {}))
        assert FORCE not in annotations(engine)


def test_what_is_rendered_holds_the_workers_to_begin_with_and_nothing_of_pulumi() -> None:
    found = {each["kind"]: each for each in manifests(FOLDER / "production", "standby")}
    scaled = found["ScaledObject"]
    assert "annotations" not in scaled["metadata"]
    assert scaled["spec"]["minReplicaCount"] <= found["KafkaMirrorMaker2"]["spec"]["replicas"]
    assert 'stack="standby"' in scaled["spec"]["triggers"][0]["metadata"]["query"]
