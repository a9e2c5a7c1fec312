"""The examples: their stacks, the manifests they render to, the table of topologies and platforms, and copies.

`python -m examples` writes the expected manifests of all examples and the README's table anew.
`python -m examples copy NAME FOLDER [--small]` makes a project of one's own from an example: as it is, or small enough
for a sandbox, kind or a laptop's cluster. What is made smaller is not what the topology is about: names, users, rights,
naming, who mirrors whom.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from components.__main__ import Manifest, manifests, text
from settings import Stack
from settings.files import load
from settings.platform import EVENT_STREAMS, STRIMZI_V1, STRIMZI_V1BETA2

FOLDER = Path(__file__).resolve().parent
PLATFORMS = {STRIMZI_V1: "Strimzi 1.x", STRIMZI_V1BETA2: "Strimzi 0.45 to 0.51", EVENT_STREAMS: "Event Streams"}
EXTERNAL = "external clusters"
HEADER = "# What `make render` writes for this stack; `python -m examples` writes it anew.\n"
DASHBOARD = "the content of this file of monitoring/dashboards/json, which is too long for here\n"
README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- topologies: begin -->\n", "<!-- topologies: end -->\n"


@dataclass(frozen=True)
class Example:
    """One folder: a pair of stacks, or a single one."""

    folder: Path

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @property
    def stacks(self) -> list[str]:
        """Names of its stacks."""
        files = self.folder.glob("Pulumi.*.yaml")
        return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in files)

    @property
    def title(self) -> str:
        """First sentence of its README."""
        lines = (self.folder / "README.md").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines[1:] if line.strip()).split(". ")[0].rstrip(".")

    @property
    def story(self) -> Path:
        """Script that plays it, if it has one."""
        return self.folder / "story.sh"

    def settings(self, stack: str) -> Stack:
        """Settings of one of its stacks."""
        return load(self.folder / f"Pulumi.{stack}.yaml")

    def expected(self, stack: str) -> Path:
        """File with the manifests that a stack must render to."""
        return self.folder / f"expected.{stack}.yaml"

    def policy(self, stack: str) -> Path:
        """File that configures the policy pack for a stack, if it needs one."""
        return self.folder / f"policy.{stack}.json"

    def rendered(self, stack: str) -> str:
        """The manifests that a stack renders to, as the content of that file."""
        found = sorted(manifests(self.folder, stack), key=_order)
        return HEADER + "---\n".join(text(_brief(each)) for each in found)

    def platforms(self) -> set[str]:
        """Kinds of clusters in it: API versions that its stacks write, and clusters that others run."""
        found: set[str] = set()
        for stack in self.stacks:
            settings = self.settings(stack)
            if settings.cluster.external is None or settings.mirrors:
                found.add(PLATFORMS[settings.platform.api])
            if settings.cluster.external is not None or any(each.source.external for each in settings.mirrors):
                found.add(EXTERNAL)
        return found

    def naming(self) -> str:
        """How its mirrors name copies."""
        names = {mirror.naming for stack in self.stacks for mirror in self.settings(stack).mirrors}
        return " and ".join(sorted(names)) or "no mirror"


def examples() -> list[Example]:
    """Return all examples by name."""
    return [Example(path.parent) for path in sorted(FOLDER.glob("*/Pulumi.yaml"))]


def table() -> str:
    """Return the table of topologies and platforms as Markdown."""
    columns = [*PLATFORMS.values(), EXTERNAL]
    return "\n".join(_rows(columns)) + "\n"


def _rows(columns: list[str]) -> Iterator[str]:
    yield f"| example | topology | names | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 3) + "|"
    for example in examples():
        there = example.platforms()
        marks = " | ".join("yes" if column in there else "" for column in columns)
        link = f"[`{example.name}`](examples/{example.name}/README.md)"
        yield f"| {link} | {example.title} | {example.naming()} | {marks} |"


def _brief(manifest: Manifest) -> Manifest:
    """A manifest without the dashboards that it carries."""
    if manifest["kind"] != "ConfigMap":
        return manifest
    data = {
        name: DASHBOARD if name.endswith(".json") and "-dashboard-" in manifest["metadata"]["name"] else content
        for name, content in manifest["data"].items()
    }
    return {**manifest, "data": data}


def _order(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return str(manifest["kind"]), f"{metadata.get('namespace', '')}/{metadata['name']}"


PROJECT = FOLDER.parent
KEY = "rt-inventory:"
# Of a small mirror, which waits seconds for what takes minutes in production.
INTERVALS = {
    "refreshTopicsSeconds": 3,
    "refreshGroupsSeconds": 3,
    "emitCheckpointsSeconds": 2,
    "syncGroupOffsetsSeconds": 2,
    "flushOffsetsSeconds": 2,
}
_NOT_COPIED = ("README.md", "expected.*", "venv", "story.sh", "*.py", "__pycache__")
_STRIMZI = {"type": "strimzi", "apiVersion": "kafka.strimzi.io/v1"}
Config = dict[str, Any]


class CopyError(Exception):
    """An example cannot be copied to where it was asked for."""


def copy(example: Example, folder: Path, *, small: bool) -> list[Path]:
    """Make a new folder a project that runs this program with an example's settings; return the files to edit.

    Raises CopyError if the folder is there already, or if an example without a story is to be small.
    """
    if folder.exists():
        raise CopyError(f"folder {folder}: must not exist yet (it does). Give another folder.")
    if small and not example.story.exists():
        raise CopyError(f"example {example.name}: must have a story to be small (got none). Leave --small out.")
    shutil.copytree(example.folder, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    project_file = folder / "Pulumi.yaml"
    text = project_file.read_text(encoding="utf-8")
    text = text.replace("main: ../..", f"main: {PROJECT}").replace(
        "virtualenv: venv #", f"virtualenv: {PROJECT}/venv #"
    )
    project_file.write_text(text, encoding="utf-8")
    files = [folder / f"Pulumi.{stack}.yaml" for stack in example.stacks]
    for file in files if small else ():
        config = smaller(yaml.safe_load(file.read_text(encoding="utf-8"))["config"])
        file.write_text(yaml.safe_dump({"config": config}, sort_keys=False), encoding="utf-8")
    return files


def smaller(config: Config) -> Config:
    """Return settings with one broker, one worker, factors of one, short intervals, and nothing that waits for people.

    Disks end with their pods, nothing is protected, and no `up` verifies. IBM Event Streams becomes Strimzi, for its
    operator runs only where IBM's entitlement key is.
    """
    small = deepcopy(config)
    if small[f"{KEY}platform"]["type"] == "event-streams":
        _on_strimzi(small)
    small[f"{KEY}platform"].pop("version", None)
    for key in ("approval", "startingCsv", "readySeconds"):  # nobody is there to approve
        small[f"{KEY}operator"].pop(key, None)
    cluster = small[f"{KEY}cluster"]
    cluster |= {"brokers": 1, "storage": {"type": "ephemeral"}, "protect": False}
    for key in ("nodePools", "config", "rack", "resources", "metrics", "version"):
        cluster.pop(key, None)
    for topic in small.get(f"{KEY}topics", []):
        topic["replicas"] = 1
        topic.get("config", {}).pop("min.insync.replicas", None)
    for mirror in small.get(f"{KEY}mirrors", []):
        mirror |= {"replicationFactor": 1, "replicas": 1, **INTERVALS}
        for key in ("metrics", "rack", "resources", "jvm", "scaling"):
            mirror.pop(key, None)
    small[f"{KEY}verification"] = {"when": "never"}
    return small


def _on_strimzi(small: Config) -> None:
    """Replace what only Event Streams has, and what its release of Kafka needs."""
    distribution = small[f"{KEY}platform"].get("distribution")
    small[f"{KEY}platform"] = _STRIMZI | ({"distribution": distribution} if distribution else {})
    if small[f"{KEY}operator"]["install"] == "olm":
        small[f"{KEY}operator"] = {"install": "olm", "channel": "strimzi-1.2.x"}
    cluster = small[f"{KEY}cluster"]
    cluster.pop("components", None)
    cluster["nodePool"] = cluster["name"]  # a resource of its own, also where two clusters share a namespace
    for user in small[f"{KEY}users"]:
        for entry in user.get("aclSets", []):
            entry.pop("separator", None)
    for mirror in small.get(f"{KEY}mirrors", []):
        for key in ("version", "separator"):
            mirror.pop(key, None)


def with_table(readme: str) -> str:
    """Return the README with the present table between its marks; raises ValueError without them."""
    before, rest = readme.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return before + BEGIN + table() + END + after


def write() -> None:
    """Write what is derived from the examples."""
    for example in examples():
        for stack in example.stacks:
            example.expected(stack).write_text(example.rendered(stack), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{len(examples())} examples written\n")


def main(arguments: Sequence[str]) -> int:
    """Run the command; return 0, or 2 if an example cannot be copied."""
    by_name = {example.name: example for example in examples()}
    parser = argparse.ArgumentParser(prog="python -m examples", description="Without a command: write derived files.")
    command = parser.add_subparsers(dest="command").add_parser("copy", help="make a project of one's own")
    command.add_argument("name", choices=by_name, metavar="NAME", help="name of the example")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="new folder of the project")
    command.add_argument("--small", action="store_true", help="one broker a cluster, short intervals, no approval")
    given = parser.parse_args(arguments)
    if given.command is None:
        write()
        return 0
    try:
        files = copy(by_name[given.name], given.folder.absolute(), small=given.small)
    except CopyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write("".join(f"{file}\n" for file in files))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
