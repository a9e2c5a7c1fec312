"""What clusters report of a mirror besides records: replication, configuration, ACLs, internal topics, its resource.

MirrorMaker's rules for ACLs: org.apache.kafka.connect.mirror.MirrorSourceConnector (syncTopicAcls, shouldReplicateAcl,
targetAclBinding). It copies ACLs of literal names of mirrored topics only. It skips ALLOW WRITE, turns ALLOW ALL
into ALLOW READ, and never removes an ACL from the target.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import ResourcePatternType  # type: ignore[attr-defined]  # the package does not list what it re-exports

from contract.verification_request import InternalTopic, Mirror, Request, may_exist
from kafka.cluster import Cluster
from kafka.connector_status import ResourceStatus, resource_status
from kafka.errors import Answers, ClusterError, Fact, denial, reason
from kafka.mirror_position import Deadline, Log
from kafka.topic_metadata import Configuration, Difference, TopicState, differences, topic_configs, topic_states
from kafka.topic_writers import BrokerRights, read_rights, topic_rules


@dataclass(frozen=True, order=True)
class TopicAcl:
    """One ACL of a literal topic name; operation and permission as Kafka names them (READ, ALLOW)."""

    topic: str
    principal: str
    operation: str
    permission: str
    host: str

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} on topic {self.topic} for {self.principal} from {self.host}"


@dataclass(frozen=True, kw_only=True)
class TopicAcls:
    """The ACLs of one cluster; `refused` says why they are not known."""

    acls: frozenset[TopicAcl] = frozenset()
    refused: str | None = None


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
    """Topics by their name on their own side. What is None was not asked for.

    `standby_rights` are those of the side that is not active.
    """

    states: Answers[TopicState] = field(default_factory=Answers)
    source_configs: Answers[Configuration] = field(default_factory=Answers)
    target_configs: Answers[Configuration] = field(default_factory=Answers)
    internal: list[InternalState] = field(default_factory=list)
    source_acls: TopicAcls | None = None
    target_acls: TopicAcls | None = None
    standby_rights: BrokerRights | None = None
    resource: ResourceStatus | None = None

    def config_differences(self, mirror: Mirror) -> list[Difference]:
        """Return what the remote topics' configuration does not have as MirrorMaker would have set it."""
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
        wanted = expected_acls(mirror, self.source_acls.acls)
        return {copy: origin for copy, origin in wanted.items() if copy not in self.target_acls.acls}


def wait_until_synced(
    request: Request,
    environment: Mapping[str, str],
    source: Cluster,
    target: Cluster,
    topics: Iterable[str],
    deadline: Deadline,
    log: Log,
) -> Metadata:
    """Return the metadata of the mirrored topics (by source names); waits until the mirror has synced all of it."""
    mirror = request.mirror
    reader = _Reader(request, environment, source, target)
    found = reader.read(sorted(topics))
    while (problem := _problem(found, mirror)) is not None and not deadline.over:
        log(f"waiting for the mirror's metadata: {problem}")
        deadline.pause()
        reader.again(found)
    return found


def resource_now(
    request: Request, environment: Mapping[str, str], before: ResourceStatus | None
) -> ResourceStatus | None:
    """Return the status of the mirror's resource after a wait that ended in vain; None without a resource.

    A fault that was seen before stands while Kubernetes is silent.
    """
    resource, names = request.mirror.resource, request.mirror.connector_names
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
        self._states(found, self._remote_topics(topics))
        if mirror.topic_configs.judged:
            self._configs(found, topics)
        if mirror.sync_topic_acls:
            self._acls(found)
        if mirror.active is not None:
            found.standby_rights = read_rights(self.target if mirror.active == "source" else self.source)
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

    def _remote_topics(self, topics: list[str]) -> list[str]:
        """Names of the remote topics, without those that are too long for Kafka to have them."""
        return [name for name in map(self.request.mirror.target_topic, topics) if may_exist(name)]

    def _states(self, found: Metadata, names: list[str]) -> None:
        _renew(found.states, topic_states(self.target, names), names)

    def _configs(self, found: Metadata, topics: list[str]) -> None:
        there = self._remote_topics(topics)
        _renew(found.source_configs, topic_configs(self.source, topics), topics)
        _renew(found.target_configs, topic_configs(self.target, there), there)

    def _acls(self, found: Metadata) -> None:
        found.source_acls, found.target_acls = topic_acls(self.source), topic_acls(self.target)

    def _resource(self, found: Metadata) -> None:
        mirror = self.request.mirror
        if mirror.resource is not None:
            names = mirror.connector_names
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


def topic_acls(cluster: Cluster) -> TopicAcls:
    """Return the ACLs of all literal topic names; needs DESCRIBE on the cluster."""
    what, needs = "describe ACLs", "DESCRIBE on the cluster"
    try:
        bindings: list[Any] | None = topic_rules(cluster, ResourcePatternType.LITERAL)
    except KafkaException as error:
        return TopicAcls(refused=reason(cluster.side, what, needs, error))
    except ClusterError as error:
        return TopicAcls(refused=str(error))
    if bindings is None:
        return TopicAcls(refused=denial(cluster.side, what, needs))
    return TopicAcls(
        acls=frozenset(
            TopicAcl(one.name, one.principal, one.operation.name, one.permission_type.name, one.host)
            for one in bindings
        )
    )


def expected_acls(mirror: Mirror, source: Iterable[TopicAcl]) -> dict[TopicAcl, TopicAcl]:
    """Return the ACLs that MirrorMaker makes on the target, each with the one at the source that it comes from."""
    found: dict[TopicAcl, TopicAcl] = {}
    for one in sorted(source):
        if not mirror.carries_topic(one.topic) or (one.permission, one.operation) == ("ALLOW", "WRITE"):
            continue
        operation = "READ" if (one.permission, one.operation) == ("ALLOW", "ALL") else one.operation
        found[replace(one, topic=mirror.target_topic(one.topic), operation=operation)] = one
    return found
