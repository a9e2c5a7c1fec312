"""The declared follower in a failover: it ends before groups are set, does its last rounds there, and is looked at."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from contract.stack_outputs import BreakGlassCopy
from kafka.cluster import CALL_DEADLINE_S
from ops.errors import OpsError
from ops.follow.follower import STATES, Round
from ops.inspection import follower_status
from ops.inspection.follower_status import FollowerStatus
from ops.pulumi import stack_file
from ops.recovery import break_glass, follower_pod, kubernetes_access, translation
from ops.recovery.break_glass import DirectChanges
from ops.recovery.failover import PLANNED, UNPLANNED
from ops.recovery.mirror_context import MirrorContext
from ops.status import document
from tests.support.failover_sides import DRAINED, STOPPED, Sides, work
from tests.support.mirror_api_server import ApiServer, serving
from tests.support.recovery_pair import known, observe

EXACT = {
    "exact_offsets": True,
    "sync_group_offsets": False,
    "resource": {"api_version": "kafka.strimzi.io/v1", "namespace": "stg", "name": "mm2"},
}
RUNS = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "observedGeneration": 2}


class Cluster(ApiServer):
    """An API server with the follower's Deployment, and a pod for so many times that somebody lists them."""

    def __init__(self, replicas: int | None = 1, status: Any = RUNS, pods: int = 0) -> None:
        super().__init__(resource={})
        self.replicas, self.status, self.pods = replicas, status, pods
        self.seen = list[str]()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.seen.append(f"{path}?{self.query}")
        if path.endswith("/pods"):
            self.pods -= 1
            names = ["mm2-follower-x"] if self.pods >= 0 else []
            over = [{"metadata": {"name": "mm2-follower-old"}, "status": {"phase": "Failed"}}]
            running = [{"metadata": {"name": name}, "status": {"phase": "Running"}} for name in names]
            return 200, {"items": [*running, *over]}
        if self.replicas is None:
            return 404, {}
        assert path == "/apis/apps/v1/namespaces/stg/deployments/mm2-follower"
        return 200, {"metadata": {"generation": 2}, "spec": {"replicas": self.replicas}, "status": self.status}


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        (Cluster(), None),
        (Cluster(replicas=None), "Deployment stg/mm2-follower does not exist"),
        (Cluster(replicas=0), "Deployment stg/mm2-follower is scaled to 0"),
        (Cluster(status={**RUNS, "availableReplicas": 0}), "0 of 1 pods are available, so no round has succeeded"),
    ],
)
def test_a_follower_that_is_missing_or_stale_is_named(tmp_path: Path, cluster: Cluster, problem: str | None) -> None:
    with serving(cluster, tmp_path) as environment:
        found = follower_status.observe(known(EXACT), environment)
    assert found is not None
    assert found.unread is None
    assert (found.problem is None) if problem is None else (problem in str(found.problem))


def test_nobody_is_asked_where_none_is_due_and_a_silent_cluster_is_unknown(tmp_path: Path) -> None:
    with serving(cluster := Cluster(replicas=None), tmp_path) as environment:
        for pair in (known(), known(EXACT, state="stopped"), known(EXACT, active="target"), known(EXACT, failback="x")):
            assert follower_status.observe(pair, environment) is None
    assert cluster.seen == []
    found = follower_status.observe(known(EXACT), {"KUBECONFIG": str(tmp_path / "none")})
    assert found is not None
    assert found.problem is None
    assert "kubernetes" in str(found.unread)


def test_status_names_a_follower_that_sets_nothing_and_does_not_call_an_unknown_one_healthy() -> None:
    seen = observe(known(EXACT), follower=FollowerStatus(problem="Deployment stg/mm2-follower does not exist"))
    assert "Deployment stg/mm2-follower does not exist" in " ".join(document.problems(seen))
    assert document.health(seen) == "degraded"
    unread = observe(known(EXACT), follower=FollowerStatus(unread="no answer"), unknown={"follower": "no answer"})
    assert (document.problems(unread), document.health(unread)) == ([], "unknown")


