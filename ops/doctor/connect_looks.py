"""Looks at Connect and at Kubernetes: connectors with their traces, the mirror's resource, other mirrors, logs."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from kubernetes import client, config  # type: ignore[import-untyped]  # ships no types
from kubernetes.client import rest  # type: ignore[import-untyped]  # as above
from kubernetes.client.exceptions import ApiException  # type: ignore[import-untyped]  # as above
from kubernetes.config.config_exception import ConfigException  # type: ignore[import-untyped]  # as above

from ops.doctor.seen import Connector, Log, OtherMirror, Part, Told
from ops.errors import OpsError
from spark.request.model import RESOURCE_KINDS, Resource

REST_S = 10.0
CALL_S = 10.0
LOGS_S = 15.0
LOG_S = 900
LOG_LINES = 5000
LOG_BYTES = 2 * 1024 * 1024
WORKERS_MAX = 10
_FORBIDDEN = (401, 403)
Object = Mapping[str, Any]


def from_rest(url: str, names: Iterable[str]) -> tuple[Connector, ...]:
    """Return the named connectors with their traces; raises OpsError without an answer of Connect."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/connectors", params={"expand": "status"}, timeout=REST_S)
        answer.raise_for_status()
        known = answer.json()
        return tuple(connector(name, (known.get(name) or {}).get("status") or {}) for name in names)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError) as error:
        raise OpsError(f"Connect at {url} does not answer ({type(error).__name__})") from None


def connector(name: str, status: Object) -> Connector:
    """Return a connector from its status, which Connect and the operator write alike."""
    own = status.get("connector") or {}
    tasks = [Part(name=f"task {one.get('id')}", state=str(one.get("state")), trace=str(one.get("trace") or ""))
             for one in status.get("tasks") or []]  # fmt: skip
    whole = Part(name=name, state=str(own.get("state") or "MISSING"), trace=str(own.get("trace") or ""))
    return Connector(name=name, parts=(whole, *tasks))


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The mirror's own resource and what it tells of connectors, directions of other mirrors, and workers' logs."""

    told: Told
    connectors: tuple[Connector, ...] | None
    others: tuple[OtherMirror, ...]
    logs: tuple[Log, ...]
    notes: tuple[str, ...]


def resources(wanted: Resource, names: Iterable[str], environment: Mapping[str, str]) -> Resources:
    """Return what Kubernetes tells; raises OpsError if the mirror's resource cannot be read."""
    api = _api(environment)
    custom, group, version = client.CustomObjectsApi(api), *wanted.api_version.rsplit("/", 1)
    plural, notes = RESOURCE_KINDS[wanted.kind], []
    try:
        own = custom.get_namespaced_custom_object(
            group, version, wanted.namespace, plural, wanted.name, _request_timeout=_within(CALL_S)
        )
        try:
            listed = custom.list_cluster_custom_object(group, version, plural, _request_timeout=_within(CALL_S))[
                "items"
            ]
        except ApiException as error:
            if error.status not in _FORBIDDEN:
                raise
            notes.append(f"other mirrors: list on {plural} of the whole Kubernetes cluster is not granted")
            listed = []
        logs = _logs(client.CoreV1Api(api), wanted, own, notes)
    except ApiException as error:
        raise OpsError(f"{wanted}: must be readable (Kubernetes answers {error.status} {error.reason})") from None
    except rest.urllib3.exceptions.HTTPError as error:
        raise OpsError(f"{wanted}: Kubernetes does not answer ({type(error).__name__})") from None
    finally:
        api.close()
    status = own.get("status") or {}
    known = {str(one.get("name")): one for one in status.get("connectors") or []}
    others = [one for one in listed if one["metadata"].get("uid") != own["metadata"].get("uid")]
    return Resources(
        told=told(str(wanted), status),
        connectors=tuple(connector(name, known.get(name) or {}) for name in names) if known else None,
        others=tuple(direction for one in others for direction in directions(one)),
        logs=logs,
        notes=tuple(notes),
    )


def told(name: str, status: Object) -> Told:
    """Return what the conditions of a status say. A condition NotReady, or none at all, is not ready."""
    conditions = {str(one.get("type")): one for one in status.get("conditions") or []}
    problem = conditions.get("NotReady") or conditions.get("Ready") or {}
    words = [str(problem[key]) for key in ("reason", "message") if problem.get(key)]
    return Told(
        name=name,
        ready=conditions.get("Ready", {}).get("status") == "True",
        reason=": ".join(words),
        paused=conditions.get("ReconciliationPaused", {}).get("status") == "True",
    )


