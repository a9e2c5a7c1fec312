"""Probes of Connect and of Kubernetes: connectors with their traces, the mirror's resource, other mirrors, logs."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import yaml
from kubernetes import client
from kubernetes.client import rest
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from contract.verification_request import RESOURCE_KINDS, Resource
from kafka.connector_status import access_name, api_client
from kafka.topic_partition import TopicPartition
from ops.doctor.observations import Connector, Log, OtherMirror, ResourceReadiness, TaskStatus
from ops.errors import OpsError
from ops.inspection.probes import servers
from settings.platform import annotation_domain

REST_S = 10.0
CALL_S = 10.0
LOGS_S = 15.0
LOG_S = 900
LOG_LINES = 5000
LOG_BYTES = 2 * 1024 * 1024
WORKERS_MAX = 10
_FORBIDDEN, _NOT_FOUND = (401, 403), 404
_FIRST_VERSION, _FIRST_PLURAL = "v1beta2", "kafkamirrormakers"
SOURCE_CONNECTOR = "MirrorSourceConnector"
PARTITIONS = "task.assigned.partitions"  # org.apache.kafka.connect.mirror.MirrorSourceTaskConfig
Object = Mapping[str, Any]


def from_rest(url: str, names: Iterable[str]) -> tuple[Connector, ...]:
    """Return the named connectors with their traces; raises OpsError without an answer of Connect."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/connectors", params={"expand": "status"}, timeout=REST_S)
        answer.raise_for_status()
        known = answer.json()
        found = [connector(name, (known.get(name) or {}).get("status") or {}) for name in names]
        return tuple(_with_partitions(url, one) if one.name.endswith(SOURCE_CONNECTOR) else one for one in found)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, KeyError, AttributeError) as error:
        raise OpsError(f"Connect at {url} does not answer ({type(error).__name__})") from None


def _with_partitions(url: str, source: Connector) -> Connector:
    """Return the source connector with what each of its tasks is to read; as it is if Connect has no such tasks."""
    answer = httpx.get(f"{url.rstrip('/')}/connectors/{quote(source.name, safe='')}/tasks", timeout=REST_S)
    if answer.status_code != httpx.codes.OK:
        return source
    named = {f"task {one['id']['task']}": str(one["config"].get(PARTITIONS) or "") for one in answer.json()}
    return replace(
        source, parts=tuple(replace(part, partitions=_partitions(named.get(part.name, ""))) for part in source.parts)
    )


def _partitions(listed: str) -> frozenset[TopicPartition]:
    """Return the partitions of a text such as `items-0,items-1`."""
    named = [one.rpartition("-") for one in listed.split(",") if one]
    return frozenset(TopicPartition(topic, int(number)) for topic, _, number in named)


def connector(name: str, status: Object) -> Connector:
    """Return a connector from its status, which Connect and the operator write alike."""
    own = status.get("connector") or {}
    tasks = [TaskStatus(name=f"task {one.get('id')}", state=str(one.get("state")), trace=str(one.get("trace") or ""))
             for one in status.get("tasks") or []]  # fmt: skip
    whole = TaskStatus(name=name, state=str(own.get("state") or "MISSING"), trace=str(own.get("trace") or ""))
    return Connector(name=name, parts=(whole, *tasks))


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The mirror's own resource with the connectors in its status, directions of other mirrors, and workers' logs.

    `addresses` are those by which its workers reach the source and the target: others than from outside.
    """

    readiness: ResourceReadiness
    connectors: tuple[Connector, ...] | None
    others: tuple[OtherMirror, ...]
    logs: tuple[Log, ...]
    notes: tuple[str, ...]
    addresses: Mapping[str, frozenset[str]] = field(default_factory=dict)


def resources(wanted: Resource, names: Iterable[str], environment: Mapping[str, str]) -> Resources:
    """Return what Kubernetes has of the mirror; raises OpsError if the mirror's resource cannot be read."""
    api, where = _api(environment, wanted.context), access_name(environment, wanted.context)
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
        listed += _first_generation(custom, group)
        logs = _logs(client.CoreV1Api(api), wanted, own, notes)
    except ApiException as error:
        raise OpsError(f"{wanted}: must be readable by {where} (got {error.status} {error.reason})") from None
    except rest.urllib3.exceptions.HTTPError as error:
        raise OpsError(f"{wanted}: Kubernetes does not answer {where} ({type(error).__name__})") from None
    finally:
        api.close()
    status = own.get("status") or {}
    known = {str(one.get("name")): one for one in status.get("connectors") or []}
    others = [one for one in listed if one["metadata"].get("uid") != own["metadata"].get("uid")]
    return Resources(
        readiness=readiness(str(wanted), status),
        connectors=tuple(connector(name, known.get(name) or {}) for name in names) if known else None,
        others=tuple(direction for one in others for direction in directions(one)),
        logs=logs,
        notes=tuple(notes),
        addresses=addresses(own),
    )


