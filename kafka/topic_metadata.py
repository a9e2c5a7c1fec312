"""What a cluster reports of topics: configuration, replicas and leaders, ids, and which ones it hides from a user.

A topic that was created again has another id.

MirrorMaker's rules for configuration: org.apache.kafka.connect.mirror.MirrorSourceConnector (targetConfig,
incrementalAlterConfigs) and DefaultConfigPropertyFilter, the same in Kafka 4.2 and 4.3.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigEntry, ConfigResource, ConfigSource, ResourceType  # type: ignore[attr-defined]  # the package does not list what it re-exports

from contract.java_patterns import matches
from contract.verification_request import TOPIC_LENGTH_MAX, Mirror, TopicConfigs
from kafka.checkpoints import OffsetTranslation
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.errors import DENIED, UNANSWERED, Answers, code_of, reason
from kafka.topic_partition import TopicPartition, topic_id

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
    """One property that a remote topic does not have as MirrorMaker would have set it."""

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
    """Return the properties in which a remote topic is not as MirrorMaker would have made it, by name.

    MirrorMaker sets on it what the source's topic or its brokers' dynamic configuration set, and removes what
    is default at the source (sets it with `use.defaults.from: source`). It leaves alone what is excluded, read-only,
    sensitive, or set in the source's broker files.
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
    """Return the id of the cluster, None if the brokers do not report it."""
    try:
        found = cluster.admin.describe_cluster(request_timeout=CALL_DEADLINE_S).result().cluster_id
    except KafkaException:
        return None
    return str(found) if found else None


def topic_ids(cluster: Cluster, names: Iterable[str]) -> dict[str, str | None]:
    """Return the ids of the topics that are there and may be described; None where the brokers give them none.

    Raises ClusterError if the cluster does not answer.
    """
    wanted = sorted(set(names))
    if not wanted:
        return {}
    found = {}
    futures = cluster.admin.describe_topics(TopicCollection(wanted), request_timeout=cluster.call_within_s)
    for name, future in futures.items():
        try:
            found[name] = topic_id(future.result())
        except KafkaException as error:
            if code_of(error) in UNANSWERED:
                cluster.refusals.call(f"describe topic {name}", error, None)
    return found


_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{TOPIC_LENGTH_MAX}}}")
RIGHTS = ("Describe", "Read", "DescribeConfigs")


@dataclass(frozen=True)
class HiddenTopics:
    """Topics that the source's user may not describe, each with who names it, and what to do about them."""

    named_by: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def named_elsewhere(
    mirror: Mirror,
    seen: Iterable[str],
    positions: Mapping[TopicPartition, int] | None,
    translation: OffsetTranslation,
    on_target: Iterable[str],
) -> dict[str, str]:
    """Return topics that the mirror carries and the source does not show, each with who names it.

    Args:
        mirror: its patterns decide what it carries.
        seen: topics that the source shows.
        positions: offsets that the source connector has committed; None if they are not known.
        translation: checkpoints, by topics of the target, and offset syncs, by topics of the source.
        on_target: all topics that the target shows.

    With identity naming a remote topic of the target cannot be distinguished from a local one. Its name counts only
    where no positions are known, which would name each topic that the mirror has copied from.
    """
    prefix = mirror.target_topic("")
    copies = on_target if prefix or not positions else ()
    kept = {topic.name for topic in mirror.internal_topics} | {mirror.checkpoints_name, mirror.offset_storage_topic}
    named: dict[str, list[str]] = {
        "the mirror's offsets": [topic for topic, _ in positions or ()],
        "the mirror's offset syncs": [topic for topic, _ in translation.syncs or ()],
        "a checkpoint": [
            topic.removeprefix(prefix) for _, topic, _ in translation.checkpoints if topic.startswith(prefix)
        ],
        "a topic of the target": [
            topic.removeprefix(prefix) for topic in copies if topic.startswith(prefix) and topic not in kept
        ],
    }
    known = set(seen)
    found: dict[str, str] = {}
    for who, topics in named.items():
        for topic in sorted(set(topics) - known):
            if topic not in found and _NAME.fullmatch(topic) and mirror.carries_topic(topic):
                found[topic] = who
    return found


def hidden_topics(source: Cluster, named: Mapping[str, str]) -> HiddenTopics:
    """Return those of the named topics that the source's user may not describe; raises ClusterError.

    One that the source does not have was deleted. One that it shows by now was made after the cut.
    """
    found: dict[str, str] = {}
    if not named:
        return HiddenTopics()
    asked = TopicCollection(sorted(named))
    for name, future in source.admin.describe_topics(asked, request_timeout=CALL_DEADLINE_S).items():
        try:
            future.result()
        except KafkaException as error:
            if code_of(error) in DENIED:
                found[name] = named[name]
            elif code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                source.refusals.call(f"describe topic {name}", error, None)
    return HiddenTopics(found, _reason(source, found)) if found else HiddenTopics()


def _reason(source: Cluster, hidden: Mapping[str, str]) -> str:
    denial = source.refusals.denial([(right, f"topic {name}") for name in sorted(hidden) for right in RIGHTS])
    who = " and ".join(sorted(set(hidden.values())))
    return f"named by {who}, but not verified: {denial} If it was deleted, name it in topicsExclude."
