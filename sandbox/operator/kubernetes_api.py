"""The Kubernetes objects that the operator reads and writes, over the API server's REST interface.

`SecretCache` keeps the Secrets that the watch has delivered, so that a reconciliation reads none from the API server.
"""

import base64
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.rest import ApiException

from sandbox.operator import merge_patch

Object = dict[str, Any]
TIMEOUT_S = 15


@dataclass(frozen=True)
class Resource:
    """A kind of custom resource: how its API addresses it."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects."""
        return f"{self.group}/{self.version}"


LABEL = "strimzi.io/cluster"
STRIMZI = "kafka.strimzi.io"
OLM = "operators.coreos.com"
KAFKA = Resource(STRIMZI, "v1", "kafkas", "Kafka")
NODE_POOL = Resource(STRIMZI, "v1", "kafkanodepools", "KafkaNodePool")
USER = Resource(STRIMZI, "v1", "kafkausers", "KafkaUser")
TOPIC = Resource(STRIMZI, "v1", "kafkatopics", "KafkaTopic")
MIRROR = Resource(STRIMZI, "v1", "kafkamirrormaker2s", "KafkaMirrorMaker2")
SUBSCRIPTION = Resource(OLM, "v1alpha1", "subscriptions", "Subscription")
OPERATOR_GROUP = Resource(OLM, "v1", "operatorgroups", "OperatorGroup")
CATALOG = Resource(OLM, "v1alpha1", "catalogsources", "CatalogSource")
INSTALL_PLAN = Resource(OLM, "v1alpha1", "installplans", "InstallPlan")
CSV = Resource(OLM, "v1alpha1", "clusterserviceversions", "ClusterServiceVersion")
MONITORING = "monitoring.coreos.com"
POD_MONITOR = Resource(MONITORING, "v1", "podmonitors", "PodMonitor")
PROMETHEUS_RULE = Resource(MONITORING, "v1", "prometheusrules", "PrometheusRule")
ALERTMANAGER_CONFIG = Resource(MONITORING, "v1alpha1", "alertmanagerconfigs", "AlertmanagerConfig")


BINARY = "surrogateescape"

OLD_S = 60.0


@dataclass(frozen=True)
class StoredSecret:
    """A Secret's decoded values and its annotations; the values never appear in repr."""

    values: dict[str, str] = field(repr=False)
    annotations: dict[str, str]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "StoredSecret":
        """The content of an object of the API server, as JSON; bytes that are no text survive."""
        data = body.get("data") or {}
        values = {key: base64.b64decode(value).decode(errors=BINARY) for key, value in data.items()}
        return cls(values, dict(body["metadata"].get("annotations") or {}))


@dataclass(frozen=True)
class _CachedSecret:
    secret: StoredSecret = field(repr=False)
    version: int
    at: float


@dataclass
class SecretCache:
    """What is known of Secrets by namespace and name. Safe to use from several threads."""

    _seen: dict[tuple[str, str], _CachedSecret] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, namespace: str, name: str) -> StoredSecret | None:
        """The Secret if it is known well enough."""
        with self._lock:
            seen = self._seen.get((namespace, name))
        return seen.secret if seen and time.monotonic() < seen.at + OLD_S else None

    def put(self, body: Mapping[str, Any]) -> None:
        """Note an object as the API server shows it, unless a newer one is known."""
        metadata, secret = body["metadata"], StoredSecret.of(body)
        key, version = (metadata["namespace"], metadata["name"]), int(metadata["resourceVersion"])
        with self._lock:
            seen = self._seen.get(key)
            if seen is None or seen.version <= version:
                self._seen[key] = _CachedSecret(secret, version, time.monotonic())

    def forget(self, namespace: str, name: str) -> None:
        """The Secret is gone."""
        with self._lock:
            self._seen.pop((namespace, name), None)


