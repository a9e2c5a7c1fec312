"""Custom resources per API version: each dialect renders the same settings in the shape that its operator reads.

Every folder in here is a dialect, found by its `API_VERSION`.
"""

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from components.dialects.cluster_spec import Manifest, Spec, read_again, topic, user
from components.dialects.mirror_spec import Login, MirrorClusterSpec
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.platform import ApiVersion, Platform

__all__ = ["Dialect", "Login", "Manifest", "MirrorClusterSpec", "Spec", "dialect", "read_again", "topic", "user"]


class Dialect(Protocol):
    """What differs between the API versions."""

    @property
    def API_VERSION(self) -> ApiVersion:  # noqa: N802  # a module's constant
        """The API version of the resources that it renders."""

    @property
    def LABEL(self) -> str:  # noqa: N802  # a module's constant
        """Label by which users, topics and node pools name their cluster."""

    @property
    def RUNNING(self) -> tuple[str, ...]:  # noqa: N802  # a module's constant
        """Conditions of the provider's wait for a cluster: each a `condition=` or a `jsonpath=`."""

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


_FOLDERS = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__init__.py"))
_MODULES = [cast("Dialect", import_module(f"{__name__}.{name}")) for name in _FOLDERS]
_DIALECTS = {module.API_VERSION: module for module in _MODULES}


def dialect(platform: Platform) -> Dialect:
    """Return the dialect of a platform's API version."""
    return _DIALECTS[platform.api]
