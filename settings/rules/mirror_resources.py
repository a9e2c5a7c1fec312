"""Rules of a mirror's resource: what the platform's release supports, its free maps, and its autoscaler."""

from collections.abc import Iterator

from settings.errors import Problem, Subject
from settings.mirror_parts import Scaling
from settings.mirrors import Mirror
from settings.model import reserved
from settings.platform import SINCE, Platform
from settings.rules.common import dotted, metrics, overridden, owned_by_mirror

_REPORTERS, _MECHANISMS = ("strimziMetricsReporter",), ("scram-sha-256",)


def platform_support(at: Subject, settings: Mirror, platform: Platform) -> Iterator[Problem]:
    """What the mirror asks for and the platform does not have."""

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
            yield at.problem(
                key,
                f"must not be {value} on {named}",
                fix=f"Change it, or use a release that is based on Strimzi {dotted(since)} or later.",
                why=reason,
            )
    if settings.heartbeats and not platform.has_heartbeats:
        yield at.problem(
            "heartbeats",
            f"must be false with {platform.api}",
            "true",
            "Remove it.",
            why="its KafkaMirrorMaker2 has no heartbeat connector",
        )
    if settings.heartbeat_connector_config and not settings.heartbeats:
        yield Problem(
            f"{at.key}.heartbeatConnectorConfig",
            f"{at.name}: heartbeatConnectorConfig must not be given without heartbeats. Set heartbeats, or remove it.",
        )
    if settings.state == "stopped" and not platform.has_connector_state:
        yield at.problem(
            "state",
            f"must be running or paused on {named}",
            "stopped",
            "Use paused.",
            why="its operator can only pause",
        )
    owned = owned_by_mirror(platform, heap=settings.jvm.options, log_level=settings.log_level)
    yield from overridden(at, settings.spec_overrides, owned)
    yield from metrics(at.inside("metrics"), settings.metrics)


# Beginning of the property → what decides it.
_CONNECTION = {
    "bootstrap.servers": "cluster or source",
    "security.protocol": "the listener",
    "sasl.": "the user's authentication",
}
# Connections, which no setting of a mirror stands for, by the free map in which one would come back.
CONNECTIONS = {
    "producer": _CONNECTION,
    "consumer": {**_CONNECTION, "group.id": "the mirror itself"},
    "worker_config": _CONNECTION,
    "source_config": _CONNECTION,
}
# What the operator itself sets and refuses in `config`: FORBIDDEN_PREFIXES of KafkaMirrorMaker2ClusterSpec and
# FORBIDDEN_PARAMETERS of AbstractConnectorSpec.
_WORKER = (
    "ssl.", "security.", "listeners", "plugin.path", "rest.", "consumer.interceptor.classes",
    "producer.interceptor.classes", "prometheus.metrics.reporter.",
)  # fmt: skip
_CONNECTOR = ("name", "connector.class", "connector.plugin.version", "source.cluster.", "target.cluster.")
FORBIDDEN = {
    "producer": ("ssl.", "security."),
    "consumer": ("ssl.", "security."),
    "worker_config": _WORKER,
    "source_config": _WORKER,
    "source_connector_config": _CONNECTOR,
    "checkpoint_connector_config": _CONNECTOR,
    "heartbeat_connector_config": _CONNECTOR,
}
# FORBIDDEN_PREFIX_EXCEPTIONS of KafkaMirrorMaker2ClusterSpec
ALLOWED = ("ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm")


def decided(free_map: str) -> dict[str, str]:
    """Return beginnings of properties that another setting decides, each with that setting, for a free map's field."""
    return {**CONNECTIONS.get(free_map, {}), **reserved(Mirror, free_map)}


def free_maps(at: Subject, mirror: Mirror) -> Iterator[Problem]:
    """Yield a problem, with the reason, for each key that must not be in a free map."""

    for name, forbidden in FORBIDDEN.items():
        field, settings = Mirror.model_fields[name].alias, decided(name)
        for key in getattr(mirror, name):
            begin = max((each for each in settings if key.startswith(each)), key=len, default=None)
            if begin is not None and mirror.config_defaults:
                rule = f"must not be set in {field} ({settings[begin]} decides it). Remove it."
            elif key.startswith(forbidden) and key not in ALLOWED:
                rule = f"must not be set in {field} (the operator sets it and ignores or refuses this one). Remove it."
            else:
                continue
            yield at.hint(f"{field}[{key}]", f"{key} {rule}")


