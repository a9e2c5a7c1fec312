"""Prometheus' configuration from PodMonitors and PrometheusRules, as with the Prometheus Operator, and its targets.

Prometheus finds processes in a file instead of pods at the API server, with the labels, names and ports that Kubernetes
would give them; choosing and relabelling is Prometheus' own. A process that is down stays a target, as a pod does that
restarts: so an alert sees it. A namespace is an object's own unless its selector names others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.operator import kafka_nodes
from sandbox.operator.kubernetes_api import KAFKA, LABEL, MIRROR, Object
from sandbox.operator.reconcile import PATH, path_of
from sandbox.state import read_json

PORT, PORT_NUMBER = "tcp-prometheus", 9404

OPERATOR, OPERATOR_PORT, OPERATOR_PORT_NUMBER = "strimzi-cluster-operator", "http", 8080

META = "__meta_kubernetes"

_DOMAIN = LABEL.partition("/")[0]

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")

SCRAPE_S = EVALUATE_S = 2
_POD_LABEL, _PRESENT = f"{META}_pod_label", f"{META}_pod_labelpresent"
_RELABELLING = {
    "sourceLabels": "source_labels",
    "separator": "separator",
    "targetLabel": "target_label",
    "regex": "regex",
    "modulus": "modulus",
    "replacement": "replacement",
    "action": "action",
}
_ENDPOINT = {
    "interval": "scrape_interval",
    "scrapeTimeout": "scrape_timeout",
    "path": "metrics_path",
    "scheme": "scheme",
    "params": "params",
    "honorLabels": "honor_labels",
    "honorTimestamps": "honor_timestamps",
}
_OF_THANOS = "partial_response_strategy"
Spec = dict[str, Any]


def configuration(
    monitors: Iterable[Object], pods: Path, targets: Path, rules: Sequence[Path], alertmanager: str
) -> Spec:
    """The whole configuration: `pods` is the file of all pods, `targets` and `rules` are patterns of files' paths.

    Files of `targets` name what is no pod; the labels that it gives its metrics itself are kept.
    """
    by_hand = {"job_name": "targets", "honor_labels": True, "file_sd_configs": [_files(targets)]}
    return {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{EVALUATE_S}s"},
        "rule_files": [str(pattern) for pattern in rules],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [by_hand, *(entry for monitor in monitors for entry in scrape_configs(monitor, pods))],
    }


def scrape_configs(monitor: Object, pods: Path) -> list[Spec]:
    """The scrape configuration of each endpoint of a PodMonitor."""
    metadata, spec = monitor["metadata"], monitor["spec"]
    owner = f"{metadata['namespace']}/{metadata['name']}"
    return [
        {
            "job_name": f"podMonitor/{owner}/{number}",
            "file_sd_configs": [_files(pods)],
            **{name: endpoint[key] for key, name in _ENDPOINT.items() if key in endpoint},
            "relabel_configs": [
                *_chosen_namespaces(spec.get("namespaceSelector") or {}, metadata["namespace"]),
                *_chosen_pods(spec["selector"]),
                *_endpoint_labels(spec, endpoint, owner),
                *(_relabelling(rule) for rule in endpoint.get("relabelings") or []),
            ],
            "metric_relabel_configs": [_relabelling(rule) for rule in endpoint.get("metricRelabelings") or []],
        }
        for number, endpoint in enumerate(spec.get("podMetricsEndpoints") or [])
    ]


def rule_file(rule: Object) -> Spec:
    """The content of a file of rules: the groups of a PrometheusRule."""
    groups = (rule.get("spec") or {}).get("groups") or []
    return {"groups": [{key: value for key, value in group.items() if key != _OF_THANOS} for group in groups]}


def _files(pattern: Path) -> Spec:
    # Prometheus watches the files; the interval is for what a watch misses.
    return {"files": [str(pattern)], "refresh_interval": "5s"}


def _chosen_namespaces(selector: Mapping[str, Any], own: str) -> list[Spec]:
    if selector.get("any"):
        return []
    return [_keep([f"{META}_namespace"], _one_of(selector.get("matchNames") or [own]))]


def _chosen_pods(selector: Mapping[str, Any]) -> list[Spec]:
    rules = []
    for name, value in (selector.get("matchLabels") or {}).items():
        rules.append(_keep(_label(name), f"({re.escape(value)});true"))
    for entry in selector.get("matchExpressions") or []:
        labels, values = _label(entry["key"]), _one_of(entry.get("values") or [])
        forms = {
            "In": _keep(labels, f"({values});true"),
            "NotIn": _drop(labels, f"({values});true"),
            "Exists": _keep(labels[1:], "true"),
            "DoesNotExist": _drop(labels[1:], "true"),
        }
        rules.append(forms[entry["operator"]])
    return rules


def _endpoint_labels(spec: Mapping[str, Any], endpoint: Mapping[str, Any], owner: str) -> list[Spec]:
    rules = []
    if port := endpoint.get("port"):
        rules.append(_keep([f"{META}_pod_container_port_name"], re.escape(port)))
        rules.append({"target_label": "endpoint", "replacement": port})
    elif number := endpoint.get("portNumber"):
        rules.append(_keep([f"{META}_pod_container_port_number"], str(number)))
    rules += [
        {"source_labels": [f"{META}_{source}"], "target_label": target}
        for source, target in (("namespace", "namespace"), ("pod_container_name", "container"), ("pod_name", "pod"))
    ]
    for name in spec.get("podTargetLabels") or []:
        rules.append(_copied(name, sanitized(name)))
    rules.append({"target_label": "job", "replacement": owner})
    if name := spec.get("jobLabel"):
        rules.append(_copied(name, "job"))
    return rules


def _copied(name: str, target: str) -> Spec:
    return {"source_labels": [f"{_POD_LABEL}_{sanitized(name)}"], "regex": "(.+)", "target_label": target}


def _relabelling(rule: Mapping[str, Any]) -> Spec:
    found = {name: rule[key] for key, name in _RELABELLING.items() if key in rule}
    # The definition allows capitals, which Prometheus does not know.
    return found | ({"action": found["action"].lower()} if "action" in found else {})


def _label(name: str) -> list[str]:
    return [f"{_POD_LABEL}_{sanitized(name)}", f"{_PRESENT}_{sanitized(name)}"]


def _one_of(values: Iterable[str]) -> str:
    return "|".join(re.escape(value) for value in values)


def _keep(labels: list[str], regex: str) -> Spec:
    return {"action": "keep", "source_labels": labels, "regex": regex}


def _drop(labels: list[str], regex: str) -> Spec:
    return {"action": "drop", "source_labels": labels, "regex": regex}


@dataclass(frozen=True)
class Pod:
    """A process that exports metrics, as a pod with one container and one port; it really listens at `address`."""

    namespace: str
    name: str
    labels: dict[str, str]
    container: str
    address: str
    port: str = PORT
    port_number: int = PORT_NUMBER
    path: str = PATH

    def target_group(self) -> dict[str, Any]:
        """An entry of a file of targets, with the labels of Prometheus' own discovery of pods."""
        labels = {
            "__metrics_path__": self.path,
            f"{META}_namespace": self.namespace,
            f"{META}_pod_name": self.name,
            f"{META}_pod_phase": "Running",
            f"{META}_pod_ready": "true",
            f"{META}_pod_ip": "127.0.0.1",
            f"{META}_pod_container_name": self.container,
            f"{META}_pod_container_init": "false",
            f"{META}_pod_container_port_name": self.port,
            f"{META}_pod_container_port_number": str(self.port_number),
            f"{META}_pod_container_port_protocol": "TCP",
        }
        for name, value in self.labels.items():
            labels[f"{META}_pod_label_{sanitized(name)}"] = value
            labels[f"{META}_pod_labelpresent_{sanitized(name)}"] = "true"
        return {"targets": [self.address], "labels": labels}


