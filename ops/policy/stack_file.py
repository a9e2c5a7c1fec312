"""Where a resource stands in its stack file, so that a finding can point at a line of it."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from ops.connection import PROJECT
from ops.policy.findings import Resource
from settings import NAMESPACE

# The settings that describe a kind; they are searched before the rest of the file.
_SECTIONS = {
    "Kafka": "cluster",
    "EventStreams": "cluster",
    "KafkaNodePool": "cluster",
    "KafkaTopic": "topics",
    "KafkaUser": "users",
    "KafkaMirrorMaker2": "mirrors",
}


class StackFile:
    """The file of one stack in a project's folder. It need not exist, nor be readable: every line is then the first."""

    def __init__(self, folder: Path, stack: str) -> None:
        self.path = folder / f"Pulumi.{stack.rsplit('/', 1)[-1]}.yaml"
        try:
            self._root = yaml.compose(self.path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        except (OSError, ValueError, yaml.YAMLError):
            self._root = None

    @property
    def uri(self) -> str:
        """The file as seen from the root of this repository, or of a project elsewhere."""
        path = self.path.resolve()
        return path.relative_to(PROJECT).as_posix() if path.is_relative_to(PROJECT) else path.name

    def line(self, of: Resource) -> int:
        """Return the line where the resource's name stands, 1 if it stands nowhere."""
        section = f"{NAMESPACE}:{_SECTIONS.get(of.kind, '')}"
        places = [value for key, value in _pairs(self._root) if key == "config"]
        wanted = [value for place in places for key, value in _pairs(place) if key == section]
        names = {of.name, of.urn.rsplit("::", 1)[-1]}
        return next((line for node in (*wanted, self._root) for line in _lines(node, names)), 1)


def _pairs(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), value) for key, value in node.value)


def _lines(node: yaml.Node | None, names: set[str]) -> Iterator[int]:
    if isinstance(node, yaml.MappingNode):
        # An object's own name comes before mentions of it.
        for _, value in sorted(node.value, key=lambda pair: pair[0].value != "name"):
            yield from _lines(value, names)
    elif isinstance(node, yaml.SequenceNode):
        own = [value for item in node.value for key, value in _pairs(item) if key == "name"]
        for item in (*own, *node.value):
            yield from _lines(item, names)
    elif isinstance(node, yaml.ScalarNode) and node.value in names:
        yield node.start_mark.line + 1
