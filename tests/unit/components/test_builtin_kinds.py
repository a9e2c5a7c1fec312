"""Built-in kinds of Kubernetes are registered as the SDK's generated classes do it: no state sees a difference."""

import asyncio
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as generated
import pytest
from google.protobuf import json_format
from pulumi.runtime import mocks

from components import builtin_kinds
from components.builtin_kinds import BuiltinKind
from tests.support.prompt_engine import PromptLoop

METADATA = {"name": "orders", "namespace": "eu", "labels": {"app.kubernetes.io/name": "orders"}}
POD = {"metadata": {"labels": {"app": "orders"}}, "spec": {"containers": [{"name": "one", "image": "one@sha256:0"}]}}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
SUBJECTS = [{"kind": "ServiceAccount", "name": "orders", "namespace": "eu"}]
REFERENCE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "orders"}
# What each kind has beside its metadata, as this project gives it and as the generated class takes it.
CONTENT: dict[type[BuiltinKind], tuple[Any, dict[str, Any], dict[str, Any]]] = {
    builtin_kinds.Namespace: (generated.core.v1.Namespace, {}, {}),
    builtin_kinds.ConfigMap: (generated.core.v1.ConfigMap, {"data": {"a": "b"}}, {"data": {"a": "b"}}),
    builtin_kinds.ServiceAccount: (generated.core.v1.ServiceAccount, {}, {}),
    builtin_kinds.Secret: (
        generated.core.v1.Secret,
        {"stringData": {"password": "p"}, "data": {"key": "eA=="}, "type": "Opaque"},
        {"string_data": {"password": "p"}, "data": {"key": "eA=="}, "type": "Opaque"},
    ),
    builtin_kinds.Deployment: (
        generated.apps.v1.Deployment,
        {"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "orders"}}, "template": POD}},
        {"spec": {"replicas": 2, "selector": {"match_labels": {"app": "orders"}}, "template": POD}},
    ),
    builtin_kinds.Job: (
        generated.batch.v1.Job,
        {"spec": {"backoffLimit": 0, "template": POD}},
        {"spec": {"backoff_limit": 0, "template": POD}},
    ),
    builtin_kinds.CronJob: (
        generated.batch.v1.CronJob,
        {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": POD}}}},
        {"spec": {"schedule": "@daily", "job_template": {"spec": {"template": POD}}}},
    ),
    builtin_kinds.NetworkPolicy: (
        generated.networking.v1.NetworkPolicy,
        {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
        {"spec": {"pod_selector": {}, "policy_types": ["Ingress"]}},
    ),
    builtin_kinds.Role: (generated.rbac.v1.Role, {"rules": RULES}, {"rules": RULES}),
    builtin_kinds.RoleBinding: (
        generated.rbac.v1.RoleBinding,
        {"roleRef": REFERENCE, "subjects": SUBJECTS},
        {"role_ref": REFERENCE, "subjects": SUBJECTS},
    ),
}


class Engine(mocks.Mocks):
    """Answers with what it is given."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        return args.resource_id or f"{args.name}-id", dict(args.inputs) or {"data": {"password": "cA=="}}

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        raise AssertionError(args.token)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the engine is asked to register or read."""
    found: list[dict[str, Any]] = []
    for name in ("RegisterResource", "ReadResource"):
        monkeypatch.setattr(mocks.MockMonitor, name, _listening(getattr(mocks.MockMonitor, name), found))
    return found


def _listening(answer: Callable[..., Any], found: list[dict[str, Any]]) -> Callable[..., Any]:
    def listening(self: Any, request: Any) -> Any:
        if request.type.startswith("kubernetes:"):
            found.append(json_format.MessageToDict(request))
        return answer(self, request)

    return listening


def run(program: Callable[[], Any]) -> Any:
    """Run a program; return what it returns, with the value of an output."""
    loop = PromptLoop()
    asyncio.set_event_loop(loop)
    mocks.set_mocks(Engine(), project="test", stack="test", preview=False)
    pulumi.runtime.settings.SETTINGS.rpc_manager.clear()
    pulumi.runtime.settings.SETTINGS.outputs.clear()
    pulumi.runtime.settings.set_root_resource(None)  # type: ignore[arg-type]  # typed for the first program only
    made: list[Any] = []

    async def started() -> Any:
        await pulumi.runtime.run_in_stack(lambda: made.append(program()))
        return await made[0].future() if isinstance(made[0], pulumi.Output) else made[0]

    try:
        return loop.run_until_complete(started())
    finally:
        loop.close()


def comparable(request: dict[str, Any]) -> dict[str, Any]:
    """A request without what differs between lines of a program, and without names of kinds that are gone."""
    return {key: value for key, value in request.items() if key not in ("sourcePosition", "stackTrace", "aliases")}


@pytest.mark.parametrize("kind", CONTENT, ids=lambda kind: kind.__name__)
def test_it_is_registered_as_by_the_generated_class(requests: list[dict[str, Any]], kind: type[BuiltinKind]) -> None:
    theirs, ours_given, theirs_given = CONTENT[kind]
    opts = pulumi.ResourceOptions(protect=True)
    run(lambda: kind("orders", metadata=METADATA, opts=opts, **ours_given))
    run(lambda: theirs("orders", metadata=METADATA, opts=opts, **theirs_given))
    ours, wanted = map(comparable, requests)
    assert ours == wanted
    assert ours["version"]


def test_every_kind_is_compared() -> None:
    own = {each for each in BuiltinKind.__subclasses__() if each.__module__ == builtin_kinds.__name__}
    assert own == set(CONTENT)


def test_a_secret_that_is_there_is_read_as_by_the_generated_class(requests: list[dict[str, Any]]) -> None:
    opts = pulumi.ResourceOptions(additional_secret_outputs=["metadata"])
    data = run(lambda: builtin_kinds.Secret.get("orders", "eu/orders", opts).data)
    run(lambda: generated.core.v1.Secret.get("orders", "eu/orders", opts=opts))
    ours, wanted = map(comparable, requests)
    assert ours == wanted
    assert data == {"password": "cA=="}