def directions(resource: Object) -> list[OtherMirror]:
    """Return where a KafkaMirrorMaker2 of either shape copies from and to; one without workers copies nothing."""
    spec, metadata = resource.get("spec") or {}, resource["metadata"]
    if spec.get("replicas") == 0:
        return []
    by_alias = {one.get("alias"): one for one in spec.get("clusters") or []}
    found = []
    for flow in spec.get("mirrors") or []:
        source = flow.get("source") or by_alias.get(flow.get("sourceCluster")) or {}
        target = spec.get("target") or by_alias.get(flow.get("targetCluster")) or {}
        carrier = flow.get("sourceConnector") or {}
        if carrier.get("state") in ("paused", "stopped") or carrier.get("pause"):
            continue
        policy = str((carrier.get("config") or {}).get("replication.policy.class", ""))
        found.append(
            OtherMirror(
                name=f"KafkaMirrorMaker2 {metadata.get('namespace')}/{metadata.get('name')}",
                source=servers(str(source.get("bootstrapServers") or "")),
                target=servers(str(target.get("bootstrapServers") or "")),
                topics=tuple(one.strip() for one in str(flow.get("topicsPattern") or ".*").split(",")),
                keeps_names=policy.endswith("IdentityReplicationPolicy"),
            )
        )
    return found


def servers(listed: str) -> frozenset[str]:
    """Return the addresses of a list of bootstrap servers."""
    return frozenset(one.strip() for one in listed.split(",") if one.strip())


def from_files(paths: Iterable[Path]) -> tuple[Log, ...]:
    """Return the ends of log files; raises OpsError for one that cannot be read."""
    found = []
    for path in paths:
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - LOG_BYTES))
                text = file.read().decode(errors="replace")
        except OSError as error:
            raise OpsError(f"--worker-log must be a readable file (got {path}: {error.strerror}).") from None
        found.append(Log(name=f"worker log {path.name}", text=text))
    return tuple(found)


def _logs(core: Any, wanted: Resource, own: Object, notes: list[str]) -> tuple[Log, ...]:
    """The last minutes of the workers' logs, all within LOGS_S; what could not be read is a note."""
    status = own.get("status") or {}
    selector = status.get("labelSelector") or f"strimzi.io/cluster={wanted.name},strimzi.io/kind=KafkaMirrorMaker2"
    end = time.monotonic() + LOGS_S
    found: list[Log] = []
    why, pods = "", []
    try:
        pods = core.list_namespaced_pod(
            wanted.namespace, label_selector=selector, _request_timeout=_within(CALL_S)
        ).items
        for pod in pods[:WORKERS_MAX]:
            if (left := end - time.monotonic()) <= 0:
                why = f"no more than {LOGS_S:.0f} s are spent on them"
                break
            try:
                text = core.read_namespaced_pod_log(
                    pod.metadata.name,
                    wanted.namespace,
                    since_seconds=LOG_S,
                    tail_lines=LOG_LINES,
                    _request_timeout=_within(min(CALL_S, left)),
                )
            except rest.urllib3.exceptions.HTTPError as error:
                why = f"Kubernetes does not answer for pod {pod.metadata.name} ({type(error).__name__})"
                continue
            found.append(Log(name=f"log of pod {pod.metadata.name}", text=str(text or "")))
    except ApiException as error:
        why = f"pods and pods/log of namespace {wanted.namespace} ({error.status} {error.reason})"
    except rest.urllib3.exceptions.HTTPError as error:
        why = f"Kubernetes does not answer ({type(error).__name__})"
    else:
        if not pods:
            why = f"no pod with {selector} in namespace {wanted.namespace}"
        elif not why and len(pods) > WORKERS_MAX:
            why = f"no more than {WORKERS_MAX} are read"
    if why:
        read = f"{len(found)} of {len(pods)} read: " if pods else ""
        notes.append(f"workers' logs: {read}{why}; give --worker-log")
    return tuple(found)


def _within(seconds: float) -> tuple[float, float]:
    """The time of one call as the client takes it: a single number that is no integer it would ignore."""
    return seconds, seconds


def _api(environment: Mapping[str, str]) -> Any:
    configuration = client.Configuration()
    try:
        named, usual = environment.get("KUBECONFIG"), Path("~/.kube/config").expanduser()
        if named or usual.exists():
            config.load_kube_config(config_file=named or str(usual), client_configuration=configuration)
        else:
            config.load_incluster_config(client_configuration=configuration)
    except (yaml.YAMLError, ValueError) as error:  # its words may quote the file, which holds credentials
        kind = type(error).__name__
        raise OpsError(f"Kubernetes: kubeconfig {named or usual} must be YAML (got a {kind}).") from None
    except (ConfigException, OSError) as error:
        raise OpsError(f"Kubernetes: a kubeconfig must be given ({error}). Set KUBECONFIG.") from None
    configuration.retries = False
    return client.ApiClient(configuration)
