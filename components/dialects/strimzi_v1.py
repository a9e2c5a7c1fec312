"""`kafka.strimzi.io/v1` (Strimzi 1.x): the `spec` of each custom resource, from settings and values known by then.

Pure functions to plain dicts. Owns the shape of the API; does not own names of objects, waits or dependencies.
"""

from dataclasses import dataclass
from typing import Any

from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.topics import Topic
from settings.users import Acl, User

CLUSTER_LABEL = "strimzi.io/cluster"
CA_KEY, PASSWORD_KEY = "ca.crt", "password"  # the name of a Secret's key
SECURITY_PROTOCOL, SASL_MECHANISM = "SASL_SSL", "SCRAM-SHA-512"
_POLICIES = {
    "identity": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "prefixed": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
}
_HTTPS = {"ssl.endpoint.identification.algorithm": "https"}
Spec = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One end of a mirror: where it is, and the names of the Secrets that let the mirror in."""

    alias: str
    bootstrap_servers: str
    user: str
    password_secret: str
    ca_secret: str


def ca_secret(cluster: str) -> str:
    """Name of the Secret in which the operator publishes the cluster's authority."""
    return f"{cluster}-cluster-ca-cert"


def node_pool(cluster: Cluster) -> Spec:
    """KafkaNodePool: all nodes of the cluster, each broker and controller."""
    spec: Spec = {"replicas": cluster.brokers, "roles": ["controller", "broker"], "storage": _storage(cluster)}
    if resources := cluster.resources.rendered():
        spec["resources"] = resources
    return spec


def kafka(cluster: Cluster) -> Spec:
    """Kafka: one TLS listener with SCRAM-SHA-512, rights by ACL, and the operators for topics and users."""
    listener = {
        "name": cluster.listener,
        "port": cluster.listener_port,
        "type": "internal",
        "tls": True,
        "authentication": {"type": "scram-sha-512"},
    }
    return {
        "kafka": {
            "version": cluster.version,
            "listeners": [listener],
            "authorization": {"type": "simple"},
            "config": dict(cluster.kafka_config),
        },
        "entityOperator": {"topicOperator": {}, "userOperator": {}},
    }


def user(settings: User) -> Spec:
    """KafkaUser: its password comes from the stack's own Secret."""
    reference = {"name": settings.credentials_secret, "key": PASSWORD_KEY}
    spec: Spec = {
        "authentication": {"type": settings.authentication, "password": {"valueFrom": {"secretKeyRef": reference}}}
    }
    if settings.acls:
        acls = [rule for acl in settings.acls for rule in _acls(acl)]
        spec["authorization"] = {"type": "simple", "acls": acls}
    return spec


def topic(settings: Topic) -> Spec:
    """KafkaTopic; the name in Kafka is given where Kubernetes cannot write it."""
    spec: Spec = {"partitions": settings.partitions, "replicas": settings.replicas}
    if settings.resource_name != settings.name:
        spec["topicName"] = settings.name
    if settings.config:
        spec["config"] = dict(settings.config)
    return spec


def mirror(settings: Mirror, version: str, source: Side, target: Side) -> Spec:
    """KafkaMirrorMaker2: Connect runs at the target, one pair of connectors reads the source."""
    topics = settings.storage_topics
    spec: Spec = {
        "version": version,
        "replicas": settings.replicas,
        "target": {
            **_cluster(target),
            "groupId": settings.connect_group,
            **{f"{kind}StorageTopic": name for kind, name in topics.items()},
            "config": {
                **_HTTPS,
                **{f"{kind}.storage.replication.factor": settings.replication_factor for kind in topics},
                "offset.flush.interval.ms": settings.flush_offsets_seconds * 1000,
                **settings.worker_config,
            },
        },
        "mirrors": [
            {
                "source": {**_cluster(source), "config": {**_HTTPS, **settings.source_config}},
                "sourceConnector": {"tasksMax": settings.source_tasks_max, "config": _source_connector(settings)},
                "checkpointConnector": {
                    "tasksMax": settings.checkpoint_tasks_max,
                    "config": _checkpoint_connector(settings),
                },
                **_patterns(settings),
            }
        ],
    }
    if resources := settings.resources.rendered():
        spec["resources"] = resources
    return spec


def _storage(cluster: Cluster) -> Spec:
    storage = cluster.storage
    if storage.type == "ephemeral":
        return {"type": "ephemeral"}
    spec: Spec = {"type": storage.type, "size": f"{storage.size_gib}Gi", "deleteClaim": storage.delete_claim}
    return spec if storage.storage_class is None else {**spec, "class": storage.storage_class}


def _acls(acl: Acl) -> list[Spec]:
    names: list[Spec] = [{"name": name, "patternType": acl.match} for name in acl.names] or [{}]
    return [
        {
            "type": "allow",
            "resource": {"type": acl.type, **name},
            "operations": list(acl.operations),
            "host": acl.host,
        }
        for name in names
    ]


def _cluster(side: Side) -> Spec:
    return {
        "alias": side.alias,
        "bootstrapServers": side.bootstrap_servers,
        "tls": {"trustedCertificates": [{"secretName": side.ca_secret, "certificate": CA_KEY}]},
        "authentication": {
            "type": "scram-sha-512",
            "username": side.user,
            "passwordSecret": {"secretName": side.password_secret, "password": PASSWORD_KEY},
        },
    }


def _shared(settings: Mirror) -> Spec:
    return {
        "replication.policy.class": _POLICIES[settings.naming],
        "offset-syncs.topic.location": settings.offset_syncs_location,
    }


def _source_connector(settings: Mirror) -> Spec:
    return {
        **_shared(settings),
        "replication.factor": settings.replication_factor,
        "offset-syncs.topic.replication.factor": settings.replication_factor,
        "sync.topic.acls.enabled": settings.sync_topic_acls,
        "refresh.topics.interval.seconds": settings.refresh_topics_seconds,
        **settings.source_connector_config,
    }


def _checkpoint_connector(settings: Mirror) -> Spec:
    return {
        **_shared(settings),
        "checkpoints.topic.replication.factor": settings.replication_factor,
        "refresh.groups.interval.seconds": settings.refresh_groups_seconds,
        "emit.checkpoints.enabled": True,
        "emit.checkpoints.interval.seconds": settings.emit_checkpoints_seconds,
        "sync.group.offsets.enabled": settings.sync_group_offsets,
        "sync.group.offsets.interval.seconds": settings.sync_group_offsets_seconds,
        **settings.checkpoint_connector_config,
    }


def _patterns(settings: Mirror) -> Spec:
    """Alternatives are joined by '|'; an empty list would mean MirrorMaker's default and is left out."""
    patterns = {
        "topicsPattern": settings.topics,
        "topicsExcludePattern": settings.topics_exclude,
        "groupsPattern": settings.groups,
        "groupsExcludePattern": settings.groups_exclude,
    }
    return {field: "|".join(entries) for field, entries in patterns.items() if entries}
