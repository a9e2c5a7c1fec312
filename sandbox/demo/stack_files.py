"""The default pair's stack files as the demo deploys them in somebody's Kubernetes clusters: small, and easy to remove.

Pure: what is read from a `KubernetesCluster` and asked for by options becomes settings. Owns which operator is used and
how the brokers are exposed.
"""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from .kubernetes import OLM, ROUTES, DemoRefusedError, KubernetesCluster
from .process import SOURCE, TARGET

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
    installed = operators(clusters, release)
    return {
        stack: _smaller(shipped[stack], stack, cluster, installed[stack], exposed(cluster, expose))
        for stack, cluster in clusters.items()
    }


def operators(clusters: Mapping[str, KubernetesCluster], release: Path | None) -> dict[str, Document]:
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
            f"Pulumi.{stack}.yaml: {', '.join(encrypted)} must hold no encrypted value (got one). The demo copies this "
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
