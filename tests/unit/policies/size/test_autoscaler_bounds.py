"""The rule on how far and how fast a mirror's workers may be scaled."""

from collections.abc import Callable

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE

from policies.rules.size.autoscaler_bounds import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import changed

MAKERS = [kit.scaled_object, kit.pod_autoscaler]
FEWEST = {kit.scaled_object: "minReplicaCount", kit.pod_autoscaler: "minReplicas"}
MOST = {kit.scaled_object: "maxReplicaCount", kit.pod_autoscaler: "maxReplicas"}
NAMED = {kit.scaled_object: "ScaledObject mm2", kit.pod_autoscaler: "HorizontalPodAutoscaler mm2"}
PATH = {
    kit.scaled_object: "advanced.horizontalPodAutoscalerConfig.behavior.scaleDown",
    kit.pod_autoscaler: "behavior.scaleDown",
}
Maker = Callable[..., kit.Sample]
WITHOUT = "A mirror without a worker copies nothing."


def violation() -> list[kit.Sample]:
    return changed(kit.scaled_object(kit.V1), "to-nothing", lambda scaler: scaler.spec.pop("minReplicaCount"))


def down(maker: Maker, scaler: kit.Sample) -> kit.Spec:
    """What the autoscaler says of taking workers away, to be changed in place."""
    found: kit.Spec = scaler.spec
    for key in PATH[maker].split("."):
        found = found[key]
    return found


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("maker", MAKERS)
def test_bounds_within_the_limits_pass(maker: Maker, shape: str) -> None:
    scaler = maker(shape)
    assert kit.judge(POLICY, scaler) == []
    scaler.spec.update({FEWEST[maker]: 10, MOST[maker]: 10})
    assert kit.judge(POLICY, scaler) == []


@pytest.mark.parametrize("maker", MAKERS)
def test_a_mirror_is_not_scaled_to_nothing(maker: Maker) -> None:
    scaler = maker(kit.V1)
    scaler.spec[FEWEST[maker]] = 0
    assert kit.judge(POLICY, scaler) == [f"{NAMED[maker]}: spec.{FEWEST[maker]} must be >= 1 (got 0). {WITHOUT}"]


def test_without_a_lower_bound_keda_scales_to_nothing_and_kubernetes_to_one() -> None:
    scaler, other = kit.scaled_object(kit.V1), kit.pod_autoscaler(kit.V1)
    del scaler.spec["minReplicaCount"], other.spec["minReplicas"]
    reported = f"ScaledObject mm2: spec.minReplicaCount must be >= 1 (got nothing, which means 0). {WITHOUT}"
    assert kit.judge(POLICY, scaler) == [reported]
    assert kit.judge(POLICY, other) == []
    assert kit.judge(POLICY, other, minimumWorkers=2) == [
        f"HorizontalPodAutoscaler mm2: spec.minReplicas must be >= 2 (got nothing, which means 1). {WITHOUT}"
    ]


def test_a_mirror_that_seems_idle_keeps_its_workers() -> None:
    scaler = kit.scaled_object(kit.V1)
    scaler.spec["idleReplicaCount"] = 0
    assert kit.judge(POLICY, scaler) == [
        "ScaledObject mm2: spec.idleReplicaCount must not be set (got 0). Below the lower bound a mirror that seems to "
        "have caught up copies nothing."
    ]


@pytest.mark.parametrize("maker", MAKERS)
def test_more_workers_than_the_limit_are_reported(maker: Maker) -> None:
    scaler, fix = maker(kit.V1), "Raise maximumWorkers if that many are wanted."
    scaler.spec[MOST[maker]] = 11
    assert kit.judge(POLICY, scaler) == [f"{NAMED[maker]}: spec.{MOST[maker]} must be set and <= 10 (got 11). {fix}"]
    assert kit.judge(POLICY, scaler, maximumWorkers=11) == []
    del scaler.spec[MOST[maker]]
    default = 100 if maker is kit.scaled_object else 0
    assert kit.judge(POLICY, scaler) == [
        f"{NAMED[maker]}: spec.{MOST[maker]} must be set and <= 10 (got nothing, which means {default}). {fix}"
    ]


@pytest.mark.parametrize("maker", MAKERS)
def test_bounds_that_are_exchanged_are_reported(maker: Maker) -> None:
    scaler = maker(kit.V1)
    scaler.spec.update({FEWEST[maker]: 4, MOST[maker]: 3})
    low, high = f"spec.{FEWEST[maker]}", f"spec.{MOST[maker]}"
    assert kit.judge(POLICY, scaler) == [f"{NAMED[maker]}: {high} must be >= {low} (got 3, {low} 4). Exchange them."]


@pytest.mark.parametrize("maker", MAKERS)
def test_workers_are_not_taken_away_at_once(maker: Maker) -> None:
    scaler = maker(kit.V1)
    down(maker, scaler)["stabilizationWindowSeconds"] = 0
    where = f"spec.{PATH[maker]}.stabilizationWindowSeconds"
    changes = "Each change of their number makes Connect hand out all tasks anew."
    assert kit.judge(POLICY, scaler) == [f"{NAMED[maker]}: {where} must be >= 60 (got 0). {changes}"]
    down(maker, scaler)["selectPolicy"] = "Disabled"
    assert kit.judge(POLICY, scaler) == []
    down(maker, scaler).clear()
    assert kit.judge(POLICY, scaler) == []
    assert kit.judge(POLICY, scaler, minimumStabilizationSeconds=301) == [
        f"{NAMED[maker]}: {where} must be >= 301 (got 300). {changes}"
    ]


@pytest.mark.parametrize("maker", MAKERS)
def test_what_scales_something_else_is_ignored(maker: Maker) -> None:
    for target in ({"apiVersion": "apps/v1", "kind": "Deployment"}, {"kind": "KafkaMirrorMaker2"}, {}):
        scaler = maker(kit.V1)
        scaler.spec["scaleTargetRef"] = {"name": "app", **target}
        scaler.spec[MOST[maker]] = 500
        assert kit.judge(POLICY, scaler) == []
    scaler = maker(kit.V1)
    scaler.spec[MOST[maker]] = 500
    assert kit.judge(POLICY, kit.Sample("kubernetes:apps/v1:Deployment", scaler.props)) == []


def test_one_unknown_value_hides_no_other() -> None:
    scaler = kit.scaled_object(kit.V1)
    scaler.spec.update(minReplicaCount=0, maxReplicaCount=UNKNOWN_NUMBER_VALUE)
    assert kit.judge(POLICY, scaler) == [f"ScaledObject mm2: spec.minReplicaCount must be >= 1 (got 0). {WITHOUT}"]
    scaler.spec["scaleTargetRef"]["kind"] = UNKNOWN_STRING_VALUE
    assert kit.judge(POLICY, scaler) == []
