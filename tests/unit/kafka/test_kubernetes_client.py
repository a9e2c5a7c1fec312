"""Clients of Kubernetes that several threads make from one kubeconfig at the same time."""

import base64
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client.rest import ApiException
from kubernetes.config import kube_config

from kafka import connector_status

AUTHORITY = "a certificate"


def slow_open(*arguments: Any) -> Any:
    """Open a file late, as on a machine with other work."""
    time.sleep(0.2)
    return Path(arguments[0]).open(*arguments[1:])


def test_each_client_has_the_whole_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = base64.b64encode(f"{AUTHORITY} {tmp_path}".encode()).decode()
    named = {"name": "one"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [named | {"cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": data}}],
        "contexts": [named | {"context": {"cluster": "one", "user": "one"}}],
        "users": [named | {"user": {"token": "none"}}],
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.setattr(kube_config, "open", slow_open, raising=False)

    def authority(_: int) -> str:
        client = connector_status.api_client({"KUBECONFIG": str(kubeconfig)})
        return Path(client.configuration.ssl_ca_cert).read_text(encoding="utf-8")

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(authority, range(4))) == {f"{AUTHORITY} {tmp_path}"}


def test_an_error_of_tls_is_named() -> None:
    refusal = connector_status._refusal(ApiException(status=0, reason="SSLError\nno certificate or crl found"))
    assert refusal == "Kubernetes does not answer: SSLError no certificate or crl found"


@pytest.mark.parametrize(
    ("status", "user", "remedy"),
    [
        (401, "", "log in again"),
        (403, "system:anonymous", "log in again"),
        (403, "system:serviceaccount:rt:jane", "grant get on it"),
    ],
)
def test_a_call_without_credentials_needs_a_login_and_no_right(status: int, user: str, remedy: str) -> None:
    error = ApiException(status=status, reason="Forbidden")
    error.body = f'{{"message": "kafkatopics is forbidden: User \\"{user}\\" cannot get resource"}}'
    assert remedy in connector_status._refusal(error)