class Kubernetes:
    """Reads and writes objects; a missing object is None, not an error.

    Secrets that `seen` knows are not read again; whoever watches Secrets must put their events into it.
    """

    def __init__(self, kubeconfig: Path, seen: SecretCache | None = None) -> None:
        self._seen = seen
        self._client = config.new_client_from_config(config_file=str(kubeconfig))
        self._custom = client.CustomObjectsApi(self._client)
        self._core = client.CoreV1Api(self._client)

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object as the server has it now."""
        try:
            found: Object = self._custom.get_namespaced_custom_object(
                *_path(resource, namespace), name, _request_timeout=TIMEOUT_S
            )
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return found

    def objects(self, resource: Resource, namespace: str | None = None, selector: str = "") -> list[Object]:
        """All objects of a kind, of one namespace or of all."""
        if namespace is None:
            answer = self._custom.list_cluster_custom_object(
                resource.group, resource.version, resource.plural, label_selector=selector, _request_timeout=TIMEOUT_S
            )
        else:
            answer = self._custom.list_namespaced_custom_object(
                *_path(resource, namespace), label_selector=selector, _request_timeout=TIMEOUT_S
            )
        items: list[Object] = answer["items"]
        return items

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """The created object, or the one that exists under this name already."""
        try:
            created: Object = self._custom.create_namespaced_custom_object(
                *_path(resource, namespace), body, _request_timeout=TIMEOUT_S
            )
        except ApiException as error:
            existing = self.get(resource, namespace, body["metadata"]["name"]) if error.status == 409 else None
            if existing is None:
                raise
            return existing
        return created

    def delete(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete the object if it exists."""
        try:
            self._custom.delete_namespaced_custom_object(*_path(resource, namespace), name, _request_timeout=TIMEOUT_S)
        except ApiException as error:
            if error.status != 404:
                raise

    def set_status(self, resource: Resource, current: Object, status: Object) -> bool:
        """True if the status had to be changed; nothing is sent when it is right already or the object is gone."""
        patch = merge_patch(current.get("status"), status)
        if patch is None:
            return False
        metadata = current["metadata"]
        try:
            self._custom.patch_namespaced_custom_object_status(
                *_path(resource, metadata["namespace"]),
                metadata["name"],
                {"status": patch},
                _request_timeout=TIMEOUT_S,
            )
        except ApiException as error:
            if error.status == 404:
                return False
            raise
        return True

    def set_finalizers(self, resource: Resource, current: Object, finalizers: list[str]) -> None:
        """Replace the object's finalizers, unless somebody else changed the object meanwhile (then it raises)."""
        metadata = current["metadata"]
        body = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
        try:
            self._custom.patch_namespaced_custom_object(
                *_path(resource, metadata["namespace"]), metadata["name"], body, _request_timeout=TIMEOUT_S
            )
        except ApiException as error:
            if error.status != 404:
                raise

    def remove_annotations(self, current: Object, names: tuple[str, ...]) -> None:
        """Take annotations off a KafkaMirrorMaker2, unless it is gone."""
        metadata = current["metadata"]
        body = {"metadata": {"annotations": dict.fromkeys(names)}}
        try:
            self._custom.patch_namespaced_custom_object(
                *_path(MIRROR, metadata["namespace"]), metadata["name"], body, _request_timeout=TIMEOUT_S
            )
        except ApiException as error:
            if error.status != 404:
                raise

    def secret(self, namespace: str, name: str) -> dict[str, str] | None:
        """Decoded values of a Secret by key; bytes that are no text survive the way back into a Secret."""
        found = self.stored_secret(namespace, name)
        return found.values if found else None

    def stored_secret(self, namespace: str, name: str) -> StoredSecret | None:
        """A Secret with its annotations."""
        if self._seen and (known := self._seen.get(namespace, name)):
            return known
        return self.secret_now(namespace, name)

    def secret_now(self, namespace: str, name: str) -> StoredSecret | None:
        """A Secret as the server has it now, also if the watch has not shown its last change yet."""
        try:
            found = self._core.read_namespaced_secret(name, namespace, _request_timeout=TIMEOUT_S)
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        self._note(found)
        return StoredSecret.of(self._client.sanitize_for_serialization(found))

    def namespaces(self, selector: str) -> list[str]:
        """Names of the namespaces whose labels match."""
        found = self._core.list_namespace(label_selector=selector, _request_timeout=TIMEOUT_S)
        return sorted(entry.metadata.name for entry in found.items)

    def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        """Values of a ConfigMap by key."""
        try:
            found = self._core.read_namespaced_config_map(name, namespace, _request_timeout=TIMEOUT_S)
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return dict(found.data or {})

    def write_config_map(self, owner: Object, name: str, values: dict[str, str]) -> None:
        """Put values into a ConfigMap; its other ones stay. One that is made here belongs to `owner`."""
        namespace = owner["metadata"]["namespace"]
        metadata = {"name": name, "ownerReferences": [owner_reference(owner)]}
        try:
            self._core.create_namespaced_config_map(
                namespace, {"metadata": metadata, "data": values}, _request_timeout=TIMEOUT_S
            )
        except ApiException as error:
            if error.status != 409:
                raise
            self._core.patch_namespaced_config_map(name, namespace, {"data": values}, _request_timeout=TIMEOUT_S)

    def write_secret(
        self,
        owner: Object,
        name: str,
        values: dict[str, str],
        labels: dict[str, str],
        annotations: dict[str, str] | None = None,
    ) -> bool:
        """True if the Secret was created or changed: it has `values` and belongs to `owner`.

        Its annotations are replaced together with its values and left alone while those are right.
        """
        namespace = owner["metadata"]["namespace"]
        if self.secret(namespace, name) == values:
            return False
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": annotations or {},
                "ownerReferences": [owner_reference(owner)],
            },
            "data": {key: base64.b64encode(value.encode(errors=BINARY)).decode() for key, value in values.items()},
        }
        try:
            written = self._core.create_namespaced_secret(namespace, body, _request_timeout=TIMEOUT_S)
        except ApiException as error:
            if error.status != 409:
                raise
            written = self._core.replace_namespaced_secret(name, namespace, body, _request_timeout=TIMEOUT_S)
        self._note(written)
        return True

    def _note(self, secret: Any) -> None:
        if self._seen:
            self._seen.put(self._client.sanitize_for_serialization(secret))


def owner_reference(owner: Object) -> Object:
    """Reference that makes the garbage collector delete an object together with its owner."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _path(resource: Resource, namespace: str) -> tuple[str, str, str, str]:
    return resource.group, resource.version, namespace, resource.plural