_OFFSETS_SYNCED, _SYNCS_EMITTED = "sync.group.offsets.enabled", "emit.offset-syncs.enabled"


def exact_offsets(at: Subject, mirror: Mirror) -> Iterator[Problem]:
    """With `exactOffsets` nobody else sets groups on the target, and there is what a follower reads."""
    if mirror.exact_offsets is None:
        return
    if mirror.sync_group_offsets:
        yield at.problem(
            "syncGroupOffsets",
            "must be false or left out with exactOffsets",
            "true",
            "Remove it.",
            why="MirrorMaker would move groups that the follower sets",
        )
    elif not mirror.config_defaults and _is_on(mirror.checkpoint_connector_config.get(_OFFSETS_SYNCED, False)):
        yield at.problem(
            f"checkpointConnectorConfig[{_OFFSETS_SYNCED}]",
            "must be false or left out with exactOffsets",
            "true",
            "Remove it.",
            why="MirrorMaker would move groups that the follower sets",
        )
    if not mirror.emit_checkpoints:
        yield at.problem(
            "emitCheckpoints",
            "must be true with exactOffsets",
            "false",
            "Remove it.",
            why="a failover sets by checkpoints what the follower could not",
        )
    if not _is_on(mirror.source_connector_config.get(_SYNCS_EMITTED, True)):
        yield at.problem(
            f"sourceConnectorConfig[{_SYNCS_EMITTED}]",
            "must be true or left out with exactOffsets",
            "false",
            "Remove it.",
            why="the follower reads positions from the offset syncs",
        )


def _is_on(value: object) -> bool:
    return str(value).lower() == "true"


_ONLY_KEDA = ("prometheus", "trigger_authentication")


def scaling(at: Subject, mirror: Mirror) -> Iterator[Problem]:
    """Everything that is wrong with how a mirror is scaled."""
    settings = mirror.scaling
    if settings is None:
        return
    found = [*_bounds(mirror, settings), *_target(settings), *_reads(settings)]
    for key, rule in found:
        yield Problem(f"{at.key}.{key}", f"{at.name}: {key} {rule}")


def tasks(mirror: Mirror) -> dict[str, int]:
    """Tasks that a mirror can have at most, by the setting that allows them."""
    return {
        "sourceTasksMax": mirror.source_tasks_max,
        **({"checkpointTasksMax": mirror.checkpoint_tasks_max} if mirror.emit_checkpoints else {}),
        **({"heartbeats": 1} if mirror.heartbeats else {}),
    }


def _bounds(mirror: Mirror, settings: Scaling) -> Iterator[tuple[str, str]]:
    low, high = settings.min_replicas, settings.max_replicas
    if low > high:
        yield (
            "scaling.minReplicas",
            f"must be <= maxReplicas (got {low}, maxReplicas {high}). Lower it, or raise maxReplicas.",
        )
        return
    if not low <= mirror.replicas <= high:
        yield (
            "replicas",
            f"must lie within scaling.minReplicas and scaling.maxReplicas (got {mirror.replicas}, allowed "
            f"{low}..{high}). A new mirror begins with that many workers.",
        )
    busy = tasks(mirror)
    if high > sum(busy.values()):
        together = ", ".join(f"{key} {count}" for key, count in busy.items())
        yield (
            "scaling.maxReplicas",
            f"must be <= all tasks of the mirror (got {high}, tasks {sum(busy.values())}: {together}). "
            "More workers would be idle: lower it, or raise sourceTasksMax.",
        )


def _target(settings: Scaling) -> Iterator[tuple[str, str]]:
    if settings.lag_records is None and settings.lag_seconds is None:
        yield "scaling.lagRecords", "must be given, or lagSeconds (got neither). Say how far behind is too far."
    if settings.lag_records is not None and settings.lag_seconds is not None:
        yield "scaling.lagRecords", "must not be given beside lagSeconds (got both). Leave one of them."


def _reads(settings: Scaling) -> Iterator[tuple[str, str]]:
    """KEDA asks Prometheus, a HorizontalPodAutoscaler whatever adapter serves external metrics."""
    if settings.through == "keda" and settings.prometheus is None:
        yield (
            "scaling.prometheus",
            "must be given with through keda (got nothing). Name the address at which KEDA reaches Prometheus.",
        )
    for name in _ONLY_KEDA:
        if settings.through == "hpa" and getattr(settings, name) is not None:
            yield (
                f"scaling.{Scaling.model_fields[name].alias}",
                "must not be given with through hpa (a metrics adapter has it in its own configuration). Remove it.",
            )
