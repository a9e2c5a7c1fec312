"""The parts of a mirror: source, target, clients, follower, reverse, workers, autoscaler, topics failed over alone.

Default exclusions are those of Kafka's DefaultTopicFilter and DefaultGroupFilter. Owns which topics and groups
MirrorMaker excludes because applications use these topics at the target while the source is active for the rest. Does
not own the rights on either side (`fence.py`), the rules (`settings/rules/`), or the autoscaler itself
(`components/kafka/mirror_maker_2.py`).
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from settings.cluster import External, external_ca_secret
from settings.model import Count, Model, Resources, Scalar, frozen
from settings.names import KafkaName, Label, Patterns, SecretName
from settings.users import AnyAuthentication, ExistingSecret
from settings.verification import URL, Image

TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", r"__.*")
GROUPS_EXCLUDE = (r"console-consumer-.*", r"connect-.*", r"__.*")
SomePatterns = Annotated[Patterns, Field(min_length=1)]
PartitionNumber = Annotated[str, Field(pattern=r"^\d+$")]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
Offsets = Annotated[Mapping[PartitionNumber, Annotated[int, Field(ge=0)]], AfterValidator(frozen)]
if TYPE_CHECKING:
    from settings.mirrors import Mirror

# Of a source at a distance: the system lets the TCP window grow. Measured by `python -m benchmarks.distance`.
DISTANT_CONSUMER: Mapping[str, Scalar] = frozen({"receive.buffer.bytes": -1})
_SPECIAL = re.compile(r"[^\w-]")
_ASCII_MAX = 0x7F


class ExternalSource(Model):
    """A source that no stack describes. Its Secrets lie in the mirror's namespace.

    With `authentication: none`, for a cluster that lets everybody in, there is no `secret` and no `username`.
    """

    name: Label
    """Name of the cluster, for messages and for its Secrets."""
    cluster: External
    """How it is reached."""
    kafka_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] | None = None
    """Version of its Kafka, by which a mirror is refused that cannot read it. See docs/compatibility.md."""
    authentication: AnyAuthentication = "scram-sha-512"
    """How the mirror logs in."""
    username: str | None = None
    """Name with which it logs in. Without it `name`."""
    secret: ExistingSecret | None = None
    """Secret with the credentials, in the mirror's namespace."""

    @property
    def ca_secret(self) -> tuple[str, str] | None:
        """Secret and key of its authority; None for a public one or without TLS."""
        return external_ca_secret(self.name, self.cluster)


class Source(Model):
    """Where records come from: another stack of this project as one of its users, or an external cluster.

    `copySecrets: false` says that the mirror's namespace holds the source's Secrets already: both clusters share it.
    `required: false` leaves the mirror out while the source stack is not up: stacks that mirror each other begin so.
    With `latencyMs` the client that reads gets no socket buffer of Kafka's (`receive.buffer.bytes: -1`) unless
    `consumer` names one: 64 KiB a round trip is all that a connection carries with it, see docs/sizing.md.
    """

    alias: Label
    """Name of the source in names that MirrorMaker makes."""
    stack: Label | None = None
    """Stack of this project whose cluster is read."""
    user: Label | None = None
    """User of that stack as whom it is read."""
    external: ExternalSource | None = None
    """Cluster of somebody else's, instead of a stack."""
    copy_secrets: bool = True
    """Whether the source's Secrets are copied; false if they lie in the mirror's namespace already."""
    required: bool = True
    """False leaves the mirror out while the source stack is not up."""
    latency_ms: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Milliseconds of a round trip from the workers to the source's brokers. Without it Kafka's defaults are used."""

    @property
    def consumer_defaults(self) -> Mapping[str, Scalar]:
        """Options of the client that reads the source, unless the mirror's `consumer` sets them."""
        return DISTANT_CONSUMER if self.latency_ms is not None else {}


class Target(Model):
    """Where records go: this stack's cluster, as one of its users."""

    alias: Label
    """Name of the target in names that MirrorMaker makes."""
    user: Label
    """User of this stack as whom records are written."""


class Clients(Model):
    """The users as whom applications log in: one of the source stack while that side is active, else one of this stack.

    With `login` they have one name and one password on both sides, so that a switch changes the address and nothing of
    the login. An external source has no user for applications: while it is active, they get nothing from here.
    """

    login: Label | None = None
    """User that both stacks declare with scram-sha-512; the source's password is set here too. In place of the others.
    """
    source: Label | None = None
    """User of the source stack, for applications while the source is active. None with `external`."""
    target: Label | None = None
    """User of this stack, for applications while the target is active. Must be given without `login`."""
    restart: bool = False
    """Whether a failover and a failback restart the workloads that read the Secret, and wait for their new pods."""

    def user_of(self, side: str) -> str | None:
        """Return the user of a side, `source` or `target`, as whom applications log in there."""
        return self.login or (self.target if side == "target" else self.source)


