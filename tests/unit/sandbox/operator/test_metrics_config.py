"""What `metricsConfig` asks for, and what either exporter adds to properties."""

from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.operator import NotReadyError, connectors, metrics_config
from sandbox.operator.connect import worker_properties
from sandbox.operator.kubernetes_api import Kubernetes
from sandbox.operator.metrics_config import ALLOWED_BY_DEFAULT, REPORTER_CLASS, Exporter, Metrics, Reporter
from tests.support.api_objects import MemoryKubernetes
from tests.unit.sandbox.operator.test_connectors import SECRETS, spec

RESOURCE = {"kind": "Kafka", "metadata": {"name": "c", "namespace": "ns"}}
REPORTER: dict[str, Any] = {"type": "strimziMetricsReporter"}


def read(config: dict[str, Any] | None) -> Metrics:
    kubernetes = MemoryKubernetes()
    kubernetes.config_maps["rules"] = {"a": "rules: []\n"}
    return metrics_config.read(cast(Kubernetes, kubernetes), RESOURCE, {"metricsConfig": config} if config else {})


def exporter(**reference: Any) -> dict[str, Any]:
    return {"type": "jmxPrometheusExporter", "valueFrom": {"configMapKeyRef": {"name": "rules", **reference}}}


def test_rules_come_from_the_named_key_of_the_config_map() -> None:
    assert read(None) is None
    assert read(exporter(key="a")) == Exporter("rules: []\n")
    assert read(exporter(key="b", optional=True)) is None


def test_missing_rules_are_named_with_key_and_config_map() -> None:
    with pytest.raises(NotReadyError, match=r"Kafka c: metricsConfig .* key b in the ConfigMap rules") as refused:
        read(exporter(key="b"))
    assert refused.value.reason == "ConfigMapNotFound"


def test_without_an_allow_list_the_reporter_has_strimzis() -> None:
    assert read(REPORTER) == Reporter(ALLOWED_BY_DEFAULT)
    assert read({**REPORTER, "values": {"allowList": ["kafka_connect.*"]}}) == Reporter(("kafka_connect.*",))
    assert "kafka_connect_mirror_mirrorsourceconnector.*" in ALLOWED_BY_DEFAULT


def test_a_worker_and_its_clients_share_one_listener_on_the_loopback() -> None:
    found = worker_properties("mm2", spec(), SECRETS, 8083, (Reporter(("a", "b")), 9404))
    for prefix in ("", "admin.", "producer.", "consumer."):
        assert found[f"{prefix}metric.reporters"] == REPORTER_CLASS
        assert found[f"{prefix}prometheus.metrics.reporter.listener"] == "http://127.0.0.1:9404"
        assert found[f"{prefix}prometheus.metrics.reporter.listener.enable"] == "true"
        assert found[f"{prefix}prometheus.metrics.reporter.allowlist"] == "a,b"
    assert not any("metric" in key for key in worker_properties("mm2", spec(), SECRETS, 8083))


def test_the_users_own_reporters_stay() -> None:
    wanted = spec()
    wanted["target"]["config"]["metric.reporters"] = "my.Reporter"
    found = worker_properties("mm2", wanted, SECRETS, 8083, (Reporter(("a",)), 9404))
    assert found["metric.reporters"] == f"my.Reporter,{REPORTER_CLASS}"
    assert found["admin.metric.reporters"] == REPORTER_CLASS


def test_connectors_report_at_the_workers_listener() -> None:
    for connector in connectors.definitions("mm2", {**spec(), "metricsConfig": REPORTER}, SECRETS):
        assert connector.config["metric.reporters"] == REPORTER_CLASS
        assert connector.config["prometheus.metrics.reporter.listener.enable"] == "false"
    for connector in connectors.definitions("mm2", {**spec(), "metricsConfig": exporter(key="a")}, Path("/")):
        assert "metric.reporters" not in connector.config
