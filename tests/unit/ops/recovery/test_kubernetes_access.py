"""Calls of the API server are made again while that may help, and only then, within a deadline."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from ops.errors import OpsError
from ops.recovery import kubernetes_access
from ops.recovery.kubernetes_access import kubernetes
from tests.support.mirror_api_server import ApiServer, serving

BODY = {"metadata": {"name": "a"}, "data": {"key": "value"}}


@dataclass
class Failing(ApiServer):
    """An API server that gives these answers before its own; 0 closes the connection."""

    failures: list[int] = field(default_factory=list)
    calls: int = 0
    message: str = "not now"

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.calls += 1
        if not self.failures:
            return super().answer(method, path, body)
        code = self.failures.pop(0)
        if code == 0:
            raise ConnectionAbortedError
        return code, {"message": self.message}


@pytest.fixture
def server() -> Failing:
    server = Failing({})
    server.config_maps["a"] = dict(BODY)
    return server


@pytest.fixture
def environment(server: Failing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    monkeypatch.setattr(kubernetes_access, "FIRST_PAUSE_S", 0.01)
    with serving(server, tmp_path) as found:
        yield found


def read(environment: dict[str, str]) -> dict[str, str]:
    with kubernetes(environment) as api:
        found: dict[str, str] = client.CoreV1Api(api).read_namespaced_config_map("a", "there").data
    return found


def test_a_kubeconfig_that_is_no_yaml_is_reported_without_its_text(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("token: [very-secret-4711\n")
    with pytest.raises(OpsError, match="it cannot be parsed: ParserError") as raised:
        read({"KUBECONFIG": str(file)})
    assert "4711" not in str(raised.value)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504, 0])
def test_a_call_is_made_again_while_the_api_server_is_busy_or_away(
    server: Failing, environment: dict[str, str], code: int
) -> None:
    server.failures = [code, code]
    assert read(environment) == BODY["data"]
    assert server.calls == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 422])
def test_an_answer_that_would_be_the_same_again_is_not_asked_for_again(
    server: Failing, environment: dict[str, str], code: int
) -> None:
    server.failures = [code, code]
    with pytest.raises(OpsError, match=f"got {code}"):
        read(environment)
    assert server.calls == 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_access, "TRIED_WITHIN_S", 0.2)


@pytest.mark.usefixtures("impatient")
def test_it_gives_up_at_its_deadline_with_the_last_answer(server: Failing, environment: dict[str, str]) -> None:
    server.failures = [503] * 10_000
    with pytest.raises(OpsError, match=r"must accept the request within 0.2 s \(got 503: .*not now"):
        read(environment)
    assert 2 <= server.calls < 100


@pytest.mark.usefixtures("impatient")
def test_nobody_who_answers_is_reported_at_the_deadline(environment: dict[str, str], server: Failing) -> None:
    server.failures = [0] * 10_000
    with pytest.raises(OpsError, match="the API server of the kubeconfig's current context must answer"):
        read(environment)
    assert server.calls >= 2


def test_it_waits_as_long_as_a_busy_api_server_asks_for_and_says_so(
    server: Failing, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kubernetes_access, "NOTICED_S", 0.5)
    server.failures, server.headers = [429], {"Retry-After": "1"}
    began = time.monotonic()
    assert read(environment) == BODY["data"]
    assert 1 <= time.monotonic() - began < 10
    said = "waiting for the API server of the kubeconfig's current context (got 429)\n"
    assert (server.calls, capsys.readouterr().err) == (2, said)


def test_an_hour_that_it_asks_for_ends_at_the_deadline_after_a_last_attempt(
    server: Failing, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "TRIED_WITHIN_S", 1.0)
    server.failures, server.headers = [429] * 10_000, {"Retry-After": "3600"}
    began = time.monotonic()
    with pytest.raises(OpsError, match=r"within 1 s \(got 429: .*run this again once it answers"):
        read(environment)
    assert time.monotonic() - began < 10
    assert 2 <= server.calls < 100


def test_a_short_wait_is_nobodys_business(
    server: Failing, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    server.failures = [503, 429, 503]
    assert read(environment) == BODY["data"]
    assert capsys.readouterr().err == ""


def test_a_token_that_has_expired_meanwhile_is_no_missing_right(server: Failing, environment: dict[str, str]) -> None:
    assert read(environment) == BODY["data"]
    ending = "Its token or certificate may have expired: log in again, then run this again."
    server.failures = [401]
    with pytest.raises(OpsError, match="got 401") as raised:
        read(environment)
    assert str(raised.value).endswith(ending)
    server.failures, server.message = [403], 'configmaps "a" is forbidden: User "system:anonymous" cannot get resource'
    with pytest.raises(OpsError, match="got 403") as raised:
        read(environment)
    assert str(raised.value).endswith(ending), "an exec plugin without credentials"
    server.failures, server.message = [403], 'configmaps "a" is forbidden: User "jane" cannot get resource'
    with pytest.raises(OpsError, match=r"must be allowed to do this \(got 403: .* Grant it\."):
        read(environment)
