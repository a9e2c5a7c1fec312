"""Examples as tests run them: a small copy of the project in a folder of its own, with a user who may do everything."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from examples import __main__ as catalog
from examples.__main__ import KEY
from sandbox.pulumi import Pulumi, PulumiError
from sandbox.state import PROJECT

from .running_sandbox import Sandbox
from .waiting import at_most

UP_S, PREVIEW_S, UNPROTECT_S, DESTROY_S = map(at_most, (420, 120, 60, 300))
TESTER = "tester"
_EVERYTHING = [
    {"type": "topic", "names": ["*"], "operations": ["Read", "Write", "Describe"]},
    {"type": "group", "names": ["*"], "operations": ["Read", "Describe"]},
]
_PROJECT_FILE = """\
name: {name}
main: {main}
runtime:
  name: python
  options:
    virtualenv: {main}/venv
options:
  refresh: always
config:
  kubernetes:enableSecretMutable: true
  kubernetes:enableConfigMapMutable: true
"""
Document = dict[str, Any]


@dataclass
class Project:
    """One example's stacks. `config` are their settings by stack, which a test may change before the next `up`."""

    sandbox: Sandbox
    folder: Path
    config: dict[str, Document]
    pulumi: Pulumi
    _outputs: dict[str, Document] = field(default_factory=dict)

    @classmethod
    def of_example(cls, sandbox: Sandbox, example: str, folder: Path) -> "Project":
        """A copy of an example, made smaller, with a user beside its own that may read and write everything."""
        files = sorted((PROJECT / "examples" / example).glob("Pulumi.*.yaml"))
        config = {}
        for file in files:
            stack = file.name.removeprefix("Pulumi.").removesuffix(".yaml")
            config[stack] = smaller(yaml.safe_load(file.read_text(encoding="utf-8"))["config"])
        return cls.of_settings(sandbox, f"{example}-test", folder, config)

    @classmethod
    def of_settings(cls, sandbox: Sandbox, name: str, folder: Path, config: dict[str, Document]) -> "Project":
        """Stacks of which the test has all settings."""
        (folder / "Pulumi.yaml").write_text(_PROJECT_FILE.format(name=name, main=PROJECT), "utf-8")
        return cls(sandbox, folder, config, Pulumi(sandbox.state, sandbox.tools, folder))

    def entry(self, stack: str, key: str, name: str) -> Document:
        """One entry of a list in the settings, for example `entry("stg", "mirrors", "retail")`."""
        found: Document = next(each for each in self.config[stack][KEY + key] if each["name"] == name)
        return found

    def up(self, stack: str) -> str:
        """Bring a stack up as its settings say now and return what was said; fails the test if it did not work."""
        try:
            result = self.run(stack, "up", "--yes", "--skip-preview", timeout_s=UP_S)
        except PulumiError as error:
            raise AssertionError(f"{error}\n\n{self.sandbox.tails()}") from None
        assert result.returncode == 0, f"{output_of(result)}\n\n{self.sandbox.tails()}"
        self._outputs.pop(stack, None)
        return output_of(result)

    def preview(self, stack: str) -> "subprocess.CompletedProcess[str]":
        """What would be done now, or why nothing would."""
        return self.run(stack, "preview", timeout_s=PREVIEW_S)

    def run(self, stack: str, *arguments: str, timeout_s: float) -> "subprocess.CompletedProcess[str]":
        """Run a Pulumi command on a stack with its present settings."""
        self.write()
        return self.pulumi.run(stack, *arguments, check=False, timeout_s=timeout_s)

    def write(self) -> None:
        """Write the stack files as the settings are now."""
        for name, config in self.config.items():
            text = yaml.safe_dump({"config": config}, sort_keys=False)
            (self.folder / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")

    def destroy(self, *stacks: str) -> None:
        """Destroy the stacks in this order, protected as they are."""
        for stack in stacks:
            if self.config[stack].get(f"{KEY}cluster", {}).get("protect", True):
                self.run(stack, "state", "unprotect", "--all", "--yes", timeout_s=UNPROTECT_S)
            result = self.run(stack, "destroy", "--yes", "--skip-preview", timeout_s=DESTROY_S)
            assert result.returncode == 0, f"{output_of(result)}\n\n{self.sandbox.tails()}"

    def outputs(self, stack: str) -> Document:
        """The stack's outputs with secrets in plain text, asked once after each `up`."""
        if stack not in self._outputs:
            self._outputs[stack] = self.pulumi.outputs(stack, show_secrets=True)
        return self._outputs[stack]

    def namespace(self, stack: str) -> str:
        """Namespace of the stack's cluster."""
        return str(self.config[stack][f"{KEY}cluster"]["namespace"])

    def client(self, stack: str, user: str = TESTER) -> dict[str, Any]:
        """Properties of a Kafka client that logs in as one of the stack's users."""
        outputs = self.outputs(stack)
        return {
            "bootstrap.servers": outputs["cluster"]["bootstrapServers"],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": outputs["users"][user]["username"],
            "sasl.password": outputs["userPasswords"][user],
            "ssl.ca.pem": outputs["clusterCaCertificate"],
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }

    def mirror(self, stack: str, name: str) -> Document:
        """The mirror's resource in the API server."""
        namespace = self.outputs(stack)["mirrors"][name]["namespace"]
        return self.sandbox.mirror(namespace, name)

    def identity(self, stack: str, name: str) -> tuple[str, int]:
        """The resource's uid and generation: the same after an `up` that left it alone."""
        metadata = self.mirror(stack, name)["metadata"]
        return metadata["uid"], metadata["generation"]

    def worker(self, stack: str, name: str) -> str:
        """Name of the mirror's first worker process."""
        return f"mirror.{self.outputs(stack)['mirrors'][name]['namespace']}.{name}.0"

    def pid(self, stack: str, name: str) -> int | None:
        """Process id of the mirror's first worker."""
        return {entry.name: entry.pid for entry in self.sandbox.processes.entries()}.get(self.worker(stack, name))

    def log(self, stack: str, name: str) -> str:
        """What the mirror's first worker has logged."""
        path = self.sandbox.state.logs / f"{self.worker(stack, name)}.log"
        return path.read_text(encoding="utf-8", errors="replace")


def smaller(config: Document) -> Document:
    """A small copy's settings with one more user. Protected, as a production site is."""
    small = catalog.smaller(config)
    small[f"{KEY}cluster"]["protect"] = True
    small[f"{KEY}users"].append({"name": TESTER, "acls": _EVERYTHING, "exported": True})
    return small


def output_of(result: "subprocess.CompletedProcess[str]") -> str:
    """Both outputs of a command."""
    return result.stdout + result.stderr


def changes(said: str) -> list[tuple[str, str]]:
    """What an `up` or a preview changes: the operation and the resource's name, in Pulumi's words and order."""
    found = re.findall(r"^ *([~+-]+) +\S+ (\S+) (?:creat|updat|replac|delet)", said, re.MULTILINE)
    return list(dict.fromkeys(found))


def changed_mirror(name: str) -> list[tuple[str, str]]:
    """What an `up` that changes one mirror changes: the mirror, and the break-glass copy of what is deployed."""
    return [("~", f"{name}-mirror"), ("~", f"{name}-break-glass-secret")]


def unchanged(said: str) -> bool:
    """Whether the summary lists nothing but resources that stay."""
    summary = said.partition("Resources:")[2].partition("Duration:")[0]
    return re.fullmatch(r"\s*\d+ unchanged\s*", summary) is not None
