"""Monitoring of a stack in Kubernetes: what is scraped, which alerts there are, where they go, and the dashboards.

Owns the Prometheus Operator's resources, which are made only if the settings say that it is there, the ConfigMaps of
the dashboards, and those with the rules by which the JMX exporter of brokers and workers names their metrics. Does not
own Prometheus, Alertmanager, Grafana, their definitions, or the Secret with the webhook's address. What the resources
contain is what the plain configuration contains, see monitoring/.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap

from components.custom_resource import CustomResource
from components.dialects import Manifest, Spec
from monitoring import alert_routes, stack_monitoring
from monitoring.metrics import catalog
from settings import NAMESPACE
from settings.cluster import RULES_KEY, Cluster, Metrics
from settings.mirrors import Mirror
from settings.monitoring import Dashboards
from settings.monitoring import Monitoring as Settings
from settings.stack import Stack

STABLE, ALPHA = "monitoring.coreos.com/v1", "monitoring.coreos.com/v1alpha1"
FOLDER = "grafana_folder"  # the annotation that the sidecar of Grafana's chart reads in its own examples
_PARTS = {
    stack_monitoring.BROKERS: "brokers",
    stack_monitoring.WORKERS: "workers",
    stack_monitoring.OPERATOR: "operator",
    stack_monitoring.AUDITS: "audits",
    stack_monitoring.FOLLOWERS: "followers",
}


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    """The stack's settings, those of its monitoring, which it has, and the stack's name."""

    settings: Stack
    monitoring: Settings
    stack: str


@dataclass(frozen=True, kw_only=True)
class OperatorResource:
    """One of the Prometheus Operator's resources, its namespace, and what distinguishes it in the program."""

    part: str
    api_version: str
    namespace: str
    manifest: Manifest


