"""What a Kubernetes cluster of the kubeconfig has that the demo must know before it changes anything. Only reads."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.client.rest import ApiException
from kubernetes.config import ConfigException

WATCHED, EVERYTHING = "STRIMZI_NAMESPACE", "*"
OLM, ROUTES = "operators.coreos.com", "route.openshift.io"
_OLM_WATCHED = "olm.targetNamespaces"
_KIND = "kind://"
_TIMEOUT_S = 15
Object = Mapping[str, Any]


class DemoRefusedError(Exception):
    """The demo cannot run in these clusters; nothing was changed. The message says why and what to do."""


@dataclass(frozen=True)
class Operator:
    """A cluster operator of Strimzi that runs already. `watched` are its namespaces, empty for all."""

    namespace: str
    name: str
    watched: tuple[str, ...]


@dataclass(frozen=True)
class KubernetesCluster:
    """One Kubernetes cluster at one moment, as a context of the kubeconfig reaches it."""

    context: str
    identity: str
    """Uid of the namespace kube-system: two contexts may lead to one cluster."""
    namespaces: frozenset[str]
    groups: frozenset[str]
    """API groups that it serves."""
    operators: tuple[Operator, ...]
    node_address: str | None
    """Address at which a node port answers, None without a node that is ready."""
    is_kind: bool

    @classmethod
    def read(cls, context: str | None) -> "KubernetesCluster":
        """Read a context, None for the current one; raises DemoRefusedError if it does not lead to a cluster."""
        name = context or current_context()
        with _explained(name):
            api = config.new_client_from_config(context=name)
            core = client.CoreV1Api(api)
            found = core.list_namespace(_request_timeout=_TIMEOUT_S).items
            identities = {each.metadata.name: each.metadata.uid for each in found}
            deployments = client.AppsV1Api(api).list_deployment_for_all_namespaces(_request_timeout=_TIMEOUT_S)
            nodes = [_plain(api, node) for node in core.list_node(_request_timeout=_TIMEOUT_S).items]
            groups = client.ApisApi(api).get_api_versions(_request_timeout=_TIMEOUT_S).groups
        return cls(
            context=name,
            identity=identities.get("kube-system", name),
            namespaces=frozenset(identities),
            groups=frozenset(group.name for group in groups),
            operators=operators([_plain(api, each) for each in deployments.items]),
            node_address=node_address(nodes),
            is_kind=any(str(node["spec"].get("providerID", "")).startswith(_KIND) for node in nodes),
        )


def current_context() -> str:
    """Name of the kubeconfig's current context; raises DemoRefusedError if there is none."""
    try:
        _, current = config.list_kube_config_contexts()
    except ConfigException as error:
        raise DemoRefusedError(
            f"kubeconfig: must have a current context (got {error}). Set KUBECONFIG, or: "
            "kubectl config use-context NAME."
        ) from error
    return str(current["name"])


def operators(deployments: Sequence[Object]) -> tuple[Operator, ...]:
    """Return Strimzi's cluster operators among Deployments, by the variable that names their namespaces."""
    found = []
    for each in deployments:
        metadata, template = each["metadata"], each["spec"]["template"]
        for container in template["spec"]["containers"]:
            for variable in container.get("env") or ():
                if variable["name"] == WATCHED:
                    watched = _watched(variable, metadata["namespace"], template.get("metadata") or {})
                    found.append(Operator(metadata["namespace"], metadata["name"], watched))
    return tuple(found)


def node_address(nodes: Sequence[Object]) -> str | None:
    """Return the external address of the first node that is ready, else its internal one."""
    for node in nodes:
        status = node["status"]
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
        addresses = {each["type"]: str(each["address"]) for each in status.get("addresses") or ()}
        if ready and (found := addresses.get("ExternalIP") or addresses.get("InternalIP")):
            return found
    return None


def _watched(variable: Object, own: str, template: Object) -> tuple[str, ...]:
    """Namespaces that the variable names: itself, by the operator's own namespace, or by what OLM wrote down."""
    field = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
    value = str(variable.get("value") or "")
    if field == "metadata.namespace":
        value = own
    elif _OLM_WATCHED in field:
        value = (template.get("annotations") or {}).get(_OLM_WATCHED, "")
    return () if value == EVERYTHING else tuple(name.strip() for name in value.split(",") if name.strip())


def _plain(api: client.ApiClient, found: Any) -> dict[str, Any]:
    plain: dict[str, Any] = api.sanitize_for_serialization(found)
    return plain


@contextmanager
def _explained(context: str) -> Iterator[None]:
    try:
        yield
    except ConfigException as error:
        raise DemoRefusedError(
            f"context {context}: must be in the kubeconfig (got {error}). See: kubectl config get-contexts."
        ) from error
    except ApiException as error:
        raise DemoRefusedError(
            f"context {context}: its user must be allowed to list namespaces, nodes and Deployments (got "
            f"{error.status} {error.reason}). Use one that administers the cluster."
        ) from error
    except urllib3.exceptions.HTTPError as error:
        raise DemoRefusedError(
            f"context {context}: its API server must answer (got {type(error).__name__}). Is the cluster running? "
            f"See: kubectl --context {context} cluster-info."
        ) from error
