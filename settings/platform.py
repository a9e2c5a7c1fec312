"""Which operator's custom resources are written, and in which version of them."""

from typing import Literal

from settings.model import Model


class Platform(Model):
    """The operator family and the API version of its custom resources."""

    type: Literal["strimzi"] = "strimzi"
    api_version: Literal["kafka.strimzi.io/v1"] = "kafka.strimzi.io/v1"
