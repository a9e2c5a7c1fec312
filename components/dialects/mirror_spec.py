"""Specs of KafkaMirrorMaker2: workers, clusters, connectors and patterns, which all API versions have in common.

Pure functions from settings to plain dicts. Does not know names of objects, waits or dependencies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.dialects.cluster_spec import Spec, metrics
from monitoring.metrics.catalog import Part, consumer_config
from settings.mirror_parts import exclusions
from settings.mirrors import NO_GROUP, Mirror
from settings.model import rendered
from settings.platform import Platform
from settings.users import AnyAuthentication

KAFKA_POLICIES = {
    "identity": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "prefixed": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
}
# The policy that came with the operator's images before Kafka had its own.
STRIMZI_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
HTTPS = {"ssl.endpoint.identification.algorithm": "https"}
REBALANCE_DELAY_MS = 30_000  # a little more than a worker takes to start again
_CONSUMERS_REPORT_SINCE = (1, 0)
_SOURCE_LABEL_SINCE = 4  # major version of Kafka whose MirrorSourceConnector always has `source` in its metrics


@dataclass(frozen=True, kw_only=True)
class Login:
    """How a user logs in: what it is called, and the Secret and keys that hold its credentials; "" without a login.

    `password_generation` is higher if a generated password was rotated.
    """

    authentication: AnyAuthentication
    username: str
    secret: str
    password_key: str
    certificate_key: str
    private_key_key: str
    password_generation: int = 1


@dataclass(frozen=True, kw_only=True)
class MirrorClusterSpec:
    """One of the two clusters of a mirror: its address, the authority to trust, and the login of the mirror."""

    alias: str
    bootstrap_servers: str
    tls: bool
    ca_secret: tuple[str, str] | None
    login: Login


def mirror_cluster(settings: MirrorClusterSpec) -> Spec:
    """Alias, address, trust and login of one cluster of a mirror."""
    spec: Spec = {"alias": settings.alias, "bootstrapServers": settings.bootstrap_servers}
    if settings.tls:
        secret = settings.ca_secret
        trusted = [{"secretName": secret[0], "certificate": secret[1]}] if secret else []
        spec["tls"] = {"trustedCertificates": trusted}
    if settings.login.authentication != "none":
        spec["authentication"] = _authentication(settings.login)
    return spec


def _authentication(login: Login) -> Spec:
    if login.authentication == "tls":
        pair = {"secretName": login.secret, "certificate": login.certificate_key, "key": login.private_key_key}
        return {"type": "tls", "certificateAndKey": pair}
    return {
        "type": login.authentication,
        "username": login.username,
        "passwordSecret": {"secretName": login.secret, "password": login.password_key},
    }


def worker_config(settings: Mirror, target: MirrorClusterSpec) -> Spec:
    """Configuration of the Connect workers at the target."""
    config: Spec = {**(HTTPS if target.tls else {}), **rendered(settings, "worker_config")}
    if settings.replicas > 1 or settings.scaling is not None:
        # Else Kafka leaves the tasks of a worker that crashed or was removed unassigned for five minutes.
        config["scheduled.rebalance.max.delay.ms"] = REBALANCE_DELAY_MS
    return _with(settings, config, settings.worker_config)


def source_config(settings: Mirror, source: MirrorClusterSpec) -> Spec:
    """Configuration of the clients that read the source."""
    return _with(settings, HTTPS if source.tls else {}, settings.source_config)


def source_connector(settings: Mirror, version: str, platform: Platform) -> Spec:
    """Configuration of MirrorSourceConnector."""
    config: Spec = {**_policy(settings, platform), **rendered(settings, "source_connector_config")}
    if settings.exactly_once:
        # MirrorSourceConnector.exactlyOnceSupport refuses a consumer that would also read what is aborted later.
        config["consumer.isolation.level"] = "read_committed"
    if settings.metrics is not None and int(version.split(".")[0]) < _SOURCE_LABEL_SINCE:
        config["add.source.alias.to.metrics"] = True
    if settings.metrics is not None and settings.metrics.type == "strimziMetricsReporter":
        reporting = consumer_config() if platform.base >= _CONSUMERS_REPORT_SINCE else {}
        config |= {f"consumer.{key}": value for key, value in reporting.items()}
    config |= {f"producer.override.{key}": value for key, value in settings.producer.items()}
    consumer = {**settings.source.consumer_defaults, **settings.consumer}
    config |= {f"consumer.{key}": value for key, value in consumer.items()}
    return _with(settings, config, settings.source_connector_config)


def checkpoint_connector(settings: Mirror, platform: Platform) -> Spec:
    """Configuration of MirrorCheckpointConnector."""
    config = {**_policy(settings, platform), **rendered(settings, "checkpoint_connector_config")}
    return _with(settings, config, settings.checkpoint_connector_config)


def heartbeat_connector(settings: Mirror, platform: Platform) -> Spec:
    """Configuration of MirrorHeartbeatConnector."""
    config = {**_policy(settings, platform), **rendered(settings, "heartbeat_connector_config")}
    return _with(settings, config, settings.heartbeat_connector_config)


def connectors(settings: Mirror, version: str, platform: Platform) -> Spec:
    """The connectors of one direction; where they have no `state` they can only be paused."""
    shared: Spec = {}
    if settings.state != "running":
        shared |= {"state": settings.state} if platform.has_connector_state else {"pause": True}
    if settings.auto_restart is not None:
        restart: Spec = {"enabled": settings.auto_restart.enabled}
        if settings.auto_restart.max_restarts is not None:
            restart["maxRestarts"] = settings.auto_restart.max_restarts
        shared["autoRestart"] = restart

    def one(field: str, tasks_max: int, config: Spec) -> Spec:
        said = settings.config_defaults or field in settings.model_fields_set
        return {**({"tasksMax": tasks_max} if said else {}), **configured(settings, config), **shared}

    source = one("source_tasks_max", settings.source_tasks_max, source_connector(settings, version, platform))
    found = {
        "sourceConnector": {**source, **_offsets(settings, platform)},
        "checkpointConnector": one(
            "checkpoint_tasks_max", settings.checkpoint_tasks_max, checkpoint_connector(settings, platform)
        ),
    }
    if settings.heartbeats:
        found["heartbeatConnector"] = one("heartbeats", 1, heartbeat_connector(settings, platform))
    return found


def _offsets(settings: Mirror, platform: Platform) -> Spec:
    """Where the source connector's offsets are listed and altered when an annotation asks for it."""
    if not platform.has_connector_offsets or not settings.config_defaults:
        return {}
    place = {"name": settings.connector_offsets}
    return {"listOffsets": {"toConfigMap": place}, "alterOffsets": {"fromConfigMap": place}}


