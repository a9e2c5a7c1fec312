"""Status of a mirror's connectors and tasks: as Connect's REST interface has it, and as the custom resource has it.

Read only. The resource is read with the caller's own Kubernetes access. An operator may call a resource Ready while a
task of it has failed: both are reported. The client of Kubernetes is imported where it is used: many runs never need
it, and it takes as long as everything else that they import.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from contract.verification_request import Resource

if TYPE_CHECKING:
    from kubernetes import client
    from kubernetes.client.rest import ApiException

REST_DEADLINE_S = 5.0
# What is no answer of Connect, JSON of another shape among it: something else may listen at the address.
NO_ANSWER = (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError)
CALL_DEADLINE_S = 5  # the client ignores a number that is not whole
MESSAGE_MAX = 300
# Kubernetes' client keeps each certificate of a kubeconfig in a file, which other threads get before it is written.
_loading = threading.Lock()


@dataclass(frozen=True)
class ConnectorState:
    """State of one connector and its tasks as Connect reports it; `missing` if it does not exist.

    `reported` is the whole status, with the traces of what failed.
    """

    name: str
    state: str
    tasks: tuple[str, ...]
    reported: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def running(self) -> bool:
        """Whether the connector and all its tasks run; a connector that copies records has at least one task."""
        enough = bool(self.tasks) or not self.name.endswith("MirrorSourceConnector")
        return self.state == "RUNNING" and enough and all(task == "RUNNING" for task in self.tasks)

    @property
    def faults(self) -> list[str]:
        """What does not run: the connector, or each task by its number."""
        if self.running:
            return []
        found = [] if self.state == "RUNNING" else [f"{self.name} is {self.state}"]
        found += [f"task {at} of {self.name} is {task}" for at, task in enumerate(self.tasks) if task != "RUNNING"]
        return found or [f"{self.name} is RUNNING without a task"]


def connector_states(url: str, names: Iterable[str]) -> list[ConnectorState] | None:
    """Return the state of each named connector, or None when Connect does not answer."""
    try:
        return read_connectors(url, names)
    except NO_ANSWER:
        return None


def read_connectors(url: str, names: Iterable[str]) -> list[ConnectorState]:
    """Return the state of each named connector; raises one of NO_ANSWER if Connect does not answer."""
    answer = httpx.get(f"{url.rstrip('/')}/connectors", params={"expand": "status"}, timeout=REST_DEADLINE_S)
    answer.raise_for_status()
    known = answer.json()
    return [_connector(name, (known.get(name) or {}).get("status") or {}) for name in names]


def _connector(name: str, status: Mapping[str, Any]) -> ConnectorState:
    """Return a connector from its status, which Connect and the operator write alike."""
    state = str((status.get("connector") or {}).get("state", "missing"))
    return ConnectorState(name, state, tuple(str(task.get("state")) for task in status.get("tasks") or []), status)


@dataclass(frozen=True, kw_only=True)
class ResourceStatus:
    """Readiness and connectors of the resource; `silent` is the reason why it could not be read.

    `operator` is the version of the operator that reconciled it last, empty if the status has none; `current`: it has
    reconciled what is asked for now. `document` is the whole resource as Kubernetes has it.
    """

    resource: Resource
    ready: bool = False
    reason: str = ""
    connectors: tuple[ConnectorState, ...] = ()
    silent: str | None = None
    operator: str = ""
    current: bool = True
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def faults(self) -> list[str]:
        """What is wrong; nothing if it could not be read. A Ready resource with a failed task is reported as such."""
        if self.silent is not None:
            return []
        name = str(self.resource)
        found = [] if self.ready else [f"{name} is not Ready: {self.reason}"]
        word = "is Ready, yet" if self.ready else "reports that"
        return found + [f"{name} {word} {fault}" for one in self.connectors for fault in one.faults]


def declared_state(connector: Mapping[str, Any]) -> str | None:
    """Return the state that a connector's part of a spec asks for; None if it leaves that to the operator: running.

    Earlier operators know `pause` only.
    """
    return connector.get("state") or ("paused" if connector.get("pause") else None)


def resource_status(resource: Resource, names: Iterable[str], environment: Mapping[str, str]) -> ResourceStatus:
    """Read the resource with the kubeconfig of the environment or of the home folder, else as the pod's account.

    Args:
        resource: the custom resource.
        names: connectors whose state is wanted; one that the status does not list is `missing`.
        environment: for the kubeconfig.

    Returns:
        What its status reports. If it cannot be read, `silent` is the reason and names the context.
    """
    import urllib3
    from kubernetes import client
    from kubernetes.client.rest import ApiException
    from kubernetes.config import ConfigException

    where = access_name(environment, resource.context)
    try:
        api = api_client(environment, resource.context)
    except (ConfigException, OSError) as error:
        return ResourceStatus(resource=resource, silent=f"no Kubernetes access by {where} ({_line(str(error))})")
    except Exception as error:  # the YAML parser's: its message may quote the file, which holds credentials
        why = f"the kubeconfig cannot be parsed: {type(error).__name__}"
        return ResourceStatus(resource=resource, silent=f"no Kubernetes access by {where} ({why})")
    group, _, version = resource.api_version.rpartition("/")
    try:
        found = client.CustomObjectsApi(api).get_namespaced_custom_object(
            group,
            version,
            resource.namespace,
            resource.kind.lower().removesuffix("s") + "s",  # EventStreams is a plural already
            resource.name,
            _request_timeout=CALL_DEADLINE_S,
        )
    except ApiException as error:
        return ResourceStatus(resource=resource, silent=f"{_refusal(error)} ({where})")
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        return ResourceStatus(resource=resource, silent=f"Kubernetes does not answer ({type(error).__name__}, {where})")
    finally:
        api.close()
    status = found.get("status") or {}
    asked, observed = found["metadata"].get("generation", 0), status.get("observedGeneration", 0)
    return replace(from_status(resource, names, status), current=observed >= asked, document=found)


def from_status(resource: Resource, names: Iterable[str], status: Mapping[str, Any]) -> ResourceStatus:
    """Return what a status reports of the named connectors. A condition NotReady, or none at all, is not ready.

    A connector is missing if the status lists others and not this one.
    """
    conditions = {str(one.get("type")): one for one in status.get("conditions") or []}
    ready = conditions.get("Ready", {}).get("status") == "True"
    problem = conditions.get("NotReady") or conditions.get("Ready") or {}
    known = {str(one.get("name")): one for one in status.get("connectors") or []}
    words = [str(problem[key]) for key in ("reason", "message") if problem.get(key)]
    return ResourceStatus(
        resource=resource,
        ready=ready,
        reason="" if ready else _line(": ".join(words)) or "its operator has not reported a state",
        connectors=tuple(_connector(name, known.get(name) or {}) for name in names) if known else (),
        operator=str(status.get("operatorLastSuccessfulVersion") or ""),
    )


def api_client(environment: Mapping[str, str], context: str | None = None) -> "client.ApiClient":
    """Return a client of the cluster of a context of the kubeconfig, by default the current one, or the pod's own.

    Raises ConfigException, OSError.
    """
    from kubernetes import client, config

    configuration = client.Configuration()
    if (file := _kubeconfig(environment)) is not None:
        with _loading:
            config.load_kube_config(config_file=file, context=context, client_configuration=configuration)
    else:
        config.load_incluster_config(client_configuration=configuration)
    configuration.retries = False  # one attempt: the caller asks again, and nothing is logged
    return client.ApiClient(configuration)


def access_name(environment: Mapping[str, str], context: str | None) -> str:
    """Return by which context `api_client` reaches Kubernetes, for messages."""
    if _kubeconfig(environment) is None:
        return "the pod's account"
    return f"context {context}" if context is not None else "the kubeconfig's current context"


def _kubeconfig(environment: Mapping[str, str]) -> str | None:
    named, usual = environment.get("KUBECONFIG"), Path("~/.kube/config").expanduser()
    return named or (str(usual) if usual.exists() else None)


def _refusal(error: "ApiException") -> str:
    if error.status == 404:
        return "not found in this Kubernetes cluster"
    if is_login_refused(error):
        return f"Kubernetes does not know the account ({error.status}), its token may have expired: log in again"
    if error.status == 403:
        return f"Kubernetes refuses to read it ({error.status}), grant get on it"
    if not error.status:  # how the client reports an error of TLS
        return f"Kubernetes does not answer: {_line(str(error.reason))}"
    return f"Kubernetes answers {error.status}"


def is_login_refused(error: "ApiException") -> bool:
    """Return whether the API server does not know who asks: no right that somebody grants would help.

    A kubeconfig whose exec plugin fails, as after an expired login, has no credentials: the call is anonymous then.
    """
    return error.status == 401 or (error.status == 403 and "system:anonymous" in str(error.body))


def _line(text: str) -> str:
    return " ".join(text.split())[:MESSAGE_MAX]