def test_its_pod_must_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_pod, "POLL_S", 0.0)
    said = list[str]()
    with serving(cluster := Cluster(pods=2), tmp_path) as environment:
        follower_pod.require_ended(known(EXACT), environment, said.append)
    assert said == ["  waiting for the end of the follower's pod mm2-follower-x"]
    assert len(cluster.seen) == 3
    monkeypatch.setattr(follower_pod, "SAID_EVERY_S", 0.0)
    with serving(Cluster(pods=2), tmp_path) as environment:
        follower_pod.require_ended(known(EXACT), environment, said.append)
    assert len(said) == 3, "it is said again and again"
    selected = "app.kubernetes.io/name=rt-inventory-follower,app.kubernetes.io/instance=mm2"
    assert f"labelSelector={selected}" in unquote(cluster.seen[0])
    with (
        serving(Cluster(pods=99), tmp_path) as environment,
        pytest.raises(OpsError, match="must have no pod once the mirror is stopped \\(got mm2-follower-x after 0 s"),
    ):
        follower_pod.require_ended(known(EXACT), environment, said.append, 0)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch, sides: Sides) -> list[str]:
    """What happens of the follower, in its order; its last rounds set something."""
    seen = list[str]()
    sides.at_up = lambda: seen.append("up")
    monkeypatch.setattr(follower_pod, "require_ended", lambda *_: seen.append("ended"))
    monkeypatch.setattr(follower_pod, "last_rounds", lambda *_: seen.append("rounds") or True)
    monkeypatch.setattr(translation.Prover, "forget", lambda _: seen.append("forgotten"))
    return seen


@pytest.mark.parametrize("path", [PLANNED, UNPLANNED])
def test_no_pod_is_left_when_a_failover_sets_groups(order: list[str], path: str) -> None:
    work(path, of=known(EXACT), **DRAINED).stop()
    assert order == ["up", "ended"]
    order.clear()
    work(path, **DRAINED).stop()
    assert order == ["up"], "a mirror without a follower has no pod to wait for"


def test_a_planned_failover_goes_on_from_the_followers_last_rounds(order: list[str], sides: Sides) -> None:
    step = next(one for one in work(of=known(EXACT)).steps() if one.name == "offsets")
    assert step.words.endswith("as the follower has translated them")
    work(of=known(EXACT), **DRAINED, **STOPPED).offsets()
    assert order == ["rounds", "forgotten"]
    order.clear()
    work(exact=True, of=known(EXACT), **DRAINED, **STOPPED).offsets()
    assert order == [], "the records decide"
    work(UNPLANNED, of=known(EXACT), **STOPPED).offsets()
    assert order == [], "there is no source to follow"


def test_rounds_are_done_until_nothing_is_set_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [3, 1, 0, 9]

    @contextmanager
    def followed(_: MirrorContext, source_within_s: float) -> Iterator[Any]:
        assert source_within_s == CALL_DEADLINE_S, "the source is there, and may be slow"

        class Made:
            def round(self) -> Round:
                positions = {**dict.fromkeys(STATES, 0), "exact": 4}
                return Round(positions=positions, groups=2, set_offsets=left.pop(0))

        yield Made()

    monkeypatch.setattr(follower_pod, "followed", followed)
    said = list[str]()
    assert follower_pod.last_rounds(known(EXACT), said.append)
    assert left == [9]
    assert said == ["  positions as the follower leaves them: 4 exact"]
    left[:] = [0]
    assert not follower_pod.last_rounds(known(EXACT), said.append)


def test_without_pulumi_its_replicas_are_written_and_its_pod_is_not_waited_for_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    applied, waited = list[tuple[str, Mapping[str, Any]]](), list[str]()
    objects = [
        {
            "apiVersion": version,
            "kind": kind,
            "namespace": "stg",
            "name": name,
            "dependsOn": "state",
            "specs": {"running": {"replicas": 1}, "stopped": {"replicas": 0}},
        }
        for version, kind, name in (
            ("kafka.strimzi.io/v1", "KafkaMirrorMaker2", "mm2"),
            ("apps/v1", "Deployment", "mm2-follower"),
        )
    ]
    outputs = {"mirrors": {"mm2": {"active": "source"}}, "verificationRequests": {"mm2": {"mirror": {}}}}
    copy = BreakGlassCopy.model_validate({"outputs": outputs, "objects": objects})

    class Secret:
        mirror, namespace, name, context = "mm2", "stg", "mm2-break-glass", None

        def read(self, _: Any) -> Any:
            return copy, {"type": "Opaque", "data": {}}

    @contextmanager
    def access(*_: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr(break_glass, "kubernetes", access)
    monkeypatch.setattr(stack_file, "mirror_entry", lambda *_: {"state": "stopped"})
    monkeypatch.setattr(kubernetes_access, "change_spec", lambda *of: applied.append((of[4], of[5]({}))))
    monkeypatch.setattr(kubernetes_access, "apply_secret", lambda *_: None)
    monkeypatch.setattr(break_glass, "wait_until_ready", lambda resource, *_: waited.append(resource.kind))
    secret: Any = Secret()
    DirectChanges(folder=tmp_path, name="stg", secret=secret, environment={}).up(None, lambda _: None)
    assert applied == [("mm2", {"replicas": 0}), ("mm2-follower", {"replicas": 0})]
    assert waited == ["KafkaMirrorMaker2"]
