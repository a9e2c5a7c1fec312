"""What one inspection of a mirror finds, without a judgement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from contract.verification_request import Mirror
from kafka.connectivity import Broker
from kafka.retention import UntilDeletion
from kafka.topic_partition import TopicPartition
from ops.inspection.probes import Certificate

Right = tuple[str, str]
"""An operation and the resource that it is for, such as ("Write", "topic items")."""


@dataclass(frozen=True, kw_only=True)
class TaskStatus:
    """A connector itself or one of its tasks, with the trace of its failure.

    `partitions`: what a task of the source connector is configured to read, as far as Connect reports it.
    """

    name: str
    state: str
    trace: str = ""
    partitions: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Connector:
    """A connector and its tasks as Connect or the resource's status reports them; `MISSING` if it does not exist."""

    name: str
    parts: tuple[TaskStatus, ...]

    @property
    def tasks(self) -> int:
        """How many tasks it has."""
        return len(self.parts) - 1


@dataclass(frozen=True, kw_only=True)
class AssignedTasks:
    """The source connector's tasks that a worker has. Connect assigns the others after `delay_ms`; 0: not planned."""

    tasks: frozenset[int]
    delay_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class ResourceReadiness:
    """The mirror's resource by its operator: whether it is Ready, and why not."""

    name: str
    ready: bool
    reason: str = ""
    paused: bool = False


@dataclass(frozen=True, kw_only=True)
class Log:
    """The last lines of a worker's log."""

    name: str
    text: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class OtherMirror:
    """One replication flow of another mirror: addresses of both clusters, and patterns of its topics.

    `keeps_names`: whether remote topics have the names of the source's. `is_first`: whether it is a KafkaMirrorMaker,
    MirrorMaker 1, which always keeps names.
    """

    name: str
    source: frozenset[str]
    target: frozenset[str]
    topics: tuple[str, ...]
    keeps_names: bool
    is_first: bool = False


@dataclass(frozen=True, kw_only=True)
class KubernetesObservations:
    """What Kubernetes has around the mirror's resource; `notes` are what may not be read, or was left out."""

    others: tuple[OtherMirror, ...] = ()
    logs: tuple[Log, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DuplicateRecord:
    """The first record of a partition, at offset `source` there, that is at two offsets of the remote topic."""

    topic: str
    remote_topic: str
    partition: int
    source: int
    first: int
    second: int


@dataclass(frozen=True, kw_only=True)
class ReplacedLog:
    """A partition of the source whose log is not the one that the mirror has copied from.

    It ends in front of the mirror's position, or the topic's id is another one than `known_id`, which the verification
    of `known_at` found. `is_new`: whether the topic was created again; else its log was cut off, as far as is known.
    """

    topic: str
    partition: int | None
    is_new: bool
    position: int | None = None
    log_end: int | None = None
    known_id: str | None = None
    topic_id: str | None = None
    known_at: str | None = None


@dataclass(frozen=True, kw_only=True)
class LargeRecord:
    """A record that is not copied and larger than a limit on its way; limits in bytes, None: not known.

    `topic_limit` is `max.message.bytes` of the remote topic, the brokers' where it has none, `request_limit`
    `max.request.size` of the mirror's producer.
    """

    topic: str
    remote_topic: str
    partition: int
    size: int
    topic_limit: int | None
    request_limit: int | None


@dataclass(frozen=True, kw_only=True)
class ClusterObservation:
    """One cluster. What is None could not be inspected; `refusal` is the reason why the cluster cannot be used at all.

    `brokers` is how many there are, `silent` those that take no connection, each with the reason. `lacks` are rights
    that the mirror needs and its user does not have, if the brokers report rights. `topics` are the numbers of
    partitions by name, `leaderless` the partitions without a leader with the brokers of their replicas, `policies` the
    clean-up policies of the mirror's own topics there, `groups` the states of the consumer groups, `other_groups` those
    of other kinds by names that the mirror carries.
    """

    role: str
    alias: str
    servers: str
    user: str
    refusal: str | None = None
    cluster_id: str | None = None
    addresses: frozenset[str] = frozenset()
    brokers: int = 0
    silent: tuple[tuple[Broker, str], ...] = ()
    topics: Mapping[str, int] | None = None
    leaderless: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    lacks: tuple[Right, ...] = ()
    reports_rights: bool = True
    certificates: tuple[Certificate, ...] = ()
    groups: Mapping[str, str] | None = None
    other_groups: tuple[str, ...] = ()
    policies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StatePlace:
    """A part of what Pulumi needs: why it is in one place only, or why nobody can tell; both None: it is replicated."""

    part: str
    alone: str | None = None
    unknown: str | None = None


@dataclass(frozen=True, kw_only=True)
class PulumiState:
    """Where Pulumi's state is.

    `is_trial`: the mirror's Kubernetes cluster is on this machine, so that what is here is lost with it only.
    """

    places: tuple[StatePlace, ...] = ()
    is_trial: bool = False


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Everything that was inspected. `unseen` is what could not be, `notes` what was left out, both with the reason.

    `active` is the active side by Pulumi's outputs, `active_now` by what is there, None where nothing names it.
    `assigned` is None if the group of the workers could not be described. `orphans` are topics that the mirror has
    copied from and the source has no more, each with its remote topic, which is there.
    """

    stack: str
    mirror: Mirror
    source: ClusterObservation
    target: ClusterObservation
    now: datetime
    active: str = "source"
    active_now: str | None = None
    state: str = "running"
    certificate_days: int = 14
    connectors: tuple[Connector, ...] | None = None
    assigned: AssignedTasks | None = None
    resource: ResourceReadiness | None = None
    logs: tuple[Log, ...] = ()
    others: tuple[OtherMirror, ...] = ()
    duplicates: tuple[DuplicateRecord, ...] = ()
    until_deletion: tuple[UntilDeletion, ...] = ()
    replaced_logs: tuple[ReplacedLog, ...] = ()
    large_records: tuple[LargeRecord, ...] = ()
    orphans: Mapping[str, str] = field(default_factory=dict)
    pulumi_state: PulumiState | None = None
    source_stack: str | None = None
    fence_issue: tuple[str, str] | None = None
    target_fenced: str | None = None
    not_followed: str | None = None
    runs_at_rest: str | None = None
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def should_run(self) -> bool:
        """Whether the mirror should copy now: it is declared running, and its resource is not paused."""
        return self.state == "running" and not (self.resource is not None and self.resource.paused)

    @property
    def carried(self) -> dict[str, int]:
        """Topics of the source that the mirror carries, with their numbers of partitions."""
        return {name: parts for name, parts in (self.source.topics or {}).items() if self.mirror.carries_topic(name)}
