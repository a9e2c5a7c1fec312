"""PodMonitors and PrometheusRules as Prometheus' own configuration."""

from pathlib import Path
from typing import Any

import pytest

from sandbox.operator import prometheus

PODS = Path("/state/pods.json")
KIND = ["__meta_kubernetes_pod_label_strimzi_io_kind", "__meta_kubernetes_pod_labelpresent_strimzi_io_kind"]
NAMESPACE = {"action": "keep", "source_labels": ["__meta_kubernetes_namespace"]}


def scraped(endpoint: dict[str, Any], **spec: Any) -> dict[str, Any]:
    monitor = {
        "metadata": {"namespace": "ns", "name": "workers"},
        "spec": {"selector": {}, "podMetricsEndpoints": [endpoint], **spec},
    }
    (found,) = prometheus.scrape_configs(monitor, PODS)
    return found


def rules(**spec: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scraped({"port": "tcp-prometheus"}, **spec)["relabel_configs"]
    return found


def test_an_endpoint_is_a_job_with_its_own_options() -> None:
    found = scraped({"port": "http", "path": "/m", "interval": "5s", "scrapeTimeout": "4s", "honorLabels": True})
    assert found["job_name"] == "podMonitor/ns/workers/0"
    assert found["file_sd_configs"][0]["files"] == [str(PODS)]
    options = {"metrics_path": "/m", "scrape_interval": "5s", "scrape_timeout": "4s", "honor_labels": True}
    assert {name: found[name] for name in options} == options


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ({}, [{**NAMESPACE, "regex": "ns"}]),
        ({"matchNames": ["a", "b.c"]}, [{**NAMESPACE, "regex": r"a|b\.c"}]),
        ({"any": True}, []),
    ],
)
def test_pods_are_those_of_the_chosen_namespaces(selector: dict[str, Any], wanted: list[Any]) -> None:
    found = rules(namespaceSelector=selector)
    assert [rule for rule in found if rule.get("source_labels") == NAMESPACE["source_labels"]][:-1] == wanted


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        (
            {"matchLabels": {"strimzi.io/kind": "Kafka"}},
            {"action": "keep", "source_labels": KIND, "regex": "(Kafka);true"},
        ),
        (
            {"matchExpressions": [{"key": "strimzi.io/kind", "operator": "In", "values": ["A", "B"]}]},
            {"action": "keep", "source_labels": KIND, "regex": "(A|B);true"},
        ),
        (
            {"matchExpressions": [{"key": "strimzi.io/kind", "operator": "NotIn", "values": ["A"]}]},
            {"action": "drop", "source_labels": KIND, "regex": "(A);true"},
        ),
        (
            {"matchExpressions": [{"key": "strimzi.io/kind", "operator": "Exists"}]},
            {"action": "keep", "source_labels": KIND[1:], "regex": "true"},
        ),
        (
            {"matchExpressions": [{"key": "strimzi.io/kind", "operator": "DoesNotExist"}]},
            {"action": "drop", "source_labels": KIND[1:], "regex": "true"},
        ),
    ],
)
def test_pods_are_chosen_by_their_labels(selector: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert wanted in rules(selector=selector)
    assert wanted not in rules(selector={})


def test_own_relabelling_comes_last_in_prometheus_spelling() -> None:
    own = [{"sourceLabels": ["a"], "targetLabel": "stack", "replacement": "stg", "action": "Replace"}]
    found = scraped({"port": "x", "relabelings": own, "metricRelabelings": own})
    wanted = {"source_labels": ["a"], "target_label": "stack", "replacement": "stg", "action": "replace"}
    assert found["relabel_configs"][-1] == wanted
    assert found["metric_relabel_configs"] == [wanted]


def test_a_job_is_the_monitor_unless_a_label_names_it() -> None:
    assert {"target_label": "job", "replacement": "ns/workers"} in rules()
    assert rules(jobLabel="app.kubernetes.io/name")[-1] == {
        "source_labels": ["__meta_kubernetes_pod_label_app_kubernetes_io_name"],
        "regex": "(.+)",
        "target_label": "job",
    }


def test_rules_lose_only_what_prometheus_does_not_know() -> None:
    group = {"name": "g", "interval": "1s", "rules": [{"alert": "A", "expr": "up == 0", "for": "1m"}]}
    rule = {"spec": {"groups": [{**group, "partial_response_strategy": "warn"}]}}
    assert prometheus.rule_file(rule) == {"groups": [group]}
    assert prometheus.rule_file({"spec": {}}) == {"groups": []}


def test_the_whole_configuration_names_alertmanager_rules_and_targets_by_hand() -> None:
    found = prometheus.configuration([], PODS, Path("/t/*.json"), [Path("/r/*.yml")], "127.0.0.1:9")
    assert found["rule_files"] == ["/r/*.yml"]
    assert found["alerting"]["alertmanagers"] == [{"static_configs": [{"targets": ["127.0.0.1:9"]}]}]
    (by_hand,) = found["scrape_configs"]
    assert (by_hand["job_name"], by_hand["honor_labels"]) == ("targets", True)
    assert by_hand["file_sd_configs"][0]["files"] == ["/t/*.json"]
