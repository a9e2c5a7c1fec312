"""The rule that a mirror is not scaled beyond its tasks."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE

from policies.rules.size.autoscaler_tasks import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, changed

# Two source tasks and one that translates offsets; v1beta2 has one for heartbeats as well.
TASKS = {kit.V1: 3, kit.V1BETA2: 4, kit.EVENT_STREAMS: 4}


def violation() -> list[kit.Sample]:
    return [
        *broken_mirror("mm-tasks", lambda mirror: None),
        *changed(
            kit.pod_autoscaler(kit.V1, name="mm-tasks"),
            "mm-tasks",
            lambda scaler: scaler.spec.update(maxReplicas=9),
        ),
    ]


def message(tasks: int, got: int) -> str:
    return (
        f"ScaledObject mm2: spec.maxReplicaCount must be <= {tasks}, the tasks of mirror mm2 (got {got}). "
        "More workers are idle: lower it, or raise tasksMax."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_as_many_workers_as_tasks_pass_and_more_do_not(shape: str) -> None:
    scaler, mirror = kit.scaled_object(shape), kit.mirror(shape)
    scaler.spec["maxReplicaCount"] = TASKS[shape]
    assert kit.judge_stack(POLICY, [scaler, mirror]) == []
    scaler.spec["maxReplicaCount"] += 1
    assert kit.judge_stack_by_urn(POLICY, [mirror, scaler]) == [(message(TASKS[shape], TASKS[shape] + 1), scaler.urn)]
    kit.flow(mirror)["sourceConnector"]["tasksMax"] = 3
    assert kit.judge_stack(POLICY, [mirror, scaler]) == []


def test_kubernetes_own_autoscaler_is_judged_as_well() -> None:
    scaler = kit.pod_autoscaler(kit.V1)
    scaler.spec["maxReplicas"] = 7
    (found,) = kit.judge_stack(POLICY, [scaler, kit.mirror(kit.V1)])
    assert found.startswith("HorizontalPodAutoscaler mm2: spec.maxReplicas must be <= 3")


def test_a_mirror_elsewhere_or_of_another_name_is_not_meant() -> None:
    scaler = kit.scaled_object(kit.V1)
    scaler.spec["maxReplicaCount"] = 9
    other, elsewhere = kit.mirror(kit.V1, "mm3"), kit.mirror(kit.V1)
    elsewhere.props["metadata"]["namespace"] = "elsewhere"
    assert kit.judge_stack(POLICY, [scaler, other, elsewhere]) == []
    assert kit.judge_stack(POLICY, [scaler]) == []


def test_tasks_that_are_not_known_yet_are_left_to_the_update() -> None:
    scaler, mirror = kit.scaled_object(kit.V1), kit.mirror(kit.V1)
    scaler.spec["maxReplicaCount"] = 9
    kit.flow(mirror)["sourceConnector"]["tasksMax"] = UNKNOWN_NUMBER_VALUE
    assert kit.judge_stack(POLICY, [scaler, mirror]) == []
