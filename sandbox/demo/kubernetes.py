"""The kubeconfig's Kubernetes clusters as the demo finds them, and the stack files that it deploys there.

Only reads. Owns which operator is used, how the brokers are exposed, and what makes a cluster unfit for the demo. What
is read from a cluster and what the options ask for become settings: small clusters that are easy to remove.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.client.rest import ApiException
from kubernetes.config import ConfigException

from sandbox.demo import SOURCE, TARGET

WATCHED, EVERYTHING = "STRIMZI_NAMESPACE", "*"
OLM, ROUTES = "operators.coreos.com", "route.openshift.io"
_OLM_WATCHED = "olm.targetNamespaces"
_KIND = "kind://"
_TIMEOUT_S = 15
Object = Mapping[str, Any]


class DemoRefusedError(Exception):
    """The demo cannot run in these clusters; nothing was changed. The message has the reason and what to do."""


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


NAMESPACES = {SOURCE: "rt-inventory-demo-dev", TARGET: "rt-inventory-demo-stg"}
_KEY = "rt-inventory:"
# What `pulumi stack init` writes into a stack file: the key is another state's.
_OF_THE_STATE = ("encryptionsalt", "encryptedkey", "secretsprovider")
_RESOURCES = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
Document = dict[str, Any]


def stack_files(
    shipped: Mapping[str, Document],
    clusters: Mapping[str, KubernetesCluster],
    release: Path | None,
    expose: str | None,
) -> dict[str, Document]:
    """Return the stack files of the demo; raises DemoRefusedError if it cannot run in these clusters.

    Args:
        shipped: The project's stack files, by stack.
        clusters: Where each stack goes.
        release: Folder with the YAML files of Strimzi's release.
        expose: How brokers are exposed, None to choose it by the cluster.
    """
    for stack, cluster in clusters.items():
        _refuse_namespace(stack, cluster)
    installed = operator_settings(clusters, release)
    return {
        stack: _smaller(shipped[stack], stack, cluster, installed[stack], exposed(cluster, expose))
        for stack, cluster in clusters.items()
    }


def operator_settings(clusters: Mapping[str, KubernetesCluster], release: Path | None) -> dict[str, Document]:
    """Return the settings `operator` of each stack: none where one watches all namespaces, else the release, else OLM.

    In one Kubernetes cluster the source's stack installs the release for both: its cluster roles exist once.
    """
    shared = len({cluster.identity for cluster in clusters.values()}) == 1
    found: dict[str, Document] = {}
    for stack, cluster in clusters.items():
        if any(not operator.watched for operator in cluster.operators):
            found[stack] = {"install": "none"}
        elif release is not None:
            _refuse_operator(cluster)
            if shared and stack != SOURCE:
                found[stack] = {"install": "none"}
            else:
                found[stack] = {"install": "yaml", "folder": str(release), "allNamespaces": shared}
        elif OLM in cluster.groups:
            found[stack] = {"install": "olm", "channel": "stable"}
        else:
            raise DemoRefusedError(
                f"context {cluster.context}: must have Strimzi's operator for all namespaces, or OLM, or get the "
                "operator from its release (got none of these). Download the release first: make strimzi."
            )
    return found


def exposed(cluster: KubernetesCluster, asked: str | None) -> Document:
    """Return the setting `cluster.expose`: as asked, or a route on OpenShift, a node port on kind, a load balancer."""
    usual = "route" if ROUTES in cluster.groups else "nodeport" if cluster.is_kind else "loadbalancer"
    kind = asked or usual
    if kind != "nodeport":
        return {"type": kind}
    if cluster.node_address is None:
        raise DemoRefusedError(
            f"context {cluster.context}: must have a node that is ready and has an address, for node ports (got none). "
            "Choose EXPOSE=loadbalancer or EXPOSE=route."
        )
    return {"type": kind, "host": cluster.node_address}


def _smaller(
    shipped: Document, stack: str, cluster: KubernetesCluster, operator: Document, expose: Document
) -> Document:
    """One broker and one worker without disks, in the demo's own namespace, which Pulumi may delete."""
    result = {key: value for key, value in deepcopy(shipped).items() if key not in _OF_THE_STATE}
    values = result["config"]
    if encrypted := [key for key, value in values.items() if _has_secret(value)]:
        raise DemoRefusedError(
            f"Pulumi.{stack}.yaml: {', '.join(encrypted)} must have no encrypted value (got one). The demo copies this "
            "file into a state of its own, whose key cannot read it. Run the demo in a fresh clone."
        )
    values["kubernetes:context"] = cluster.context
    values[f"{_KEY}operator"] = operator
    if ROUTES in cluster.groups:
        values[f"{_KEY}platform"]["distribution"] = "openshift"
    kafka = values[f"{_KEY}cluster"]
    kafka |= {
        "namespace": NAMESPACES[stack],
        "brokers": 1,
        "expose": expose,
        "storage": {"type": "ephemeral"},
        "resources": deepcopy(_RESOURCES),
        "protect": False,
    }
    kafka.pop("metrics", None)
    for mirror in values.get(f"{_KEY}mirrors", ()):
        mirror |= {"replicationFactor": 1, "resources": deepcopy(_RESOURCES)}
        mirror.pop("metrics", None)
    return result


def _has_secret(value: object) -> bool:
    if isinstance(value, Mapping):
        return "secure" in value or any(map(_has_secret, value.values()))
    return isinstance(value, list) and any(map(_has_secret, value))


def _refuse_namespace(stack: str, cluster: KubernetesCluster) -> None:
    namespace = NAMESPACES[stack]
    if namespace in cluster.namespaces:
        raise DemoRefusedError(
            f"namespace {namespace}: must not exist in context {cluster.context} (got one that this demo did not "
            "make). The demo deletes its namespaces with all that is in them. If nobody needs it: "
            f"kubectl --context {cluster.context} delete namespace {namespace}."
        )


def _refuse_operator(cluster: KubernetesCluster) -> None:
    for operator in cluster.operators:
        raise DemoRefusedError(
            f"context {cluster.context}: must have no operator of Strimzi when its release is installed (got "
            f"Deployment {operator.namespace}/{operator.name}, which watches {', '.join(operator.watched)}). "
            "Both would use cluster roles of the same names. Let that one watch all namespaces, or take a cluster "
            "without Strimzi."
        )
