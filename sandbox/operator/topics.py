"""KafkaTopic: created, configured, grown; what Kafka cannot do is refused with the reason."""

from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from . import NotReadyError
from .admin import REQUEST_TIMEOUT_S, Cluster, ClusterLookup, result, results
from .kubernetes_api import TOPIC, Object
from .reconcile import Outcome

RESYNC_S = 15.0


@dataclass
class Topics:
    """Reconciler of KafkaTopic."""

    lookup: ClusterLookup
    resource = TOPIC
    finalizer: str | None = "strimzi.io/topic-operator"

    def reconcile(self, resource: Object) -> Outcome:
        """Create or alter the topic; see `Reconciler`."""
        spec = resource.get("spec") or {}
        name = topic_name(resource)
        cluster = self.lookup.of(resource)
        replicas = spec.get("replicas")
        if replicas and replicas > cluster.brokers:
            raise NotReadyError(
                "KafkaError",
                f"KafkaTopic {name}: replicas must be at most the number of brokers of {cluster.name} (got {replicas}, "
                f"allowed 1..{cluster.brokers}). Lower replicas or give the cluster more brokers.",
                retry_s=10,
            )
        found = describe(cluster.client, name)
        if found is None:
            topic_id = self._create(cluster, name, spec)
        else:
            _refuse_impossible(name, found, spec)
            self._grow(cluster.client, name, found, spec)
            self._configure(cluster.client, name, spec)
            topic_id = str(found.topic_id)
        return Outcome({"topicName": name, "topicId": topic_id}, again_s=RESYNC_S)

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Delete the topic, unless the cluster goes away with it."""
        cluster = self.lookup.if_it_stays(resource) if resource else None
        if resource is None or cluster is None:
            return
        topic = topic_name(resource)
        if (resource.get("status") or {}).get("topicName") != topic:
            return  # never created by this resource
        for future in cluster.client.delete_topics([topic], operation_timeout=REQUEST_TIMEOUT_S).values():
            try:
                future.result(timeout=REQUEST_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise NotReadyError("TopicNotDeleted", f"KafkaTopic {topic}: {error.args[0].str()}") from error

    @staticmethod
    def _create(cluster: Cluster, name: str, spec: dict[str, Any]) -> str:
        new = NewTopic(
            name,
            num_partitions=spec.get("partitions") or -1,
            replication_factor=spec.get("replicas") or -1,
            config=config_values(spec),
        )
        results(cluster.client.create_topics([new]), lambda topic: f"KafkaTopic {topic}: create")
        found = describe(cluster.client, name)
        if found is None:
            raise NotReadyError("Creating", f"KafkaTopic {name}: created, not visible yet.", retry_s=0.5)
        return str(found.topic_id)

    @staticmethod
    def _grow(client: AdminClient, name: str, found: TopicDescription, spec: dict[str, Any]) -> None:
        wanted = spec.get("partitions")
        if wanted and wanted > len(found.partitions):
            results(
                client.create_partitions([NewPartitions(name, wanted)]),
                lambda topic: f"KafkaTopic {topic}: grow to {wanted} partitions",
            )

    @staticmethod
    def _configure(client: AdminClient, name: str, spec: dict[str, Any]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, name)
        current = result(client.describe_configs([resource])[resource], f"KafkaTopic {name}: read its configuration")
        own = {
            key: str(entry.value)
            for key, entry in current.items()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }
        changes = config_changes(own, config_values(spec))
        if changes:
            request = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
            results(
                client.incremental_alter_configs([request]), lambda _: f"KafkaTopic {name}: alter its configuration"
            )


def topic_name(resource: Object) -> str:
    """Name in Kafka: spec.topicName, else the resource's own."""
    return str((resource.get("spec") or {}).get("topicName") or resource["metadata"]["name"])


def config_values(spec: dict[str, Any]) -> dict[str, str]:
    """`spec.config` as Kafka reads it: lists joined by commas, truth values in lower case."""
    return {key: _text(value) for key, value in (spec.get("config") or {}).items() if value is not None}


def config_changes(current: dict[str, str], wanted: dict[str, str]) -> list[ConfigEntry]:
    """Entries that set what differs and remove what is no longer wanted."""
    changes = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in sorted(wanted.items())
        if current.get(key) != value
    ]
    changes += [
        ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
        for key in sorted(current.keys() - wanted.keys())
    ]
    return changes


def describe(client: AdminClient, name: str) -> TopicDescription | None:
    """The topic as the cluster has it, None if there is none."""
    future = client.describe_topics(TopicCollection([name]), request_timeout=REQUEST_TIMEOUT_S)[name]
    try:
        found: TopicDescription = future.result(timeout=REQUEST_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise
    return found


def _refuse_impossible(name: str, found: TopicDescription, spec: dict[str, Any]) -> None:
    status = {"topicName": name, "topicId": str(found.topic_id)}
    have, want = len(found.partitions), spec.get("partitions")
    if want and want < have:
        raise NotReadyError(
            "NotSupported",
            f"KafkaTopic {name}: partitions cannot be lowered (got {want}, allowed {have} or more). Set it back to "
            f"{have}, or delete the topic and create it again, which loses its records.",
            retry_s=10,
            status=dict(status),
        )
    factor = len(found.partitions[0].replicas)
    replicas = spec.get("replicas")
    if replicas and replicas != factor:
        raise NotReadyError(
            "NotSupported",
            f"KafkaTopic {name}: replicas cannot be changed without Cruise Control (got {replicas}, the topic has "
            f"{factor}). Set it back to {factor}, or delete the topic and create it again, which loses its records.",
            retry_s=10,
            status=dict(status),
        )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    return str(value)
