"""A snapshot of a pair: both clusters, the mirror, how far it is behind, and what each group would read again.

Owns what is asked and that all is asked side by side, each with a deadline. Changes nothing, joins no group.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from contract.fields import VerificationError
from contract.stack_outputs import ClusterOutputs
from contract.verification_request import Resource
from kafka import connect_rest, mirror_position
from kafka.cluster import Cluster
from kafka.connect_rest import ConnectorState
from kafka.errors import ClusterError
from kafka.lag import LagMeter, Measure
from kafka.resource_status import ResourceStatus, resource_status
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.inspection.group_status import GroupStatus, groups_on_target, mirrored_groups
from ops.inspection.latest_verification import latest_proof
from ops.pulumi.stack import stack_outputs, typed_outputs
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import FAILBACK_SUFFIX, MirrorContext
from ops.recovery.operation import Progress, of_journal

Say = Callable[[str], None]
ANSWER_WITHIN_S = 8.0
RECOVERY = "recovery"
"""Under which `unknown` says why the journal could not be read."""
_CLUSTER_KINDS = {"kafka.strimzi.io": "Kafka", "eventstreams.ibm.com": "EventStreams"}


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """One cluster: its name and alias, why it cannot be used (None: it can), and its custom resource, if it has one."""

    role: str
    name: str
    alias: str
    problem: str | None
    resource: ResourceStatus | None = None


@dataclass(frozen=True, kw_only=True)
class MirrorSnapshot:
    """What one snapshot holds. What is None could not be learned; `unknown` says why, by what it is about.

    `recovery` is a failover or failback that has not finished, None if there is none.
    """

    pair: MirrorContext
    source: ClusterStatus
    target: ClusterStatus
    mirror: ResourceStatus | None
    connectors: tuple[ConnectorState, ...] | None
    lag: Measure | None
    groups: tuple[GroupStatus, ...] | None
    recovery: Progress | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)
    at: float = field(default_factory=time.time)

    @property
    def source_alive(self) -> bool:
        """Whether the source answers its user."""
        return self.source.problem is None

    @property
    def target_alive(self) -> bool:
        """Whether the target answers its user."""
        return self.target.problem is None

    @property
    def faults(self) -> list[str]:
        """What keeps the mirror from working, in words; nothing on a healthy pair."""
        found = [f"{side.role} {side.name}: {side.problem}" for side in (self.source, self.target) if side.problem]
        for side in (self.source, self.target):
            if side.resource is not None:
                found += side.resource.faults
        if self.mirror is not None and self.pair.state == "running":
            found += [fault for fault in self.mirror.faults if "is not Ready" in fault]
        if self.pair.state == "running":
            found += [fault for one in self.connectors or () for fault in one.faults]
        return list(dict.fromkeys(found))


def collect(pair: MirrorContext, environment: Mapping[str, str], say: Say = lambda _: None) -> MirrorSnapshot:
    """Take a snapshot now. If a cluster is unreachable, its status carries the error; no exception is raised."""
    with ThreadPoolExecutor(7) as pool:
        resources = _resources(pool, pair, environment)
        source, target = pair.source(), pair.target()
        sides = {"source": source, "target": target}
        asked = {role: pool.submit(side.connect, ANSWER_WITHIN_S) for role, side in sides.items()}
        states, journal = pool.submit(_connectors, pair), pool.submit(_recovery, pair, environment)
        problems = {role: _problem(one) for role, one in asked.items()}
        unknown: dict[str, str] = {}
        lag, groups = _measured(pair, source, target, problems, unknown, say)
        recovery, why = journal.result()
        if why is not None:
            unknown[RECOVERY] = why
        return MirrorSnapshot(
            pair=replace(pair, proof=latest_proof(pair)),
            source=_side(pair, "source", problems["source"], resources["source"]),
            target=_side(pair, "target", problems["target"], resources["target"]),
            mirror=resources["mirror"].result(),
            connectors=_states(states.result(), resources["mirror"].result()),
            lag=lag,
            groups=groups,
            recovery=recovery,
            unknown=unknown,
        )


def _recovery(pair: MirrorContext, environment: Mapping[str, str]) -> tuple[Progress | None, str | None]:
    """The operation that has not finished, and why that is unknown."""
    resource = pair.request.mirror.resource
    if resource is None:
        return None, None
    try:
        journal = Journal.load(
            resource.namespace, pair.mirror.removesuffix(FAILBACK_SUFFIX), environment, resource.context
        )
    except OpsError as error:
        return None, str(error)
    return of_journal(journal, pair.stack, pair.project), None


def _resources(
    pool: ThreadPoolExecutor, pair: MirrorContext, environment: Mapping[str, str]
) -> dict[str, "Future[ResourceStatus | None]"]:
    return {
        "mirror": pool.submit(_mirror_status, pair, environment),
        "target": pool.submit(_cluster_status, pair, pair.cluster, environment),
        "source": pool.submit(_source_status, pair, environment),
    }


def _mirror_status(pair: MirrorContext, environment: Mapping[str, str]) -> ResourceStatus | None:
    mirror = pair.request.mirror
    return resource_status(mirror.resource, mirror.connector_names, environment) if mirror.resource else None


def _source_status(pair: MirrorContext, environment: Mapping[str, str]) -> ResourceStatus | None:
    if pair.source_stack is None:
        return None
    try:
        outputs = typed_outputs(
            pair.source_stack, stack_outputs(pair.source_stack, environment, pair.project, secrets=False)
        )
    except OpsError:
        return None
    return _cluster_status(pair, outputs.cluster, environment)


def _cluster_status(
    pair: MirrorContext, cluster: ClusterOutputs, environment: Mapping[str, str]
) -> ResourceStatus | None:
    mirror = pair.request.mirror.resource
    kind = _CLUSTER_KINDS.get(mirror.api_version.partition("/")[0]) if mirror else None
    if mirror is None or kind is None or not cluster.namespace:
        return None
    asked = Resource(
        api_version=mirror.api_version,
        kind=kind,
        namespace=cluster.namespace,
        name=str(cluster.name),
        context=cluster.context,
    )
    return resource_status(asked, (), environment)


def _connectors(pair: MirrorContext) -> list[ConnectorState] | None:
    mirror = pair.request.mirror
    if mirror.connect_url is None:
        return None
    return connect_rest.connector_states(mirror.connect_url, mirror.connector_names)


def _states(
    reported: list[ConnectorState] | None, resource: ResourceStatus | None
) -> tuple[ConnectorState, ...] | None:
    """Connect's own answer, else what the operator wrote into the resource."""
    if reported is not None:
        return tuple(reported)
    return resource.connectors or None if resource is not None else None


