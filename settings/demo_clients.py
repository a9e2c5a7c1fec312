"""Demo clients in the cluster: pods that send random records without end, and pods that read them as a group."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from settings.model import Model, Resources, Scalar
from settings.names import KafkaName, Label, SecretName
from settings.verification import Image

_REQUESTS: Mapping[str, Scalar] = MappingProxyType({"cpu": "50m", "memory": "128Mi"})
_LIMITS: Mapping[str, Scalar] = MappingProxyType({"memory": "128Mi"})
Replicas = Annotated[int, Field(ge=0, le=100)]


def _small() -> Resources:
    return Resources(requests=_REQUESTS, limits=_LIMITS)


class DemoClients(Model):
    """Two Deployments beside the stack's cluster, each of which may have no pod at all.

    They log in as `user`, or by what `secret` holds, so that whoever writes it decides which cluster they use.
    """

    image: Image
    """Image of the clients, built from `images/demo-clients`, with a digest or a tag that does not move."""
    image_pull_secrets: tuple[SecretName, ...] = ()
    """Secrets with which the image is pulled."""
    user: Label | None = None
    """User of this stack as which they log in. Not with `secret`."""
    secret: SecretName | None = None
    """Secret beside the cluster that binds applications to Kafka, with the keys `bootstrapServers`, `securityProtocol`
    and those of a login. Not with `user`.
    """
    topic: KafkaName
    """Topic that they write and read."""
    kind: Literal["items", "products"] = "items"
    """Inventory movements, or products."""
    group: KafkaName = "demo-clients"
    """Consumer group of all consumers."""
    rate: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Records a second that each producer sends."""
    producers: Replicas = 1
    """How many pods produce. 0 stops them."""
    consumers: Replicas = 1
    """How many pods consume. 0 stops them."""
    print_records: bool = True
    """Whether the consumers' log shows each record."""
    resources: Resources = Field(default_factory=_small)
    """CPU and memory of each pod. Without them 50m of CPU and 128Mi of memory."""
