"""OLM's CatalogSource and OperatorGroup: which catalogs answer, and which namespaces a group's operators watch.

Owns the status of both. There is no catalog behind a CatalogSource here: every one that is declared is READY, and what
can be subscribed to is listed in `olm`.
"""

from dataclasses import dataclass
from typing import Any

from .conditions import Status, condition, now
from .kubernetes_api import CATALOG, OPERATOR_GROUP, Kubernetes, Object
from .reconcile import Outcome

EVERY_NAMESPACE = ""
REGISTRY_PORT = "50051"


@dataclass
class Catalogs:
    """Reconciler of CatalogSource."""

    resource = CATALOG
    finalizer: str | None = None

    def reconcile(self, resource: Object) -> Outcome:
        """Say that the catalog answers; see `Reconciler`."""
        namespace, name = resource["metadata"]["namespace"], resource["metadata"]["name"]
        before = (resource.get("status") or {}).get("connectionState") or {}
        state = {
            "address": f"{name}.{namespace}.svc:{REGISTRY_PORT}",
            "lastConnect": before.get("lastConnect") or now(),
            "lastObservedState": "READY",
        }
        return Outcome({"connectionState": state}, condition=_ready("CatalogAnswers", "the catalog answers"))

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
        elif expression := selector(spec.get("selector") or {}):
            namespaces = self.kubernetes.namespaces(expression)
        else:
            namespaces = [EVERY_NAMESPACE]
        before = resource.get("status") or {}
        same = before.get("namespaces") == namespaces and before.get("lastUpdated")
        known = _ready("NamespacesKnown", "the watched namespaces stand in status.namespaces")
        return Outcome({"namespaces": namespaces, "lastUpdated": same or now()}, condition=known)

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Nothing: its subscriptions say that they miss it."""


def _ready(reason: str, message: str) -> Status:
    # Unlike Strimzi's, the definitions of these two kinds demand both in every condition.
    return condition("Ready", True, reason, message)


def selector(labels: dict[str, Any]) -> str:
    """A label selector as a query writes it; empty if it selects everything."""
    parts = [f"{key}={value}" for key, value in sorted((labels.get("matchLabels") or {}).items())]
    for entry in labels.get("matchExpressions") or []:
        key, values = entry["key"], ",".join(entry.get("values") or [])
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(forms.get(entry["operator"], f"!{key}"))
    return ",".join(parts)
