"""Rules of the monitoring: what is asked for has an effect, and what alerts look at is there."""

from collections.abc import Mapping

from settings.cluster import Cluster, Metrics
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.monitoring import Monitoring


def monitoring(settings: Monitoring, mirrors: Mapping[int, Mirror]) -> list[Problem]:
    """What is wrong in the monitoring's settings together, and with mirrors that it cannot see."""
    twice = sorted({name for name in settings.alerts_off if settings.alerts_off.count(name) > 1})
    problems = [_problem("alertsOff", f"alertsOff must name an alert once (got {name} twice).") for name in twice]
    numbers = settings.thresholds
    if numbers.lag_seconds >= numbers.lag_critical_seconds:
        problems.append(
            _problem(
                "thresholds.lagSeconds",
                f"lagSeconds must be < lagCriticalSeconds (got {numbers.lag_seconds}, lagCriticalSeconds "
                f"{numbers.lag_critical_seconds}). The warning comes first.",
            )
        )
    if numbers.certificate_warning_days <= numbers.certificate_critical_days:
        problems.append(
            _problem(
                "thresholds.certificateWarningDays",
                f"certificateWarningDays must be > certificateCriticalDays (got {numbers.certificate_warning_days}, "
                f"certificateCriticalDays {numbers.certificate_critical_days}). The warning comes first.",
            )
        )
    return problems + [
        Problem(
            f"mirrors[{index}].metrics",
            f"mirror {mirror.name}: metrics must be given where there is monitoring (got nothing). Without them it "
            "would count as down for ever. Write `metrics: {}`.",
        )
        for index, mirror in mirrors.items()
        if mirror.metrics is None
    ]


def monitoring_hints(settings: Monitoring, cluster: Cluster | None, mirrors: Mapping[int, Mirror]) -> list[Problem]:
    """What is allowed and has no effect, or leaves something unwatched."""
    hints = [
        hint
        for index, mirror in mirrors.items()
        for hint in _own_rules(f"mirrors[{index}].metrics", f"mirror {mirror.name}", mirror.metrics)
    ]
    if cluster is not None:
        hints += _own_rules("cluster.metrics", f"cluster {cluster.name}", cluster.metrics)
    if cluster is not None and cluster.external is None and cluster.metrics is None:
        hints.append(
            Problem(
                "cluster.metrics",
                f"cluster {cluster.name}: its brokers expose no metrics, so that nothing watches them. Write "
                "`metrics: {}`.",
            )
        )
    if settings.operator:
        return hints
    if settings.slack is not None:
        hints.append(
            _problem(
                "slack",
                "slack changes nothing in Kubernetes without monitoring.operator. It is used in what "
                "`python -m ops render --as prometheus` writes.",
            )
        )
    if settings.labels:
        hints.append(_problem("labels", "labels are of no use without monitoring.operator. Remove them."))
    return hints


def _own_rules(where: str, subject: str, metrics: Metrics | None) -> list[Problem]:
    """What an exporter's own rules call things cannot be told from here."""
    if metrics is None or metrics.config_map is None:
        return []
    return [
        Problem(
            f"{where}.configMap",
            f"{subject}: the rules in {metrics.config_map} must give the names of docs/monitoring.md, for alerts and "
            "dashboards know no others: some would stay empty, and alerts about what is missing would fire for ever. "
            "Without configMap and key the stack writes rules that do.",
        )
    ]


def _problem(key: str, message: str) -> Problem:
    return Problem(f"monitoring.{key}", f"monitoring: {message}")
