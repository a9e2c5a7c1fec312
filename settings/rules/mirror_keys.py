"""Rules of a mirror's free maps: what another setting decides, and what the operator sets itself, stays out of them."""

from settings.errors import Problem
from settings.mirrors import Mirror

# What other settings decide, by the free map in which it would come back: beginning of the key → that setting.
_CONNECTION = {
    "bootstrap.servers": "cluster or source",
    "security.protocol": "the listener",
    "sasl.": "the user's authentication",
}
_POLICY = {
    "replication.policy.": "naming or separator",
    "offset-syncs.topic.location": "offsetSyncsLocation",
    "offset-syncs.topic.": "replicationFactor",
    "offset.lag.max": "offsetLagMax",
}
_CONNECT = {
    "group.id": "groupId",
    "config.storage.topic": "configStorageTopic",
    "offset.storage.topic": "offsetStorageTopic",
    "status.storage.topic": "statusStorageTopic",
}
MANAGED = {
    "producer": _CONNECTION,
    "consumer": {**_CONNECTION, "group.id": "the mirror itself"},
    "worker_config": {
        **_CONNECT,
        "config.storage.": "replicationFactor",
        "offset.storage.": "replicationFactor",
        "status.storage.": "replicationFactor",
        "offset.flush.interval.ms": "flushOffsetsSeconds",
        "exactly.once.source.support": "exactlyOnce",
        **_CONNECTION,
    },
    "source_config": {**_CONNECT, **_CONNECTION},
    "source_connector_config": {
        "topics.exclude": "topicsExclude",
        "topics": "topics",
        "tasks.max": "sourceTasksMax",
        "replication.factor": "replicationFactor",
        "sync.topic.acls.enabled": "syncTopicAcls",
        "sync.topic.configs.enabled": "syncTopicConfigs",
        "sync.topic.configs.interval.seconds": "syncTopicConfigsSeconds",
        "config.properties.exclude": "configPropertiesExclude",
        "refresh.topics.interval.seconds": "refreshTopicsSeconds",
        "exactly.once.support": "exactlyOnce",
        **_POLICY,
    },
    "checkpoint_connector_config": {
        "groups.exclude": "groupsExclude",
        "groups": "groups",
        "tasks.max": "checkpointTasksMax",
        "checkpoints.topic.": "replicationFactor",
        "sync.group.offsets.enabled": "syncGroupOffsets",
        "sync.group.offsets.interval.seconds": "syncGroupOffsetsSeconds",
        "refresh.groups.interval.seconds": "refreshGroupsSeconds",
        "emit.checkpoints.enabled": "emitCheckpoints",
        "emit.checkpoints.interval.seconds": "emitCheckpointsSeconds",
        **_POLICY,
    },
    "heartbeat_connector_config": {
        "tasks.max": "heartbeats",
        "replication.policy.": "naming or separator",
        "heartbeats.topic.replication.factor": "replicationFactor",
    },
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


def keys(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    """Refuse what must not stand in a free map, with the reason."""
    problems = []
    for name, managed in MANAGED.items():
        field = Mirror.model_fields[name].alias
        for key in getattr(mirror, name):
            at = f"{where}.{field}[{key}]"
            setting = next((each for begin, each in managed.items() if key.startswith(begin)), None)
            if setting is not None and mirror.config_defaults:
                rule = f"must not be set in {field} ({setting} decides it). Remove it."
            elif key.startswith(FORBIDDEN[name]) and key not in ALLOWED:
                rule = f"must not be set in {field} (the operator sets it and ignores or refuses this one). Remove it."
            else:
                continue
            problems.append(Problem(at, f"{subject}: {key} {rule}"))
    return problems