def clients_secret(mirror: str) -> str:
    """Return the name of the Secret by which applications reach the active side of a mirror."""
    return f"{mirror}-clients"


FOLLOWER = "rt-inventory-follower"
"""Name of the application of the followers' pods."""
FOLLOWED = {"rt-inventory/exact-offsets": "true"}
"""Annotation of a mirror that has one, for whoever judges that MirrorMaker commits no offsets."""
FOLLOWER_PORT, FOLLOWER_PORT_NAME = 9411, "metrics"


def follower_name(mirror: str) -> str:
    """Return the name of everything of a mirror's follower."""
    return f"{mirror}-follower"


def _follower_size() -> Resources:
    return Resources(requests={"cpu": "200m", "memory": "256Mi"}, limits={"memory": "512Mi"})


class ExactOffsets(Model):
    """A pod beside the mirror that keeps groups at their exact positions on the target, see docs/offsets.md.

    It logs in as the mirror does. MirrorMaker translates offsets as before, and commits none.
    """

    image: Image
    """Image of the follower, built from `images/follower`, with a digest or a tag that does not move."""
    image_pull_secrets: tuple[SecretName, ...] = ()
    """Secrets with which the image is pulled."""
    resources: Resources = Field(default_factory=_follower_size)
    """CPU and memory of the pod. Without them 200m of CPU and 256Mi of memory, at most 512Mi."""


def syncs_groups(mirror: Mapping[str, Any]) -> bool:
    """Return whether MirrorMaker sets groups on the target unless a mirror says it: not where a follower does."""
    return mirror.get("exact_offsets") is None


class Reverse(Model):
    """A second mirror from the target to the source, in a resource `<mirror>-reverse` beside this one."""

    topics: SomePatterns
    """Topics of this stack's cluster to copy to the source."""
    topics_exclude: Patterns = TOPICS_EXCLUDE
    """Topics not to copy."""
    groups: SomePatterns = (".*",)
    """Groups whose offsets are translated."""
    groups_exclude: Patterns = GROUPS_EXCLUDE
    """Groups whose offsets are not translated."""


class CountsFrom(Model):
    """Where the mirror's own records begin, on the target, in a topic that held others before.

    Either of them: `time` means the first record whose timestamp is not older, `offsets` are exact.
    """

    time: Time | None = None
    """A time in UTC, such as 2026-01-31T12:00:00Z; the first record with no older timestamp is the first that counts.
    """
    offsets: Offsets = Field(default_factory=lambda: frozen({}))
    """First offset that counts, by partition; partitions that are not named count from their beginning."""


Starts = Annotated[Mapping[KafkaName, CountsFrom], AfterValidator(frozen)]


class AutoRestart(Model):
    """Whether the operator restarts failed connectors and tasks, at most `maxRestarts` times (None: for ever)."""

    enabled: bool = True
    """Whether failed connectors and tasks are restarted."""
    max_restarts: Count | None = None
    """How often. Without it for ever."""


class Jvm(Model):
    """Heap of a worker, as Java writes it (`512m`, `2g`)."""

    xms: Annotated[str, Field(pattern=r"^\d+[mMgG]$")] | None = None
    """Heap at the start."""
    xmx: Annotated[str, Field(pattern=r"^\d+[mMgG]$")] | None = None
    """Largest heap."""

    @property
    def options(self) -> dict[str, str]:
        """The options as the resource has them, those that are given."""
        return {f"-X{key}": value for key, value in (("ms", self.xms), ("mx", self.xmx)) if value}


METRIC = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$"
# Bounds of autoscaling/v2: HPAScalingPolicy.periodSeconds and HPAScalingRules.stabilizationWindowSeconds.
Cooldown = Annotated[int, Field(ge=1, le=1800)]
Stabilization = Annotated[int, Field(ge=0, le=3600)]
# One series a mirror: recorded of what `ops` measures or, without it, of what the workers' consumers know (see
# monitoring/alerts/mirror.py); only `ops` knows the age of what is not copied.
_METRICS = {"lag_records": "mirror:lag_records:sum", "lag_seconds": "rt_inventory_mirror_lag_seconds"}


