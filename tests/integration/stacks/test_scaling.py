"""Workers that are scaled while records flow: they follow, no record is lost, and Pulumi leaves their number alone.

The sandbox has no controller for autoscalers. These tests do what it does: they write the scale subresource, under the
name of Kubernetes' controller manager.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from kubernetes import client, config

from examples.__main__ import INTERVALS
from ops.pipeline import stack_checks
from ops.pulumi.stack import PulumiStack
from tests.support.waiting import wait_until

from ...support import records
from ...support.lines_of_business import ARRIVE_S, PER_SECOND, SOURCE, TARGET, Lines
from ...support.projects import changed_mirror, changes, unchanged

MIRRORS = ("kafka.strimzi.io", "v1", "kafkamirrormaker2s")
AUTOSCALER = "kube-controller-manager"
MOST, WORKERS_S = 3, 120
TASKS = MOST + 1  # of the source connector, and the one of the checkpoint connector
SCALING = {"through": "hpa", "minReplicas": 1, "maxReplicas": MOST, "lagRecords": 1000}
# Else the tasks of a worker that left rest for half a minute.
SOON = {"scheduled.rebalance.max.delay.ms": 2000}
# What was sent since the last commit of Connect's offsets is sent again by the next worker if the last one was killed.
SENT_AGAIN_MAX = PER_SECOND * (INTERVALS["flushOffsetsSeconds"] + 3)


@pytest.fixture(scope="module")
def name(lines: Lines) -> Iterator[str]:
    """A mirror with three source tasks whose workers are scaled from here on.

    Its checkpoint connector has a task because a consumer group of the line has committed offsets.
    """
    name = lines.names[0]
    mirror = lines.project.entry(TARGET, "mirrors", name)
    before = deepcopy(mirror)
    mirror |= {"sourceTasksMax": MOST, "scaling": SCALING, "workerConfig": SOON}
    said = lines.project.up(TARGET)
    assert ("+", f"{name}-scaling-autoscaler") in changes(said), said
    lines.carry(name, "before-scaling")
    line = lines.line(name)
    records.consume(lines.project.client(SOURCE), line.topic, line.group)
    yield name
    mirror.clear()
    mirror.update(before)


def scale(lines: Lines, name: str, replicas: int) -> None:
    """Ask for so many workers as an autoscaler does."""
    api = client.CustomObjectsApi(config.new_client_from_config(config_file=str(lines.project.sandbox.kubeconfig)))
    group, version, plural = MIRRORS
    place = (group, version, namespace(lines, name), plural, name)
    body = {"spec": {"replicas": replicas}}
    api.patch_namespaced_custom_object_scale(*place, body, field_manager=AUTOSCALER, _request_timeout=10)
    found = api.get_namespaced_custom_object_scale(*place, _request_timeout=10)
    assert found["spec"]["replicas"] == replicas


def namespace(lines: Lines, name: str) -> str:
    return str(lines.project.outputs(TARGET)["mirrors"][name]["namespace"])


def asked(lines: Lines, name: str) -> int:
    """How many workers the resource asks for."""
    return int(lines.project.mirror(TARGET, name)["spec"]["replicas"])


def alive(lines: Lines, name: str) -> int:
    """How many processes of the mirror's workers there are."""
    processes, prefix = lines.project.sandbox.processes, f"mirror.{namespace(lines, name)}.{name}."
    return sum(processes.alive(each) for each in processes.names() if each.startswith(prefix))


def spread(lines: Lines, name: str) -> dict[str, int]:
    """Running tasks of all connectors by the worker that has them; nothing while the mirror is not ready."""
    status: dict[str, Any] = lines.project.mirror(TARGET, name)["status"]
    if not any(each["type"] == "Ready" and each["status"] == "True" for each in status["conditions"]):
        return {}
    tasks = [task for connector in status["connectors"] for task in connector["tasks"]]
    return Counter(task["worker_id"] for task in tasks if task["state"] == "RUNNING")


