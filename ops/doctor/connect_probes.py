"""Probes of Connect and of Kubernetes: partitions of tasks, other mirrors, workers' logs; and readers of statuses."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from kubernetes import client
from kubernetes.client import rest
from kubernetes.client.exceptions import ApiException

from contract.verification_request import RESOURCE_KINDS, Resource
from kafka.connector_status import NO_ANSWER, REST_DEADLINE_S, ResourceStatus, access_name, api_client, declared_state
from kafka.topic_partition import TopicPartition
from ops.doctor.observations import Connector, KubernetesObservations, Log, OtherMirror, ResourceReadiness, TaskStatus
from ops.errors import OpsError
from ops.inspection.probes import servers
from settings.platform import annotation_domain

CALL_S = 10.0
LOGS_S = 15.0
LOG_S = 900
LOG_LINES = 5000
LOG_BYTES = 2 * 1024 * 1024
WORKERS_MAX = 10
_FORBIDDEN, _NOT_FOUND = (401, 403), 404
_FIRST_VERSION, _FIRST_PLURAL = "v1beta2", "kafkamirrormakers"
PARTITIONS = "task.assigned.partitions"  # org.apache.kafka.connect.mirror.MirrorSourceTaskConfig
Object = Mapping[str, Any]


def task_partitions(url: str, source_connector: str) -> dict[str, frozenset[TopicPartition]]:
    """Return what each task of the source connector is configured to read, by `task NUMBER`.

    Nothing if Connect has no such connector. Raises OpsError if it does not answer.
    """
    path = f"{url.rstrip('/')}/connectors/{quote(source_connector, safe='')}/tasks"
    try:
        answer = httpx.get(path, timeout=REST_DEADLINE_S)
        if answer.status_code != httpx.codes.OK:
            return {}
        return {
            f"task {one['id']['task']}": _partitions(str(one["config"].get(PARTITIONS) or "")) for one in answer.json()
        }
    except NO_ANSWER as error:
        raise OpsError(f"Connect at {url} does not answer ({type(error).__name__})") from None


def _partitions(listed: str) -> frozenset[TopicPartition]:
    """Return the partitions of a text such as `items-0,items-1`."""
    named = [one.rpartition("-") for one in listed.split(",") if one]
    return frozenset(TopicPartition(topic, int(number)) for topic, _, number in named)


def connector(name: str, status: Object, partitions: Mapping[str, frozenset[TopicPartition]]) -> Connector:
    """Return a connector from its status, which Connect and the operator write alike; `partitions` are by task."""
    own = status.get("connector") or {}
    tasks = (
        TaskStatus(
            name=(task := f"task {one.get('id')}"),
            state=str(one.get("state")),
            trace=str(one.get("trace") or ""),
            partitions=partitions.get(task, frozenset()),
        )
        for one in status.get("tasks") or []
    )
    whole = TaskStatus(name=name, state=str(own.get("state") or "MISSING"), trace=str(own.get("trace") or ""))
    return Connector(name=name, parts=(whole, *tasks))


def others_and_logs(
    mirror: Callable[[], ResourceStatus | None], environment: Mapping[str, str]
) -> KubernetesObservations | None:
    """Return what Kubernetes has around the mirror: directions of other mirrors, and the logs of the workers.

    Args:
        mirror: returns the mirror's own resource.
        environment: for the kubeconfig.

    Returns:
        What was found; None if the mirror's own resource cannot be read.

    Raises:
        OpsError: Kubernetes does not answer, or refuses more than the list of other mirrors and the logs.
    """
    status = mirror()
    if status is None or status.silent is not None:
        return None
    wanted, own = status.resource, status.document
    api, where = api_client(environment, wanted.context), access_name(environment, wanted.context)
    custom, group, version = client.CustomObjectsApi(api), *wanted.api_version.rsplit("/", 1)
    plural, notes = RESOURCE_KINDS[wanted.kind], []
    try:
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
    others = [one for one in listed if one["metadata"].get("uid") != own["metadata"].get("uid")]
    return KubernetesObservations(
        others=tuple(direction for one in others for direction in directions(one)), logs=logs, notes=tuple(notes)
    )


def _first_generation(custom: client.CustomObjectsApi, group: str) -> list[Any]:
    """Return every KafkaMirrorMaker (MirrorMaker 1); none if the operator's release has no such kind any more."""
    try:
        found = custom.list_cluster_custom_object(
            group, _FIRST_VERSION, _FIRST_PLURAL, _request_timeout=_within(CALL_S)
        )
    except ApiException as error:
        if error.status not in (*_FORBIDDEN, _NOT_FOUND):
            raise
        return []  # a missing right to list is reported already
    return list(found["items"])


def readiness(mirror: ResourceStatus) -> ResourceReadiness:
    """Return the readiness of the mirror's resource with the whole message of its operator."""
    conditions = {str(one.get("type")): one for one in (mirror.document.get("status") or {}).get("conditions") or []}
    problem = conditions.get("NotReady") or conditions.get("Ready") or {}
    return ResourceReadiness(
        name=str(mirror.resource),
        ready=mirror.ready,
        reason=": ".join(str(problem[key]) for key in ("reason", "message") if problem.get(key)),
        paused=conditions.get("ReconciliationPaused", {}).get("status") == "True",
    )


def directions(resource: Object) -> list[OtherMirror]:
    """Return the replication flows of a KafkaMirrorMaker2 of either API version; none if it has no worker."""
    spec, metadata = resource.get("spec") or {}, resource["metadata"]
    if spec.get("replicas") == 0:
        return []
    if "consumer" in spec:
        return [_first_direction(spec, metadata)]
    found = []
    for flow in spec.get("mirrors") or []:
        ends = _ends(spec, flow)
        carrier = flow.get("sourceConnector") or {}
        if declared_state(carrier) in ("paused", "stopped"):
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
    """Return the replication flow of a KafkaMirrorMaker; its list of topics is one expression, or several."""
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
    """Return the addresses of the source and of the target of a KafkaMirrorMaker2 of either API version, by role."""
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
    """Return the last minutes of the workers' logs, read within LOGS_S; `notes` gets what could not be read."""
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
    """Return the deadline of one call as the client takes it: it ignores a single number that is not an integer."""
    return seconds, seconds
