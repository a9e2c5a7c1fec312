"""Kafka Connect: properties of a distributed worker, its REST interface, and the offsets of its connectors.

Annotations of a KafkaMirrorMaker2 ask to list, alter or reset the offsets of one connector. As in Strimzi's
`AbstractConnectOperator`, an operation that fails is a warning in the status, its annotations stay and the next
reconciliation tries again; one that succeeds removes both annotations. A connector that the resource does not have is
ignored.
"""

import json
import logging
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from sandbox.operator import NotReadyError
from sandbox.operator.connectors import Connector, client_config
from sandbox.operator.kubernetes_api import Kubernetes, Object
from sandbox.operator.metrics_config import Reporter

TIMEOUT_S = 20.0
# Workers speak plain HTTP. A context that knows no authority costs nothing; to read the usual ones takes 33 ms of CPU
# time, several times a second.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
MANAGED_PREFIXES = (
    "ssl.", "sasl.", "security.", "listeners", "plugin.path", "rest.", "bootstrap.servers", "group.id",
    "config.storage.topic", "offset.storage.topic", "status.storage.topic", "config.providers", "admin.listeners",
)  # fmt: skip
# A worker's own consumers, of its three storage topics, ask again after this time while nothing happens: at 500 ms,
# Kafka's default, a mirror and its brokers use 1 % of a core for that. What is written arrives at once all the same. A
# worker that stops waits for each of them in turn: with 2 s it would stop 4 s later.
IDLE = {"fetch.max.wait.ms": "1000"}
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
        **IDLE,
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


logger = logging.getLogger(__name__)

OFFSETS_OPERATION, OFFSETS_CONNECTOR = "strimzi.io/connector-offsets", "strimzi.io/mirrormaker-connector"
_REASONS = {"list": "ListOffsets", "alter": "AlterOffsets", "reset": "ResetOffsets"}
_DOING = {"list": "listing", "alter": "altering", "reset": "resetting"}
Warnings = tuple[tuple[str, str], ...]


class _RefusedError(Exception):
    """Why an operation cannot be done."""


def offsets_key(connector: str) -> str:
    """Key of a connector's offsets in a ConfigMap, where `>` is not allowed."""
    return f"{connector.replace('->', '--')}.json"


def manage_offsets(
    kubernetes: Kubernetes, resource: Object, rest: Rest, wanted: list[Connector], states: dict[str, dict[str, Any]]
) -> Warnings:
    """Do what the annotations ask for; the warnings are about what could not be done.

    `states` are Connect's answers by connector name. Raises NotReadyError if Connect does not answer.
    """
    annotations = resource["metadata"].get("annotations") or {}
    operation, name = annotations.get(OFFSETS_OPERATION), annotations.get(OFFSETS_CONNECTOR)
    if operation is None:
        return ()
    if name is None or operation not in _REASONS:
        got = f"missing annotation {OFFSETS_CONNECTOR}" if name is None else f"{OFFSETS_OPERATION} is {operation}"
        return (("ManageOffsets", f"Encountered error getting connector offsets annotation. {got}"),)
    connector = next((each for each in wanted if each.name == name), None)
    if connector is None:
        return ()
    reason = _REASONS[operation]
    try:
        _manage_offsets(operation, kubernetes, resource, rest, connector, states.get(name, {}))
    except _RefusedError as refused:
        return ((reason, f"Encountered error {_DOING[operation]} connector offsets. {refused}"),)
    except NotReadyError as problem:
        if problem.reason != "ConnectRestException":
            raise
        return ((reason, f"Encountered error {_DOING[operation]} connector offsets. {problem.message}"),)
    logger.info("%s: offsets of connector %s: %s is done", resource["metadata"]["name"], name, operation)
    kubernetes.remove_annotations(resource, (OFFSETS_OPERATION, OFFSETS_CONNECTOR))
    return ()


def _manage_offsets(
    operation: str,
    kubernetes: Kubernetes,
    resource: Object,
    rest: Rest,
    connector: Connector,
    state: dict[str, Any],
) -> None:
    if operation == "list":
        config_map = _config_map_name(connector.list_offsets_to, "listOffsets")
        found = json.dumps(rest.offsets(connector.name), indent=2)
        kubernetes.write_config_map(resource, config_map, {offsets_key(connector.name): found})
        return
    if operation == "alter":
        config_map = _config_map_name(connector.alter_offsets_from, "alterOffsets")
        _require_stopped(state)
        rest.alter_offsets(connector.name, _read_offsets(kubernetes, resource, config_map, connector.name))
        return
    _require_stopped(state)
    rest.reset_offsets(connector.name)


def _config_map_name(name: str | None, field: str) -> str:
    if name is None:
        raise _RefusedError(f"The property {field} is missing in the KafkaMirrorMaker2 resource.")
    return name


def _require_stopped(state: dict[str, Any]) -> None:
    if state.get("status", {}).get("connector", {}).get("state") != "STOPPED":
        raise _RefusedError("Connector is not in STOPPED state")


def _read_offsets(kubernetes: Kubernetes, resource: Object, config_map: str, connector: str) -> Any:
    namespace, key = resource["metadata"]["namespace"], offsets_key(connector)
    values = kubernetes.config_map(namespace, config_map)
    if values is None:
        raise _RefusedError(f"ConfigMap {namespace}/{config_map} does not exist.")
    if key not in values:
        raise _RefusedError(f"Data field {key} is missing.")
    try:
        return json.loads(values[key])
    except ValueError as error:
        raise _RefusedError(f"Failed to parse contents of {key} as JSON: {error}") from None
