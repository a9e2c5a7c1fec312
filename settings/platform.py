"""The operator: its release and the API version of its resources, what these can do, and how the operator is installed.

Event Streams is a fork of Strimzi: `base` is the Strimzi release that a platform's resources correspond to at least.
"""

from typing import Annotated, Literal

from pydantic import Field

from settings.event_streams import CloudPak, License
from settings.model import PINS, STAYS, Model, Seconds
from settings.names import Label

# Newest first.
ApiVersion = Literal["kafka.strimzi.io/v1", "kafka.strimzi.io/v1beta2", "eventstreams.ibm.com/v1beta2"]
STRIMZI_V1: ApiVersion = "kafka.strimzi.io/v1"
STRIMZI_V1BETA2: ApiVersion = "kafka.strimzi.io/v1beta2"
EVENT_STREAMS: ApiVersion = "eventstreams.ibm.com/v1beta2"
# API group → domain of the labels and annotations that its operator reads; others' it does not see.
DOMAINS = {"kafka.strimzi.io": "strimzi.io", "eventstreams.ibm.com": "eventstreams.ibm.com"}
_OPERATORS = {"kafka.strimzi.io": "Strimzi", "eventstreams.ibm.com": "Event Streams"}
# API group → kind of a cluster's resource.
CLUSTER_KINDS = {"kafka.strimzi.io": "Kafka", "eventstreams.ibm.com": "EventStreams"}
TAKES_OVER = {"pulumi.com/patchForce": "true"}
"""Annotation by which an update takes fields from whoever set them, an earlier update that was killed too."""
Release = tuple[int, int]
# Strimzi serves v1beta2 up to 0.51 and v1 from 0.49 on.
V1_SINCE, V1BETA2_BEFORE = (0, 49), (1, 0)
# What is written is that of these releases and later ones; Event Streams 10 serves v1beta1.
OLDEST: dict[str, Release] = {"strimzi": (0, 45), "event-streams": (11, 0)}
DEFAULT_VERSION = {STRIMZI_V1: "1.2.0", STRIMZI_V1BETA2: "0.51.0", EVENT_STREAMS: "11.0.0"}
# Event Streams release → the Strimzi release below it; a release between two entries has the lower one's base.
_EVENT_STREAMS_BASES: dict[Release, Release] = {
    (11, 0): (0, 28),
    (11, 1): (0, 31),
    (11, 2): (0, 34),
    (11, 3): (0, 38),
    (11, 5): (0, 42),
    (12, 0): (0, 46),
}
# Base release → Kafka version that a cluster runs when its settings do not say so.
_KAFKA_DEFAULTS: dict[Release, str] = {
    (0, 28): "3.0.1",
    (0, 31): "3.2.3",
    (0, 34): "3.4.0",
    (0, 38): "3.6.0",
    (0, 42): "3.7.1",
    (0, 45): "3.9.0",
    (0, 46): "4.0.0",
    (0, 48): "4.1.0",
    (1, 0): "4.2.0",
    (1, 2): "4.3.1",
}
# What a field of the mirror needs: setting → (first base release with it, why it is refused before).
SINCE: dict[str, tuple[Release, str]] = {
    "autoRestart": ((0, 33), "its operator does not restart connectors"),
    "exactlyOnce": ((0, 32), "its Kafka Connect has no exactly-once source support"),
    "scram-sha-256": ((0, 30), "its operator knows only scram-sha-512, tls and plain"),
    "failback": ((0, 44), "its operator cannot alter connectors' offsets"),
    "strimziMetricsReporter": ((0, 47), "its images do not hold the reporter"),
}
_STATE_SINCE, _NODE_POOLS_SINCE, _KAFKA_POLICY_SINCE = (0, 38), (0, 45), (0, 31)


def annotation_domain(api: str) -> str:
    """Return the domain of labels and annotations for an API group or version; raises KeyError for another's."""
    return DOMAINS[api.partition("/")[0]]


