"""Custom resources per API version: each dialect renders the same settings in the shape that its operator reads."""

from typing import Protocol

from components.dialects import event_streams, strimzi_v1, strimzi_v1beta2
from components.dialects.cluster_spec import Manifest, Spec, topic, user
from components.dialects.mirror_spec import Login, MirrorClusterSpec
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.platform import EVENT_STREAMS, STRIMZI_V1, STRIMZI_V1BETA2, ApiVersion, Platform

__all__ = ["Dialect", "Login", "Manifest", "MirrorClusterSpec", "Spec", "dialect", "topic", "user"]


class Dialect(Protocol):
    """What differs between the API versions."""

    @property
    def LABEL(self) -> str:  # noqa: N802  # a module's constant
        """Label by which users, topics and node pools name their cluster."""

    def cluster(self, settings: Cluster, version: str, platform: Platform, /) -> list[Manifest]:
        """Resources of a managed cluster; the last one is waited for."""

    def mirror(
        self,
        settings: Mirror,
        version: str,
        platform: Platform,
        source: MirrorClusterSpec,
        target: MirrorClusterSpec,
        /,
    ) -> Spec:
        """Spec of a KafkaMirrorMaker2."""


_DIALECTS: dict[ApiVersion, Dialect] = {
    STRIMZI_V1: strimzi_v1,
    STRIMZI_V1BETA2: strimzi_v1beta2,
    EVENT_STREAMS: event_streams,
}


def dialect(platform: Platform) -> Dialect:
    """Return the dialect of a platform's API version."""
    return _DIALECTS[platform.api]
