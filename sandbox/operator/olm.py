"""OLM's part: a Subscription leads to an InstallPlan and that to a ClusterServiceVersion that Succeeded.

Owns the status of Subscription, CatalogSource and OperatorGroup, and the two objects. There is no catalog behind a
CatalogSource: every declared one is READY, and the packages that can be subscribed to are listed here.
"""

from dataclasses import dataclass
from typing import Any

from sandbox.operator import NotReadyError, Status, condition, now
from sandbox.operator.kubernetes_api import (
    CATALOG,
    CSV,
    INSTALL_PLAN,
    OPERATOR_GROUP,
    SUBSCRIPTION,
    Kubernetes,
    Object,
    owner_reference,
)
from sandbox.operator.reconcile import Outcome

# package → channel → name of the ClusterServiceVersion at its head
PACKAGES = {
    "strimzi-kafka-operator": {
        "stable": "strimzi-cluster-operator.v1.2.0",
        "strimzi-1.x": "strimzi-cluster-operator.v1.2.0",
        "strimzi-1.2.x": "strimzi-cluster-operator.v1.2.0",
    },
    "ibm-eventstreams": {
        "v3.0": "ibm-eventstreams.v3.0.5",
    },
}
NAMES = {"strimzi-kafka-operator": "Strimzi", "ibm-eventstreams": "IBM Event Streams"}
# What a subscription without a channel gets.
DEFAULT_CHANNELS = {"strimzi-kafka-operator": "stable", "ibm-eventstreams": "v3.0"}


@dataclass
class Subscriptions:
    """Reconciler of Subscription."""

    kubernetes: Kubernetes
    resource = SUBSCRIPTION
    finalizer: str | None = None

    def reconcile(self, resource: Object) -> Outcome:
        """Install the subscribed package; see `Reconciler`."""
        namespace = resource["metadata"]["namespace"]
        spec = resource["spec"]
        status = {"lastUpdated": (resource.get("status") or {}).get("lastUpdated") or now()}
        head = resolve(resource)
        groups = self.kubernetes.objects(OPERATOR_GROUP, namespace)
        if len(groups) != 1:
            reason = "TooManyOperatorGroups" if groups else "NoOperatorGroup"
            raise NotReadyError(
                reason,
                f"Subscription {resource['metadata']['name']}: its namespace {namespace} must have exactly one "
                f"OperatorGroup (got {len(groups)}). Create or delete until there is one.",
                status={**status, "state": "UpgradePending", "currentCSV": head},
            )
        plan = self._install_plan(resource, head)
        reference = {
            "apiVersion": INSTALL_PLAN.api_version,
            "kind": INSTALL_PLAN.kind,
            "name": plan["metadata"]["name"],
            "namespace": namespace,
            "uid": plan["metadata"]["uid"],
        }
        status |= {"currentCSV": head, "installPlanRef": reference, "installPlanGeneration": 1}
        if not plan["spec"]["approved"]:
            raise NotReadyError(
                "RequiresApproval",
                f"Subscription {resource['metadata']['name']}: InstallPlan {plan['metadata']['name']} waits for "
                "approval. Set its spec.approved to true.",
                status={**status, "state": "UpgradePending"},
            )
        self._install(resource, head, groups[0])
        self._set_plan_status(plan, "Complete")
        installed = {"installedCSV": head, "state": "AtLatestKnown"}
        return Outcome(status | installed | {"catalogHealth": _catalog(spec)}, again_s=30.0)

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Nothing: as with OLM, what was installed stays until it is deleted itself, or its namespace is."""

    def _install_plan(self, subscription: Object, head: str) -> Object:
        namespace, name = subscription["metadata"]["namespace"], subscription["metadata"]["name"]
        manual = subscription["spec"].get("installPlanApproval") == "Manual"
        body = {
            "apiVersion": INSTALL_PLAN.api_version,
            "kind": INSTALL_PLAN.kind,
            "metadata": {
                "name": f"install-{name}-{head.rsplit('.v', 1)[-1].replace('.', '-')}",
                "ownerReferences": [owner_reference(subscription)],
            },
            "spec": {
                "approval": "Manual" if manual else "Automatic",
                "approved": not manual,
                "clusterServiceVersionNames": [head],
            },
        }
        plan = self.kubernetes.create(INSTALL_PLAN, namespace, body)
        if not plan["spec"]["approved"]:
            self._set_plan_status(plan, "RequiresApproval")
        return plan

    def _set_plan_status(self, plan: Object, phase: str) -> None:
        status = {"phase": phase, "catalogSources": [], "plan": []}
        current = plan.get("status") or {}
        if current.get("phase") != phase:
            self.kubernetes.set_status(INSTALL_PLAN, plan, {**current, **status})

    def _install(self, subscription: Object, head: str, group: Object) -> None:
        namespace = subscription["metadata"]["namespace"]
        package = subscription["spec"]["name"]
        body = {
            "apiVersion": CSV.api_version,
            "kind": CSV.kind,
            "metadata": {
                "name": head,
                "labels": {f"operators.coreos.com/{package}.{namespace}": "", "olm.managed": "true"},
                "annotations": {
                    "olm.operatorGroup": group["metadata"]["name"],
                    "olm.operatorNamespace": namespace,
                },
            },
            "spec": {
                "displayName": f"{NAMES[package]} (stand-in of the sandbox)",
                "version": head.rsplit(".v", 1)[-1],
                "install": {"strategy": "deployment", "spec": {"deployments": []}},
                "installModes": [
                    {"type": "OwnNamespace", "supported": True},
                    {"type": "SingleNamespace", "supported": True},
                    {"type": "MultiNamespace", "supported": True},
                    {"type": "AllNamespaces", "supported": True},
                ],
            },
        }
        csv = self.kubernetes.create(CSV, namespace, body)
        if (csv.get("status") or {}).get("phase") != "Succeeded":
            message = "install strategy completed with no errors"
            status = {"phase": "Succeeded", "reason": "InstallSucceeded", "message": message, "lastUpdateTime": now()}
            self.kubernetes.set_status(CSV, csv, {**(csv.get("status") or {}), **status, "lastTransitionTime": now()})


def resolve(subscription: Object) -> str:
    """Name of the ClusterServiceVersion that a subscription leads to; raises NotReadyError if there is none."""
    spec: dict[str, Any] = subscription["spec"]
    subject = f"Subscription {subscription['metadata']['name']}"
    channels = PACKAGES.get(spec["name"])
    if channels is None:
        raise NotReadyError(
            "ConstraintsNotSatisfiable",
            f"{subject}: spec.name must be a package that the sandbox knows (got {spec['name']}, allowed "
            f"{', '.join(sorted(PACKAGES))}). Change it.",
            retry_s=30,
        )
    head = channels.get(spec.get("channel") or DEFAULT_CHANNELS[spec["name"]])
    if head is None:
        raise NotReadyError(
            "ConstraintsNotSatisfiable",
            f"{subject}: spec.channel must be a channel of {spec['name']} (got {spec['channel']}, allowed "
            f"{', '.join(sorted(channels))}). Change it.",
            retry_s=30,
        )
    wanted = spec.get("startingCSV")
    if wanted and wanted not in channels.values():
        raise NotReadyError(
            "ConstraintsNotSatisfiable",
            f"{subject}: spec.startingCSV must be a version of {spec['name']} (got {wanted}, allowed {head}). "
            "Change it.",
            retry_s=30,
        )
    return str(wanted or head)


def _catalog(spec: dict[str, Any]) -> list[dict[str, Any]]:
    reference = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "name": spec["source"],
        "namespace": spec["sourceNamespace"],
    }
    return [{"catalogSourceRef": reference, "healthy": True, "lastUpdated": "2026-01-01T00:00:00Z"}]


EVERY_NAMESPACE = ""
REGISTRY_PORT = "50051"


@dataclass
class Catalogs:
    """Reconciler of CatalogSource."""

    resource = CATALOG
    finalizer: str | None = None

    def reconcile(self, resource: Object) -> Outcome:
        """Write that the catalog answers into its status; see `Reconciler`."""
        namespace, name = resource["metadata"]["namespace"], resource["metadata"]["name"]
        before = (resource.get("status") or {}).get("connectionState") or {}
        state = {
            "address": f"{name}.{namespace}.svc:{REGISTRY_PORT}",
            "lastConnect": before.get("lastConnect") or now(),
            "lastObservedState": "READY",
        }
        return Outcome({"connectionState": state}, condition=_ready_condition("CatalogAnswers", "the catalog answers"))

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Nothing: what was installed from a catalog stays."""


