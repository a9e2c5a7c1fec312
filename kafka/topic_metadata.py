"""What a cluster reports of topics: configuration, replicas and leaders, and ids that tell a re-created topic apart.

MirrorMaker's rules for configuration: org.apache.kafka.connect.mirror.MirrorSourceConnector (targetConfig,
incrementalAlterConfigs) and DefaultConfigPropertyFilter, the same in Kafka 4.2 and 4.3.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigEntry, ConfigResource, ConfigSource, ResourceType  # type: ignore[attr-defined]  # the package does not list what it re-exports

from contract.java_patterns.patterns import matches
from contract.verification_request import TopicConfigs
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.errors import Answers, code_of, reason

Origin = Literal["topic", "broker", "broker file", "default"]
_ORIGINS: dict[ConfigSource, Origin] = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "topic",
    ConfigSource.STATIC_BROKER_CONFIG: "broker file",
    ConfigSource.DEFAULT_CONFIG: "default",
}


@dataclass(frozen=True)
class Setting:
    """Effective value of one property (None if it has none) and where it is set; `hidden` ones carry no value."""

    value: str | None
    origin: Origin
    hidden: bool = False
    read_only: bool = False


@dataclass(frozen=True)
class Difference:
    """One property that the copy of a topic does not have as MirrorMaker would have set it."""

    topic: str
    target_topic: str
    property: str
    source: Setting
    target: Setting | None


Configuration = Mapping[str, Setting]


def topic_configs(cluster: Cluster, names: Iterable[str]) -> Answers[Configuration]:
    """Describe the configuration of topics; values of sensitive properties are dropped here."""
    answers: Answers[Configuration] = Answers()
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(set(names))]
    if not resources:
        return answers
    for resource, future in cluster.admin.describe_configs(resources, request_timeout=CALL_DEADLINE_S).items():
        try:
            described = future.result()
        except KafkaException as error:
            if code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                what = f"describe the configuration of topic {resource.name}"
                needs = f"DESCRIBE_CONFIGS on topic {resource.name}"
                answers.refused[resource.name] = reason(cluster.side, what, needs, error)
        else:
            answers.found[resource.name] = {name: _setting(entry) for name, entry in described.items()}
    return answers


def differences(
    rules: TopicConfigs, topic: str, source: Configuration, target_topic: str, target: Configuration
) -> list[Difference]:
    """Return the properties in which the copy of a topic is not as MirrorMaker would have made it, by name.

    MirrorMaker sets on the copy what the source's topic or its brokers' dynamic configuration set, and removes from the
    copy what is default at the source (sets it with `use.defaults.from: source`). It leaves alone what is excluded,
    read-only, sensitive, or set in the source's broker files.
    """
    found = []
    for name, here in sorted(source.items()):
        if _left_alone(rules, name, here):
            continue
        there = target.get(name)
        if here.origin == "default" and rules.use_defaults_from == "target":
            differs = there is not None and there.origin == "topic" and there.value != here.value
        elif there is None:
            differs = here.origin != "default"
        else:
            differs = there.value != here.value
        if differs:
            found.append(Difference(topic, target_topic, name, here, there))
    return found


def _left_alone(rules: TopicConfigs, name: str, setting: Setting) -> bool:
    excluded = matches(rules.exclude, name)
    return excluded or setting.read_only or setting.hidden or setting.origin == "broker file"


def _setting(entry: ConfigEntry) -> Setting:
    origin = _ORIGINS.get(ConfigSource(entry.source), "broker")
    return Setting(
        value=None if entry.is_sensitive else entry.value,
        origin=origin,
        hidden=entry.is_sensitive,
        read_only=entry.is_read_only,
    )


@dataclass(frozen=True)
class PartitionState:
    """Number of replicas, how many of them are in sync, and whether there is a leader."""

    replicas: int
    in_sync: int
    online: bool = True

    def fault(self, wanted: int | None) -> str | None:
        """Return what is wrong if `wanted` replicas should hold the partition, None if nothing is."""
        if not self.online:
            return "is offline: no leader"
        if wanted is not None and self.replicas < wanted:
            return f"has {self.replicas} replicas of {wanted}"
        if self.in_sync < self.replicas:
            return f"is under-replicated: {self.in_sync} of {self.replicas} replicas in sync"
        return None


@dataclass(frozen=True)
class TopicState:
    """The partitions of a topic by number."""

    name: str
    partitions: Mapping[int, PartitionState]

    def faults(self, wanted: int | None) -> dict[int, str]:
        """Return what is wrong with its partitions, by number."""
        found = {number: part.fault(wanted) for number, part in sorted(self.partitions.items())}
        return {number: fault for number, fault in found.items() if fault is not None}


def topic_states(cluster: Cluster, names: Iterable[str]) -> Answers[TopicState]:
    """Describe topics by name. Unlike a plain metadata request this never creates one."""
    wanted = sorted(set(names))
    answers: Answers[TopicState] = Answers()
    if not wanted:
        return answers
    futures = cluster.admin.describe_topics(TopicCollection(wanted), request_timeout=CALL_DEADLINE_S)
    for name, future in futures.items():
        try:
            described = future.result()
        except KafkaException as error:
            if code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                needs = f"DESCRIBE on topic {name}"
                answers.refused[name] = reason(cluster.side, f"describe topic {name}", needs, error)
            continue
        answers.found[name] = TopicState(
            name,
            {
                part.id: PartitionState(
                    len(part.replicas), len(part.isr), part.leader is not None and part.leader.id >= 0
                )
                for part in described.partitions
            },
        )
    return answers


def cluster_id(cluster: Cluster) -> str | None:
    """Return the id of the cluster, None when the brokers do not tell it."""
    try:
        found = cluster.admin.describe_cluster(request_timeout=CALL_DEADLINE_S).result().cluster_id
    except KafkaException:
        return None
    return str(found) if found else None


def topic_ids(cluster: Cluster, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of the topics that are there and may be described."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    found = {}
    futures = cluster.admin.describe_topics(TopicCollection(wanted), request_timeout=CALL_DEADLINE_S)
    for name, future in futures.items():
        try:
            found[name] = str(future.result().topic_id)
        except KafkaException:
            continue
    return found