class Scaling(Model):
    """`keda` makes a ScaledObject, `hpa` a HorizontalPodAutoscaler that reads an external metric by an adapter.

    One of `lagRecords` and `lagSeconds`. Workers are added at once and removed one by one, for each change stops tasks.
    The autoscaler sets their number: `replicas` is what a new mirror begins with. While a mirror is paused, stopped or
    in a failback it has no autoscaler and keeps its workers. `<name>-reverse` and `<name>-failback` are not scaled.
    """

    through: Literal["keda", "hpa"]
    """KEDA, which asks Prometheus itself, or a HorizontalPodAutoscaler behind a metrics adapter. Both must be there."""
    min_replicas: Count = 1
    """Fewest workers."""
    max_replicas: Count
    """Most workers, at most as many as the mirror has tasks."""
    lag_records: Count | None = None
    """Records that each worker may be behind; beyond that there are more workers."""
    lag_seconds: Count | None = None
    """Seconds that the mirror as a whole may be behind. Needs a metric that is measured all the time."""
    metric: Annotated[str, Field(pattern=METRIC)] | None = None
    """Name of the metric, of which all series with the labels of the mirror count. Without it the recorded
    `mirror:lag_records:sum` for `lagRecords`, `rt_inventory_mirror_lag_seconds` of `ops` for `lagSeconds`.
    """
    prometheus: Annotated[str, Field(pattern=URL)] | None = None
    """Address of Prometheus. Only for `keda`, and must be given there."""
    trigger_authentication: Label | None = None
    """KEDA's TriggerAuthentication with a bearer token for Prometheus, beside the mirror. Only for `keda`."""
    cooldown_seconds: Cooldown = 300
    """Time in which workers are added once, or one is removed."""
    stabilization_seconds: Stabilization = 600
    """How long fewer workers must be enough before one is removed."""

    @property
    def series(self) -> str:
        """Name of the metric with the mirror's lag."""
        return self.metric or _METRICS["lag_records" if self.lag_records is not None else "lag_seconds"]


class FailedOver(Model):
    """Topics of the mirror that applications use at the target, although the source is active for the others.

    `python -m ops failover --topic` writes it, and a failover of the whole mirror removes it.
    """

    topics: Annotated[tuple[KafkaName, ...], Field(min_length=1)]
    """Names of topics that are not copied any more."""
    groups: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Groups that read them, whose offsets are not translated any more."""
    pending: tuple[KafkaName, ...] = ()
    """Those of `topics` that are on their way: applications may not write them at the target yet."""
    read_only: tuple[KafkaName, ...] = ()
    """Other topics, which are denied by name because the rule for a prefix is gone that stood for them."""

    @property
    def at_target(self) -> tuple[str, ...]:
        """Topics that applications use at the target."""
        return tuple(topic for topic in self.topics if topic not in self.pending)


def is_followed(mirror: "Mirror") -> bool:
    """Return whether a follower sets a mirror's groups on the target now: it copies, and the source is active."""
    copies = mirror.state == "running" and mirror.active == "source" and mirror.failback is None
    return mirror.exact_offsets is not None and copies


def topics_left_out(mirror: "Mirror") -> tuple[str, ...]:
    """Return the expressions of topics that a mirror does not copy: `topicsExclude`, and what is failed over.

    A list of their own replaces Kafka's defaults, so these are in it where `topicsExclude` has none.
    """
    if mirror.failed_over is None:
        return mirror.topics_exclude
    return (*(mirror.topics_exclude or TOPICS_EXCLUDE), *map(exactly, mirror.failed_over.topics))


def groups_left_out(mirror: "Mirror") -> tuple[str, ...]:
    """Return the expressions of groups that a mirror does not translate: `groupsExclude`, and those that moved."""
    if mirror.failed_over is None or not mirror.failed_over.groups:
        return mirror.groups_exclude
    return (*(mirror.groups_exclude or GROUPS_EXCLUDE), *map(exactly, mirror.failed_over.groups))


def exclusions(mirror: "Mirror", join: str) -> dict[str, str | None]:
    """Return the fields of a KafkaMirrorMaker2 that name what it leaves out; None: there are none, Kafka's count."""
    found = {"topicsExcludePattern": topics_left_out(mirror), "groupsExcludePattern": groups_left_out(mirror)}
    return {field: join.join(entries) or None for field, entries in found.items()}


def exactly(name: str) -> str:
    """Return the expression of Java that matches a name and nothing else, without a comma, at which lists are split."""
    return _SPECIAL.sub(_escaped, name)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character == ".":
        return r"\."
    return f"\\x{ord(character):02x}" if ord(character) <= _ASCII_MAX else character
