"""What is known of a mirror besides its records: replication, configuration, ACLs, internal topics, its resource.

Reads again, up to the shared deadline, what does not hold yet: MirrorMaker copies configuration and ACLs in intervals.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spark.clusters.acls import TopicAcl, TopicAcls, copies, topic_acls
from spark.clusters.asking import Answers, Fact
from spark.clusters.cluster import Cluster
from spark.clusters.resource_status import ResourceStatus, resource_status
from spark.clusters.topic_configs import Configuration, Difference, differences, topic_configs
from spark.clusters.topic_states import TopicState, topic_states
from spark.clusters.waiting import Deadline, Say
from spark.request.model import InternalTopic, Mirror, Request, may_exist

COMPACT = "compact"


@dataclass(frozen=True, kw_only=True)
class InternalState:
    """One internal topic; None for both parts if it does not exist, `refused` says why it is not known."""

    topic: InternalTopic
    state: TopicState | None = None
    cleanup_policy: str | None = None
    refused: str | None = None

    @property
    def faults(self) -> list[str]:
        """What is wrong with it; nothing for one that is not known, or absent and not required."""
        if self.refused is not None:
            return []
        if self.state is None:
            return ["does not exist"] if self.topic.required else []
        found = [f"partition {at} {fault}" for at, fault in self.state.faults(self.topic.replication_factor).items()]
        if self.cleanup_policy != COMPACT:
            found.append(f"has cleanup.policy {self.cleanup_policy}, not {COMPACT}")
        return found


@dataclass(kw_only=True)
class Metadata:
    """Topics by their name on their own side. What is None was not asked for."""

    states: Answers[TopicState] = field(default_factory=Answers)
    source_configs: Answers[Configuration] = field(default_factory=Answers)
    target_configs: Answers[Configuration] = field(default_factory=Answers)
    internal: list[InternalState] = field(default_factory=list)
    source_acls: TopicAcls | None = None
    target_acls: TopicAcls | None = None
    resource: ResourceStatus | None = None

    def config_differences(self, mirror: Mirror) -> list[Difference]:
        """Return what the copies' configuration does not have as MirrorMaker would have set it."""
        found = []
        for name, source in self.source_configs.found.items():
            there = mirror.target_topic(name)
            if there in self.target_configs.found:
                target = self.target_configs.found[there]
                found += differences(mirror.topic_configs, name, source, there, target)
        return found

    def missing_acls(self, mirror: Mirror) -> dict[TopicAcl, TopicAcl]:
        """Return the ACLs that MirrorMaker would have made on the target and that are not there, with their origin."""
        if self.source_acls is None or self.target_acls is None:
            return {}
        wanted = copies(mirror, self.source_acls.acls)
        return {copy: origin for copy, origin in wanted.items() if copy not in self.target_acls.acls}


def settled(
    request: Request,
    environment: Mapping[str, str],
    source: Cluster,
    target: Cluster,
    topics: Iterable[str],
    deadline: Deadline,
    say: Say,
) -> Metadata:
    """Return the metadata of the mirrored topics (named as at the source); waits until all of it is as it should be."""
    mirror = request.mirror
    reader = _Reader(request, environment, source, target)
    found = reader.read(sorted(topics))
    while (problem := _problem(found, mirror)) is not None and not deadline.over:
        say(f"waiting for the mirror's metadata: {problem}")
        deadline.pause()
        reader.again(found)
    return found


def resource_now(
    request: Request, environment: Mapping[str, str], before: ResourceStatus | None
) -> ResourceStatus | None:
    """Return the status of the mirror's resource after a wait that ended in vain; None without a resource.

    A fault that was seen before stands while Kubernetes is silent.
    """
    resource, names = request.mirror.resource, request.mirror.connectors or (request.mirror.source_connector,)
    if resource is None:
        return before
    status = resource_status(resource, names, environment)
    return before if status.silent is not None and before is not None and before.faults else status


@dataclass(frozen=True)
class _Reader:
    request: Request
    environment: Mapping[str, str]
    source: Cluster
    target: Cluster

    def read(self, topics: list[str]) -> Metadata:
        mirror = self.request.mirror
        found = Metadata()
        self._states(found, self._copies(topics))
        if mirror.topic_configs.judged:
            self._configs(found, topics)
        if mirror.sync_topic_acls:
            self._acls(found)
        found.internal = self._internal(mirror.internal_topics)
        self._resource(found)
        return found

    def again(self, found: Metadata) -> None:
        """Read again what does not hold, and nothing else."""
        mirror = self.request.mirror
        low = [name for name, state in found.states.found.items() if state.faults(mirror.replication_factor)]
        self._states(found, low)
        self._configs(found, sorted({one.topic for one in found.config_differences(mirror)}))
        if found.missing_acls(mirror):
            self._acls(found)
        read = {one.topic: one for one in self._internal(one.topic for one in found.internal if one.faults)}
        found.internal = [read.get(one.topic, one) for one in found.internal]
        if found.resource is not None and found.resource.faults:
            self._resource(found)

    def _copies(self, topics: list[str]) -> list[str]:
        """Names of the topics' copies, without those that are too long for Kafka to have them."""
        return [name for name in map(self.request.mirror.target_topic, topics) if may_exist(name)]

    def _states(self, found: Metadata, names: list[str]) -> None:
        _renew(found.states, topic_states(self.target, names), names)

    def _configs(self, found: Metadata, topics: list[str]) -> None:
        there = self._copies(topics)
        _renew(found.source_configs, topic_configs(self.source, topics), topics)
        _renew(found.target_configs, topic_configs(self.target, there), there)

    def _acls(self, found: Metadata) -> None:
        found.source_acls, found.target_acls = topic_acls(self.source), topic_acls(self.target)

    def _resource(self, found: Metadata) -> None:
        mirror = self.request.mirror
        if mirror.resource is not None:
            names = mirror.connectors or (mirror.source_connector,)
            found.resource = resource_status(mirror.resource, names, self.environment)

    def _internal(self, wanted: Iterable[InternalTopic]) -> list[InternalState]:
        asked = list(wanted)
        found: dict[InternalTopic, InternalState] = {}
        for cluster in (self.source, self.target):
            here = [topic for topic in asked if topic.location == cluster.side.role]
            states = topic_states(cluster, [topic.name for topic in here])
            configs = topic_configs(cluster, states.found)
            for topic in here:
                policy = configs.found.get(topic.name, {}).get("cleanup.policy")
                found[topic] = InternalState(
                    topic=topic,
                    state=states.found.get(topic.name),
                    cleanup_policy=policy.value if policy is not None else None,
                    refused=states.refused.get(topic.name) or configs.refused.get(topic.name),
                )
        return [found[topic] for topic in asked]


def _renew(known: Answers[Fact], read: Answers[Fact], names: Iterable[str]) -> None:
    for name in names:
        known.found.pop(name, None)
        known.refused.pop(name, None)
    known.found |= read.found
    known.refused |= read.refused


def _problem(found: Metadata, mirror: Mirror) -> str | None:
    """Return the first thing that does not hold yet; what cannot be read is not waited for."""
    for name, state in found.states.found.items():
        for partition, fault in state.faults(mirror.replication_factor).items():
            return f"{name}-{partition} {fault}"
    for one in found.config_differences(mirror):
        return f"{one.property} of topic {one.target_topic} is not that of its source"
    for acl in found.missing_acls(mirror):
        return f"no {acl}"
    for internal in found.internal:
        if internal.faults:
            return f"topic {internal.topic.name} {internal.faults[0]}"
    if found.resource is not None and found.resource.faults:
        return found.resource.faults[0]
    return None