def follow(lines: Lines, name: str, replicas: int) -> None:
    """Scale, and wait until as many workers share all tasks and the resource says so."""
    scale(lines, name, replicas)

    def has_followed() -> bool:
        counts = spread(lines, name).values()
        # Connect shares out all tasks evenly, whichever connector they are of.
        shared = len(counts) == replicas and sum(counts) == TASKS and max(counts) - min(counts) <= 1
        said = lines.project.mirror(TARGET, name)["status"]["replicas"]
        return shared and said == replicas and alive(lines, name) == replicas

    wait_until(
        f"{replicas} workers that share {TASKS} tasks",
        has_followed,
        WORKERS_S,
        otherwise=lambda: f"Tasks by worker: {spread(lines, name)}.",
    )


def test_an_update_and_a_drift_check_leave_the_workers_to_the_autoscaler(lines: Lines, name: str) -> None:
    project, mirror = lines.project, lines.project.entry(TARGET, "mirrors", name)
    scale(lines, name, 2)
    wait_until("two workers share the tasks", lambda: len(spread(lines, name)) == 2, WORKERS_S)
    identity = project.identity(TARGET, name)
    found = stack_checks.detect_drift(
        PulumiStack(folder=project.folder, name=TARGET, environment=project.sandbox.environment())
    )
    assert found.changes == ()
    said = project.up(TARGET)
    assert unchanged(said), said
    assert (project.identity(TARGET, name), asked(lines, name)) == (identity, 2)
    mirror |= {"replicas": 3, "refreshGroupsSeconds": mirror["refreshGroupsSeconds"] + 1}
    said = project.up(TARGET)
    assert changes(said) == changed_mirror(name), said
    assert asked(lines, name) == 2, "an update of something else sets the workers back"


def test_workers_follow_the_scale_subresource_and_no_record_is_lost(
    lines: Lines, name: str, record_property: Callable[[str, object], None]
) -> None:
    line = lines.line(name)
    copy = line.copy(line.topic)
    with lines.flow(line.topic, "scaled") as written:
        wait_until("records flow", lambda: len(set(lines.arrived(copy)) & set(written())) >= PER_SECOND, ARRIVE_S)
        for replicas in (MOST, 1):
            follow(lines, name, replicas)
            lines.carry(name, f"with-{replicas}-workers")
    everything = set(written())
    wait_until("every record arrived", lambda: everything <= set(lines.arrived(copy)), ARRIVE_S)
    time.sleep(INTERVALS["flushOffsetsSeconds"] + 1)
    times = Counter(value for value in lines.arrived(copy) if value in everything)
    again = sum(times.values()) - len(times)
    record_property("records", len(everything))
    record_property("sent_again", again)
    # Each step up stops tasks to hand them over, and the step down stops two workers; without transactions a task that
    # does not end in time leaves records that its successor sends again.
    assert again <= 2 * SENT_AGAIN_MAX


# What a stack declares of a stopped mirror is in tests/unit/components/test_scaling.py.
@pytest.mark.nightly
def test_a_mirror_that_is_stopped_loses_its_autoscaler_and_keeps_its_workers(
    lines: Lines, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(lines.project.entry(TARGET, "mirrors", name), "state", "stopped")
    result = lines.project.preview(TARGET)
    assert result.returncode == 0, result.stderr
    planned = changes(result.stdout)
    assert ("-", f"{name}-scaling-autoscaler") in planned, result.stdout
    assert "replicas" not in result.stdout


@pytest.mark.nightly
def test_without_scaling_the_workers_are_pulumis_again_one_update_after_the_autoscaler(lines: Lines, name: str) -> None:
    project, mirror = lines.project, lines.project.entry(TARGET, "mirrors", name)
    scale(lines, name, 2)
    del mirror["scaling"]
    mirror["replicas"] = 1
    said = project.up(TARGET)
    assert ("-", f"{name}-scaling-autoscaler") in changes(said), said
    assert "The next `pulumi up` makes them 1" in said
    scale(lines, name, 3)  # as it still may while it goes
    said = project.up(TARGET)
    assert changes(said) == changed_mirror(name), said
    assert asked(lines, name) == 1
    wait_until("one worker with all tasks", lambda: [*spread(lines, name).values()] == [TASKS], WORKERS_S)
    project.up(TARGET)
    said = project.up(TARGET)
    assert unchanged(said), said
    lines.carry(name, "after-scaling")
