"""From PodMonitors and PrometheusRules to Prometheus' own files, as the Prometheus Operator does it.

Prometheus finds pods in a file instead of at the API server, with the same labels: choosing and relabelling is its own.
A namespace is an object's own unless its selector says otherwise.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .discovery import META, sanitized
from .kubernetes_api import Object

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
