"""When a resource is reconciled, and one pass over it: fetch it, honour pause and deletion, act, write its status.

Level triggered: an event only names a resource to reconcile; what to do follows from its present state. Every resource
is reconciled by one thread at a time, and one that fails never delays another. Also the metrics of these passes, with
the names and the meaning that Strimzi's cluster operator gives them.
"""

import heapq
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from sandbox.operator import NotReadyError, Status, condition, not_ready, ready, with_conditions
from sandbox.operator.kubernetes_api import KAFKA, MIRROR, Kubernetes, Object, Resource

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 30.0


@dataclass(frozen=True, order=True)
class Key:
    """The resource to reconcile."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass
class _Entry:
    due: float = 0.0
    queued: bool = False
    running: bool = False
    again: bool = False
    failures: int = 0


@dataclass
class Dispatcher:
    """Runs `work(key)` when a key is due; `work` returns the seconds until it is due again, None for never.

    A key added while it runs is run once more afterwards. An exception is logged and tried again, ever later.
    """

    work: Callable[[Key], float | None]
    threads: int = 16
    _entries: dict[Key, _Entry] = field(default_factory=dict)
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    _order: "itertools.count[int]" = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _timer_is_set: bool = False
    _stopping: bool = False
    _workers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        # One thread that is free waits for the next time, the others only for it to be called away.
        self._earlier, self._free = threading.Condition(self._lock), threading.Condition(self._lock)

    def add(self, key: Key, delay_s: float = 0.0) -> None:
        """Reconcile this resource in `delay_s` seconds, or earlier if that was planned already."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            if entry.running and delay_s <= 0:
                entry.again = True
                return
            self._plan(key, entry, delay_s)

    def known(self, kind: str, namespace: str | None = None) -> list[Key]:
        """Keys of a kind that were seen and are not gone."""
        with self._lock:
            return sorted(
                key for key in self._entries if key.kind == kind and (namespace is None or key.namespace == namespace)
            )

    def start(self) -> None:
        """Start the worker threads."""
        for number in range(self.threads):
            worker = threading.Thread(target=self._loop, name=f"reconcile-{number}", daemon=True)
            worker.start()
            self._workers.append(worker)

    def stop(self, deadline_s: float = 5.0) -> None:
        """Take no more work and wait, at most `deadline_s`, for what is under way."""
        with self._lock:
            self._stopping = True
            self._earlier.notify_all()
            self._free.notify_all()
        end = time.monotonic() + deadline_s
        for worker in self._workers:
            worker.join(max(0.0, end - time.monotonic()))

    def _plan(self, key: Key, entry: _Entry, delay_s: float) -> None:
        due = time.monotonic() + delay_s
        if entry.queued and entry.due <= due:
            return
        entry.due, entry.queued = due, True
        self._push(due, key)

    def _push(self, due: float, key: Key) -> None:
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._earlier.notify()

    def _loop(self) -> None:
        while (key := self._next()) is not None:
            try:
                delay_s = self.work(key)
                failed = False
            except Exception:
                logger.exception("%s: reconciliation failed", key)
                delay_s, failed = None, True
            self._done(key, delay_s, failed=failed)

    def _next(self) -> Key | None:
        with self._lock:
            while not self._stopping:
                now = time.monotonic()
                while self._heap and self._heap[0][0] <= now:
                    due, _, key = heapq.heappop(self._heap)
                    entry = self._entries.get(key)
                    # An entry planned earlier than this one has left a stale element in the heap.
                    if entry and entry.queued and entry.due == due and not entry.running:
                        entry.queued, entry.running = False, True
                        self._free.notify()
                        return key
                if self._timer_is_set:
                    self._free.wait()
                    continue
                self._timer_is_set = True
                self._earlier.wait(self._heap[0][0] - now if self._heap else None)
                self._timer_is_set = False
            return None

    def _done(self, key: Key, delay_s: float | None, *, failed: bool) -> None:
        with self._lock:
            entry = self._entries[key]
            entry.running = False
            if failed:
                delay_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2**entry.failures)
                entry.failures += 1
            else:
                entry.failures = 0
            if entry.again:
                entry.again = False
                self._plan(key, entry, 0.0 if not failed else FIRST_RETRY_S)
            elif delay_s is not None:
                self._plan(key, entry, delay_s)
            elif not entry.queued:
                del self._entries[key]
            else:
                self._push(entry.due, key)


PAUSE = "strimzi.io/pause-reconciliation"
ERROR_RETRY_S = 10.0
AGAIN_S = 3.0  # for clusters and mirrors, of which Strimzi looks every 120 s


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
