"""The metrics of the operator itself, by the names and with the meaning that Strimzi's cluster operator gives them.

Every namespace is served at a path of its own, as if it had an operator of its own: so nothing is scraped twice where
several stacks share this one.
"""

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from .dispatch import Key
from .kubernetes_api import KAFKA, MIRROR

PATH = "/metrics"
# Of topics and users Strimzi's entity operator tells, which is another process there.
KINDS = (KAFKA.kind, MIRROR.kind)
NO_REASON = "none"
_OUTCOMES = {True: "successful", False: "failed"}
CLUSTER_CA, CLIENTS_CA = "cluster-ca", "client-ca"


@dataclass
class OwnMetrics:
    """What is known of all resources; may be used by many threads."""

    _states: dict[Key, tuple[bool, str]] = field(default_factory=dict)
    _ends: dict[tuple[str, str, str], datetime] = field(default_factory=dict)
    _reconciled: Counter[tuple[bool, str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seen(self, key: Key, *, ready: bool, reason: str = NO_REASON) -> None:
        """A resource was reconciled; `reason` says why it is not ready."""
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


def serve(metrics: OwnMetrics) -> int:
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
