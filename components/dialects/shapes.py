"""What all API versions have in common: shapes that Strimzi's v1, its v1beta2 and Event Streams write alike.

Pure functions from settings to plain dicts. Does not know names of objects, waits or dependencies.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitoring.catalog import Part
from monitoring.reporter import allow_list, consumer_config
from settings.cluster import Cluster, Listener, NodePool, Storage
from settings.mirrors import NO_GROUP, Mirror
from settings.names import SEPARATOR
from settings.platform import Platform
from settings.spec_overrides import plain
from settings.topics import Topic
from settings.users import PASSWORD_GENERATION, PASSWORD_KEY, Acl, AnyAuthentication, User

KAFKA_POLICIES = {
    "identity": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "prefixed": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
}
# The policy that came with the operator's images before Kafka had its own.
STRIMZI_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
HTTPS = {"ssl.endpoint.identification.algorithm": "https"}
REBALANCE_DELAY_MS = 30_000  # a little more than a worker takes to start again
_ACL_LISTS_SINCE = (0, 33)
_CONSUMERS_REPORT_SINCE = (1, 0)
_TELLS_SOURCE_SINCE = 4  # major version of Kafka whose MirrorSourceConnector always has `source` in its metrics
Spec = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Login:
    """How a user logs in: what it is called, and the Secret and keys that hold its credentials; "" without a login."""

    authentication: AnyAuthentication
    username: str
    secret: str
    password_key: str
    certificate_key: str
    private_key_key: str


@dataclass(frozen=True, kw_only=True)
class Side:
    """One end of a mirror: where it is, whom it trusts, and how the mirror logs in."""

    alias: str
    bootstrap_servers: str
    tls: bool
    ca_secret: tuple[str, str] | None
    login: Login


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One custom resource without its namespace."""

    kind: str
    name: str
    spec: Spec
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def kafka(settings: Cluster, version: str | None) -> Spec:
    """The part of a cluster's spec that describes its brokers, whatever resource it stands in."""
    spec: Spec = {"version": version} if version and (settings.version or settings.config_defaults) else {}
    spec["listeners"] = [listener(each) for each in settings.all_listeners]
    if settings.authorization == "simple":
        users = {"superUsers": list(settings.super_users)} if settings.super_users else {}
        spec["authorization"] = {"type": "simple", **users}
    spec["config"] = dict(settings.declared_config)
    if settings.rack is not None:
        spec["rack"] = {"topologyKey": settings.rack.topology_key}
    return spec | metrics(settings, Part.BROKER)


def listener(settings: Listener) -> Spec:
    """One listener with what its type needs."""
    spec: Spec = {
        "name": settings.name,
        "port": settings.port,
        "type": settings.type,
        "tls": settings.tls,
    }
    if settings.authentication != "none":
        spec["authentication"] = {"type": settings.authentication}
    bootstrap: Spec = {}
    if settings.host is not None and settings.type in ("route", "ingress"):
        bootstrap["host"] = settings.host
    elif settings.host is not None and settings.tls and settings.type in ("loadbalancer", "nodeport"):
        bootstrap["alternativeNames"] = [settings.host]
    if settings.node_port is not None:
        bootstrap["nodePort"] = settings.node_port
    if settings.annotations:
        bootstrap["annotations"] = dict(settings.annotations)
    configuration: Spec = {"bootstrap": bootstrap} if bootstrap else {}
    if settings.ingress_class is not None:
        configuration["class"] = settings.ingress_class
    if settings.host_template is not None:
        # Only routes and ingresses are made for a host; for the others it is what brokers tell their clients.
        made_for = "hostTemplate" if settings.type in ("route", "ingress") else "advertisedHostTemplate"
        configuration[made_for] = settings.host_template
    return {**spec, "configuration": configuration} if configuration else spec


def brokers_by_number(spec: Spec, brokers: int) -> Spec:
    """A listener for releases without templates of hosts: every broker's host is written out."""
    configuration = dict(spec.get("configuration", {}))
    for key, template_key in (("host", "hostTemplate"), ("advertisedHost", "advertisedHostTemplate")):
        template = configuration.pop(template_key, None)
        if template is not None:
            configuration["brokers"] = [
                {"broker": number, key: template.replace("{nodeId}", str(number))} for number in range(brokers)
            ]
    return {**spec, "configuration": configuration} if configuration else spec


def storage(settings: Storage) -> Spec:
    """Disks of a node."""
    if settings.type == "ephemeral":
        return {"type": "ephemeral"}
    if settings.type == "jbod":
        volumes = [
            {"id": volume.id, **_claim(volume.size_gib, volume.storage_class, delete_claim=volume.delete_claim)}
            for volume in settings.volumes
        ]
        return {"type": "jbod", "volumes": volumes}
    return _claim(settings.size_gib or 1, settings.storage_class, delete_claim=settings.delete_claim)


