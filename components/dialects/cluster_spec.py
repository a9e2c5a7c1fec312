"""Specs of Kafka clusters, node pools, users and topics: the parts that all API versions have in common.

Pure functions from settings to plain dicts. Does not know names of objects, waits or dependencies.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitoring.metrics.catalog import Part, allow_list
from settings import fence
from settings.cluster import Cluster, Listener, NodePool, Storage
from settings.mirrors import Mirror
from settings.model import plain
from settings.platform import Platform
from settings.topics import Topic
from settings.users import PASSWORD_GENERATION, PASSWORD_KEY, AclRule, User

Spec = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One custom resource without its namespace."""

    kind: str
    name: str
    spec: Spec
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def kafka(settings: Cluster, version: str | None) -> Spec:
    """The part of a cluster's spec that describes its brokers, whichever resource has it."""
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
    if settings.network_policy_peers:
        spec["networkPolicyPeers"] = [peer.rendered() for peer in settings.network_policy_peers]
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


def user(settings: User, rules: Iterable[AclRule], platform: Platform) -> Spec:
    """KafkaUser: a SCRAM password comes from a Secret of the stack; a certificate is made by the operator."""
    if settings.authentication == "tls" or settings.generated_by == "operator":
        spec: Spec = {"authentication": {"type": settings.authentication}}
    else:
        key = settings.secret.password_key if settings.secret else PASSWORD_KEY
        reference = {"name": settings.credentials_secret, "key": key}
        password = {"valueFrom": {"secretKeyRef": reference}}
        spec = {"authentication": {"type": settings.authentication, "password": password}}
        if settings.password_generation > 1:
            spec |= read_again(str(settings.password_generation))
    allowed_and_denied = fence.authorization(settings, rules, platform)
    return spec if allowed_and_denied is None else {**spec, "authorization": allowed_and_denied}


def read_again(generation: str) -> Spec:
    """Part of a KafkaUser that changes with a password.

    The user operator does not watch the Secret with the password. A change of the KafkaUser makes it read the Secret at
    once, and the KafkaUser is Ready in its new generation once the new password is in force.
    """
    return {"template": {"secret": {"metadata": {"annotations": {PASSWORD_GENERATION: generation}}}}}


def topic(settings: Topic) -> Spec:
    """KafkaTopic; the name in Kafka is given where Kubernetes cannot write it."""
    spec: Spec = {"partitions": settings.partitions, "replicas": settings.replicas}
    if settings.resource_name != settings.name:
        spec["topicName"] = settings.name
    if settings.config:
        spec["config"] = dict(settings.config)
    return spec


def with_overrides(spec: Spec, overrides: Mapping[str, Any]) -> Spec:
    """A spec with fields that no setting stands for; what is rendered stays, and the settings refuse to change it."""
    merged = dict(spec)
    for key, value in overrides.items():
        if key not in spec:
            merged[key] = plain(value)
        elif isinstance(spec[key], Mapping) and isinstance(value, Mapping):
            merged[key] = with_overrides(spec[key], value)
    return merged
