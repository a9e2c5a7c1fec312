"""Changes of objects that Pulumi declares, made in its place: as its own field manager, by server-side apply.

Pulumi's provider applies each resource as a manager `pulumi-kubernetes-...`. A field that somebody else sets becomes a
conflict at its next update. What is applied here as that manager is what `pulumi up` would have applied: the fields
that it has, with the changed ones. Owns that. Does not own what is changed.
"""

from collections.abc import Mapping
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException

from ops.recovery.kubernetes_access import CALL_WITHIN_S

PULUMI = "pulumi-kubernetes"
NEW_MANAGER = f"{PULUMI}-break-glass"
"""Of an object that Pulumi has not made yet, or made without server-side apply."""
_APPLY = "application/apply-patch+yaml"
_MISSING = 404
Object = dict[str, Any]


def secret(api: client.ApiClient, namespace: str, name: str) -> Object | None:
    """Return a Secret as the API server has it, None if there is none; raises ApiException."""
    try:
        found = client.CoreV1Api(api).read_namespaced_secret(name, namespace, _request_timeout=CALL_WITHIN_S)
    except ApiException as error:
        if error.status != _MISSING:
            raise
        return None
    document: Object = api.sanitize_for_serialization(found)
    return document


def apply_secret(
    api: client.ApiClient, namespace: str, name: str, type_: str, labels: Mapping[str, str], data: Mapping[str, str]
) -> None:
    """Set all values, in base64, and some labels of a Secret; it is made if there is none. Raises ApiException."""
    body, manager = _applied_as(secret(api, namespace, name), "v1", "Secret", namespace, name)
    metadata = body["metadata"]
    all_labels = {**(metadata.get("labels") or {}), **labels}
    body = {**body, "metadata": {**metadata, "labels": all_labels}, "type": type_, "data": dict(data)}
    client.CoreV1Api(api).patch_namespaced_secret(
        name,
        namespace,
        body,
        field_manager=manager,
        force=True,
        _content_type=_APPLY,
        _request_timeout=CALL_WITHIN_S,
    )


def custom_object(api: client.ApiClient, api_version: str, kind: str, namespace: str, name: str) -> Object:
    """Return a custom resource that exists as the API server has it; raises ApiException."""
    group, _, version = api_version.rpartition("/")
    found: Object = client.CustomObjectsApi(api).get_namespaced_custom_object(
        group, version, namespace, f"{kind.lower()}s", name, _request_timeout=CALL_WITHIN_S
    )
    return found


def apply_spec(
    api: client.ApiClient, api_version: str, kind: str, namespace: str, name: str, fields: Mapping[str, Any]
) -> None:
    """Replace fields of the `spec` of a custom resource that exists; None removes one. Raises ApiException."""
    group, _, version = api_version.rpartition("/")
    custom, place = client.CustomObjectsApi(api), (group, version, namespace, f"{kind.lower()}s", name)
    live = custom_object(api, api_version, kind, namespace, name)
    body, manager = _applied_as(live, api_version, kind, namespace, name)
    spec = {**(body.get("spec") or {}), **fields}
    body = {**body, "spec": {key: value for key, value in spec.items() if value is not None}}
    custom.patch_namespaced_custom_object(
        *place, body, field_manager=manager, force=True, _content_type=_APPLY, _request_timeout=CALL_WITHIN_S
    )


def _applied_as(
    live: Mapping[str, Any] | None, api_version: str, kind: str, namespace: str, name: str
) -> tuple[Object, str]:
    """Return the document that applies what Pulumi has applied of an object already, and its field manager."""
    wanted, manager = applied(live)
    metadata = {**(wanted.get("metadata") or {}), "name": name, "namespace": namespace}
    return {**wanted, "apiVersion": api_version, "kind": kind, "metadata": metadata}, manager


def applied(live: Mapping[str, Any] | None) -> tuple[Object, str]:
    """Return the fields of an object that Pulumi has applied, with their values, and the name of its field manager."""
    for entry in (live or {}).get("metadata", {}).get("managedFields") or []:
        if str(entry.get("manager")).startswith(PULUMI) and entry.get("operation") == "Apply":
            return _owned(live or {}, entry.get("fieldsV1") or {}), str(entry["manager"])
    return {}, NEW_MANAGER


def _owned(value: Any, fields: Mapping[str, Any]) -> Any:
    """The part of a value that a FieldsV1 names; a list is one value, also one whose items are owned one by one."""
    own = {key.removeprefix("f:"): below for key, below in fields.items() if key.startswith("f:")}
    if not own or not isinstance(value, Mapping):
        return value
    return {key: _owned(value[key], below) for key, below in own.items() if key in value}
