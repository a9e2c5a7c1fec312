"""A snapshot of a pair: both clusters, the mirror, how far it is behind, and what each group would read again.

Owns which probes it takes and their deadlines. It is read-only: it joins no consumer group and commits no offset.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from contract.fields import VerificationError
from contract.stack_outputs import ClusterOutputs
from contract.verification_request import Resource
from kafka import connector_status, mirror_position
from kafka.cluster import Cluster
from kafka.connector_status import ConnectorState, ResourceStatus, resource_status
from kafka.lag import LagMeter, Measure
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.inspection.group_status import GroupStatus, groups_on_target, mirrored_groups
from ops.inspection.latest_verification import latest_proof
from ops.inspection.probes import run_probes
from ops.pulumi.stack import stack_outputs, typed_outputs
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import FAILBACK_SUFFIX, MirrorContext
from ops.recovery.operation import Progress, of_journal
from settings.platform import CLUSTER_KINDS

Log = Callable[[str], None]
ANSWER_WITHIN_S = 8.0
CONNECTED_WITHIN_S = 15.0
MEASURED_WITHIN_S = 120.0
OBSERVED_WITHIN_S = CONNECTED_WITHIN_S + MEASURED_WITHIN_S + 15.0
RECOVERY = "recovery"
"""Key of `unknown` for the reason why the journal could not be read."""
_CLUSTERS, _SOURCE_RESOURCE = "clusters", "resource of the source"


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
    """One observation of a mirror. What is None is unknown; `unknown` has the reason, by what it is about.

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


@dataclass(frozen=True, kw_only=True)
class _Clusters:
    """What both clusters report; `problems` has why one cannot be used, by its role."""

    problems: Mapping[str, str]
    lag: Measure | None = None
    groups: tuple[GroupStatus, ...] | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)


def collect(pair: MirrorContext, environment: Mapping[str, str], log: Log = lambda _: None) -> MirrorSnapshot:
    """Take a snapshot now. If a cluster is unreachable, its status carries the error; no exception is raised."""
    probes: dict[str, Callable[[], Any]] = {
        _CLUSTERS: partial(_observe_clusters, pair, log),
        "resource of the mirror": partial(_mirror_status, pair, environment),
        "resource of the target": partial(_cluster_status, pair, pair.cluster, environment),
        _SOURCE_RESOURCE: partial(_source_status, pair, environment),
        "connectors": partial(_connectors, pair),
        RECOVERY: partial(_recovery, pair, environment),
    }
    results = run_probes(probes, OBSERVED_WITHIN_S, debug=True)
    found = results.found
    clusters = found.get(_CLUSTERS) or _unobserved(results.problems[_CLUSTERS])
    recovery, why = found.get(RECOVERY, (None, None))
    mirror = found.get("resource of the mirror")
    # The source answers by itself, and its resource may be in another Kubernetes cluster.
    unknown = {name: text for name, text in results.problems.items() if name not in (_CLUSTERS, _SOURCE_RESOURCE)}
    resources = {"source": found.get(_SOURCE_RESOURCE), "target": found.get("resource of the target")}
    return MirrorSnapshot(
        pair=replace(pair, proof=latest_proof(pair)),
        source=_cluster(pair, "source", clusters.problems, resources),
        target=_cluster(pair, "target", clusters.problems, resources),
        mirror=mirror,
        connectors=_states(found.get("connectors"), mirror),
        lag=clusters.lag,
        groups=clusters.groups,
        recovery=recovery,
        unknown={**clusters.unknown, **({} if why is None else {RECOVERY: why}), **unknown},
    )


def _recovery(pair: MirrorContext, environment: Mapping[str, str]) -> tuple[Progress | None, str | None]:
    """The operation that has not finished, and why that is unknown."""
    resource = pair.request.mirror.resource
    if resource is None:
        return None, None
    try:
        mirror = pair.mirror.removesuffix(FAILBACK_SUFFIX)
        journal = Journal.load(resource.namespace, mirror, environment, resource.context, whole=False)
        holder = journal.holder
    except OpsError as error:
        return None, str(error)
    return of_journal(journal, pair.stack, pair.project, holder), None


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
    kind = CLUSTER_KINDS.get(mirror.api_version.partition("/")[0]) if mirror else None
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
    return connector_status.connector_states(mirror.connect_url, mirror.connector_names)


def _states(
    reported: list[ConnectorState] | None, resource: ResourceStatus | None
) -> tuple[ConnectorState, ...] | None:
    """Connect's own answer, else what the operator wrote into the resource."""
    if reported is not None:
        return tuple(reported)
    return resource.connectors or None if resource is not None else None


def _cluster(
    pair: MirrorContext, role: str, problems: Mapping[str, str], resources: Mapping[str, ResourceStatus | None]
) -> ClusterStatus:
    alias = pair.request.source.alias if role == "source" else pair.request.target.alias
    return ClusterStatus(
        role=role, name=pair.name_of(role), alias=alias, problem=problems.get(role), resource=resources[role]
    )


def _unobserved(why: str) -> _Clusters:
    return _Clusters(problems={"source": why, "target": why}, unknown={"lag": why, "groups": why})


def _observe_clusters(pair: MirrorContext, log: Log) -> _Clusters:
    """Return what both clusters report, as far as they answer."""
    source, target = pair.source(), pair.target()
    connections = {side.side.role: partial(side.connect, ANSWER_WITHIN_S) for side in (source, target)}
    problems = run_probes(connections, CONNECTED_WITHIN_S, debug=True).problems
    if "target" in problems:
        silent = f"the target does not answer ({problems['target']})"
        return _Clusters(problems=problems, unknown={"lag": silent, "groups": silent})
    measure = partial(_measure, pair, source, target, log, source_answers="source" not in problems)
    measured = run_probes({"lag and groups": measure}, MEASURED_WITHIN_S, debug=True)
    if (why := measured.problems.get("lag and groups")) is not None:
        return _Clusters(problems=problems, unknown={"lag": why, "groups": why})
    lag, groups, unknown = measured.found["lag and groups"]
    return _Clusters(problems=problems, lag=lag, groups=groups, unknown=unknown)


def _measure(
    pair: MirrorContext, source: Cluster, target: Cluster, log: Log, *, source_answers: bool
) -> tuple[Measure | None, tuple[GroupStatus, ...] | None, dict[str, str]]:
    """Return the lag, the groups, and why either is unknown."""
    unknown: dict[str, str] = {}
    try:
        if not source_answers:
            unknown["lag"] = "the source does not answer"
            return None, groups_on_target(pair, target), unknown
        topics = source.topics(pair.request.mirror.carries_topic, pair.request.mirror.named_topics)
        topic_partitions = [
            TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas
        ]
        lag = _lag(pair, source, target, topic_partitions, unknown, log)
        return lag, mirrored_groups(pair, source, target, topic_partitions, lag, unknown), unknown
    except VerificationError as error:
        unknown.setdefault("lag", str(error))
        unknown.setdefault("groups", str(error))
        return None, None, unknown


def _lag(
    pair: MirrorContext,
    source: Cluster,
    target: Cluster,
    topic_partitions: list[TopicPartition],
    unknown: dict[str, str],
    log: Log,
) -> Measure | None:
    reader, why = mirror_position.open_reader(target, pair.request, log)
    if reader is None:
        unknown["lag"] = why
        return None
    try:
        meter = LagMeter(source, pair.request, reader, topic_partitions)
        meter.at_cut()
        return meter.lag.at_cut
    finally:
        reader.close()
