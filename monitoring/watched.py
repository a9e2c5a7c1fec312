"""What the parts of the monitoring must know of a stack: its mirrors, its brokers, its numbers, as its settings say."""

from pathlib import Path
from typing import Any

from monitoring.alerts import MonitoredCluster, MonitoredMirror, Thresholds, render
from monitoring.scraping import mirrors
from settings.monitoring import Monitoring
from settings.stack import Stack

RUNBOOK = "docs/alerts.md"
_DASHBOARDS = Path(__file__).parent / "dashboards"


def monitoring_of(settings: Stack) -> Monitoring:
    """Return how a stack is watched; one that does not say so has the defaults."""
    return settings.monitoring or Monitoring()


def stage_of(settings: Stack, stack: str) -> str:
    """Return the label `stage` of the stack's alerts."""
    return monitoring_of(settings).stage or stack


def rule_groups(settings: Stack, stack: str, namespace: str | None = None) -> list[dict[str, Any]]:
    """Return the groups of the stack's rules; with a namespace as a label of every alert."""
    chosen = monitoring_of(settings)
    return render(
        stack,
        stage_of(settings, stack),
        watched_mirrors(settings),
        Thresholds(**chosen.thresholds.model_dump()),
        chosen.alerts_off,
        chosen.runbook_url or RUNBOOK,
        cluster=watched_cluster(settings),
        namespace=namespace,
        grafana_url=chosen.grafana_url,
    )


def watched_mirrors(settings: Stack) -> list[MonitoredMirror]:
    """Return every mirror, also one that is at rest: that is said of it."""
    run, gateway = settings.verification.run, settings.verification.push_gateway
    # Nobody hears of a run that pushes nothing, and nobody runs one that is suspended.
    scheduled = run.schedule is not None and not run.schedule.suspend and gateway is not None
    return [
        MonitoredMirror(
            name=mirror.name,
            namespace=namespace,
            running=mirror.state == "running",
            heartbeats=mirror.heartbeats,
            checkpoints=mirror.emit_checkpoints,
            verified=scheduled and mirror.is_verified,
        )
        for namespace, mirror in mirrors(settings)
    ]


def watched_cluster(settings: Stack) -> MonitoredCluster | None:
    """Return the stack's cluster if its brokers expose metrics."""
    cluster = settings.cluster
    if cluster.external is not None or cluster.metrics is None:
        return None
    pods = sum(pool.replicas for pool in cluster.all_node_pools)
    return MonitoredCluster(name=cluster.name, namespace=cluster.namespace, pods=pods)


def dashboards() -> dict[str, str]:
    """Return the dashboards as Grafana reads them, by the name of the file."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(_DASHBOARDS.glob("*.json"))}
