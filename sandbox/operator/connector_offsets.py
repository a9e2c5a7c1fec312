"""What annotations of a KafkaMirrorMaker2 ask for about the offsets of one connector: to list, alter or reset them.

As in Strimzi's `AbstractConnectOperator`: what cannot be done is a warning in the status, the annotations stay and it
is tried again with the next look; what is done takes both annotations away. A connector that the resource does not
have is not told.
"""

import json
import logging
from typing import Any

from .connect import Rest
from .connectors import Connector
from .errors import NotReadyError
from .kubernetes_api import Kubernetes, Object

logger = logging.getLogger(__name__)

OPERATION, CONNECTOR = "strimzi.io/connector-offsets", "strimzi.io/mirrormaker-connector"
_REASONS = {"list": "ListOffsets", "alter": "AlterOffsets", "reset": "ResetOffsets"}
_DOING = {"list": "listing", "alter": "altering", "reset": "resetting"}
Warnings = tuple[tuple[str, str], ...]


class _RefusedError(Exception):
    """Why an operation cannot be done."""


def entry_key(connector: str) -> str:
    """Key of a connector's offsets in a ConfigMap, where `>` is not allowed."""
    return f"{connector.replace('->', '--')}.json"


def manage(
    kubernetes: Kubernetes, resource: Object, rest: Rest, wanted: list[Connector], states: dict[str, dict[str, Any]]
) -> Warnings:
    """Do what the annotations ask for; the warnings say what could not be done.

    `states` are Connect's answers by connector name. Raises NotReadyError if Connect does not answer.
    """
    annotations = resource["metadata"].get("annotations") or {}
    operation, name = annotations.get(OPERATION), annotations.get(CONNECTOR)
    if operation is None:
        return ()
    if name is None or operation not in _REASONS:
        got = f"missing annotation {CONNECTOR}" if name is None else f"{OPERATION} is {operation}"
        return (("ManageOffsets", f"Encountered error getting connector offsets annotation. {got}"),)
    connector = next((each for each in wanted if each.name == name), None)
    if connector is None:
        return ()
    reason = _REASONS[operation]
    try:
        _act(operation, kubernetes, resource, rest, connector, states.get(name, {}))
    except _RefusedError as refused:
        return ((reason, f"Encountered error {_DOING[operation]} connector offsets. {refused}"),)
    except NotReadyError as problem:
        if problem.reason != "ConnectRestException":
            raise
        return ((reason, f"Encountered error {_DOING[operation]} connector offsets. {problem.message}"),)
    logger.info("%s: offsets of connector %s: %s is done", resource["metadata"]["name"], name, operation)
    kubernetes.remove_annotations(resource, (OPERATION, CONNECTOR))
    return ()


def _act(
    operation: str,
    kubernetes: Kubernetes,
    resource: Object,
    rest: Rest,
    connector: Connector,
    state: dict[str, Any],
) -> None:
    if operation == "list":
        config_map = _config_map(connector.list_offsets_to, "listOffsets")
        found = json.dumps(rest.offsets(connector.name), indent=2)
        kubernetes.write_config_map(resource, config_map, {entry_key(connector.name): found})
        return
    if operation == "alter":
        config_map = _config_map(connector.alter_offsets_from, "alterOffsets")
        _insist_on_stopped(state)
        rest.alter_offsets(connector.name, _read(kubernetes, resource, config_map, connector.name))
        return
    _insist_on_stopped(state)
    rest.reset_offsets(connector.name)


def _config_map(name: str | None, field: str) -> str:
    if name is None:
        raise _RefusedError(f"The property {field} is missing in the KafkaMirrorMaker2 resource.")
    return name


def _insist_on_stopped(state: dict[str, Any]) -> None:
    if state.get("status", {}).get("connector", {}).get("state") != "STOPPED":
        raise _RefusedError("Connector is not in STOPPED state")


def _read(kubernetes: Kubernetes, resource: Object, config_map: str, connector: str) -> Any:
    namespace, key = resource["metadata"]["namespace"], entry_key(connector)
    values = kubernetes.config_map(namespace, config_map)
    if values is None:
        raise _RefusedError(f"ConfigMap {namespace}/{config_map} does not exist.")
    if key not in values:
        raise _RefusedError(f"Data field {key} is missing.")
    try:
        return json.loads(values[key])
    except ValueError as error:
        raise _RefusedError(f"Failed to parse contents of {key} as JSON: {error}") from None
