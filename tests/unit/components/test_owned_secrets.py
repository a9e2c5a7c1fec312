"""Secrets of the stack: a value set by hand is set back and named, and a Secret with other values is kept."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from components.kubernetes_objects import KubernetesAccess, UnreadableError, _Guard, setters

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
BY_HAND = SimpleNamespace(manager="kubectl-patch", time=AT, fields_v1={"f:data": {"f:password": {}}})
LABELLED = SimpleNamespace(manager="argocd", time=AT, fields_v1={"f:metadata": {"f:labels": {}}})
OURS = SimpleNamespace(manager="pulumi-kubernetes-0a1b", time=AT, fields_v1={"f:data": {"f:password": {}}})
WANTED, OTHER = {"password": "d2FudGVk"}, {"password": "aW4tdXNl"}
INPUTS = {"metadata": {"namespace": "dev", "name": "user-credentials"}}
ARGS = pulumi.ResourceHookArgs(urn="", id="", name="", type="", new_inputs=INPUTS)


class Access(KubernetesAccess):
    """A Secret with these managed fields and values; None: there is none; an exception: it cannot be read."""

    def __init__(self, answer: Any, data: dict[str, str] | None = None) -> None:
        super().__init__()
        object.__setattr__(self, "answer", answer)
        object.__setattr__(self, "data", data)

    def secret(self, namespace: str, name: str) -> Any:
        assert (namespace, name) == ("dev", "user-credentials")
        answer = vars(self)["answer"]
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            return None
        return SimpleNamespace(metadata=SimpleNamespace(managed_fields=answer), data=vars(self)["data"])


def create(access: Access) -> None:
    async def run() -> None:
        inputs = {**INPUTS, "stringData": pulumi.Output.secret({"password": "wanted"})}
        await _Guard(access).before_create(
            pulumi.ResourceHookArgs(urn="", id="", name="", type="", new_inputs=inputs),
        )

    asyncio.run(run())


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", found.append)
    return found


def test_only_who_set_values_is_named() -> None:
    at = "2026-03-01T09:30:00+00:00"
    assert setters([OURS, BY_HAND, LABELLED]) == {"pulumi-kubernetes-0a1b": at, "kubectl-patch": at}
    assert setters(None) == {}


def test_who_changed_a_value_is_named_before_it_is_set_back(warnings: list[str]) -> None:
    _Guard(Access([OURS, BY_HAND])).before_update(ARGS)
    assert len(warnings) == 1
    assert warnings[0].startswith(
        "Secret dev/user-credentials: values were set by kubectl-patch at 2026-03-01T09:30:00+00:00, and this update "
        "sets them back"
    )
    assert "users[].passwordGeneration" in warnings[0]


@pytest.mark.parametrize("answer", [[OURS, LABELLED], None, UnreadableError("the API server answers 403")])
def test_an_update_of_what_nobody_changed_names_nobody(answer: Any, warnings: list[str]) -> None:
    _Guard(Access(answer)).before_update(ARGS)
    assert not warnings


@pytest.mark.parametrize("owner", [BY_HAND, OURS])
def test_a_secret_with_other_values_is_never_overwritten(owner: Any) -> None:
    """Of another stack too: its users log in with them."""
    refused = rf"must not exist yet with other values \(got .* {owner.manager} at .*another stack.*users\[\]\.secret"
    with pytest.raises(pulumi.RunError, match=refused) as error:
        create(Access([owner], OTHER))
    assert not [value for value in ("wanted", *WANTED.values(), *OTHER.values()) if value in str(error.value)]


def test_a_secret_that_cannot_be_read_is_not_made() -> None:
    with pytest.raises(pulumi.RunError, match=r"must be readable before it is made.*answers 403.*kubernetes:context"):
        create(Access(UnreadableError("the API server answers 403")))


@pytest.mark.parametrize(("fields", "data"), [(None, None), ([OURS], WANTED), ([LABELLED], None), ([BY_HAND], WANTED)])
def test_a_new_name_and_the_same_values_are_made(fields: Any, data: dict[str, str] | None) -> None:
    create(Access(fields, data))
