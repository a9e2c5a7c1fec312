"""The managed Kafka cluster of a stack: KRaft nodes that are broker and controller, one TLS listener with SCRAM."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from settings.model import Config, Count, Model, Resources, Scalar, Seconds, empty
from settings.names import Label

FACTOR_MAX = 3  # more replicas than this are never a default
MIN_INSYNC = "min.insync.replicas"
FACTORS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
TRANSACTION_MIN_ISR = "transaction.state.log.min.isr"


class Storage(Model):
    """Disk of each node. `sizeGib` and `storageClass` belong to persistent-claim."""

    type: Literal["ephemeral", "persistent-claim"] = "ephemeral"
    size_gib: Count | None = None
    storage_class: Label | None = None
    delete_claim: bool = False


class Cluster(Model):
    """One Kafka cluster. `protect` keeps Pulumi from deleting it, its namespace, topics and users."""

    name: Label
    namespace: Label
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = "4.3.1"
    brokers: Count = 3
    node_pool: Label = "dual"
    listener: Annotated[str, Field(pattern=r"^[a-z0-9]{1,11}$")] = "tls"
    listener_port: Annotated[int, Field(ge=9092, le=65535)] = 9093
    storage: Storage = Field(default_factory=Storage)
    config: Config = Field(default_factory=empty)
    resources: Resources = Field(default_factory=Resources)
    protect: bool = True
    ready_seconds: Seconds = 900

    @property
    def kafka_config(self) -> Mapping[str, Scalar]:
        """Broker configuration: factors that fit the number of brokers, overridden by `config`."""
        factor = min(self.brokers, FACTOR_MAX)
        derived: dict[str, Scalar] = {
            **dict.fromkeys(FACTORS, factor),
            MIN_INSYNC: max(1, factor - 1),
            TRANSACTION_MIN_ISR: max(1, factor - 1),
            "auto.create.topics.enable": False,
        }
        return MappingProxyType(derived | dict(self.config))
