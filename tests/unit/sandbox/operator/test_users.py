"""KafkaUsers follow what their operator watches: the KafkaUser and its own Secret, not a Secret that it refers to."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sandbox.operator import NotReadyError
from sandbox.operator import __main__ as operator
from sandbox.operator.kubernetes_api import MIRROR, USER, SecretCache
from sandbox.operator.reconcile import Dispatcher, Key
from sandbox.operator.users import RESYNC_S, Users

from ....support.api_objects import MemoryKubernetes

APP, OTHER, MIRRORING = Key(USER.kind, "ns", "app"), Key(USER.kind, "ns", "other"), Key(MIRROR.kind, "ns", "mm2")


class Queue:
    """A work queue that only remembers what was put on it."""

    def __init__(self) -> None:
        self.added: list[Key] = []

    def known(self, kind: str, namespace: str | None = None) -> list[Key]:
        return [key for key in (APP, OTHER, MIRRORING) if key.kind == kind and namespace in (None, key.namespace)]

    def add(self, key: Key, delay_s: float = 0.0) -> None:
        self.added.append(key)


def test_a_secret_that_a_user_only_refers_to_wakes_no_user() -> None:
    queue = Queue()
    metadata = {"namespace": "ns", "name": "app-credentials", "resourceVersion": "1"}
    note = operator._secrets(cast(Dispatcher, queue), SecretCache())
    asyncio.run(
        note(event={"type": "MODIFIED", "object": {"metadata": metadata}}, namespace="ns", name="app-credentials")
    )
    assert queue.added == [MIRRORING]


def test_the_secret_of_a_user_wakes_that_user_alone() -> None:
    queue = Queue()
    wake = operator._of_the_same_name(cast(Dispatcher, queue), USER)
    asyncio.run(wake(namespace="ns", name="app"))
    asyncio.run(wake(namespace="ns", name="app-credentials"))
    assert queue.added == [APP]


class Stale(MemoryKubernetes):
    """An API server whose watch has not shown the new password yet."""

    def secret(self, namespace: str, name: str) -> dict[str, str] | None:
        return {"password": "old"} if name == "app-credentials" else super().secret(namespace, name)


def user(**template: Any) -> dict[str, Any]:
    password = {"valueFrom": {"secretKeyRef": {"name": "app-credentials", "key": "password"}}}
    spec = {"authentication": {"type": "scram-sha-512", "password": password}}
    return {"metadata": {"name": "app", "namespace": "ns"}, "spec": spec | ({"template": template} if template else {})}


def test_a_user_that_changes_gets_the_password_of_now_and_its_secret_the_annotations_of_the_template(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kubernetes = Stale(app_credentials={"password": "new"})
    cluster = SimpleNamespace(name="small", client=None, authorizes=False)
    lookup: Any = SimpleNamespace(of=lambda _: cluster)
    set_: list[str] = []
    monkeypatch.setattr(
        Users, "_credential", lambda _self, _cluster, _namespace, _name, password: set_.append(password)
    )
    reconciler = Users(cast(Any, kubernetes), lookup)
    outcome = reconciler.reconcile(user(secret={"metadata": {"annotations": {"generation": "2"}}}))
    assert set_ == ["new"]
    written = kubernetes.secrets["app"]
    assert (written.values["password"], written.annotations) == ("new", {"generation": "2"})
    assert outcome.again_s == RESYNC_S == 120


def test_a_password_is_read_as_ascii_as_strimzi_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = MemoryKubernetes(app_credentials={"password": "pass~wörd"})
    lookup: Any = SimpleNamespace(of=lambda _: SimpleNamespace(name="small", client=None, authorizes=False))
    set_: list[str] = []
    monkeypatch.setattr(Users, "_credential", lambda *arguments: set_.append(arguments[-1]))
    Users(cast(Any, kubernetes), lookup).reconcile(user())
    assert set_ == ["pass~w\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}rd"]
    assert kubernetes.secrets["app"].values["password"] == "pass~w??rd"


def test_a_user_that_is_gone_loses_its_credential_as_soon_as_its_cluster_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing holds the KafkaUser back: with Strimzi it is gone at once, also where no broker answers."""
    kubernetes = MemoryKubernetes(app_credentials={"password": "new"})
    cluster = SimpleNamespace(name="small", client=None, authorizes=False)
    answers: list[Any] = [NotReadyError("ClusterNotReady", "no broker answers", retry_s=2), cluster]
    asked: list[Any] = []

    def if_it_stays(resource: Any) -> Any:
        asked.append(resource)
        answer = answers.pop(0)
        if isinstance(answer, NotReadyError):
            raise answer
        return answer

    lookup: Any = SimpleNamespace(of=lambda _: cluster, if_it_stays=if_it_stays)
    revoked: list[str] = []
    monkeypatch.setattr(Users, "_credential", lambda *_: None)
    monkeypatch.setattr(Users, "_revoke", lambda _self, _cluster, _ns, name, _principal, scram: revoked.append(name))
    reconciler = Users(cast(Any, kubernetes), lookup)
    assert reconciler.finalizer is None
    reconciler.reconcile(user())
    with pytest.raises(NotReadyError):
        reconciler.remove("ns", "app", None)
    assert revoked == []
    reconciler.remove("ns", "app", None)
    reconciler.remove("ns", "app", None)
    assert (revoked, asked) == (["app"], [user(), user()])
