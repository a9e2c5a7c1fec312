"""Kafka Connect: the properties of a distributed worker, and its REST interface."""

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from .connectors import client_config
from .errors import NotReadyError
from .metrics_config import Reporter

TIMEOUT_S = 20.0
# Workers speak plain HTTP. A context that knows no authority costs nothing; to read the usual ones takes 33 ms of CPU
# time, several times a second.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
MANAGED_PREFIXES = (
    "ssl.", "sasl.", "security.", "listeners", "plugin.path", "rest.", "bootstrap.servers", "group.id",
    "config.storage.topic", "offset.storage.topic", "status.storage.topic", "config.providers", "admin.listeners",
)  # fmt: skip
UNMANAGED = ("ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols")


def worker_properties(
    name: str, spec: dict[str, Any], secrets: Path, port: int, reporter: tuple[Reporter, int] | None = None
) -> dict[str, str]:
    """Properties of one worker of a KafkaMirrorMaker2; secrets are references into the folder `secrets`.

    `reporter` is the Metrics Reporter and the port that it serves on.
    """
    target = spec["target"]
    connection = client_config(name, target, secrets)
    own = {key: str(value) for key, value in (target.get("config") or {}).items() if _is_own(key)}
    return {
        "group.id": target["groupId"],
        "config.storage.topic": target["configStorageTopic"],
        "offset.storage.topic": target["offsetStorageTopic"],
        "status.storage.topic": target["statusStorageTopic"],
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
        **own,
        **(reporter[0].worker_properties(own, reporter[1]) if reporter else {}),
        **connection,
        **{
            f"{client}.{key}": value
            for client in ("producer", "consumer", "admin")
            for key, value in connection.items()
            if key != "bootstrap.servers"
        },
        "listeners": f"http://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "rest.advertised.port": str(port),
        # The connectors are on the class path and registered as services: no scan of every jar at the start.
        "plugin.discovery": "service_load",
        "config.providers": "directory",
        "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        "config.providers.directory.param.allowed.paths": str(secrets),
    }


def _is_own(key: str) -> bool:
    return key in UNMANAGED or not key.startswith(MANAGED_PREFIXES)


class Rest:
    """One worker's REST interface; every method raises NotReadyError if it does not answer or is rebalancing."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False, verify=_NO_AUTHORITIES)

    def answers(self) -> bool:
        """True if the worker is up and has read its configuration topic."""
        try:
            return self._client.get("/connectors", timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def connectors(self) -> dict[str, dict[str, Any]]:
        """Configuration and status of every connector by name: `{"info": {...}, "status": {...}}`."""
        answer: dict[str, dict[str, Any]] = self._call("GET", "/connectors?expand=info&expand=status")
        return answer

    def put(self, name: str, config: dict[str, str]) -> None:
        """Create the connector or replace its configuration."""
        self._call("PUT", f"{_path(name)}/config", config)

    def delete(self, name: str) -> None:
        """Delete the connector."""
        self._call("DELETE", _path(name))

    def state(self, name: str, action: str) -> None:
        """Ask for a state: `pause`, `resume` or `stop`."""
        self._call("PUT", f"{_path(name)}/{action}")

    def offsets(self, name: str) -> dict[str, Any]:
        """Positions of the connector, as Connect writes them: `{"offsets": [...]}`."""
        answer: dict[str, Any] = self._call("GET", f"{_path(name)}/offsets")
        return answer

    def alter_offsets(self, name: str, offsets: Any) -> None:
        """Set positions of a stopped connector; those that are not named stay."""
        self._call("PATCH", f"{_path(name)}/offsets", offsets)

    def reset_offsets(self, name: str) -> None:
        """Forget all positions of a stopped connector."""
        self._call("DELETE", f"{_path(name)}/offsets")

    def restart(self, name: str, *, only_failed: bool) -> None:
        """Restart the connector and its tasks."""
        self._call("POST", f"{_path(name)}/restart?includeTasks=true&onlyFailed={str(only_failed).lower()}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            answer = self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise NotReadyError(
                "ConnectNotReachable",
                f"Connect at {self.url} does not answer ({type(error).__name__}). It is asked again.",
                retry_s=1,
            ) from error
        if answer.status_code == 409:
            raise NotReadyError("Rebalancing", f"Connect at {self.url} is rebalancing.", retry_s=0.5)
        if answer.status_code >= 400:
            raise NotReadyError("ConnectRestException", f"{method} {path}: {answer.status_code} {_words(answer)}")
        return answer.json() if answer.content else None


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _words(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase
