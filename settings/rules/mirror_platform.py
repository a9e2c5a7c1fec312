"""Rules of what a platform's release can do for a mirror; each refusal says the reason."""

from settings.errors import Problem
from settings.mirrors import Mirror
from settings.platform import SINCE, Platform
from settings.rules.common import dotted, overridden
from settings.rules.metrics import metrics
from settings.spec_overrides import owned_by_mirror

_REPORTERS, _MECHANISMS = ("strimziMetricsReporter",), ("scram-sha-256",)


def mirror(where: str, subject: str, settings: Mirror, platform: Platform) -> list[Problem]:
    """What the mirror asks for and the platform does not have."""
    problems = []
    named = f"{platform.type} {dotted(platform.release)}"
    external, exposed = settings.source.external, settings.metrics
    asked = [
        ("autoRestart", "autoRestart", "set", settings.auto_restart is not None),
        ("exactlyOnce", "exactlyOnce", "true", settings.exactly_once),
        ("failback", "failback", settings.failback, settings.failback is not None),
        *(("metrics.type", each, each, exposed is not None and exposed.type == each) for each in _REPORTERS),
        *(
            ("source.external.authentication", each, each, external is not None and external.authentication == each)
            for each in _MECHANISMS
        ),
    ]
    for key, feature, value, wanted in asked:
        since, reason = SINCE[feature]
        if wanted and platform.base < since:
            problems.append(
                Problem(
                    f"{where}.{key}",
                    f"{subject}: {key} must not be {value} on {named} ({reason}). Change it, or use a release that is "
                    f"based on Strimzi {dotted(since)} or later.",
                )
            )
    if settings.heartbeats and not platform.has_heartbeats:
        problems.append(
            Problem(
                f"{where}.heartbeats",
                f"{subject}: heartbeats must be false with {platform.api} (got true; its KafkaMirrorMaker2 has no "
                "heartbeat connector). Remove it.",
            )
        )
    if settings.heartbeat_connector_config and not settings.heartbeats:
        problems.append(
            Problem(
                f"{where}.heartbeatConnectorConfig",
                f"{subject}: heartbeatConnectorConfig must not be given without heartbeats. Set heartbeats, or "
                "remove it.",
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
    owned = owned_by_mirror(platform, heap=settings.jvm.options, log_level=settings.log_level)
    problems += overridden(where, subject, settings.spec_overrides, owned)
    return problems + metrics(f"{where}.metrics", subject, settings.metrics)
