"""What the examples are: their stacks, the manifests they render to, and the table of topologies and platforms."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from components.__main__ import text
from components.rendering import Manifest, manifests
from settings import Stack
from settings.files import load
from settings.platform import EVENT_STREAMS, STRIMZI_V1, STRIMZI_V1BETA2

FOLDER = Path(__file__).resolve().parent
PLATFORMS = {STRIMZI_V1: "Strimzi 1.x", STRIMZI_V1BETA2: "Strimzi 0.45 to 0.51", EVENT_STREAMS: "Event Streams"}
EXTERNAL = "external clusters"
HEADER = "# What `make render` writes for this stack; `python -m examples` writes it anew.\n"
DASHBOARD = "the content of this file of monitoring/dashboards/json, which is too long for here\n"


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
