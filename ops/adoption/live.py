"""What exists in a namespace: the cluster with its node pools, users, topics and mirrors, as the API server has them.

Reads custom resources and names of Secrets; never the values of a Secret.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from kafka.connector_status import access_name
from ops.errors import OpsError
from ops.recovery import kubernetes_access
from settings.names import EXCEPTION
from settings.platform import CLUSTER_KINDS, ApiVersion, annotation_domain

FORBIDDEN, NOT_FOUND, CONFLICT = 403, 404, 409
TAKE_OVER_ATTEMPTS = 5
REQUEST_TIMEOUT_S = 30
# Newest first: a release that serves two versions stores objects that both can show.
API_VERSIONS = get_args(ApiVersion)
Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Live:
    """The objects of one cluster's namespace. `api_version` is the one in which they were read."""

    api_version: str
    cluster: Object
    pools: list[Object]
    users: list[Object]
    topics: list[Object]
    mirrors: list[Object]

    @property
    def name(self) -> str:
        """Name of the cluster."""
        return str(self.cluster["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Namespace of the cluster."""
        return str(self.cluster["metadata"]["namespace"])


def exceptions(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of an object that are exceptions from policies; all others belong to who wrote them."""
    annotations = found["metadata"].get("annotations") or {}
    return {key: str(value) for key, value in annotations.items() if key.startswith(EXCEPTION)}


def read(namespace: str, cluster: str | None, context: str | None) -> Live:
    """Return the objects of a cluster, in the newest API version that has it.

    Args:
        namespace: namespace of the cluster.
        cluster: name of the Kafka or EventStreams resource; None if the namespace has only one.
        context: context of the kubeconfig; None for the current one.

    Raises:
        OpsError: there is no cluster, or several and none is named.
    """
    api = connect(context)
    for each in API_VERSIONS:
        group, _, version = each.partition("/")
        plural = CLUSTER_KINDS[group].lower().removesuffix("s") + "s"
        clusters = _listed(api, group, version, namespace, plural)
        if not clusters:
            continue
        chosen = _chosen(clusters, cluster, namespace)
        label = f"{annotation_domain(group)}/cluster"
        mine = {kind: _belonging(_listed(api, group, version, namespace, kind), label, chosen) for kind in _OWNED}
        return Live(
            api_version=each,
            cluster=chosen,
            pools=mine["kafkanodepools"],
            users=mine["kafkausers"],
            topics=mine["kafkatopics"],
            mirrors=_listed(api, group, version, namespace, "kafkamirrormaker2s"),
        )
    raise OpsError(
        f"namespace {namespace}: must have a Kafka or EventStreams resource (got none). Name another with --namespace, "
        "another cluster with --context."
    )


_OWNED = ("kafkanodepools", "kafkausers", "kafkatopics")


def connect(context: str | None) -> client.CustomObjectsApi:
    """Return the API server's client for custom resources; raises OpsError without a usable kubeconfig."""
    configuration = client.Configuration()
    try:
        config.load_kube_config(context=context, client_configuration=configuration)
    except ConfigException as error:
        raise OpsError(
            f"kubeconfig: must be readable and have the context (got {error}). Set KUBECONFIG, or in the sandbox: "
            '`eval "$(venv/bin/python -m sandbox env)"`.'
        ) from error
    configuration.retries = False  # `patient` makes calls again, and within a deadline
    api = client.ApiClient(configuration)
    kubernetes_access.patient(api, access_name(os.environ, context), kubernetes_access.TRIED_WITHIN_S)
    return client.CustomObjectsApi(api)


def _listed(api: client.CustomObjectsApi, group: str, version: str, namespace: str, plural: str) -> list[Object]:
    try:
        found: Mapping[str, Any] = api.list_namespaced_custom_object(
            group, version, namespace, plural, _request_timeout=REQUEST_TIMEOUT_S
        )
    except ApiException as error:
        if error.status == NOT_FOUND:
            return []
        if error.status != FORBIDDEN:
            where = f"the context of namespace {namespace}"
            raise OpsError(kubernetes_access.refusal(error, where, kubernetes_access.TRIED_WITHIN_S)) from error
        raise OpsError(
            f"namespace {namespace}: {plural}.{group} must be readable ({error.status} {error.reason}). Ask for the "
            "right to list them."
        ) from error
    except (OSError, urllib3.exceptions.HTTPError) as error:
        raise OpsError(f"API server: must answer within {REQUEST_TIMEOUT_S} s ({error}). Check the context.") from error
    return sorted(found["items"], key=lambda each: str(each["metadata"]["name"]))


def _chosen(clusters: list[Object], name: str | None, namespace: str) -> Object:
    by_name = {str(each["metadata"]["name"]): each for each in clusters}
    if name is None and len(clusters) == 1:
        return clusters[0]
    if name is None or name not in by_name:
        got = "nothing" if name is None else name
        raise OpsError(
            f"namespace {namespace}: --cluster must be one of its clusters (got {got}, allowed {', '.join(by_name)})."
        )
    return by_name[name]


def _belonging(objects: list[Object], label: str, cluster: Object) -> list[Object]:
    name = cluster["metadata"]["name"]
    return [each for each in objects if (each["metadata"].get("labels") or {}).get(label) == name]


def annotate(api: client.CustomObjectsApi, live: Object, annotations: Mapping[str, str]) -> None:
    """Add annotations to a custom resource, as the provider would, so that they are no conflict for it later."""
    try:
        api.patch_namespaced_custom_object(
            *_place(live),
            {"metadata": {"annotations": dict(annotations)}},
            field_manager=MANAGER,
            _request_timeout=REQUEST_TIMEOUT_S,
        )
    except ApiException as error:
        raise _unwritable(live, "annotations", error) from error


def take_over(api: client.CustomObjectsApi, live: Object, metadata: Mapping[str, Any]) -> list[str]:
    """Make Pulumi the owner of the declared fields that kubectl owns; no value changes.

    Args:
        api: client of the API server.
        live: the custom resource.
        metadata: the declared metadata, whose labels and annotations are handed over with the spec.

    Returns:
        The names of the field managers that owned the fields.
    """
    for attempt in range(TAKE_OVER_ATTEMPTS):
        try:
            found: Any = api.get_namespaced_custom_object(*_place(live), _request_timeout=REQUEST_TIMEOUT_S)
            now = found["metadata"]
            entries, managers = handed_over(now.get("managedFields") or [], metadata)
            if managers:
                # With the version that was read: what somebody writes in between is a conflict.
                patch = {"metadata": {"resourceVersion": now["resourceVersion"], "managedFields": entries}}
                api.patch_namespaced_custom_object(*_place(live), patch, _request_timeout=REQUEST_TIMEOUT_S)
        except ApiException as error:
            # The operator has written a status in between.
            if error.status == CONFLICT and attempt < TAKE_OVER_ATTEMPTS - 1:
                continue
            raise _unwritable(live, "managedFields", error) from error
        return managers
    return []


def _place(live: Object) -> tuple[str, str, str, str, str]:
    group, version = str(live["apiVersion"]).split("/")
    plural = "eventstreams" if live["kind"] == "EventStreams" else f"{str(live['kind']).lower()}s"
    return group, version, live["metadata"]["namespace"], plural, live["metadata"]["name"]


def _unwritable(live: Object, what: str, error: ApiException) -> OpsError:
    return OpsError(
        f"{live['kind']} {live['metadata']['name']}: its {what} must be writable ({error.status} {error.reason}). "
        "Ask for the right to patch it; the import itself is done."
    )


MANAGER = "pulumi-kubernetes"
"""As the provider calls itself where it applies on the client's side: it takes such fields over by itself."""
_KEPT = "rt-inventory-import"
_KUBECTL = "kubectl"
_MARKS = ("f:labels", "f:annotations")
Fields = dict[str, Any]
Entry = Mapping[str, Any]


def handed_over(managed: Sequence[Entry], metadata: Mapping[str, Any]) -> tuple[list[Fields], list[str]]:
    """Return an object's managed fields once they are handed over, and from which managers.

    `metadata` is the declared one: its labels and annotations are handed over with the spec.
    """
    entries, managers, declared, kept = [dict(each) for each in managed], [], dict[str, Fields](), dict[str, Fields]()
    rest = []
    for entry in entries:
        if not str(entry.get("manager")).startswith(_KUBECTL) or entry.get("subresource"):
            rest.append(entry)
            continue
        managers.append(str(entry["manager"]))
        ours, theirs = _split(entry.get("fieldsV1") or {}, metadata)
        for fields, found in ((ours, declared), (theirs, kept)):
            if fields:
                version = str(entry["apiVersion"])
                found[version] = _merged(found.get(version, {}), fields)
    for name, found in ((MANAGER, declared), (_KEPT, kept)):
        for version, fields in found.items():
            same = [each for each in rest if _is_update_of(each, name, version)]
            rest = [each for each in rest if each not in same]
            for each in same:
                fields = _merged(fields, each.get("fieldsV1") or {})
            rest.append(
                {
                    "manager": name,
                    "operation": "Update",
                    "apiVersion": version,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": fields,
                }
            )
    return rest, sorted(set(managers))


def _is_update_of(entry: Entry, manager: str, version: str) -> bool:
    known = entry.get("manager"), entry.get("operation"), entry.get("apiVersion"), entry.get("subresource")
    return known in ((manager, "Update", version, None), (manager, "Update", version, ""))


def _split(fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[Fields, Fields]:
    """The fields that are declared, and all others."""
    ours: Fields = {key: value for key, value in fields.items() if key != "f:metadata"}
    marks: Fields = fields.get("f:metadata") or {}
    mine: Fields = {}
    theirs: Fields = {key: value for key, value in marks.items() if key not in _MARKS}
    for kind in _MARKS:
        keys = {f"f:{key}" for key in metadata.get(kind.removeprefix("f:")) or {}}
        for owner, wanted in ((mine, True), (theirs, False)):
            # The dot is the mapping itself: whoever owns a key of it may own it too.
            found = {
                key: value for key, value in (marks.get(kind) or {}).items() if key != "." and (key in keys) is wanted
            }
            if found:
                owner[kind] = found
    if mine:
        ours["f:metadata"] = mine
    return ours, {"f:metadata": theirs} if theirs else {}


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Fields:
    """Both sets of fields together."""
    return {
        **one,
        **{
            key: _merged(one.get(key) or {}, value) if isinstance(value, Mapping) else value
            for key, value in other.items()
        },
    }
