"""Who a pipeline's job is: short-lived tokens of the pipeline's own issuer (OIDC), for the cloud and for Kubernetes.

Owns where a token comes from and where it is handed on, and how a pipeline asks a server: again while it is busy, and
with one message when it does not answer. Headers carry tokens, so no error shows them. No secret is stored anywhere:
GitHub makes a token when asked by a job with the permission `id-token: write`, GitLab puts those that a job declares
into its environment.
"""

import base64
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from ops.connection import PROJECT
from ops.errors import OpsError

TIMEOUT_S = 20.0
WITHIN_S = 90.0
_TRIES = 5
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_LENGTH_MAX = 200
Answer = TypeVar("Answer")


class RetryPauses:
    """How long to wait before the next try: growing, or what the server asks for, within bounds."""

    def __init__(self, first_s: float = 1.0, longest_s: float = 30.0) -> None:
        self._longest_s = longest_s
        self._growing = wait_exponential(multiplier=first_s, max=longest_s)

    def __call__(self, state: RetryCallState) -> float:
        """Return the seconds before the next try."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.response.headers.get("retry-after", "") if isinstance(error, httpx.HTTPStatusError) else ""
        return min(float(asked), self._longest_s) if asked.isdigit() else float(self._growing(state))


def with_retries(action: Callable[[], Answer], what: str, pauses: RetryPauses | None = None) -> Answer:
    """Return what the action returns, tried again while the network or the server fails; raises OpsError.

    The action is repeated as a whole, so it must be safe to repeat.
    """
    retrying = Retrying(
        stop=stop_after_attempt(_TRIES) | stop_after_delay(WITHIN_S),
        wait=pauses or RetryPauses(),
        retry=retry_if_exception(_passes),
        reraise=True,
    )
    try:
        return retrying(action)
    except httpx.HTTPStatusError as error:
        reason = " ".join(error.response.text.split())[:_LENGTH_MAX]
        raise OpsError(f"{what}: must be answered with success (got {error.response.status_code} {reason}).") from None
    except httpx.HTTPError as error:
        raise OpsError(
            f"{what}: must be reachable ({type(error).__name__}). Check the address and the network."
        ) from None


def request_json(client: httpx.Client, method: str, url: str, **options: Any) -> Any:
    """Return the JSON of one answer; raises httpx.HTTPError, also for an answer that is none."""
    response = client.request(method, url, **options)
    response.raise_for_status()
    try:
        return response.json()
    except ValueError as error:
        raise httpx.DecodingError("the answer is no JSON", request=response.request) from error


def _passes(error: BaseException) -> bool:
    """Whether an error may pass by itself."""
    if isinstance(error, httpx.HTTPStatusError):
        limited = error.response.status_code == 403 and "retry-after" in error.response.headers
        return limited or error.response.status_code in _BUSY
    return isinstance(error, httpx.TransportError)


CLOUD, KUBERNETES = "CLOUD_ID_TOKEN", "KUBE_ID_TOKEN"
CLOUD_AUDIENCE = "sts.amazonaws.com"
_URL, _BEARER = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_EXEC_API = "client.authentication.k8s.io/v1"
Environment = Mapping[str, str]


def token(audience: str, given: str, environment: Environment, pauses: RetryPauses | None = None) -> str:
    """Return a token for the audience: the variable `given` if the pipeline set it, else asked of GitHub."""
    if value := environment.get(given, "").strip():
        return value
    url, bearer = environment.get(_URL), environment.get(_BEARER)
    if not url or not bearer:
        raise OpsError(
            f"identity: a token must be obtainable (got neither {given} nor {_URL}). "
            f"GitHub: give the job the permission `id-token: write`. GitLab: declare {given} below id_tokens."
        )
    with httpx.Client(timeout=TIMEOUT_S, headers={"Authorization": f"Bearer {bearer}"}) as client:
        answer = with_retries(
            lambda: request_json(client, "GET", str(httpx.URL(url).copy_merge_params({"audience": audience}))),
            "identity: the token's issuer",
            pauses,
        )
    issued = answer.get("value") if isinstance(answer, dict) else None
    if not isinstance(issued, str) or not issued:
        raise OpsError("identity: the token's issuer must answer with a token (got none).")
    return issued


def write_cloud_config(environment: Environment) -> Path:
    """Write a configuration of Amazon's SDKs without a credential, name it to later steps, and return the file.

    It names a command that gets credentials of AWS_ROLE_ARN whenever the last ones have expired: a token of GitHub's
    lives five minutes, and each process that it was handed to would exchange it again. The SDKs inside Pulumi read
    AWS_CONFIG_FILE by themselves.
    """
    role(environment)
    file = _temporary(environment) / "cloud-config"
    cloud_token(environment)  # a job without an identity gets its error now
    command = shlex.join(
        ["/usr/bin/env", f"PYTHONPATH={PROJECT}", sys.executable, "-m", "ops", "pipeline", "cloud-credential"]
    )
    _write_private(file, f"[default]\ncredential_process = {command}\n")
    _tell_later_steps(environment, "AWS_CONFIG_FILE", str(file))
    return file


def role(environment: Environment) -> str:
    """Return the role that the job takes in the cloud."""
    if not (found := environment.get("AWS_ROLE_ARN")):
        raise OpsError("cloud: AWS_ROLE_ARN must be set (the role that trusts this pipeline's issuer).")
    return found


def cloud_token(environment: Environment) -> str:
    """Return a token that the cloud exchanges for credentials of the role."""
    return token(environment.get("CLOUD_AUDIENCE") or CLOUD_AUDIENCE, CLOUD, environment)


def write_kubeconfig(environment: Environment, folder: Path = PROJECT) -> Path:
    """Write a kubeconfig that holds no credential, name it to later steps, and return the file.

    It has the contexts that the stack files in `folder` name.

    It names a command that gets a fresh token whenever the last one has expired, so that long updates go on.
    """
    server = environment.get("KUBE_SERVER", "")
    if not server.startswith("https://"):
        raise OpsError(f"kubeconfig: KUBE_SERVER must be the API server's https address (got {server or 'none'!r}).")
    file = _temporary(environment) / "kubeconfig"
    _write_private(file, yaml.safe_dump(_kubeconfig(server, environment, folder), sort_keys=False))
    _tell_later_steps(environment, "KUBECONFIG", str(file))
    return file


def credential(environment: Environment) -> dict[str, Any]:
    """Return the answer that client-go expects of the kubeconfig's command. It holds the token."""
    value = token(environment.get("KUBE_AUDIENCE") or environment.get("KUBE_SERVER", ""), KUBERNETES, environment)
    expires = _expiry(value)
    until = {"expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")} if expires else {}
    return {"apiVersion": _EXEC_API, "kind": "ExecCredential", "status": {"token": value, **until}}


