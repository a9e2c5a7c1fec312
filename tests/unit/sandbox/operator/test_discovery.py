"""Processes as the pods that Prometheus would find."""

from pathlib import Path

from sandbox.operator import kafka_nodes, prometheus
from sandbox.state import write_json
from tests.unit.sandbox.operator.test_kafka_nodes import LISTENER, pool


def test_brokers_with_an_exporter_have_strimzis_names_and_labels(tmp_path: Path) -> None:
    for namespace, metrics in (("one", True), ("two", False)):
        home = tmp_path / namespace / "c"
        plan = kafka_nodes.plan(home, namespace, "c", [pool(2)], [LISTENER], metrics=metrics)
        if metrics:
            listening = [f"127.0.0.1:{node.ports[kafka_nodes.METRICS]}" for node in plan.nodes]
    found = prometheus.brokers(tmp_path)
    assert [pod.name for pod in found] == ["c-pool-0", "c-pool-1"]
    assert [pod.address for pod in found] == listening
    group = found[0].target_group()
    assert group["targets"] == listening[:1]
    wanted = {
        "__meta_kubernetes_namespace": "one",
        "__meta_kubernetes_pod_name": "c-pool-0",
        "__meta_kubernetes_pod_container_port_name": "tcp-prometheus",
        "__meta_kubernetes_pod_label_strimzi_io_cluster": "c",
        "__meta_kubernetes_pod_label_strimzi_io_kind": "Kafka",
        "__meta_kubernetes_pod_label_strimzi_io_name": "c-kafka",
        "__meta_kubernetes_pod_labelpresent_strimzi_io_kind": "true",
        "__metrics_path__": "/metrics",
    }
    assert {name: group["labels"].get(name) for name in wanted} == wanted


def test_workers_are_pods_while_they_should_run_whether_they_do_or_not(tmp_path: Path) -> None:
    file = tmp_path / "ns" / "mm2" / "layout.json"
    write_json(file, {"metrics_ports": {"0": 1, "1": 2}, "exporting": 2})
    assert [(pod.name, pod.address) for pod in prometheus.workers(tmp_path)] == [
        ("mm2-mirrormaker2-0", "127.0.0.1:1"),
        ("mm2-mirrormaker2-1", "127.0.0.1:2"),
    ]
    assert prometheus.workers(tmp_path)[0].labels["strimzi.io/kind"] == "KafkaMirrorMaker2"
    write_json(file, {"metrics_ports": {"0": 1, "1": 2}, "exporting": 0})
    assert prometheus.workers(tmp_path) == []


def test_the_operator_is_a_pod_of_each_namespace_and_reports_only_that() -> None:
    found = {pod.namespace: pod for pod in prometheus.operators(["one", "one"], ["one", "home"], 7)}
    assert {namespace: pod.path for namespace, pod in found.items()} == {"home": "/metrics", "one": "/metrics/one"}
    assert found["one"].port == "http"
    assert found["one"].labels["strimzi.io/kind"] == "cluster-operator"
