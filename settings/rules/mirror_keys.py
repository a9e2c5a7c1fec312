"""Rules of a mirror's free maps: what another setting decides, and what the operator sets itself, stays out of them."""

from settings.errors import Problem
from settings.mirrors import Mirror

# What other settings decide, by the free map in which it would come back.
_CONNECTION = ("bootstrap.servers", "security.protocol", "sasl.")
_POLICY = ("replication.policy.", "offset-syncs.topic.", "offset.lag.max")
MANAGED = {
    "producer": _CONNECTION,
    "consumer": (*_CONNECTION, "group.id"),
    "worker_config": (
        "group.id", "config.storage.", "offset.storage.", "status.storage.", "offset.flush.interval.ms",
        "exactly.once.source.support", *_CONNECTION,
    ),
    "source_config": (
        "group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic", *_CONNECTION,
    ),
    "source_connector_config": (
        "topics", "tasks.max", "replication.factor", "sync.topic.acls.", "sync.topic.configs.",
        "config.properties.exclude", "refresh.topics.interval.seconds", "exactly.once.support", *_POLICY,
    ),
    "checkpoint_connector_config": (
        "groups", "tasks.max", "checkpoints.topic.", "sync.group.offsets.", "refresh.groups.interval.seconds",
        "emit.checkpoints.", *_POLICY,
    ),
    "heartbeat_connector_config": ("tasks.max", "replication.policy.", "heartbeats.topic.replication.factor"),
}  # fmt: skip
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


def keys(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    """Refuse what must not stand in a free map, with the reason."""
    problems = []
    for name, managed in MANAGED.items():
        field = Mirror.model_fields[name].alias
        for key in getattr(mirror, name):
            at = f"{where}.{field}[{key}]"
            if key.startswith(managed):
                rule = f"must not be set in {field} (another setting decides it). Use that setting."
            elif key.startswith(FORBIDDEN[name]) and key not in ALLOWED:
                rule = f"must not be set in {field} (the operator sets it and ignores or refuses this one). Remove it."
            else:
                continue
            problems.append(Problem(at, f"{subject}: {key} {rule}"))
    return problems