@dataclass
class OperatorGroups:
    """Reconciler of OperatorGroup."""

    kubernetes: Kubernetes
    resource = OPERATOR_GROUP
    finalizer: str | None = None

    def reconcile(self, resource: Object) -> Outcome:
        """Write down the watched namespaces, as OLM does; see `Reconciler`."""
        spec = resource.get("spec") or {}
        if spec.get("targetNamespaces"):
            namespaces = sorted(set(spec["targetNamespaces"]))
        elif expression := label_selector(spec.get("selector") or {}):
            namespaces = self.kubernetes.namespaces(expression)
        else:
            namespaces = [EVERY_NAMESPACE]
        before = resource.get("status") or {}
        same = before.get("namespaces") == namespaces and before.get("lastUpdated")
        known = _ready_condition("NamespacesKnown", "the watched namespaces are in status.namespaces")
        return Outcome({"namespaces": namespaces, "lastUpdated": same or now()}, condition=known)

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Do nothing: its subscriptions report that it is missing."""


def _ready_condition(reason: str, message: str) -> Status:
    # Unlike Strimzi's, the definitions of these two kinds demand both in every condition.
    return condition("Ready", True, reason, message)


def label_selector(labels: dict[str, Any]) -> str:
    """A label selector as a query writes it; empty if it selects everything."""
    parts = [f"{key}={value}" for key, value in sorted((labels.get("matchLabels") or {}).items())]
    for entry in labels.get("matchExpressions") or []:
        key, values = entry["key"], ",".join(entry.get("values") or [])
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(forms.get(entry["operator"], f"!{key}"))
    return ",".join(parts)
