"""One pass over one resource: fetch it, honour pause and deletion, let its reconciler act, write its status."""

import logging
from dataclasses import dataclass, field
from typing import Any, Protocol

from .conditions import Status, condition, not_ready, ready, with_conditions
from .dispatch import Key
from .errors import NotReadyError
from .kubernetes_api import Kubernetes, Object, Resource
from .own_metrics import OwnMetrics

logger = logging.getLogger(__name__)

PAUSE = "strimzi.io/pause-reconciliation"
ERROR_RETRY_S = 10.0


@dataclass(frozen=True)
class Outcome:
    """What a reconciler found: status fields, when to look again, warnings to show beside Ready, and Ready itself."""

    status: dict[str, Any] = field(default_factory=dict)
    again_s: float | None = 30.0
    warnings: tuple[tuple[str, str], ...] = ()
    condition: Status = field(default_factory=ready)


class Reconciler(Protocol):
    """Brings one kind of resource into being and takes it away again."""

    resource: Resource
    finalizer: str | None

    def reconcile(self, resource: Object) -> Outcome:
        """Make the world as the spec says; raises NotReadyError if that cannot be done now."""

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Undo everything; `resource` is None if it is gone already. Raises NotReadyError to be called again."""


class Reconciliation:
    """Runs the reconciler of a key's kind."""

    def __init__(self, kubernetes: Kubernetes, reconcilers: list[Reconciler], metrics: OwnMetrics) -> None:
        self._kubernetes = kubernetes
        self._metrics = metrics
        self._by_kind = {entry.resource.kind: entry for entry in reconcilers}

    def __call__(self, key: Key) -> float | None:
        """Seconds until the next look at this resource, None when it is gone."""
        reconciler = self._by_kind[key.kind]
        current = self._kubernetes.get(reconciler.resource, key.namespace, key.name)
        if current is None:
            return self._remove(reconciler, key, None)
        # The list and get answers of a server may leave these two out.
        current.setdefault("apiVersion", reconciler.resource.api_version)
        current.setdefault("kind", reconciler.resource.kind)
        metadata = current["metadata"]
        finalizers = list(metadata.get("finalizers") or [])
        if metadata.get("deletionTimestamp"):
            if reconciler.finalizer not in finalizers:
                return None
            if (retry_s := self._remove(reconciler, key, current)) is not None:
                return retry_s
            self._kubernetes.set_finalizers(
                reconciler.resource, current, [entry for entry in finalizers if entry != reconciler.finalizer]
            )
            return None
        if (metadata.get("annotations") or {}).get(PAUSE) == "true":
            self._write(reconciler, current, {}, [condition("ReconciliationPaused", True)])
            return ERROR_RETRY_S
        if reconciler.finalizer and reconciler.finalizer not in finalizers:
            self._kubernetes.set_finalizers(reconciler.resource, current, [*finalizers, reconciler.finalizer])
        return self._act(reconciler, key, current)

    def _act(self, reconciler: Reconciler, key: Key, current: Object) -> float | None:
        try:
            outcome = reconciler.reconcile(current)
        except NotReadyError as problem:
            if not _says(current, problem):
                logger.info("%s is not ready: %s: %s", key, problem.reason, problem.message)
            self._write(reconciler, current, problem.status, [not_ready(key.kind, problem.reason, problem.message)])
            self._metrics.seen(key, ready=False, reason=problem.message)
            return problem.retry_s
        except Exception as error:
            message = (
                f"{key}: {type(error).__name__} in the operator. Its log has the details; it tries again by itself."
            )
            self._write(reconciler, current, {}, [not_ready(key.kind, "ReconciliationFailed", message)])
            self._metrics.seen(key, ready=False, reason=message)
            raise
        warnings = [condition("Warning", True, reason, message) for reason, message in outcome.warnings]
        self._write(reconciler, current, outcome.status, [*warnings, outcome.condition])
        self._metrics.seen(key, ready=True)
        return outcome.again_s

    def _write(self, reconciler: Reconciler, current: Object, fields: Status, conditions: list[Status]) -> None:
        # What was true before and is not contradicted stays visible: a broker's address outlives a short outage.
        kept = {key: value for key, value in (current.get("status") or {}).items() if key not in ("conditions",)}
        self._kubernetes.set_status(
            reconciler.resource, current, with_conditions(current, {**kept, **fields}, conditions)
        )

    def _remove(self, reconciler: Reconciler, key: Key, current: Object | None) -> float | None:
        try:
            reconciler.remove(key.namespace, key.name, current)
        except NotReadyError as problem:
            logger.info("%s cannot be removed yet: %s", key, problem.message)
            return problem.retry_s
        self._metrics.gone(key)
        logger.info("%s is gone", key)
        return None


def _says(resource: Object, problem: NotReadyError) -> bool:
    """True if the resource's status tells of this problem already."""
    conditions = (resource.get("status") or {}).get("conditions") or []
    return any(
        entry.get("reason") == problem.reason and entry.get("message") == problem.message for entry in conditions
    )