def _first_generation(custom: client.CustomObjectsApi, group: str) -> list[Any]:
    """Every KafkaMirrorMaker, which is MirrorMaker 1; none where the operator's release has no such kind any more."""
    try:
        found = custom.list_cluster_custom_object(
            group, _FIRST_VERSION, _FIRST_PLURAL, _request_timeout=_within(CALL_S)
        )
    except ApiException as error:
        if error.status not in (*_FORBIDDEN, _NOT_FOUND):
            raise
        return []  # without the right to list the other mirrors are reported already
    return list(found["items"])


def readiness(name: str, status: Object) -> ResourceReadiness:
    """Return the readiness by the conditions of a status. A condition NotReady, or none at all, is not ready."""
    conditions = {str(one.get("type")): one for one in status.get("conditions") or []}
    problem = conditions.get("NotReady") or conditions.get("Ready") or {}
    words = [str(problem[key]) for key in ("reason", "message") if problem.get(key)]
    return ResourceReadiness(
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
    if "consumer" in spec:
        return [_first_direction(spec, metadata)]
    found = []
    for flow in spec.get("mirrors") or []:
        ends = _ends(spec, flow)
        carrier = flow.get("sourceConnector") or {}
        if carrier.get("state") in ("paused", "stopped") or carrier.get("pause"):
            continue
        policy = str((carrier.get("config") or {}).get("replication.policy.class", ""))
        found.append(
            OtherMirror(
                name=f"KafkaMirrorMaker2 {metadata.get('namespace')}/{metadata.get('name')}",
                source=ends["source"],
                target=ends["target"],
                topics=tuple(one.strip() for one in str(flow.get("topicsPattern") or ".*").split(",")),
                keeps_names=policy.endswith("IdentityReplicationPolicy"),
            )
        )
    return found


def _first_direction(spec: Object, metadata: Object) -> OtherMirror:
    """Return where a KafkaMirrorMaker copies from and to; its list of topics is one expression, or several."""
    topics = str(spec.get("include") or spec.get("whitelist") or ".*")
    return OtherMirror(
        name=f"KafkaMirrorMaker {metadata.get('namespace')}/{metadata.get('name')}",
        source=servers(str((spec.get("consumer") or {}).get("bootstrapServers") or "")),
        target=servers(str((spec.get("producer") or {}).get("bootstrapServers") or "")),
        topics=tuple(one.strip() for one in topics.split(",")),
        keeps_names=True,
        is_first=True,
    )


def addresses(resource: Object) -> dict[str, frozenset[str]]:
    """Return the addresses of the source and of the target of a KafkaMirrorMaker2 of either shape, by role."""
    spec = resource.get("spec") or {}
    flows = [_ends(spec, flow) for flow in spec.get("mirrors") or []]
    return {role: frozenset().union(*(ends[role] for ends in flows)) for role in ("source", "target")}


def _ends(spec: Object, flow: Object) -> dict[str, frozenset[str]]:
    by_alias = {one.get("alias"): one for one in spec.get("clusters") or []}
    source = flow.get("source") or by_alias.get(flow.get("sourceCluster")) or {}
    target = spec.get("target") or by_alias.get(flow.get("targetCluster")) or {}
    return {
        role: servers(str(end.get("bootstrapServers") or "")) for role, end in (("source", source), ("target", target))
    }


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
    status, domain = own.get("status") or {}, annotation_domain(wanted.api_version)
    selector = status.get("labelSelector") or f"{domain}/cluster={wanted.name},{domain}/kind=KafkaMirrorMaker2"
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


def _api(environment: Mapping[str, str], context: str | None) -> client.ApiClient:
    try:
        return api_client(environment, context)
    except (yaml.YAMLError, ValueError) as error:  # its words may quote the file, which holds credentials
        file, kind = environment.get("KUBECONFIG") or "~/.kube/config", type(error).__name__
        raise OpsError(f"Kubernetes: kubeconfig {file} must be YAML (got a {kind}).") from None
    except (ConfigException, OSError) as error:
        where = access_name(environment, context)
        raise OpsError(f"Kubernetes: a kubeconfig must give access by {where} ({error}). Set KUBECONFIG.") from None
