"""Prometheus and Alertmanager of the sandbox: what they find by PodMonitors, and what they say by PrometheusRules."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sandbox import monitoring
from tests.support.http_client import HTTP
from tests.support.producers import RaisingProducer
from tests.support.small_cluster import PASSWORD, USER, Kit, mirror_spec
from tests.support.waiting import wait_until

from ...support.running_sandbox import Sandbox
from ...support.slack_webhook import Slack, slack

NAMESPACE, STACK, MIRROR = "monitoring-tests", "stage", "copy"
TOPIC = "mirrored"  # which the mirror of the kit copies
GROUP = "monitoring.coreos.com"
RECORDS = 7
RULES = """lowercaseOutputName: true
rules:
- pattern: kafka.server<type=(.+), name=(.+)><>Value
  name: kafka_server_$1_$2
"""
REPLICAS = "kafka_server_replicamanager_underreplicatedpartitions"
COUNT = "kafka_connect_mirror_mirrorsourceconnector_record_count"
READY_S = 90.0


@dataclass(frozen=True)
class Watched:
    """A small cluster and a mirror of it, and the addresses of what watches them."""

    kit: Kit
    prometheus: str
    alertmanager: str

    def ask(self, query: str) -> list[dict[str, Any]]:
        """What Prometheus finds: `metric` are labels, `value` a number."""
        answer = HTTP.get(f"{self.prometheus}/api/v1/query", params={"query": query}, timeout=20)
        return [
            {"metric": each["metric"], "value": float(each["value"][1])} for each in answer.json()["data"]["result"]
        ]

    def targets(self, job: str) -> list[dict[str, Any]]:
        """What Prometheus scrapes now for one job: `labels`, `health` and `lastError` of each target.

        A query also answers with series of targets that are gone, for as long as Prometheus looks back (5 minutes).
        """
        answer = HTTP.get(f"{self.prometheus}/api/v1/targets", params={"state": "active"}, timeout=20)
        wanted = {"job": job, "stack": STACK}
        return [each for each in answer.json()["data"]["activeTargets"] if wanted.items() <= each["labels"].items()]

    def finds(self, query: str, deadline_s: float = READY_S) -> list[dict[str, Any]]:
        """The first answer that is not empty."""
        found: list[dict[str, Any]] = wait_until(f"Prometheus finds {query}", lambda: self.ask(query), deadline_s)
        return found


def monitored(kit: Kit, job: str, labels: dict[str, str], resource: str | None, port: str = "tcp-prometheus") -> None:
    """A PodMonitor as a stack writes it."""
    relabelings: list[dict[str, Any]] = [
        {"targetLabel": "job", "replacement": job},
        {"targetLabel": "stack", "replacement": STACK},
    ]
    if resource:
        source = "__meta_kubernetes_pod_label_strimzi_io_cluster"
        relabelings.append({"sourceLabels": [source], "targetLabel": resource})
    status = {"sourceLabels": ["__name__"], "regex": "(.+_status)_info", "targetLabel": "__name__", "replacement": "$1"}
    endpoint = {"port": port, "relabelings": relabelings, "metricRelabelings": [status]}
    created(kit, "PodMonitor", job, {"selector": {"matchLabels": labels}, "podMetricsEndpoints": [endpoint]})


def created(kit: Kit, kind: str, name: str, spec: dict[str, Any], version: str = "v1") -> None:
    body = {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}
    kit.custom.create_namespaced_custom_object(GROUP, version, kit.namespace, f"{kind.lower()}s", body)


@contextmanager
def monitored_by(sandbox: Sandbox) -> Iterator[dict[str, str]]:
    """Addresses of Prometheus and Alertmanager by name; both end with the block."""
    monitoring.check(sandbox.tools, None)
    try:
        monitoring.up(sandbox.state, None, lambda _: None)
        yield monitoring.urls(sandbox.state)
    finally:
        assert monitoring.down(sandbox.state)


@pytest.fixture(scope="module")
def watched(sandbox: Sandbox) -> Iterator[Watched]:
    with monitored_by(sandbox) as urls:
        kit = Kit(sandbox.state, namespace=NAMESPACE)
        try:
            mirrored(kit)
            yield Watched(kit, urls["prometheus"], urls["alertmanager"])
        finally:
            kit.remove_cluster(("KafkaMirrorMaker2", MIRROR), ("KafkaTopic", TOPIC))


def mirrored(kit: Kit) -> None:
    """Bring up the cluster and its mirror, and let it copy."""
    kit.create_cluster()
    kit.core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "rules"}, "data": {"broker.yaml": RULES}})
    reference = {"configMapKeyRef": {"name": "rules", "key": "broker.yaml"}}
    exporter = {"type": "jmxPrometheusExporter", "valueFrom": reference}
    kit.change("Kafka", kit.cluster, {"spec": {"kafka": {"metricsConfig": exporter}}})
    kit.apply("KafkaTopic", TOPIC, {"partitions": 1, "replicas": 1})
    kit.ready("KafkaTopic", TOPIC)
    reporter = {"metricsConfig": {"type": "strimziMetricsReporter"}}
    kit.apply("KafkaMirrorMaker2", MIRROR, mirror_spec(kit, USER) | reporter)
    monitored(kit, "kafka", {"strimzi.io/kind": "Kafka", "strimzi.io/name": f"{kit.cluster}-kafka"}, "cluster")
    monitored(kit, "kafka-mirror-maker-2", {"strimzi.io/kind": "KafkaMirrorMaker2"}, "mirror")
    monitored(kit, "strimzi-cluster-operator", {"strimzi.io/kind": "cluster-operator"}, None, "http")
    kit.ready("KafkaMirrorMaker2", MIRROR)
    producer = RaisingProducer(kit.client_config())
    for number in range(RECORDS):
        producer.produce(TOPIC, value=str(number))
    producer.deliver()


def test_brokers_workers_and_the_operator_are_found_with_the_labels_of_their_pods(watched: Watched) -> None:
    wanted = {
        "kafka": {"cluster": watched.kit.cluster, "pod": f"{watched.kit.cluster}-pool-0"},
        "kafka-mirror-maker-2": {"mirror": MIRROR, "pod": f"{MIRROR}-mirrormaker2-0"},
        "strimzi-cluster-operator": {"pod": "strimzi-cluster-operator-0"},
    }
    for job, labels in wanted.items():
        wait_until(
            f"Prometheus scrapes one {job}",
            lambda job=job: [target["health"] for target in watched.targets(job)] == ["up"],
            READY_S,
            otherwise=lambda job=job: f"It has: {watched.targets(job)}.",
        )
        (found,) = watched.targets(job)
        labels |= {"namespace": NAMESPACE}
        assert {name: found["labels"].get(name) for name in labels} == labels


def test_the_metrics_reporter_counts_the_mirrors_records(watched: Watched) -> None:
    found = watched.finds(f'{COUNT}{{mirror="{MIRROR}", topic="here.{TOPIC}"}} >= {RECORDS}')
    assert [(entry["metric"]["partition"], entry["value"]) for entry in found] == [("0", RECORDS)]
    statuses = watched.finds("kafka_connect_connector_metrics_status")
    assert {entry["metric"]["status"] for entry in statuses} == {"running"}


def test_a_brokers_exporter_has_the_rules_of_the_config_map(watched: Watched) -> None:
    (found,) = watched.finds(f'{REPLICAS}{{cluster="{watched.kit.cluster}"}}')
    assert found["value"] == 0


def test_the_operator_has_strimzis_metrics_of_resources_and_authorities(watched: Watched) -> None:
    resource = f'strimzi_resource_state{{kind="KafkaMirrorMaker2", name="{MIRROR}", resource_namespace="{NAMESPACE}"}}'
    (found,) = watched.finds(f"{resource} == 1")
    assert found["metric"]["reason"] == "none"
    ends = watched.finds(
        f'strimzi_certificate_expiration_timestamp_ms{{cluster="{watched.kit.cluster}"}} > time() * 1000'
    )
    assert {entry["metric"]["type"] for entry in ends} == {"cluster-ca", "client-ca"}


def routed(kit: Kit, heard: Slack) -> None:
    """Alerts of the namespace go to a channel, by an AlertmanagerConfig and a Secret as a stack has them."""
    kit.secret("slack", {"address": heard.url})
    message = {
        "apiURL": {"name": "slack", "key": "address"},
        "channel": "#test",
        "title": "{{ .CommonLabels.alertname }}",
    }
    receivers = [{"name": "channel", "slackConfigs": [message]}]
    spec = {"route": {"receiver": "channel", "groupWait": "1s"}, "receivers": receivers}
    created(kit, "AlertmanagerConfig", "routes", spec, version="v1alpha1")


def test_a_dead_worker_is_reported_in_the_channel_and_a_wrong_rule_stops_no_other(watched: Watched) -> None:
    def group(expression: str) -> dict[str, Any]:
        rule = {"alert": "WorkerGone", "expr": expression, "labels": {"severity": "critical"}}
        return {"groups": [{"name": "workers", "rules": [rule]}]}

    created(watched.kit, "PrometheusRule", "broken", group("sum("))
    created(watched.kit, "PrometheusRule", "workers", group('up{job="kafka-mirror-maker-2"} == 0'))
    with slack() as heard:
        routed(watched.kit, heard)
        _killed_and_reported(watched, heard)


def _killed_and_reported(watched: Watched, heard: Slack) -> None:
    worker = watched.kit.worker(MIRROR)
    watched.kit.processes.kill(worker, hold=True)

    def alerts() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = HTTP.get(f"{watched.alertmanager}/api/v2/alerts").json()
        return found

    (alert,) = wait_until("the alert arrives", alerts)
    labels = {"alertname": "WorkerGone", "severity": "critical", "stack": STACK, "mirror": MIRROR}
    assert {name: alert["labels"].get(name) for name in labels} == labels
    post = wait_until("the channel is reported", lambda: heard.messages)[0]
    assert (post["channel"], post["attachments"][0]["title"]) == ("#test", "WorkerGone")
    watched.kit.processes.release(worker)
    watched.finds(f'up{{mirror="{MIRROR}"}} == 1')


def test_no_password_stands_in_what_prometheus_reads_or_keeps(watched: Watched) -> None:
    files = [path for path in watched.kit.state.monitoring.glob("*.*") if path.is_file()]
    assert files
    assert not [path for path in files if PASSWORD in path.read_text(encoding="utf-8")]
    assert PASSWORD not in HTTP.get(f"{watched.prometheus}/api/v1/targets").text
