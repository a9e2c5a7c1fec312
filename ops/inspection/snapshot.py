"""A snapshot of a pair: both clusters, the mirror, how far it is behind, and what each group would read again.

Owns its probes and their deadline: commands run those that they render, and may add some of their own. It is read-only:
it joins no consumer group and commits no offset.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from contract.fields import VerificationError
from contract.stack_outputs import ClusterOutputs
from contract.verification_request import Resource
from kafka import mirror_position
from kafka.cluster import Cluster
from kafka.connector_status import ConnectorState, ResourceStatus, resource_status
from kafka.lag import LagMeter, Measure
from kafka.retention import UntilDeletion
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.inspection import follower_status, mirror_at_rest, retention
from ops.inspection.follower_status import FollowerStatus
from ops.inspection.group_status import GroupStatus, groups_on_target, mirrored_groups
from ops.inspection.probes import ANSWER_WITHIN_S, MirrorReadings, ProbeResults, once, run_probes
from ops.pulumi.stack import stack_outputs, typed_outputs
from ops.recovery import break_glass, fencing, target_fence
from ops.recovery.fencing import FenceStatus
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import FAILBACK_SUFFIX, MirrorContext, latest_proof
from ops.recovery.operation import Progress, of_journal
from ops.recovery.target_fence import TargetFenceStatus
from settings.platform import CLUSTER_KINDS

Log = Callable[[str], None]
Probes = Mapping[str, Callable[[], Any]]
OBSERVED_WITHIN_S = 150.0
"""For all probes together, but for those that have more to read where there are more groups."""
READ_WITHIN_S = 600.0
"""For lag and groups, each part of which ends by itself if nothing comes: a million positions take minutes."""
SOURCE, TARGET, LAG_AND_GROUPS = "connection to the source", "connection to the target", "lag and groups"
RETENTION = "retention of the source"
"""Also the key of `unknown` for the reason why nobody knows what it deletes before it is copied."""
RESOURCE, SOURCE_RESOURCE, TARGET_RESOURCE = (
    "resource of the mirror",
    "resource of the source",
    "resource of the target",
)
CONNECTORS = "connectors"
ACTIVE_SIDE, RECOVERY = "active side", "recovery"
"""Also the keys of `unknown` for the reasons why the break-glass copy's label, or the journal, could not be read."""
FENCE, TARGET_FENCE = "fence of the source", "fence of the target"
FOLLOWER = "follower"
"""Also the key of `unknown` for the reason why nobody knows whether groups are followed."""


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

    `connect_problem` is the reason why Connect does not report the connectors; the resource's status may. `recovery` is
    a failover or failback that has not finished, None if there is none. `active_now` is the active side by what is
    there, which Pulumi's outputs do not have after a break-glass failover. `fence` is None if the source cannot be
    fenced, or need not be and its users cannot be read; `target_fence` unless the target is active and can be fenced.
    `until_deletion` are the partitions of which retention deletes records, None also while the target is active.
    `follower` is None unless there is to be one. `more` are the results of the probes that the command has added.
    """

    pair: MirrorContext
    source: ClusterStatus
    target: ClusterStatus
    mirror: ResourceStatus | None
    connectors: tuple[ConnectorState, ...] | None
    lag: Measure | None
    groups: tuple[GroupStatus, ...] | None
    connect_problem: str | None = None
    recovery: Progress | None = None
    active_now: str | None = None
    fence: FenceStatus | None = None
    until_deletion: tuple[UntilDeletion, ...] | None = None
    target_fence: TargetFenceStatus | None = None
    follower: FollowerStatus | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)
    at: float = field(default_factory=time.time)
    more: ProbeResults = field(default_factory=lambda: ProbeResults(found={}, problems={}))

    @property
    def source_alive(self) -> bool:
        """Whether the source answers its user."""
        return self.source.problem is None

    @property
    def target_alive(self) -> bool:
        """Whether the target answers its user."""
        return self.target.problem is None

    @property
    def fence_unknown(self) -> str | None:
        """Why nobody knows whether the source is fenced although it must be; None if it is known.

        Nor if the source does not answer: that is reported by itself, and nobody writes there.
        """
        return self.fence.unread if self.fence is not None and self.source_alive else None

    @property
    def target_fenced(self) -> str | None:
        """Whom the active target refuses because of a failback, in words; None if it refuses nobody."""
        return self.target_fence.evidence if self.target_fence is not None else None

    @property
    def target_fence_unknown(self) -> str | None:
        """Why nobody knows whether the active target refuses applications; None if it is known."""
        return self.target_fence.unread if self.target_fence is not None else None

    @property
    def not_followed(self) -> str | None:
        """Why groups are not followed although the mirror is to have a follower; None if they are."""
        return self.follower.problem if self.follower is not None else None

    @property
    def runs_at_rest(self) -> str | None:
        """What runs of the mirror although a failover has stopped it, in words; None if nothing does."""
        return mirror_at_rest.runs_at_rest(self.pair, self.active_now, self.recovery, self.connectors, self.mirror)

    @property
    def fence_issue(self) -> tuple[str, str] | None:
        """What is wrong with the fence of the source: the doctor's name for it, and the evidence.

        None if nobody knows which side is active or what is under way: the remedy may open the side that must be shut.
        """
        if self.fence is None or ACTIVE_SIDE in self.unknown or RECOVERY in self.unknown:
            return None
        recovers = self.recovery is not None and self.recovery.problem is not None
        return self.fence.issue(self.active_now or self.pair.active, recovers=recovers)

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
        if self.active_now not in (None, self.pair.active) and self.recovery is None:
            found.append(
                f"Pulumi's state is behind: {self.pair.active} is active by its outputs, {self.active_now} by what is "
                f"there. Run `{break_glass.reconcile_command(self.pair.stack, self.pair.project)}`"
            )
        fence = self.fence_issue[1] if self.fence_issue else None
        for issue in (fence, self.runs_at_rest, self.target_fenced, self.not_followed):
            if issue is not None:
                found.append(f"{issue}: `python -m ops doctor --stack {self.pair.stack}` has the remedy")
        return list(dict.fromkeys(found))


def _no_more(_: MirrorReadings) -> Probes:
    return {}


def collect(
    pair: MirrorContext,
    environment: Mapping[str, str],
    log: Log = lambda _: None,
    *,
    parts: Collection[str] | None = None,
    more: Callable[[MirrorReadings], Probes] = _no_more,
    debug: bool = True,
    source_within_s: float = ANSWER_WITHIN_S,
) -> MirrorSnapshot:
    """Take a snapshot now. If a cluster is unreachable, its status carries the error; no exception is raised.

    Args:
        pair: the mirror.
        environment: for the kubeconfig, and for the programs that are started.
        log: gets a line for what is read in another way than usual.
        parts: names of the probes that the command renders, such as LAG_AND_GROUPS; None for all of them.
        more: returns probes of the command, by names of its own. They run at the same time, under the same deadline,
            and share the readings of the mirror: nothing is read twice.
        debug: whether an unforeseen error is raised; else only its type is reported.
        source_within_s: how long the source may take to answer, in seconds.
    """
    readings = MirrorReadings(pair, environment, debug=debug, source_within_s=source_within_s)
    lag_reading = once(partial(_lag_reading, readings, log))
    readings.lag = lambda: lag_reading()[0]
    all_of_them: dict[str, Callable[[], Any]] = {
        SOURCE: readings.source.connected,
        TARGET: readings.target.connected,
        LAG_AND_GROUPS: partial(_measure, readings, lag_reading),
        RETENTION: partial(_until_deletion, readings, lag_reading),
        RESOURCE: readings.resource,
        TARGET_RESOURCE: partial(_cluster_status, pair, pair.cluster, environment),
        SOURCE_RESOURCE: partial(_source_status, pair, environment),
        CONNECTORS: partial(_connectors, readings),
        RECOVERY: partial(_recovery, pair, environment),
        ACTIVE_SIDE: partial(break_glass.active_side, pair, environment),
        FENCE: partial(fencing.observe, pair, environment),
        TARGET_FENCE: partial(target_fence.observe, pair, environment),
        FOLLOWER: partial(follower_status.observe, pair, environment),
    }
    own = {name: probe for name, probe in all_of_them.items() if parts is None or name in parts}
    added = more(readings)
    longer = {LAG_AND_GROUPS: READ_WITHIN_S, RETENTION: READ_WITHIN_S}
    results = run_probes({**own, **added}, OBSERVED_WITHIN_S, debug=debug, longer=longer)
    found, problems = results.found, {name: why for name, why in results.problems.items() if name in own}
    lag, groups, unmeasured = found.get(LAG_AND_GROUPS, (None, None, {}))
    if LAG_AND_GROUPS in problems:
        unmeasured = dict.fromkeys(("lag", "groups"), problems[LAG_AND_GROUPS])
    until_deletion, unbounded = found.get(RETENTION, (None, problems.get(RETENTION)))
    if unbounded is not None and (lag is not None or LAG_AND_GROUPS not in own):  # else the lag's reason says it
        unmeasured = {**unmeasured, RETENTION: unbounded}
    follower: FollowerStatus | None = found.get(FOLLOWER)
    if follower is not None and follower.unread is not None:
        unmeasured = {**unmeasured, FOLLOWER: follower.unread}
    recovery, why = found.get(RECOVERY, (None, None))
    connectors, connect_problem = found.get(CONNECTORS, (None, None))
    mirror = found.get(RESOURCE)
    # The source answers by itself, and its resource may be in another Kubernetes cluster.
    reported_elsewhere = (SOURCE, TARGET, LAG_AND_GROUPS, RETENTION, SOURCE_RESOURCE, FENCE, TARGET_FENCE)
    unknown = {name: text for name, text in problems.items() if name not in reported_elsewhere}
    return MirrorSnapshot(
        pair=replace(pair, proof=latest_proof(pair)),
        source=_cluster(pair, "source", problems.get(SOURCE), found.get(SOURCE_RESOURCE)),
        target=_cluster(pair, "target", problems.get(TARGET), found.get(TARGET_RESOURCE)),
        mirror=mirror,
        connectors=_states(connectors, mirror),
        lag=lag,
        groups=groups,
        connect_problem=connect_problem,
        recovery=recovery,
        active_now=found.get(ACTIVE_SIDE),
        fence=found.get(FENCE) or fencing.unread(pair, problems.get(FENCE)),
        until_deletion=until_deletion,
        target_fence=found.get(TARGET_FENCE) or target_fence.unread(pair, problems.get(TARGET_FENCE)),
        follower=follower,
        unknown={**unmeasured, **({} if why is None else {RECOVERY: why}), **unknown},
        more=ProbeResults(
            found={name: one for name, one in found.items() if name in added},
            problems={name: why for name, why in results.problems.items() if name in added},
        ),
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


def _source_status(pair: MirrorContext, environment: Mapping[str, str]) -> ResourceStatus | None:
    if pair.source_stack is None:
        return None
    if pair.source_cluster is not None:
        return _cluster_status(pair, pair.source_cluster, environment)
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


def _connectors(readings: MirrorReadings) -> tuple[list[ConnectorState] | None, str | None]:
    """Return what Connect reports, and why it reports nothing."""
    try:
        return readings.connectors(), None
    except OpsError as error:
        return None, str(error)


def _states(
    reported: list[ConnectorState] | None, resource: ResourceStatus | None
) -> tuple[ConnectorState, ...] | None:
    """Return what Connect reports, else what the operator has written into the resource."""
    if reported is not None:
        return tuple(reported)
    return resource.connectors or None if resource is not None else None


def _cluster(pair: MirrorContext, role: str, problem: str | None, resource: ResourceStatus | None) -> ClusterStatus:
    alias = pair.request.source.alias if role == "source" else pair.request.target.alias
    return ClusterStatus(role=role, name=pair.name_of(role), alias=alias, problem=problem, resource=resource)


LagReading = tuple[Measure | None, list[TopicPartition], dict[str, str]]
"""The lag, the partitions of the source that the mirror carries, and under `lag` why the first is unknown."""


def _lag_reading(readings: MirrorReadings, log: Log) -> LagReading:
    """Measure the lag of both clusters, which answer; raises ClusterError."""
    pair, unknown = readings.pair, dict[str, str]()
    source, target = readings.source.connected(), readings.target.connected()
    topics = source.topics(pair.request.mirror.carries_topic, pair.request.mirror.named_topics)
    topic_partitions = [TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas]
    return _lag(pair, source, target, topic_partitions, unknown, log), topic_partitions, unknown


def _measure(
    readings: MirrorReadings, lag_reading: Callable[[], LagReading]
) -> tuple[Measure | None, tuple[GroupStatus, ...] | None, dict[str, str]]:
    """Return the lag, the groups, and why either is unknown."""
    try:
        readings.target.connected()
    except OpsError as error:
        return None, None, dict.fromkeys(("lag", "groups"), f"the target does not answer ({error})")
    unknown: dict[str, str] = {}
    try:
        try:
            readings.source.connected()
        except OpsError:
            unknown["lag"] = "the source does not answer"
            return None, groups_on_target(readings), unknown
        lag, topic_partitions, why = lag_reading()
        unknown.update(why)
        return lag, mirrored_groups(readings, topic_partitions, lag, unknown), unknown
    except VerificationError as error:
        unknown.setdefault("lag", str(error))
        unknown.setdefault("groups", str(error))
        return None, None, unknown


def _until_deletion(
    readings: MirrorReadings, lag_reading: Callable[[], LagReading]
) -> tuple[tuple[UntilDeletion, ...] | None, str | None]:
    """Return how long what is not copied is safe from retention, and why it is not known of all of it.

    Neither while the target is active, for the source has nothing to copy then, nor if a cluster does not answer.
    """
    if readings.pair.active == "target":
        return None, None
    try:
        readings.source.connected()
        readings.target.connected()
    except OpsError:
        return None, None
    try:
        lag, _, unknown = lag_reading()
        return (None, unknown.get("lag")) if lag is None else retention.observe(readings, lag)
    except VerificationError as error:
        return None, str(error)


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
        unknown["lag"] = why or "the mirror's outputs name neither its offsets topic nor an address of Connect"
        return None
    try:
        meter = LagMeter(source, pair.request, reader, topic_partitions)
        meter.at_cut()
        return meter.lag.at_cut
    finally:
        reader.close()
