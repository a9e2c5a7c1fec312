"""Inputs of alerts and dashboards from a stack's settings: its mirrors, its brokers, its thresholds."""

from typing import Any

from monitoring import dashboards
from monitoring.alerts import MonitoredCluster, MonitoredMirror, Thresholds
from monitoring.alerts.rendering import render
from monitoring.metrics import catalog
from monitoring.metrics.catalog import Part
from monitoring.scraping import mirrors
from settings.monitoring import Monitoring
from settings.stack import Stack
from settings.text import format_names

RUNBOOK = "docs/alerts.md"


def monitoring_of(settings: Stack) -> Monitoring:
    """Return the stack's monitoring; the defaults if it sets none."""
    return settings.monitoring or Monitoring()


def stage_of(settings: Stack, stack: str) -> str:
    """Return the label `stage` of the stack's alerts."""
    return monitoring_of(settings).stage or stack


def rule_groups(
    settings: Stack,
    stack: str,
    namespace: str | None = None,
    brokers: int | None = None,
    operators: int | None = None,
) -> list[dict[str, Any]]:
    """Return the groups of the stack's rules.

    Args:
        settings: the stack's settings.
        stack: name of the stack.
        namespace: label of every alert, if there is one.
        brokers: number of brokers that are scraped; None to take it from the settings.
        operators: number of operators that are scraped; None to take it from the settings.
    """
    chosen = monitoring_of(settings)
    return render(
        stack,
        stage_of(settings, stack),
        monitored_mirrors(settings),
        Thresholds(**chosen.thresholds.model_dump()),
        chosen.alerts_off,
        chosen.runbook_url or RUNBOOK,
        cluster=monitored_cluster(settings, brokers),
        operator=settings.operator.install != "none" if operators is None else operators > 0,
        namespace=namespace,
        grafana_url=chosen.grafana_url,
    )


def monitored_mirrors(settings: Stack) -> list[MonitoredMirror]:
    """Return every mirror; one that is at rest has `running` false."""
    run, gateway = settings.verification.run, settings.verification.push_gateway
    # A run that pushes nothing has no metrics, and a suspended schedule starts none.
    scheduled = run.schedule is not None and not run.schedule.suspend and gateway is not None
    return [
        MonitoredMirror(
            name=mirror.name,
            namespace=namespace,
            running=mirror.state == "running",
            heartbeats=mirror.heartbeats,
            checkpoints=mirror.emit_checkpoints,
            verified=scheduled and mirror.is_verified,
            replicas=mirror.replicas if mirror.scaling is None else mirror.scaling.min_replicas,
        )
        for namespace, mirror in mirrors(settings)
    ]


def monitored_cluster(settings: Stack, brokers: int | None = None) -> MonitoredCluster | None:
    """Return the stack's cluster if its brokers expose metrics, by its settings or by the number that is scraped."""
    cluster = settings.cluster
    exposed = cluster.external is None and cluster.metrics is not None
    pods = brokers if brokers is not None else sum(pool.replicas for pool in cluster.all_node_pools) if exposed else 0
    if pods == 0:
        return None
    return MonitoredCluster(name=cluster.name, namespace=cluster.namespace, pods=pods)


def allow_list_warnings(settings: Stack) -> list[str]:
    """Return a warning for each allowList that blocks metrics which alerts and dashboards read."""
    exposed = [(f"mirror {mirror.name}", Part.WORKER, mirror.metrics) for _, mirror in mirrors(settings)]
    exposed.append((f"cluster {settings.cluster.name}", Part.BROKER, settings.cluster.metrics))
    return [
        f"{subject}: metrics.allowList leaves out {format_names(names)}, which alerts and dashboards read: some "
        "would stay empty, and alerts about what is missing would fire for ever. Add them, or remove allowList."
        for subject, part, metrics in exposed
        if metrics is not None and metrics.allow_list and (names := catalog.blocked_metrics(part, metrics.allow_list))
    ]


def dashboard_files(settings: Stack) -> dict[str, str]:
    """Return the dashboards as Grafana reads them, by the name of the file."""
    chosen = monitoring_of(settings)
    return dashboards.texts(chosen.runbook_url, chosen.scrape_seconds)