def _claim(size_gib: int, storage_class: str | None, *, delete_claim: bool) -> Spec:
    spec: Spec = {"type": "persistent-claim", "size": f"{size_gib}Gi", "deleteClaim": delete_claim}
    return spec if storage_class is None else {**spec, "class": storage_class}


def node_pool(settings: NodePool, cluster: Cluster) -> Spec:
    """KafkaNodePool."""
    spec: Spec = {
        "replicas": settings.replicas,
        "roles": list(settings.roles),
        "storage": storage(settings.storage or cluster.storage),
    }
    if resources := (settings.resources.rendered() or cluster.resources.rendered()):
        spec["resources"] = resources
    return spec


def metrics(settings: Cluster | Mirror, part: Part) -> Spec:
    """Field `metricsConfig`: where the exporter finds its rules, or what Strimzi's reporter exposes; {} for neither."""
    exposed = settings.metrics
    if exposed is None:
        return {}
    if exposed.type == "strimziMetricsReporter":
        allowed = exposed.allow_list or (allow_list(part) if settings.config_defaults else ())
        return {"metricsConfig": {"type": exposed.type, **({"values": {"allowList": [*allowed]}} if allowed else {})}}
    name, key = exposed.rules(settings.metrics_rules)
    return {"metricsConfig": {"type": exposed.type, "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}}}


def user(settings: User, acls: Iterable[Acl], platform: Platform) -> Spec:
    """KafkaUser: a SCRAM password comes from a Secret of the stack; a certificate is made by the operator."""
    if settings.authentication == "tls" or settings.generated_by == "operator":
        spec: Spec = {"authentication": {"type": settings.authentication}}
    else:
        key = settings.secret.password_key if settings.secret else PASSWORD_KEY
        reference = {"name": settings.credentials_secret, "key": key}
        password = {"valueFrom": {"secretKeyRef": reference}}
        spec = {"authentication": {"type": settings.authentication, "password": password}}
        if settings.password_generation > 1:
            # The user operator does not watch the Secret with the password. A change of the KafkaUser makes it read the
            # Secret at once, and the KafkaUser is Ready in its new generation once the new password is in force.
            annotations = {PASSWORD_GENERATION: str(settings.password_generation)}
            spec["template"] = {"secret": {"metadata": {"annotations": annotations}}}
    if rules := [rule for acl in acls for rule in _rules(acl, platform, settings.config_defaults)]:
        spec["authorization"] = {"type": "simple", "acls": rules}
    return spec


def _rules(acl: Acl, platform: Platform, every: bool) -> list[Spec]:
    """Rules of one right. A list is compared as a whole, so what exists must come out with the fields that it has."""
    said = acl.model_fields_set | ({"permission", "host", "match"} if every else set())
    kind: Spec = {"type": acl.permission} if "permission" in said else {}
    host: Spec = {"host": acl.host} if "host" in said else {}
    match: Spec = {"patternType": acl.match} if "match" in said else {}
    names: list[Spec] = [{"name": name, **match} for name in acl.names] or [{}]
    resources = [{"type": acl.type, **name} for name in names]
    if platform.base >= _ACL_LISTS_SINCE:
        return [{**kind, "resource": resource, "operations": list(acl.operations), **host} for resource in resources]
    return [
        {**kind, "resource": resource, "operation": operation, **host}
        for resource in resources
        for operation in acl.operations
    ]


def topic(settings: Topic) -> Spec:
    """KafkaTopic; the name in Kafka is given where Kubernetes cannot write it."""
    spec: Spec = {"partitions": settings.partitions, "replicas": settings.replicas}
    if settings.resource_name != settings.name:
        spec["topicName"] = settings.name
    if settings.config:
        spec["config"] = dict(settings.config)
    return spec


def side(settings: Side) -> Spec:
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


def worker_config(settings: Mirror, target: Side) -> Spec:
    """Configuration of the Connect workers at the target."""
    config: Spec = dict(HTTPS) if target.tls else {}
    config |= {f"{kind}.storage.replication.factor": settings.replication_factor for kind in settings.storage_topics}
    if settings.flush_offsets_seconds is not None:
        config["offset.flush.interval.ms"] = settings.flush_offsets_seconds * 1000
    if settings.exactly_once:
        config["exactly.once.source.support"] = "enabled"
    if settings.replicas > 1 or settings.scaling is not None:
        # Else Kafka leaves the tasks of a worker that crashed or was removed unassigned for five minutes.
        config["scheduled.rebalance.max.delay.ms"] = REBALANCE_DELAY_MS
    return _with(settings, config, settings.worker_config)


def source_config(settings: Mirror, source: Side) -> Spec:
    """Configuration of the clients that read the source."""
    return _with(settings, HTTPS if source.tls else {}, settings.source_config)


def source_connector(settings: Mirror, version: str, platform: Platform) -> Spec:
    """Configuration of MirrorSourceConnector."""
    config: Spec = {
        **_policy(settings, platform),
        "replication.factor": settings.replication_factor,
        "offset-syncs.topic.replication.factor": settings.replication_factor,
        "sync.topic.acls.enabled": settings.sync_topic_acls,
        "refresh.topics.interval.seconds": settings.refresh_topics_seconds,
    }
    if settings.offset_lag_max is not None:
        config["offset.lag.max"] = settings.offset_lag_max
    if not settings.sync_topic_configs:
        config["sync.topic.configs.enabled"] = False
    if settings.sync_topic_configs_seconds is not None:
        config["sync.topic.configs.interval.seconds"] = settings.sync_topic_configs_seconds
    if settings.config_properties_exclude:
        config["config.properties.exclude"] = ",".join(settings.config_properties_exclude)
    if settings.exactly_once:
        # MirrorSourceConnector.exactlyOnceSupport refuses a consumer that would also read what is aborted later.
        config |= {"exactly.once.support": "required", "consumer.isolation.level": "read_committed"}
    if settings.metrics is not None and int(version.split(".")[0]) < _TELLS_SOURCE_SINCE:
        config["add.source.alias.to.metrics"] = True
    if settings.metrics is not None and settings.metrics.type == "strimziMetricsReporter":
        reporting = consumer_config() if platform.base >= _CONSUMERS_REPORT_SINCE else {}
        config |= {f"consumer.{key}": value for key, value in reporting.items()}
    config |= {f"producer.override.{key}": value for key, value in settings.producer.items()}
    config |= {f"consumer.{key}": value for key, value in settings.consumer.items()}
    return _with(settings, config, settings.source_connector_config)


def checkpoint_connector(settings: Mirror, platform: Platform) -> Spec:
    """Configuration of MirrorCheckpointConnector."""
    config: Spec = {
        **_policy(settings, platform),
        "checkpoints.topic.replication.factor": settings.replication_factor,
        "refresh.groups.interval.seconds": settings.refresh_groups_seconds,
        "emit.checkpoints.enabled": settings.emit_checkpoints,
        "emit.checkpoints.interval.seconds": settings.emit_checkpoints_seconds,
        "sync.group.offsets.enabled": settings.sync_group_offsets,
        "sync.group.offsets.interval.seconds": settings.sync_group_offsets_seconds,
    }
    return _with(settings, config, settings.checkpoint_connector_config)


def heartbeat_connector(settings: Mirror, platform: Platform) -> Spec:
    """Configuration of MirrorHeartbeatConnector."""
    config: Spec = {
        **_policy(settings, platform, offset_syncs=False),
        "heartbeats.topic.replication.factor": settings.replication_factor,
    }
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


def with_overrides(spec: Spec, overrides: Mapping[str, Any]) -> Spec:
    """A spec with fields that no setting stands for; what is rendered stays, and the settings refuse to change it."""
    merged = dict(spec)
    for key, value in overrides.items():
        if key not in spec:
            merged[key] = plain(value)
        elif isinstance(spec[key], Mapping) and isinstance(value, Mapping):
            merged[key] = with_overrides(spec[key], value)
    return merged


def configured(settings: Mirror, config: Spec) -> Spec:
    """The field `config`; nothing where there is none and nothing is to be added."""
    return {"config": config} if config or settings.config_defaults else {}


def patterns(settings: Mirror, join: str) -> Spec:
    """Alternatives joined by '|' or ','; an empty list would mean MirrorMaker's default and is left out."""
    found = {
        "topicsPattern": settings.topics,
        "topicsExcludePattern": settings.topics_exclude,
        # What a source that was lost still tells of its groups is older than where they stand on the target by now.
        "groupsPattern": settings.groups if settings.failback != "settling" else (NO_GROUP,),
        "groupsExcludePattern": settings.groups_exclude,
    }
    return {field_: join.join(entries) for field_, entries in found.items() if entries}


def workers(settings: Mirror, version: str) -> Spec:
    """What is said about the workers themselves."""
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
    """Keys that settings stand for, and the free ones; only the latter where nothing is to be derived."""
    return {**(derived if settings.config_defaults else {}), **free}


def _policy(settings: Mirror, platform: Platform, *, offset_syncs: bool = True) -> Spec:
    old = settings.naming == "identity" and not platform.has_kafka_identity_policy
    config: Spec = {"replication.policy.class": STRIMZI_IDENTITY if old else KAFKA_POLICIES[settings.naming]}
    if settings.separator != SEPARATOR:
        config["replication.policy.separator"] = settings.separator
    if offset_syncs and settings.offset_syncs_location != "source":  # which is MirrorMaker's default
        config["offset-syncs.topic.location"] = settings.offset_syncs_location
    return config
