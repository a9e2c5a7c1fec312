"""What the sandbox tests share: the running sandbox, both stacks' outputs, waiting, and logs for a failure."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sandbox.operator.kubernetes_api import MIRROR, Kubernetes
from sandbox.processes import Processes
from sandbox.pulumi import Pulumi
from sandbox.state import SandboxState
from sandbox.toolchain import Tools, locate

from .waiting import at_most

_TAIL_LINES = 25
_TAIL_BYTES = 256 * 1024
_REQUEST = "(org.apache.kafka.connect.runtime.rest.RestServer:"


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox. `said` is what its start printed, `seconds` how long it took."""

    state: SandboxState
    tools: Tools
    pulumi: Pulumi
    seconds: float = 0.0
    said: list[str] = field(default_factory=list)

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.state.kubeconfig

    @property
    def kubectl_cache(self) -> Path:
        """What kubectl remembers of the kinds that are served; to be removed when there are fewer."""
        return self.state.path.parent / "kubectl"

    @property
    def processes(self) -> Processes:
        """The process registry."""
        return Processes(self.state)

    @cached_property
    def kubernetes(self) -> Kubernetes:
        """The API server over a connection that is kept, for frequent requests: a kubectl takes 0.1 s of a core."""
        return Kubernetes(self.kubeconfig)

    def mirror(self, namespace: str, name: str) -> dict[str, Any]:
        """A KafkaMirrorMaker2 that is there."""
        found = self.kubernetes.get(MIRROR, namespace, name)
        assert found is not None, f"KafkaMirrorMaker2 {namespace}/{name} must be there"
        return found

    def brokers(self, namespace: str) -> list[str]:
        """Names of the processes of a namespace's brokers, dead ones too."""
        return [name for name in self.processes.names() if name.startswith(f"kafka.{namespace}.")]

    def secret(self, namespace: str, name: str) -> dict[str, str]:
        """The decoded values of a Secret that is there."""
        found = self.kubernetes.secret(namespace, name)
        assert found is not None, f"Secret {namespace}/{name} must be there"
        return found

    def environment(self) -> dict[str, str]:
        """The caller's environment with the sandbox's on top, for commands that a user would type."""
        return {**os.environ, **self.pulumi.environment()}

    def kubectl(
        self, *args: str, kubeconfig: Path | None = None, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, as the admin unless another kubeconfig is given."""
        files = f"--kubeconfig={kubeconfig or self.kubeconfig}", f"--cache-dir={self.kubectl_cache}"
        command = [str(self.tools.kubectl), *files, *args]
        result = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=at_most(120), check=False)
        assert not check or result.returncode == 0, f"kubectl {' '.join(args)}: {result.stderr}"
        return result

    def wait_ready(self, namespace: str, name: str, within_s: float = 60) -> None:
        """Wait until an object is Ready, for example `wait_ready("rt-inventory-stg", "kafkamirrormaker2/mm2")`."""
        self.kubectl("wait", "-n", namespace, name, "--for=condition=Ready", f"--timeout={at_most(within_s):.0f}s")

    def get(self, *args: str) -> dict[str, Any]:
        """A Kubernetes object or list, for example `get("kafka", "-n", "rt-inventory-dev", "rt-inventory-dev")`.

        Kinds of Kafka are Strimzi's: Event Streams has some of the same name.
        """
        kind, *rest = args
        kind += ".kafka.strimzi.io" if kind.startswith("kafka") and "." not in kind else ""
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, *rest, "-o", "json").stdout)
        return found

    def tails(self) -> str:
        """The last lines of the operator's and the Java processes' logs, for the message of a failed test."""
        logs = sorted(self.state.logs.glob("*.log"), key=lambda path: (path.stem != "operator", path.stem))
        return "\n\n".join(f"--- {path} ---\n{tail(path)}" for path in logs if path.stem != "plane")


@dataclass(frozen=True)
class Pair:
    """Outputs of both stacks, secrets in plain text, and how long each `pulumi up` took."""

    dev: dict[str, Any]
    stg: dict[str, Any]
    seconds: dict[str, float]


def environment_beside(folder: Path) -> dict[str, str]:
    """Everything that the CLI needs for a project in that folder, its state beside it, in no sandbox."""
    tools = locate()
    return {
        "PATH": os.pathsep.join([str(tools.bin), "/usr/bin", "/bin"]),
        "HOME": str(folder),
        "PULUMI_HOME": str(tools.pulumi_home),
        "PULUMI_BACKEND_URL": f"file://{folder}/state",
        "PULUMI_CONFIG_PASSPHRASE": "made-up",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def tail(path: Path) -> str:
    """The last lines of a file that may be long, without those of requests to Connect: a test that waits makes many."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join([line for line in lines if _REQUEST not in line][-_TAIL_LINES:])