class Monitoring(pulumi.ComponentResource):
    """A stack that is monitored as soon as the operators of Prometheus and Grafana have read its resources."""

    stack_output: dict[str, Any]
    """The output `monitoring`, to find alerts by: the stage, and the name of each object as `namespace/name`."""

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make what the settings ask for; nothing is waited for, because these resources have no status."""
        super().__init__("rt-inventory:kubernetes:Monitoring", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.stack_output = {"stage": stack_monitoring.stage_of(args.settings, args.stack), "dashboards": []}
        for made in resources(args):
            CustomResource(
                f"{name}-{made.part}",
                api_version=made.api_version,
                manifest=made.manifest,
                namespace=made.namespace,
                opts=child,
            )
            self.stack_output.setdefault(_listed(made.manifest.kind), []).append(
                f"{made.namespace}/{made.manifest.name}"
            )
        if args.monitoring.dashboards is not None:
            for config_map in config_maps(args, args.monitoring.dashboards):
                metadata = config_map["metadata"]
                ConfigMap(f"{name}-{metadata['name']}", **config_map, opts=child)
                self.stack_output["dashboards"].append(f"{metadata['namespace']}/{metadata['name']}")
        self.register_outputs({"facts": self.stack_output})  # the key in states of earlier releases


def install_monitoring(settings: Stack, opts: pulumi.ResourceOptions) -> Monitoring | None:
    """Return the monitoring if the settings ask for one."""
    if settings.monitoring is None:
        return None
    for warning in stack_monitoring.allow_list_warnings(settings):
        pulumi.log.warn(warning)
    args = MonitoringArgs(settings=settings, monitoring=settings.monitoring, stack=pulumi.get_stack())
    return Monitoring("monitoring", args, opts)


def resources(args: MonitoringArgs) -> Iterator[OperatorResource]:
    """Yield what the Prometheus Operator reads; nothing where it is not."""
    if not args.monitoring.operator:
        return
    home, cluster = args.settings.cluster.namespace, args.settings.cluster.name
    for chosen in stack_monitoring.pods(args.settings):
        part = _PARTS[chosen.job]
        spec = stack_monitoring.pod_monitor(chosen, args.stack, args.monitoring.scrape_seconds)
        own = f"{part}-{chosen.namespace}" if chosen.job in stack_monitoring.OF_MIRRORS else part
        yield _operator_resource(args, own, STABLE, chosen.namespace, "PodMonitor", f"{cluster}-{part}", spec)
    # The operator routes alerts by their namespace: each must say that it is the one of its AlertmanagerConfig.
    if groups := stack_monitoring.rule_groups(args.settings, args.stack, home):
        yield _operator_resource(args, "rules", STABLE, home, "PrometheusRule", f"{cluster}-alerts", {"groups": groups})
    if args.monitoring.slack is not None:
        spec = alert_routes.slack_resource(args.monitoring.slack, args.stack)
        yield _operator_resource(args, "routes", ALPHA, home, "AlertmanagerConfig", f"{cluster}-alerts", spec)


def config_maps(args: MonitoringArgs, chosen: Dashboards) -> Iterator[Spec]:
    """Yield the ConfigMap of each dashboard."""
    annotations = {} if chosen.folder is None else {"annotations": {FOLDER: chosen.folder}}
    for file, text in stack_monitoring.dashboard_files(args.settings).items():
        yield {
            "metadata": {
                "name": f"{args.settings.cluster.name}-dashboard-{PurePath(file).stem}",
                "namespace": chosen.namespace or args.settings.cluster.namespace,
                "labels": {**_labels(args), **chosen.labels},
                **annotations,
            },
            "data": {file: text},
        }


def _operator_resource(
    args: MonitoringArgs, part: str, api_version: str, namespace: str, kind: str, name: str, spec: Spec
) -> OperatorResource:
    labels = {**_labels(args), **args.monitoring.labels}
    manifest = Manifest(kind=kind, name=name, labels=labels, spec=spec)
    return OperatorResource(part=part, api_version=api_version, namespace=namespace, manifest=manifest)


def _labels(args: MonitoringArgs) -> Mapping[str, str]:
    return {
        "app.kubernetes.io/name": "rt-inventory-monitoring",
        "app.kubernetes.io/instance": args.settings.cluster.name,
        "app.kubernetes.io/part-of": NAMESPACE,
    }


def _listed(kind: str) -> str:
    return f"{kind[0].lower()}{kind[1:]}s"


LABELS = {"app.kubernetes.io/name": "rt-inventory-metrics", "app.kubernetes.io/part-of": NAMESPACE}


@dataclass(frozen=True, kw_only=True)
class MetricsRulesArgs:
    """Where the ConfigMap is, what it is called, the resource that reads it, and the file of rules."""

    namespace: str
    config_map: str
    instance: str
    rules: str


class MetricsRules(pulumi.ComponentResource):
    """The ConfigMap with the exporter's rules."""

    def __init__(self, name: str, args: MetricsRulesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Write the ConfigMap, in place when the rules change: the exporter reads them again by itself."""
        super().__init__("rt-inventory:kafka:MetricsRules", name, None, opts)
        labels = {**LABELS, "app.kubernetes.io/instance": args.instance}
        ConfigMap(
            f"{name}-rules",
            metadata={"name": args.config_map, "namespace": args.namespace, "labels": labels},
            data={RULES_KEY: catalog.jmx_rules(args.rules)},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"configMap": args.config_map})


def broker_rules(cluster: Cluster, parent: pulumi.Resource) -> list[pulumi.Resource]:
    """Write the rules of a cluster's brokers, if the stack's own are asked for."""
    args = MetricsRulesArgs(
        namespace=cluster.namespace,
        config_map=cluster.metrics_rules,
        instance=cluster.name,
        rules=catalog.JMX_BROKERS,
    )
    return _rules(cluster.metrics, "cluster-metrics", args, parent)


def worker_rules(mirror: Mirror, namespace: str, parent: pulumi.Resource) -> list[pulumi.Resource]:
    """Write the rules of a mirror's workers, if the stack's own are asked for."""
    args = MetricsRulesArgs(
        namespace=namespace, config_map=mirror.metrics_rules, instance=mirror.name, rules=catalog.JMX_WORKERS
    )
    return _rules(mirror.metrics, f"{mirror.name}-metrics", args, parent)


def _rules(
    metrics: Metrics | None, name: str, args: MetricsRulesArgs, parent: pulumi.Resource
) -> list[pulumi.Resource]:
    if metrics is None or not metrics.has_own_rules:
        return []
    return [MetricsRules(name, args, pulumi.ResourceOptions(parent=parent))]