def configured(settings: Mirror, config: Spec) -> Spec:
    """The field `config`; nothing where there is none and nothing is to be added."""
    return {"config": config} if config or settings.config_defaults else {}


def patterns(settings: Mirror, platform: Platform) -> Spec:
    """Alternatives, joined as the platform reads them; an empty list would mean Kafka's default: it is left out."""
    join = platform.pattern_join
    excluded = exclusions(settings, join)
    found = {
        "topicsPattern": join.join(settings.topics),
        "topicsExcludePattern": excluded["topicsExcludePattern"],
        # The groups' offsets at a source that was lost are older than those on the target by now.
        "groupsPattern": join.join(settings.groups if settings.failback != "settling" else (NO_GROUP,)),
        "groupsExcludePattern": excluded["groupsExcludePattern"],
    }
    return {field_: text for field_, text in found.items() if text is not None}


def workers(settings: Mirror, version: str) -> Spec:
    """Return the fields of the workers: version, replicas, resources, JVM, rack, metrics and log level."""
    spec: Spec = {"version": version} if settings.version or settings.config_defaults else {}
    spec["replicas"] = settings.replicas
    if resources := settings.resources.rendered():
        spec["resources"] = resources
    if heap := settings.jvm.options:
        spec["jvmOptions"] = heap
    if settings.rack is not None:
        spec["rack"] = {"topologyKey": settings.rack.topology_key}
    spec |= metrics(settings, Part.WORKER)
    if settings.log_level is not None:
        # Log4j 2 came with Kafka 4.
        logger = "rootLogger.level" if int(version.split(".")[0]) >= 4 else "connect.root.logger.level"
        spec["logging"] = {"type": "inline", "loggers": {logger: settings.log_level}}
    return spec


def _with(settings: Mirror, derived: Spec, free: Mapping[str, Any]) -> Spec:
    """Return the keys that settings derive, and the free ones; only the free ones without `configDefaults`."""
    return {**(derived if settings.config_defaults else {}), **free}


def _policy(settings: Mirror, platform: Platform) -> Spec:
    old = settings.naming == "identity" and not platform.has_kafka_identity_policy
    return {"replication.policy.class": STRIMZI_IDENTITY if old else KAFKA_POLICIES[settings.naming]}
