"""The rules by which brokers or workers name their metrics, where the operator's exporter finds them.

Owns the ConfigMap. Does not own the rules, which lie in `monitoring/jmx`, or who scrapes.
"""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap

from monitoring.metrics import catalog
from settings import NAMESPACE
from settings.cluster import RULES_KEY, Cluster, Metrics
from settings.mirrors import Mirror

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


def of_brokers(cluster: Cluster, parent: pulumi.Resource) -> list[pulumi.Resource]:
    """Write the rules of a cluster's brokers, if the stack's own are asked for."""
    args = MetricsRulesArgs(
        namespace=cluster.namespace,
        config_map=cluster.metrics_rules,
        instance=cluster.name,
        rules=catalog.JMX_BROKERS,
    )
    return _written(cluster.metrics, "cluster-metrics", args, parent)


def of_workers(mirror: Mirror, namespace: str, parent: pulumi.Resource) -> list[pulumi.Resource]:
    """Write the rules of a mirror's workers, if the stack's own are asked for."""
    args = MetricsRulesArgs(
        namespace=namespace, config_map=mirror.metrics_rules, instance=mirror.name, rules=catalog.JMX_WORKERS
    )
    return _written(mirror.metrics, f"{mirror.name}-metrics", args, parent)


def _written(
    metrics: Metrics | None, name: str, args: MetricsRulesArgs, parent: pulumi.Resource
) -> list[pulumi.Resource]:
    if metrics is None or not metrics.has_own_rules:
        return []
    return [MetricsRules(name, args, pulumi.ResourceOptions(parent=parent))]