def operator_name(api: str) -> str:
    """Return what the operator of an API group or version is called; raises KeyError for another's."""
    return _OPERATORS[api.partition("/")[0]]


class Platform(Model):
    """The operator family with its release, the API version of its custom resources, and where it runs."""

    type: Annotated[Literal["strimzi", "event-streams"], STAYS] = "strimzi"
    """Operator family whose custom resources are written."""
    version: Annotated[Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")] | None, PINS] = None
    """Release of the operator. Without it the newest that serves `apiVersion`."""
    api_version: Annotated[ApiVersion | None, PINS] = None
    """API version of the custom resources. Without it the newest that the release stores."""
    distribution: Annotated[Literal["kubernetes", "openshift"], STAYS] = "kubernetes"
    """Where it runs. Only OpenShift has routes; the operator's usual catalog depends on it."""
    license: Annotated[License | None, STAYS] = None
    """IBM's license, for Event Streams."""
    cloud_pak: Annotated[CloudPak, STAYS] = Field(default_factory=CloudPak)
    """Pod annotations of mirrors on Event Streams, by which IBM's license service counts."""

    @property
    def api(self) -> ApiVersion:
        """API version of the custom resources: the one that is set, else the newest that the release stores."""
        if self.api_version is not None:
            return self.api_version
        if self.type == "event-streams":
            return EVENT_STREAMS
        return STRIMZI_V1 if self.version is None or self.release >= V1BETA2_BEFORE else STRIMZI_V1BETA2

    @property
    def full_version(self) -> str:
        """The operator's release with three numbers."""
        version = self.version or DEFAULT_VERSION[self.api]
        return version if version.count(".") > 1 else f"{version}.0"

    @property
    def release(self) -> Release:
        """Major and minor number of the operator's release."""
        major, minor, *_ = self.full_version.split(".")
        return int(major), int(minor)

    @property
    def base(self) -> Release:
        """The Strimzi release that the resources correspond to."""
        if self.type == "strimzi":
            return self.release
        known = [base for release, base in sorted(_EVENT_STREAMS_BASES.items()) if release <= self.release]
        return known[-1] if known else next(iter(_EVENT_STREAMS_BASES.values()))

    @property
    def kafka_version(self) -> str:
        """Kafka version of clusters and mirrors whose settings do not say so."""
        return [version for base, version in _KAFKA_DEFAULTS.items() if base <= max(self.base, (0, 28))][-1]

    @property
    def counted_as(self) -> CloudPak:
        """The annotations of a mirror's pods on Event Streams, with what follows from license and release."""
        return self.cloud_pak.derived(self.license or License(accept=False), self.full_version)

    @property
    def has_node_pools(self) -> bool:
        """Whether brokers are declared by KafkaNodePool; before, a cluster has brokers and a ZooKeeper."""
        return self.base >= _NODE_POOLS_SINCE

    @property
    def pattern_join(self) -> Literal["|", ","]:
        """What joins the regular expressions of a mirror's lists."""
        return "," if self.type == "event-streams" else "|"

    @property
    def has_heartbeats(self) -> bool:
        """Whether the API has a field for the heartbeat connector."""
        return self.api != STRIMZI_V1

    @property
    def has_connector_state(self) -> bool:
        """Whether connectors have a `state`; before, they could only be paused."""
        return self.base >= _STATE_SINCE

    @property
    def rest_state(self) -> Literal["stopped", "paused"]:
        """The state of a mirror that copies nothing: `stopped`, or `paused` where connectors have no `state`."""
        return "stopped" if self.has_connector_state else "paused"

    @property
    def has_connector_offsets(self) -> bool:
        """Whether the operator lists and alters the offsets of connectors."""
        return self.base >= SINCE["failback"][0]

    @property
    def has_kafka_identity_policy(self) -> bool:
        """Whether Kafka's own IdentityReplicationPolicy is used; before, it came with the operator's images."""
        return self.base >= _KAFKA_POLICY_SINCE


class Catalog(Model):
    """A CatalogSource that this stack makes; `image` is the index with its tag or digest."""

    image: str
    """Index image with its tag or digest."""
    display_name: str = "Kafka operators"
    """Name that people see."""
    publisher: str = "platform"
    """Who publishes it."""
    poll_minutes: Annotated[int, Field(ge=1, le=10_080)] = 45
    """How often the image is looked up again."""


class Package(Model):
    """What a Subscription asks OLM for."""

    name: str
    channel: str
    source: str
    source_namespace: str


_OPERATOR_HUB = Package(
    name="strimzi-kafka-operator", channel="stable", source="operatorhubio-catalog", source_namespace="olm"
)
_COMMUNITY = _OPERATOR_HUB.model_copy(
    update={"source": "community-operators", "source_namespace": "openshift-marketplace"}
)
_IBM = Package(
    name="ibm-eventstreams", channel="v3.0", source="ibm-operator-catalog", source_namespace="openshift-marketplace"
)


class Operator(Model):
    """The operator's installation and what it watches; with `install: none` nothing is created.

    It watches the cluster's namespace, or those in `watchedNamespaces`, or with `allNamespaces` every one.
    """

    install: Annotated[Literal["olm", "yaml", "none"], STAYS] = "olm"
    """By OLM, from a folder with its release's YAML files, or not at all because it is there already."""
    namespace: Annotated[Label | None, STAYS] = None
    """Namespace in which it runs. Without it the cluster's."""
    watched_namespaces: Annotated[tuple[Label, ...], STAYS] = ()
    """Namespaces that it watches. Without them the cluster's."""
    create_namespaces: Annotated[bool, STAYS] = False
    """Whether this stack makes all of them. Other stacks then set `createNamespace` false."""
    all_namespaces: Annotated[bool, STAYS] = False
    """It watches all namespaces."""
    package: Annotated[Label | None, STAYS] = None
    """Package in the catalog. Without it the platform's usual one."""
    channel: Annotated[str | None, PINS] = None
    """Channel of updates. Without it the platform's usual one."""
    source: Annotated[Label | None, STAYS] = None
    """Catalog that holds the package. Without it the platform's usual one."""
    source_namespace: Annotated[Label | None, STAYS] = None
    """Namespace of the catalog. Without it the platform's usual one."""
    catalog: Annotated[Catalog | None, STAYS] = None
    """Catalog that this stack makes."""
    approval: Annotated[Literal["Automatic", "Manual"], STAYS] = "Automatic"
    """Who approves updates. `Manual` needs `startingCsv`."""
    starting_csv: Annotated[str | None, PINS] = None
    """Version to install, for example `strimzi-cluster-operator.v1.2.0`."""
    folder: Annotated[str | None, PINS] = None
    """Folder with the YAML files of the operator's release, for `install` yaml."""
    ready_seconds: Annotated[Seconds, STAYS] = 600
    """How long to wait for the operator."""

    def home(self, cluster_namespace: str) -> str:
        """Namespace in which the operator runs."""
        return self.namespace or cluster_namespace

    def watched(self, cluster_namespace: str) -> tuple[str, ...]:
        """Namespaces that the operator watches, its own first unless it has none to watch; empty means all."""
        if self.all_namespaces:
            return ()
        return tuple(dict.fromkeys(self.watched_namespaces or (cluster_namespace,)))

    def subscription(self, platform: Platform) -> Package:
        """The package with what is not set taken from where the platform's operator is usually published."""
        if platform.type == "event-streams":
            usual = _IBM
        else:
            usual = _COMMUNITY if platform.distribution == "openshift" else _OPERATOR_HUB
        return Package(
            name=self.package or usual.name,
            channel=self.channel or usual.channel,
            source=self.source or usual.source,
            source_namespace=self.source_namespace or usual.source_namespace,
        )
