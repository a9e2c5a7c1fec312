"""`metricsConfig` of a Kafka or a mirror: the JMX exporter with rules of a ConfigMap, or Strimzi's Metrics Reporter.

Owns what either of the two adds to a process. Which port it serves on is decided where the process is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import NotReadyError
from .kubernetes_api import Kubernetes, Object

FILE = "metrics.yaml"
JMX, REPORTER = "jmxPrometheusExporter", "strimziMetricsReporter"
REPORTER_CLASS = "io.strimzi.kafka.metrics.prometheus.ClientMetricsReporter"
REPORTERS = "metric.reporters"
_OPTION = "prometheus.metrics.reporter"
_LISTENER_ENABLED = f"{_OPTION}.listener.enable"
# What Strimzi lets the reporter export of a mirror whose resource has no allow list.
ALLOWED_BY_DEFAULT = (
    "kafka_admin_client_admin_client_metrics_connection_count",
    *(
        f"kafka_{group}.*"
        for group in (
            "connect_connect_coordinator_metrics",
            "connect_connector_metrics",
            "connect_connector_task_metrics",
            "connect_connect_worker_metrics_",
            "connect_connect_worker_rebalance",
            "connect_mirror_mirrorcheckpointconnector",
            "connect_mirror_mirrorsourceconnector",
            "connect_task_error_metrics",
            "consumer_consumer_coordinator_metrics",
            "consumer_consumer_fetch_manager_metrics",
            "consumer_consumer_metrics",
            "producer_producer_metrics",
            "producer_producer_topic",
        )
    ),
    "kafka_producer_producer_node_metrics_incoming_byte",
)


@dataclass(frozen=True)
class Exporter:
    """The JMX exporter as a Java agent with these rules, a YAML text."""

    rules: str


@dataclass(frozen=True)
class Reporter:
    """Strimzi's Metrics Reporter inside the worker; only metrics whose names match a pattern are exported."""

    allowed: tuple[str, ...]

    def worker_properties(self, own: Mapping[str, str], port: int) -> dict[str, str]:
        """Properties of a worker and of its clients, which share one listener; `own` are the user's."""
        served = {
            f"{_OPTION}.listener": f"http://127.0.0.1:{port}",
            _LISTENER_ENABLED: "true",
            f"{_OPTION}.allowlist": ",".join(self.allowed),
        }
        result = {}
        for prefix in ("", "admin.", "producer.", "consumer."):
            result[f"{prefix}{REPORTERS}"] = _with_reporter(own.get(f"{prefix}{REPORTERS}"))
            result |= {f"{prefix}{key}": value for key, value in served.items()}
        return result


Metrics = Exporter | Reporter | None


def read(kubernetes: Kubernetes, resource: Object, spec: Mapping[str, Any]) -> Metrics:
    """What `metricsConfig` of a spec asks for; raises NotReadyError if its ConfigMap is missing."""
    config = spec.get("metricsConfig") or {}
    if config.get("type") == REPORTER:
        return Reporter(tuple((config.get("values") or {}).get("allowList") or ALLOWED_BY_DEFAULT))
    reference = (config.get("valueFrom") or {}).get("configMapKeyRef")
    if not reference or config.get("type") != JMX:
        return None
    rules = (kubernetes.config_map(resource["metadata"]["namespace"], reference["name"]) or {}).get(reference["key"])
    if rules is None and not reference.get("optional"):
        what = f"key {reference['key']} in the ConfigMap {reference['name']}"
        raise NotReadyError(
            "ConfigMapNotFound",
            f"{resource['kind']} {resource['metadata']['name']}: metricsConfig must name an existing {what} (there is "
            "none). Create it.",
            retry_s=2,
        )
    return None if rules is None else Exporter(rules)


def argument(agent: Path, port: int, rules: Path) -> str:
    """The argument of Java that starts the JMX exporter with rules in a file."""
    return f"-javaagent:{agent}=127.0.0.1:{port}:{rules}"


def connector_properties(config: Mapping[str, str]) -> dict[str, str]:
    """What a connector of MirrorMaker needs to report too; its metrics appear at the worker's listener."""
    return {REPORTERS: _with_reporter(config.get(REPORTERS)), _LISTENER_ENABLED: "false"}


def is_reporter(spec: Mapping[str, Any]) -> bool:
    """Whether a spec asks for the Metrics Reporter."""
    return bool((spec.get("metricsConfig") or {}).get("type") == REPORTER)


def _with_reporter(own: str | None) -> str:
    return f"{own},{REPORTER_CLASS}" if own and REPORTER_CLASS not in own else REPORTER_CLASS
