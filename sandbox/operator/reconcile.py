"""One pass over one resource: fetch it, honour pause and deletion, let its reconciler act, write its status.

Also the metrics of these passes, with the names and the meaning that Strimzi's cluster operator gives them.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from sandbox.operator import NotReadyError, Status, condition, not_ready, ready, with_conditions
from sandbox.operator.dispatch import Key
from sandbox.operator.kubernetes_api import KAFKA, MIRROR, Kubernetes, Object, Resource

logger = logging.getLogger(__name__)

PAUSE = "strimzi.io/pause-reconciliation"
ERROR_RETRY_S = 10.0


@dataclass(frozen=True)
class Outcome:
    """The result of one pass: status fields, seconds until the next one, warnings beside Ready, and Ready itself."""

    status: dict[str, Any] = field(default_factory=dict)
    again_s: float | None = 30.0
    warnings: tuple[tuple[str, str], ...] = ()
    condition: Status = field(default_factory=ready)


class Reconciler(Protocol):
    """Brings one kind of resource into being and takes it away again."""

    resource: Resource
    finalizer: str | None

    def reconcile(self, resource: Object) -> Outcome:
        """Bring processes and files to the state of the spec; raises NotReadyError if that cannot be done now."""

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Undo everything; `resource` is None if it is gone already. Raises NotReadyError to be called again."""


PATH = "/metrics"

# Topics and users are reported by Strimzi's entity operator, which is another process there.
KINDS = (KAFKA.kind, MIRROR.kind)

NO_REASON = "none"

_OUTCOMES = {True: "successful", False: "failed"}

CLUSTER_CA, CLIENTS_CA = "cluster-ca", "client-ca"


@dataclass
class OperatorMetrics:
    """What is known of all resources; may be used by many threads."""

    _states: dict[Key, tuple[bool, str]] = field(default_factory=dict)
    _ends: dict[tuple[str, str, str], datetime] = field(default_factory=dict)
    _reconciled: Counter[tuple[bool, str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seen(self, key: Key, *, ready: bool, reason: str = NO_REASON) -> None:
        """A resource was reconciled; `reason` is why it is not ready."""
        if key.kind in KINDS:
            with self._lock:
                self._states[key] = ready, reason
                self._reconciled[ready, key.kind, key.namespace] += 1

    def gone(self, key: Key) -> None:
        """A resource was deleted."""
        with self._lock:
            self._states.pop(key, None)
            if key.kind == KAFKA.kind:
                for known in [entry for entry in self._ends if entry[:2] == (key.namespace, key.name)]:
                    del self._ends[known]

    def certificate_ends(self, namespace: str, cluster: str, kind: str, at: datetime) -> None:
        """The certificate of an authority (CLUSTER_CA or CLIENTS_CA) of a cluster is valid until then."""
        with self._lock:
            self._ends[namespace, cluster, kind] = at

    def text(self, namespace: str | None) -> bytes:
        """Metrics of one namespace, or of all, in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(_Snapshot(self._families(namespace)))
        return generate_latest(registry)

    def _families(self, namespace: str | None) -> list[Metric]:
        names = ["kind", "name", "resource_namespace", "reason"]
        states = GaugeMetricFamily("strimzi_resource_state", "Whether a resource is ready (1) or not (0)", labels=names)
        names = ["kind", "namespace", "cluster", "type", "resource_namespace"]
        what = "When the certificate of an authority ends, in milliseconds since 1970"
        ends = GaugeMetricFamily("strimzi_certificate_expiration_timestamp_ms", what, labels=names)
        with self._lock:
            for key, (ready, reason) in sorted(self._states.items()):
                if namespace in (None, key.namespace):
                    states.add_metric([key.kind, key.name, key.namespace, reason], float(ready))
            for (where, cluster, kind), at in sorted(self._ends.items()):
                if namespace in (None, where):
                    ends.add_metric([KAFKA.kind, where, cluster, kind, where], int(at.timestamp() * 1000))
            reconciled = [self._counted(ready, what, namespace) for ready, what in _OUTCOMES.items()]
        return [states, ends, *reconciled]

    def _counted(self, ready: bool, outcome: str, namespace: str | None) -> Metric:
        """Reconciliations that ended in one way; as with Strimzi there is no series before the first."""
        names = ["kind", "namespace", "selector"]
        what = f"Number of {outcome} reconciliations"
        found = CounterMetricFamily(f"strimzi_reconciliations_{outcome}", what, labels=names)
        for (was_ready, kind, where), count in sorted(self._reconciled.items()):
            if was_ready == ready and namespace in (None, where):
                found.add_metric([kind, where, ""], count)
        return found


class _Snapshot(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def path_of(namespace: str) -> str:
    """The path at which the metrics of one namespace are served."""
    return f"{PATH}/{namespace}"


def serve_metrics(metrics: OperatorMetrics) -> int:
    """Answer scrapes at the loopback address, in a thread of its own, until the process ends; returns the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, namespace = self.path.partition(f"{PATH}/")
            if self.path != PATH and (path or not namespace):
                self.send_error(404)
                return
            body = metrics.text(namespace or None)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Nothing: a scrape every second is no news."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server.server_port


class Reconciliation:
    """Runs the reconciler of a key's kind."""

    def __init__(self, kubernetes: Kubernetes, reconcilers: list[Reconciler], metrics: OperatorMetrics) -> None:
        self._kubernetes = kubernetes
        self._metrics = metrics
        self._by_kind = {entry.resource.kind: entry for entry in reconcilers}

    def __call__(self, key: Key) -> float | None:
        """Seconds until the next pass over this resource, None when it is gone."""
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
            if not _is_reported(current, problem):
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


def _is_reported(resource: Object, problem: NotReadyError) -> bool:
    """True if the resource's status reports this problem already."""
    conditions = (resource.get("status") or {}).get("conditions") or []
    return any(
        entry.get("reason") == problem.reason and entry.get("message") == problem.message for entry in conditions
    )
