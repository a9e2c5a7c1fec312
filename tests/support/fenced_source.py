"""The source of the default pair, whose applications can be fenced: its stack file and its KafkaUsers."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from components.kafka.cluster import spec_of
from ops.recovery import fence
from ops.recovery.fence import SourceFence
from sandbox.state import PROJECT
from settings.fence import Fence
from settings.files import load
from settings.stack import Stack
from tests.support.applied_objects import AppliedObjects
from tests.support.mirror_api_server import serving
from tests.support.recovery_pair import known

APPLICATION, MIRROR = "rt-inv-app-dev-user", "rt-inv-dev-user"
TOPICS = ["items", "items.inventory", "store.inventory"]
WRITTEN = {"topics": TOPICS, "mirrorUsers": [MIRROR]}


@dataclass
class Source:
    """A folder with both stack files, and the API server of the source as `up` left it."""

    folder: Path
    server: AppliedObjects
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.folder / "Pulumi.dev.yaml"

    @property
    def declared(self) -> dict[str, Any] | None:
        """The fence in the stack file."""
        found: dict[str, Any] = yaml.safe_load(self.file.read_text("utf-8"))["config"]
        return found.get("rt-inventory:fence")

    def fence(self) -> SourceFence:
        found, why = fence.at_source(known(), self.folder, self.environment, self.said.append)
        assert found is not None, why
        return found

    def specs(self) -> dict[str, Any]:
        """The specs of the KafkaUsers that are there."""
        return {name: held["spec"] for (_, name), held in self.server.objects.items()}

    def rendered(self, fenced: bool) -> dict[str, Any]:
        """The specs that the next `up` renders, with a fence or without."""
        settings = load(PROJECT / "Pulumi.dev.yaml").model_copy(update={"fence": FENCE if fenced else None})
        return rendered(settings)


FENCE: Fence = fence.made(WRITTEN)


def rendered(settings: Stack) -> dict[str, Any]:
    """The specs of a stack's KafkaUsers."""
    return {user.name: spec_of(user, settings) for user in settings.users}


@contextmanager
def fenced_source(folder: Path) -> Iterator[Source]:
    """The default pair's source, not fenced."""
    for stack in ("dev", "stg"):
        shutil.copyfile(PROJECT / f"Pulumi.{stack}.yaml", folder / f"Pulumi.{stack}.yaml")
    text = (
        (folder / "Pulumi.dev.yaml").read_text("utf-8").replace("kubernetes:context: dev", "kubernetes:context: here")
    )
    (folder / "Pulumi.dev.yaml").write_text(text, "utf-8")
    settings, server = load(folder / "Pulumi.dev.yaml"), AppliedObjects()
    for name, spec in rendered(settings).items():
        metadata = {"name": name, "namespace": settings.cluster.namespace}
        server.hold(
            "kafkausers", {"apiVersion": settings.platform.api, "kind": "KafkaUser", "metadata": metadata, "spec": spec}
        )
    with serving(server, folder) as environment:
        yield Source(folder, server, environment)
