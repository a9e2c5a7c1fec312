"""Both sides of the default pair, whose applications can be fenced: their stack files and their KafkaUsers."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from components.kafka.cluster import spec_of
from ops.recovery import fence, target_fence
from ops.recovery.fence import SourceFence
from ops.recovery.target_fence import TargetFence
from sandbox.state import PROJECT
from settings.fence import Fence
from settings.files import load
from settings.stack import Stack
from tests.support.applied_objects import AppliedObjects
from tests.support.mirror_api_server import serving
from tests.support.recovery_pair import known

APPLICATION, MIRROR = "rt-inv-app-dev-user", "rt-inv-dev-user"
AT_TARGET = "rt-inv-app-stg-user"
TOPICS = ["items", "items.inventory", "store.inventory"]
WRITTEN = {"topics": TOPICS, "mirrorUsers": [MIRROR]}


@dataclass
class Side:
    """A folder with both stack files, and the API server of one of the stacks."""

    folder: Path
    server: AppliedObjects
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    def specs(self) -> dict[str, Any]:
        """The specs of the KafkaUsers that are there."""
        return {name: held["spec"] for (_, name), held in self.server.objects.items()}


@dataclass
class Source(Side):
    """A folder with both stack files, and the API server of the source as `up` left it."""

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
    server = AppliedObjects()
    _hold(server, _settings(folder, "dev"))
    with serving(server, folder) as environment:
        yield Source(folder, server, environment)


@dataclass
class Target(Side):
    """A folder with both stack files, of which the target's declares it as active, and its API server."""

    @property
    def file(self) -> Path:
        return self.folder / "Pulumi.stg.yaml"

    def fence(self, require_permission: Callable[[], None] = lambda: None) -> TargetFence:
        of = known(active="target"), self.folder, self.environment, self.said.append, require_permission
        found, why = target_fence.at_target(*of)
        assert (found is not None, why) == (True, "")
        assert found is not None
        return found

    @property
    def is_fenced(self) -> bool:
        """Whether the users have what an `up` gives them while the source is active, or while the target is."""
        fenced = any(rule["type"] == "deny" for rule in self.specs()[AT_TARGET]["authorization"]["acls"])
        (mirror,) = (settings := load(self.file)).mirrors
        active = mirror.model_copy(update={"active": "source" if fenced else "target"})
        assert self.specs() == rendered(settings.model_copy(update={"mirrors": (active,)}))
        return fenced


@contextmanager
def fenced_target(folder: Path) -> Iterator[Target]:
    """The default pair's target after a failover, not fenced."""
    server = AppliedObjects()
    _hold(server, _settings(folder, "stg", ("active: source", "active: target\n      state: stopped")))
    with serving(server, folder) as environment:
        yield Target(folder, server, environment)


def _settings(folder: Path, stack: str, *changes: tuple[str, str]) -> Stack:
    """The settings of a stack whose file, beside the other one, is changed."""
    for each in ("dev", "stg"):
        shutil.copyfile(PROJECT / f"Pulumi.{each}.yaml", folder / f"Pulumi.{each}.yaml")
    file = folder / f"Pulumi.{stack}.yaml"
    text = file.read_text("utf-8")
    for old, new in ((f"kubernetes:context: {stack}", "kubernetes:context: here"), *changes):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, "utf-8")
    return load(file)


def _hold(server: AppliedObjects, settings: Stack) -> None:
    """Let an API server have the KafkaUsers of a stack as an `up` has left them."""
    for name, spec in rendered(settings).items():
        metadata = {"name": name, "namespace": settings.cluster.namespace}
        server.hold(
            "kafkausers", {"apiVersion": settings.platform.api, "kind": "KafkaUser", "metadata": metadata, "spec": spec}
        )
