"""What the operator knows of Secrets without asking: the newest, for a while, and what it wrote itself at once."""

import base64
import time
from typing import Any

import pytest

from sandbox.operator import kubernetes_api
from sandbox.operator.kubernetes_api import Kubernetes, SecretCache


def secret(value: str, version: int, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": "pw", "resourceVersion": str(version), "annotations": annotations},
        "data": {"password": base64.b64encode(value.encode()).decode()},
    }


class Api:
    """The core API with one Secret; counts how often it is read."""

    def __init__(self) -> None:
        self.stored = secret("first", 1)
        self.reads = 0

    def read_namespaced_secret(self, name: str, namespace: str, **_: Any) -> dict[str, Any]:
        self.reads += 1
        return self.stored

    def create_namespaced_secret(self, namespace: str, body: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.stored = {**body, "metadata": {**body["metadata"], "namespace": namespace, "resourceVersion": "7"}}
        return self.stored

    def sanitize_for_serialization(self, found: Any) -> Any:
        return found


@pytest.fixture
def api() -> Api:
    return Api()


def kubernetes(api: Api, seen: SecretCache | None) -> Kubernetes:
    made: Any = object.__new__(Kubernetes)
    made._seen, made._core, made._client = seen, api, api
    return made  # type: ignore[no-any-return]


def test_what_the_watch_delivered_is_not_read(api: Api) -> None:
    seen = SecretCache()
    seen.put(secret("delivered", 2, team="a"))
    found = kubernetes(api, seen).stored_secret("ns", "pw")
    assert found is not None
    assert (found.values, found.annotations, api.reads) == ({"password": "delivered"}, {"team": "a"}, 0)


def test_without_a_watch_it_is_read_each_time(api: Api) -> None:
    asked = kubernetes(api, None)
    assert [asked.secret("ns", "pw") for _ in range(2)] == [{"password": "first"}] * 2
    assert api.reads == 2


def test_an_older_event_does_not_hide_what_is_newer() -> None:
    seen = SecretCache()
    for value, version in (("new", 10), ("old", 9)):
        seen.put(secret(value, version))
    found = seen.get("ns", "pw")
    assert found is not None
    assert found.values == {"password": "new"}


def test_an_own_write_is_known_at_once(api: Api) -> None:
    seen = SecretCache()
    seen.put(secret("first", 1))
    owner = {"apiVersion": "v1", "kind": "Kafka", "metadata": {"namespace": "ns", "name": "k", "uid": "u"}}
    assert kubernetes(api, seen).write_secret(owner, "pw", {"password": "second"}, {})
    seen.put(secret("first", 6))
    assert kubernetes(api, seen).secret("ns", "pw") == {"password": "second"}
    assert api.reads == 0


def test_what_is_gone_or_old_is_read_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = SecretCache()
    seen.put(secret("delivered", 2))
    seen.forget("ns", "pw")
    assert kubernetes(api, seen).secret("ns", "pw") == {"password": "first"}
    later = time.monotonic() + kubernetes_api.OLD_S + 1
    monkeypatch.setattr(kubernetes_api.time, "monotonic", lambda: later)
    assert kubernetes(api, seen).secret("ns", "pw") == {"password": "first"}
    assert api.reads == 2


def test_no_value_is_shown() -> None:
    seen = SecretCache()
    seen.put(secret("hidden", 1))
    assert "hidden" not in repr(seen) + repr(seen.get("ns", "pw"))
