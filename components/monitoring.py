"""What watches a stack in Kubernetes: who is scraped, which alerts there are, whom they tell, and the dashboards.

Owns the Prometheus Operator's resources, which are made only if the settings say that it is there, and the ConfigMaps
of the dashboards. Does not own Prometheus, Alertmanager, Grafana, their definitions, or the Secret with the webhook's
address. What they hold is the same as in the plain configuration, see monitoring/.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap

from components.custom_resource import CustomResource
from components.dialects import Manifest, Spec
from monitoring import alerting, dashboards, scraping
from settings import NAMESPACE
from settings.monitoring import Monitoring as Settings
from settings.stack import Stack

STABLE, ALPHA = "monitoring.coreos.com/v1", "monitoring.coreos.com/v1alpha1"
FOLDER = "grafana_folder"  # the annotation that the sidecar of Grafana's chart is usually told to read
_OF_THE_JOBS = {scraping.BROKERS: "brokers", scraping.WORKERS: "workers", scraping.OPERATOR: "operator"}


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    """The stack's settings, those of its monitoring, which it has, and the stack's name."""

    settings: Stack
    monitoring: Settings
    stack: str


class Monitoring(pulumi.ComponentResource):
    """A stack that is watched, as soon as the operators of Prometheus and Grafana have seen it."""

    facts: pulumi.Output[Mapping[str, Any]]
    """What people need to find their alerts: the stage, and each object as `namespace/name`."""

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make what the settings ask for; nothing is waited for, for nobody reports back."""
        super().__init__("rt-inventory:kubernetes:Monitoring", name, None, opts)
        made = {
            "podMonitors": self._pod_monitors(name, args),
            "prometheusRules": self._rules(name, args),
            "alertmanagerConfigs": self._routes(name, args),
            "dashboards": self._dashboards(name, args),
        }
        stage = args.monitoring.stage or args.stack
        self.facts = pulumi.Output.from_input({"stage": stage, **made})
        self.register_outputs({"facts": self.facts})

    def _pod_monitors(self, name: str, args: MonitoringArgs) -> list[str]:
        if not args.monitoring.operator:
            return []
        places = []
        for chosen in scraping.pods(args.settings):
            part = _OF_THE_JOBS[chosen.job]
            spec = scraping.pod_monitor(chosen, args.stack, args.monitoring.scrape_seconds)
            own = f"{name}-{part}" + (f"-{chosen.namespace}" if chosen.job == scraping.WORKERS else "")
            places.append(self._resource(own, args, STABLE, "PodMonitor", (chosen.namespace, part), spec))
        return places