def _side(
    pair: MirrorContext, role: str, problem: str | None, resource: "Future[ResourceStatus | None]"
) -> ClusterStatus:
    alias = pair.request.source.alias if role == "source" else pair.request.target.alias
    return ClusterStatus(role=role, name=pair.name_of(role), alias=alias, problem=problem, resource=resource.result())


def _problem(asked: "Future[None]") -> str | None:
    try:
        asked.result()
    except ClusterError as error:
        return str(error)
    return None


def _measured(
    pair: MirrorContext,
    source: Cluster,
    target: Cluster,
    problems: Mapping[str, str | None],
    unknown: dict[str, str],
    say: Say,
) -> tuple[Measure | None, tuple[GroupStatus, ...] | None]:
    """The lag and the groups, as far as the sides that answer tell them."""
    if problems["target"] is not None:
        unknown["lag"] = unknown["groups"] = f"the target does not answer ({problems['target']})"
        return None, None
    try:
        if problems["source"] is not None:
            unknown["lag"] = "the source does not answer"
            return None, groups_on_target(pair, target)
        topics = source.topics(pair.request.mirror.carries_topic, pair.request.mirror.named_topics)
        topic_partitions = [
            TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas
        ]
        lag = _lag(pair, source, target, topic_partitions, unknown, say)
        return lag, mirrored_groups(pair, source, target, topic_partitions, lag, unknown)
    except VerificationError as error:
        unknown.setdefault("lag", str(error))
        unknown.setdefault("groups", str(error))
        return None, None


def _lag(
    pair: MirrorContext,
    source: Cluster,
    target: Cluster,
    topic_partitions: list[TopicPartition],
    unknown: dict[str, str],
    say: Say,
) -> Measure | None:
    reader, why = mirror_position.open_reader(target, pair.request, say)
    if reader is None:
        unknown["lag"] = why
        return None
    try:
        meter = LagMeter(source, pair.request, reader, topic_partitions)
        meter.at_cut()
        return meter.lag.at_cut
    finally:
        reader.close()
