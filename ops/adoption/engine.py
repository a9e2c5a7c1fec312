"""What Pulumi's engine is asked for an adoption: a preview as JSON, an import, and a state that knows what it holds.

After `pulumi import` the state of a custom resource lacks its spec, because Pulumi has no schema of it. Where the live
object is what the program declares, the declaration is put there, so that the next preview compares like with like.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ops.connection import no_pulumi
from ops.errors import OpsError
from ops.exit_codes import explain_exit

TIMEOUT_S = 300
_WAITS = "pulumi.com/"
_MANAGED_BY = "app.kubernetes.io/managed-by"
_CLIENT_SIDE = {"PULUMI_K8S_ENABLE_SERVER_SIDE_APPLY": "false"}
Inputs = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One resource that the program declares: its URN, type, parent, and inputs if it is not a component."""

    urn: str
    type: str
    parent: str | None
    inputs: Inputs | None

    @property
    def name(self) -> str:
        """Pulumi's name of the resource."""
        return self.urn.rsplit("::", 1)[-1]

    @property
    def is_known(self) -> bool:
        """Whether its inputs are known: what depends on an object that is not there yet is only a placeholder."""
        return self.inputs is not None and not isinstance(self.inputs.get("spec"), str)

    @property
    def place(self) -> tuple[str, str, str]:
        """Kind, namespace and name of the Kubernetes object."""
        metadata = (self.inputs or {}).get("metadata") or {}
        return str((self.inputs or {}).get("kind")), str(metadata.get("namespace", "")), str(metadata.get("name"))

    @property
    def id(self) -> str:
        """Pulumi's id of the Kubernetes object."""
        return "/".join(part for part in self.place[1:] if part)

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations of the object without those with which Pulumi waits."""
        return {key: value for key, value in self._annotations().items() if not key.startswith(_WAITS)}

    @property
    def waits(self) -> dict[str, str]:
        """Annotations with which Pulumi waits for the object; without them in the object a preview shows a change."""
        return {key: value for key, value in self._annotations().items() if key.startswith(_WAITS)}

    def _annotations(self) -> dict[str, str]:
        annotations = ((self.inputs or {}).get("metadata") or {}).get("annotations") or {}
        return {key: str(value) for key, value in annotations.items()}


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Pulumi's command line on one stack of one project folder."""

    folder: Path
    stack: str

    def ensure_stack(self) -> None:
        """Make the stack if the backend has none of that name."""
        self._run("stack", "select", "--create", self.stack)

    def declared(self) -> list[Declared]:
        """Return what a preview wants to create or change, in order of registration, without what it only reads."""
        # Nothing is taken over yet: what others own is no conflict here.
        document = json.loads(self._run("preview", "--json", "--stack", self.stack, **_CLIENT_SIDE).stdout)
        found = []
        for step in document["steps"]:
            new = step.get("newState") or {}
            if step["op"] in ("read", "refresh", "delete") or new.get("type") == "pulumi:pulumi:Stack":
                continue
            found.append(
                Declared(
                    urn=step["urn"],
                    type=new["type"],
                    parent=new.get("parent"),
                    inputs=_declared_inputs(new) if new.get("custom") else None,
                )
            )
        return found

    def changes(self) -> dict[str, int]:
        """Return what a preview would do, by operation, without what stays or is only read."""
        document = json.loads(self._run("preview", "--json", "--stack", self.stack).stdout)
        summary: dict[str, int] = document["changeSummary"]
        return {operation: count for operation, count in summary.items() if operation not in ("same", "read")}

    def take(self, import_file: Path) -> None:
        """Run `pulumi import`; nothing in the cluster changes by it."""
        self._run(
            *("import", "--file", str(import_file), "--stack", self.stack, "--yes"),
            *("--generate-code=false", "--skip-preview"),
        )

    def settle(self, settled: Mapping[str, Inputs]) -> None:
        """Put the inputs of resources, by URN, into the stack's state. Secrets in it stay encrypted."""
        state = json.loads(self._run("stack", "export", "--stack", self.stack).stdout)
        for resource in state["deployment"]["resources"]:
            if resource["urn"] in settled:
                resource["inputs"] = settled[resource["urn"]]
                resource["outputs"]["__inputs"] = settled[resource["urn"]]
        with tempfile.TemporaryDirectory(prefix="rt-inventory-adopt-") as folder:
            path = Path(folder) / "state.json"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(state, file)
            self._run("stack", "import", "--file", str(path), "--stack", self.stack)

    def _run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", "-C", str(self.folder), "--non-interactive", *arguments]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment},
                check=False,
            )
        except FileNotFoundError as error:
            raise no_pulumi(self.stack) from error
        except subprocess.TimeoutExpired as error:
            raise OpsError(f"stack {self.stack}: `pulumi {arguments[0]}` must end within {TIMEOUT_S} s.") from error
        if done.returncode != 0:
            said = (_diagnostics(done.stdout) or done.stderr or done.stdout).strip()[-1500:]
            raise OpsError(
                f"stack {self.stack}: `pulumi {arguments[0]}` must succeed ({explain_exit(done.returncode)}; {said})."
            )
        return done


def import_document(declared: list[Declared], exists: Callable[[Declared], bool]) -> dict[str, Any]:
    """Return the file that `pulumi import` reads: the components, and below them the objects that exist."""
    components = {each.urn for each in declared if each.inputs is None}
    resources = []
    for each in declared:
        entry: dict[str, Any] = {"type": each.type, "name": each.name}
        if each.parent in components:
            entry["parent"] = str(each.parent).rsplit("::", 1)[-1]
        if each.inputs is None:
            entry["component"] = True
        elif exists(each):
            entry |= {"id": each.id, "version": version("pulumi-kubernetes")}
        else:
            continue
        resources.append(entry)
    return {"resources": resources}


def _declared_inputs(new: Mapping[str, Any]) -> Inputs:
    """A resource's inputs without the label that the provider adds when it applies on the client's side."""
    inputs: Inputs = dict(new.get("inputs") or {})
    metadata = dict(inputs.get("metadata") or {})
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != _MANAGED_BY}
    return {**inputs, "metadata": {**metadata, **({"labels": labels} if labels else {})}}


def _diagnostics(stdout: str) -> str:
    """What the engine complains about, from a preview's JSON."""
    try:
        document = json.loads(stdout)
    except ValueError:
        return ""
    messages = [each.get("message", "") for each in document.get("diagnostics") or [] if each["severity"] == "error"]
    return " ".join(message.strip() for message in messages)
