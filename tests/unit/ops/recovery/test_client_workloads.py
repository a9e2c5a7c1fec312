"""Which workloads read a Secret, how they are restarted, and when their new pods count as there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from ops.errors import OpsError
from ops.recovery import client_workloads
from ops.recovery.client_workloads import RESTARTED_AT, ClientWorkloads, Workload, missing
from ops.recovery.kubernetes_access import kubernetes
from tests.support.mirror_api_server import ApiServer, Object, _merge, serving

SECRET, NAMESPACE = "mm2-clients", "shop"
REFERENCES: dict[str, Object] = {
    "env": {"containers": [{"name": "a", "env": [{"name": "U", "valueFrom": {"secretKeyRef": {"name": SECRET}}}]}]},
    "env-from": {"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": SECRET}}]}]},
    "init": {
        "containers": [{"name": "a"}],
        "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": SECRET}}]}],
    },
    "volume": {"containers": [{"name": "a"}], "volumes": [{"name": "v", "secret": {"secretName": SECRET}}]},
    "projected": {
        "containers": [{"name": "a"}],
        "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": SECRET}}]}}],
    },
}
OTHERS: dict[str, Object] = {
    "other-secret": {"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "mm2"}}]}]},
    "config-map": {"containers": [{"name": "a", "envFrom": [{"configMapRef": {"name": SECRET}}]}]},
    "pull-secret": {"containers": [{"name": "a"}], "imagePullSecrets": [{"name": SECRET}]},
}
PLURALS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}


@dataclass
class Apps(ApiServer):
    """Workloads by plural and name, with a controller that replaces their pods unless it is told not to."""

    resource: Object = field(default_factory=dict)
    workloads: dict[tuple[str, str], Object] = field(default_factory=dict)
    rolls: bool = True
    patched: list[str] = field(default_factory=list)

    def hold(self, plural: str, name: str, pod: Object, **spec: Any) -> None:
        found = {
            "metadata": {"name": name, "namespace": NAMESPACE, "generation": 1},
            "spec": {"replicas": 2, "selector": {"matchLabels": {}}, "template": {"spec": pod}, **spec},
        }
        self.workloads[plural, name] = found
        self._roll(plural, found)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        plural, _, name = path.partition(f"/namespaces/{NAMESPACE}/")[2].partition("/")
        if not name:
            return 200, {"items": [each for (of, _), each in self.workloads.items() if of == plural]}
        found = self.workloads[plural, name]
        if method == "PATCH":
            self.patched.append(f"{plural}/{name}")
            before = repr(found["spec"])
            _merge(found, body)
            if repr(found["spec"]) != before:
                found["metadata"]["generation"] += 1
            if self.rolls:
                self._roll(plural, found)
        return 200, found

    def _roll(self, plural: str, of: Object) -> None:
        replicas = of["spec"]["replicas"]
        counts = {"replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas}
        if plural == "daemonsets":
            counts = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
            counts |= {"currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 2}
        of["status"] = {"observedGeneration": of["metadata"]["generation"], **counts}


@dataclass
class Site:
    server: Apps
    api: client.ApiClient

    @property
    def workloads(self) -> ClientWorkloads:
        return ClientWorkloads(self.api, NAMESPACE, SECRET)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    server = Apps()
    with serving(server, tmp_path) as environment, kubernetes(environment) as api:
        yield Site(server, api)


@pytest.mark.parametrize("plural", PLURALS)
def test_those_are_found_that_refer_to_the_secret_and_no_other(site: Site, plural: str) -> None:
    for name, pod in (REFERENCES | OTHERS).items():
        site.server.hold(plural, name, pod)

    found = site.workloads.find()

    assert found == [Workload(PLURALS[plural], NAMESPACE, name) for name in sorted(REFERENCES)]
    assert site.server.patched == []


def test_a_restart_replaces_the_pods_once_for_each_stamp(site: Site) -> None:
    site.server.hold("deployments", "orders", REFERENCES["env"])
    found = site.workloads.find()

    for _ in range(2):
        site.workloads.restart(found, "2026-11-25T18:00:00Z")
    assert site.workloads.wait(found, pytest.fail) == {}

    held = site.server.workloads["deployments", "orders"]
    assert held["spec"]["template"]["metadata"]["annotations"] == {RESTARTED_AT: "2026-11-25T18:00:00Z"}
    assert held["metadata"]["generation"] == 2
    assert held["spec"]["template"]["spec"] == REFERENCES["env"]


def test_permission_is_asked_for_before_each_restart(site: Site) -> None:
    for name in ("carts", "orders"):
        site.server.hold("deployments", name, REFERENCES["env"])
    left = iter(range(1))

    def lost() -> None:
        if next(left, None) is None:
            raise OpsError("no longer")

    with pytest.raises(OpsError, match="no longer"):
        site.workloads.restart(site.workloads.find(), "2026-11-25T18:00:00Z", lost)
    assert len(site.server.patched) == 1


def test_what_is_not_restarted_in_time_is_named_with_the_reason(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_workloads, "REPORTED_EVERY_S", 0.05)
    monkeypatch.setattr(client_workloads, "POLL_S", 0.05)
    site.server.hold("deployments", "orders", REFERENCES["env"])
    site.server.rolls = False
    found, said = site.workloads.find(), list[str]()
    site.workloads.restart(found, "later")

    left = site.workloads.wait(found, said.append, within_s=0.3)

    assert left == {found[0]: "its controller has not seen the restart yet"}
    assert re.search(r"waiting for the new pods of Deployment shop/orders: .* for 0 s at most", said[0])


def test_nobody_waits_for_what_no_controller_replaces(site: Site) -> None:
    site.server.hold("statefulsets", "by-hand", REFERENCES["env"], updateStrategy={"type": "OnDelete"})
    site.server.hold("deployments", "paused", REFERENCES["env"], paused=True)
    found = site.workloads.find()

    left = site.workloads.wait(found, pytest.fail, within_s=3600)

    assert [(str(one), why.split(",")[0]) for one, why in sorted(left.items())] == [
        ("Deployment shop/paused", "its rollout is paused"),
        ("StatefulSet shop/by-hand", "its updateStrategy is OnDelete"),
    ]
    assert found[0].restart_command(None) == "kubectl rollout restart -n shop deployment/paused"


def _held(status: dict[str, int], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"generation": 3},
        "spec": {"replicas": 2, **spec},
        "status": {"observedGeneration": 3, **status},
    }


@pytest.mark.parametrize(
    ("kind", "found", "wanted"),
    [
        ("Deployment", _held({"replicas": 3, "updatedReplicas": 1, "availableReplicas": 2}), "1 of 2 pods are new"),
        ("Deployment", _held({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}), "1 old pods still run"),
        ("Deployment", _held({"replicas": 2, "updatedReplicas": 2}), "0 of 2 pods are available"),
        ("Deployment", _held({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}), None),
        ("Deployment", _held({}, replicas=0), None),
        ("StatefulSet", _held({"replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}), "1 of 2 pods are new"),
        (
            "StatefulSet",
            _held({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}),
            "1 of 2 pods are available",
        ),
        (
            "StatefulSet",
            _held({}, updateStrategy={"rollingUpdate": {"partition": 1}}),
            "the partition of its rolling update keeps pods as they are",
        ),
        (
            "DaemonSet",
            _held({"desiredNumberScheduled": 4, "updatedNumberScheduled": 3, "numberAvailable": 4}),
            "3 of 4 pods are new",
        ),
        ("DaemonSet", _held({"desiredNumberScheduled": 4, "updatedNumberScheduled": 4, "numberAvailable": 4}), None),
    ],
)
def test_what_is_missing_is_counted_as_kubectl_counts(kind: str, found: Object, wanted: str | None) -> None:
    assert missing(kind, found) == wanted
