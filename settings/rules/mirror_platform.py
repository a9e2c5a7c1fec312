"""Rules of what a platform's release can do for a mirror; each refusal says the reason."""

from settings.errors import Problem
from settings.mirrors import Mirror
from settings.platform import SINCE, Platform
from settings.rules.common import dotted


def mirror(where: str, subject: str, settings: Mirror, platform: Platform) -> list[Problem]:
    """What the mirror asks for and the platform does not have."""
    problems = []
    named = f"{platform.type} {dotted(platform.release)}"
    asked = {
        "autoRestart": ("autoRestart", settings.auto_restart is not None),
        "exactlyOnce": ("exactlyOnce", settings.exactly_once),
        "strimziMetricsReporter": (
            "metrics.type",
            settings.metrics is not None and settings.metrics.type == "strimziMetricsReporter",
        ),
        "scram-sha-256": (
            "source.external.authentication",
            settings.source.external is not None and settings.source.external.authentication == "scram-sha-256",
        ),
    }
    for feature, (key, wanted) in asked.items():
        since, reason = SINCE[feature]
        if wanted and platform.base < since:
            problems.append(
                Problem(
                    f"{where}.{key}",
                    f"{subject}: {key} must not ask for {feature} on {named} ({reason}). "
                    f"It needs the state of Strimzi {dotted(since)}.",
                )
            )
    if settings.heartbeats and not platform.has_heartbeats:
        problems.append(
            Problem(
                f"{where}.heartbeats",
                f"{subject}: heartbeats must be false with {platform.api} (its KafkaMirrorMaker2 has no heartbeat "
                "connector). Remove it.",
            )
        )
    if settings.heartbeat_connector_config and not settings.heartbeats:
        problems.append(
            Problem(
                f"{where}.heartbeatConnectorConfig",
                f"{subject}: heartbeatConnectorConfig must not be given without heartbeats. Set heartbeats, or remove.",
            )
        )
    if settings.state == "stopped" and not platform.has_connector_state:
        problems.append(
            Problem(
                f"{where}.state",
                f"{subject}: state must be running or paused on {named} (got stopped; its operator can only pause). "
                "Use paused.",
            )
        )
    metrics = settings.metrics
    if metrics is not None and metrics.type == "jmxPrometheusExporter" and not (metrics.config_map and metrics.key):
        problems.append(
            Problem(
                f"{where}.metrics.configMap",
                f"{subject}: metrics must name a configMap and its key for jmxPrometheusExporter. Give both.",
            )
        )
    return problems