def _kubeconfig(server: str, environment: Environment, folder: Path) -> dict[str, Any]:
    certificate = environment.get("KUBE_CA", "").strip()
    if certificate and not certificate.startswith("-----BEGIN"):
        raise OpsError("kubeconfig: KUBE_CA must be the PEM text of the API server's authority, or empty.")
    authority = {"certificate-authority-data": _encoded(f"{certificate}\n")} if certificate else {}
    handed = {"PYTHONPATH": str(PROJECT), "KUBE_SERVER": server, "KUBE_AUDIENCE": environment.get("KUBE_AUDIENCE", "")}
    command = {
        "apiVersion": _EXEC_API,
        "command": sys.executable,
        "args": ["-m", "ops", "pipeline", "credential"],
        "env": [{"name": name, "value": value} for name, value in handed.items()],
        "interactiveMode": "Never",
    }
    from settings import contexts as contexts_of  # here: for a credential, no job waits for the models of a stack

    name = "pipeline"
    # A job works in one cluster, which is the one that its stack file means by a context.
    contexts = dict.fromkeys([name, *contexts_of(folder).values()])
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, **authority}}],
        "users": [{"name": name, "user": {"exec": command}}],
        "contexts": [{"name": each, "context": {"cluster": name, "user": name}} for each in contexts],
    }


def _expiry(value: str) -> datetime | None:
    """When a token ends, as it says itself; a minute early, so that none ends on its way."""
    try:
        body = value.split(".")[1]
        payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return datetime.fromtimestamp(float(payload["exp"]) - 60, UTC)
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _temporary(environment: Environment) -> Path:
    """The runner's folder that is gone after the job; never the user's own kubeconfig, whatever KUBECONFIG says."""
    folder = environment.get("RUNNER_TEMP")
    if not folder:
        raise OpsError("pipeline: RUNNER_TEMP must be set (the folder for files that end with the job).")
    return Path(folder)


def _write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read, also if it was there with other rights."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)


def _tell_later_steps(environment: Environment, name: str, value: str) -> None:
    if file := environment.get("GITHUB_ENV"):
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(f"{name}={value}\n")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
