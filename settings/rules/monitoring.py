"""Rules of the monitoring: what is asked for has an effect, and what alerts look at is there."""

from collections.abc import Mapping

from settings.cluster import Cluster
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.monitoring import Monitoring


def monitoring(settings: Monitoring) -> list[Problem]:
    """What is wrong in the monitoring's settings together."""
    twice = sorted({name for name in settings.alerts_off if settings.alerts_off.count(name) > 1})
    return [_problem("alertsOff", f"alertsOff must name an alert once (got {name} twice).") for name in twice]


def monitoring_hints(settings: Monitoring, cluster: Cluster | None, mirrors: Mapping[int, Mirror]) -> list[Problem]:
    """What is allowed and has no effect, or leaves alerts without the metrics that they look at."""
    hints = []
    if cluster is not None and cluster.external is None and cluster.metrics is None:
        hints.append(
            Problem(
                "cluster.metrics",
                f"cluster {cluster.name}: its brokers expose no metrics, so that no alert about them can fire. Give "
                "cluster.metrics.",
            )
        )
    for index, mirror in mirrors.items():
        if mirror.metrics is None:
            hints.append(
                Problem(
                    f"mirrors[{index}].metrics",
                    f"mirror {mirror.name}: its workers expose no metrics, so that no alert about its lag or its "
                    "connectors can fire. Give its metrics.",
                )
            )
    if settings.operator:
        return hints
    plain = "It is used in what `python -m ops render --as prometheus` writes."
    if settings.slack is not None:
        hints.append(
            _problem("slack", f"slack changes nothing in Kubernetes without monitoring.operator. {plain}"),
        )
    if settings.labels:
        hints.append(_problem("labels", "labels are of no use without monitoring.operator. Remove them."))
    return hints


def _problem(key: str, message: str) -> Problem:
    return Problem(f"monitoring.{key}", f"monitoring: {message}")
