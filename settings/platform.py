"""Which operator's custom resources are written, in which version of them, and what that version can do.

Event Streams is a fork of Strimzi: `base` says which Strimzi release a platform's resources correspond to at least.
"""

from typing import Annotated, Literal

from pydantic import Field

from settings.model import Config, Model, empty

ApiVersion = Literal["kafka.strimzi.io/v1", "kafka.strimzi.io/v1beta2", "eventstreams.ibm.com/v1beta2"]
STRIMZI_V1: ApiVersion = "kafka.strimzi.io/v1"
STRIMZI_V1BETA2: ApiVersion = "kafka.strimzi.io/v1beta2"
EVENT_STREAMS: ApiVersion = "eventstreams.ibm.com/v1beta2"
Release = tuple[int, int]
# Strimzi serves v1beta2 up to 0.51 and v1 from 0.49 on.
V1_SINCE, V1BETA2_BEFORE = (0, 49), (1, 0)
OLDEST_STRIMZI: Release = (0, 45)
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


class License(Model):
    """Acceptance of IBM's license for Event Streams. `id` is the license's identifier, `use` what it is used for."""

    accept: bool
    id: str | None = None
    use: str | None = None


class CloudPak(Model):
    """Pod annotations with which IBM's license service counts a mirror; `charged_containers` follows the mirror."""

    production_type: str = "CloudPakForIntegrationNonProduction"
    product_id: str = "2a79e49111f44ec3acd89608e56138f5"
    product_name: str = "IBM Event Streams for Non Production"
    product_version: str = "11.0.0"
    product_metric: str = "VIRTUAL_PROCESSOR_CORE"
    cloudpak_ratio: str = "2:1"
    cloudpak_id: str = "c8b82d189e7545f0892db9ef2731b90d"
    cloudpak_name: str = "IBM Cloud Pak for Integration"
    cloudpak_version: str = "2022.1.1"
    annotations: Config = Field(default_factory=empty)


class Platform(Model):
    """The operator family with its release, the API version of its custom resources, and where it runs."""

    type: Literal["strimzi", "event-streams"] = "strimzi"
    version: Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")] | None = None
    api_version: ApiVersion | None = None
    distribution: Literal["kubernetes", "openshift"] = "kubernetes"
    license: License | None = None
    cloud_pak: CloudPak = Field(default_factory=CloudPak)

    @property
    def api(self) -> ApiVersion:
        """API version of the custom resources: the one that is set, else the newest that the release stores."""
        if self.api_version is not None:
            return self.api_version
        if self.type == "event-streams":
            return EVENT_STREAMS
        return STRIMZI_V1 if self.version is None or self.release >= V1BETA2_BEFORE else STRIMZI_V1BETA2

    @property
    def release(self) -> Release:
        """Major and minor number of the operator's release."""
        version = self.version or DEFAULT_VERSION[self.api]
        major, minor, *_ = version.split(".")
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
    def has_node_pools(self) -> bool:
        """Whether brokers are declared by KafkaNodePool; before, a cluster has brokers and a ZooKeeper."""
        return self.base >= _NODE_POOLS_SINCE

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
        """The state of a mirror that shall copy nothing."""
        return "stopped" if self.has_connector_state else "paused"

    @property
    def has_connector_offsets(self) -> bool:
        """Whether the operator lists and alters the offsets of connectors."""
        return self.base >= SINCE["failback"][0]

    @property
    def has_kafka_identity_policy(self) -> bool:
        """Whether Kafka's own IdentityReplicationPolicy is used; before, it came with the operator's images."""
        return self.base >= _KAFKA_POLICY_SINCE