def brokers(clusters: Path) -> list[Pod]:
    """All brokers with an exporter, from the operator's folder of clusters."""
    found = []
    for file in sorted(clusters.glob("*/*/layout.json")):
        namespace, cluster = file.parent.parent.name, file.parent.name
        plan = kafka_nodes.load(file.parent, namespace, cluster)
        for node in plan.nodes if plan else ():
            if kafka_nodes.METRICS in node.ports:
                labels = _labels(KAFKA.kind, cluster, f"{cluster}-kafka", "kafka")
                labels |= {f"{_DOMAIN}/pool-name": node.pool, f"{_DOMAIN}/broker-role": "true"}
                address = f"127.0.0.1:{node.ports[kafka_nodes.METRICS]}"
                found.append(Pod(namespace, plan.pod(node), labels, "kafka", address))  # type: ignore[union-attr]  # nodes come of it
    return found


def workers(mirrors: Path) -> list[Pod]:
    """All workers with an exporter, from the operator's folder of mirrors."""
    found = []
    for file in sorted(mirrors.glob("*/*/layout.json")):
        namespace, mirror, memory = file.parent.parent.name, file.parent.name, read_json(file)
        component = f"{mirror}-mirrormaker2"
        for replica in range(memory.get("exporting", 0)):
            labels = _labels(MIRROR.kind, mirror, component, "kafka-mirror-maker-2")
            address = f"127.0.0.1:{memory['metrics_ports'][str(replica)]}"
            found.append(Pod(namespace, f"{component}-{replica}", labels, component, address))
    return found


def operators(own: Iterable[str], for_all: Iterable[str], port: int) -> list[Pod]:
    """The operator as a pod of each namespace that it works in (`own`), and of those that it is installed in alone."""
    own = set(own)
    paths = {**dict.fromkeys(for_all, PATH), **{namespace: path_of(namespace) for namespace in own}}
    labels = {"name": OPERATOR, f"{_DOMAIN}/kind": "cluster-operator"}
    address = f"127.0.0.1:{port}"
    return [
        Pod(namespace, f"{OPERATOR}-0", labels, OPERATOR, address, OPERATOR_PORT, OPERATOR_PORT_NUMBER, path)
        for namespace, path in sorted(paths.items())
    ]


def sanitized(name: str) -> str:
    """A label of Kubernetes as a part of a label's name of Prometheus."""
    return _NOT_IN_A_NAME.sub("_", name)


def _labels(kind: str, cluster: str, component: str, component_type: str) -> dict[str, str]:
    return {
        LABEL: cluster,
        f"{_DOMAIN}/kind": kind,
        f"{_DOMAIN}/name": component,
        f"{_DOMAIN}/component-type": component_type,
        "app.kubernetes.io/managed-by": OPERATOR,
    }
