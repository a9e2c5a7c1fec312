"""Demo clients in the cluster: pods that send random records without end, and pods that read them as a group."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from settings.model import Model, Resources, Scalar
from settings.names import KafkaName, Label, SecretName
from settings.verification_run import Image

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
    image_pull_secrets: tuple[SecretName, ...] = ()
    user: Label | None = None
    secret: SecretName | None = None
    topic: KafkaName
    kind: Literal["items", "products"] = "items"
    group: KafkaName = "demo-clients"
    rate: Annotated[int, Field(ge=1, le=10_000)] = 1
    producers: Replicas = 1
    consumers: Replicas = 1
    print_records: bool = True
    resources: Resources = Field(default_factory=_small)
