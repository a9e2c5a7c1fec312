"""The demo in the sandbox: the sandbox is started for it, and the source's brokers are killed.

Also the text that a demo prints in the end, here and on real clusters: commands to type, and client properties.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sandbox.demo import SOURCE, TARGET, StageError, Stages, measurements
from sandbox.demo.measurements import client_config
from sandbox.processes import Processes, resident_bytes
from sandbox.pulumi import Pulumi
from sandbox.state import PROJECT, SandboxState, write_private
from sandbox.toolchain import Tools

UP_S, PULUMI_S, BROKER_S, START_S, DOWN_S = 120, 420, 120, 90, 90
_MIB = 1024 * 1024


class SandboxClusters:
    """A sandbox in one state folder; see `DemoClusters`."""

    timeout_factor = 1.0
    failover: tuple[str, ...] = ("--unplanned",)

    def __init__(self, state: SandboxState, tools: Tools, latency: str | None = None) -> None:
        self._state = state
        self._latency = latency
        self._pulumi = Pulumi(state, tools)
        self._processes = Processes(state)
        state.create()

    @property
    def logs(self) -> Path:
        """The sandbox's logs."""
        return self._state.logs

    @property
    def reports(self) -> Path:
        """The sandbox's reports, which `down` leaves."""
        return self._state.reports

    @property
    def project(self) -> Path:
        """A folder of the sandbox."""
        return self._state.path / "demo"

    def environment(self) -> dict[str, str]:
        """The environment with the sandbox's on top."""
        return {**os.environ, **self._pulumi.environment()}

    def begin(self, stages: Stages) -> None:
        """Start the sandbox, and put the distance between the sites before there are any."""
        with stages.stage("sandbox up"):
            self._sandbox(stages, "sandbox-up", "up", timeout_s=UP_S)
        if self._latency is not None:
            with stages.stage(f"{self._latency} between the sites"):
                self._sandbox(stages, "network", "network", "--latency", self._latency, timeout_s=UP_S)

    def up(self, stages: Stages, stack: str) -> None:
        """Bring a stack up as it ships; raises PulumiError."""
        result = self._pulumi.run(stack, "up", "--yes", "--skip-preview", timeout_s=PULUMI_S)
        write_private(self._state.log(f"demo.pulumi-up-{stack}"), result.stdout + result.stderr)

    def outputs(self, stack: str) -> dict[str, Any]:
        """A stack's outputs, secrets in plain text."""
        return self._pulumi.outputs(stack, show_secrets=True)

    def resident_mib(self) -> int:
        """Memory of all processes of the sandbox."""
        return sum(resident_bytes(entry) for entry in self._processes.entries()) // _MIB

    def lose_source(self, stages: Stages, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        """Kill the source's brokers, which stay down."""
        self._copy_project()
        with stages.stage(f"lose {SOURCE}"):
            for name in self._source_brokers(outputs):
                self._sandbox(stages, "lose-source", "kill", name, "--hold", timeout_s=BROKER_S)

    def bring_source_back(self, stages: Stages, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        """Start the source's brokers again."""
        with stages.stage(f"{SOURCE} comes back"):
            for name in self._source_brokers(outputs):
                self._sandbox(stages, "start-source", "start", name, timeout_s=BROKER_S)
            measurements.wait_until_answers(outputs[SOURCE], START_S)

    def next_steps(self) -> str:
        """What to type next in the sandbox that is kept."""
        outputs = {stack: self.outputs(stack) for stack in (SOURCE, TARGET)}
        clients = {stack: client_properties(self._state.path, stack, outputs[stack]) for stack in outputs}
        return next_steps_in_sandbox(self._state, clients, outputs[TARGET]["cluster"]["namespace"])

    def end(self, stages: Stages, *, keep: bool, complete: bool) -> None:
        """Stop the sandbox, unless it is to be kept and all stages ran."""
        if not (keep and complete):
            with stages.stage("sandbox down"):
                self._sandbox(stages, "sandbox-down", "down", timeout_s=DOWN_S)

    def _sandbox(self, stages: Stages, label: str, *arguments: str, timeout_s: float) -> None:
        stages.run(label, [sys.executable, "-m", "sandbox", *arguments], self.environment(), timeout_s)

    def _copy_project(self) -> None:
        self.project.mkdir(mode=0o700, exist_ok=True)
        write_project_file(self.project)
        for stack in (SOURCE, TARGET):
            text = self._pulumi.stack_file(stack).read_text(encoding="utf-8")
            write_private(self.project / f"Pulumi.{stack}.yaml", text)

    def _source_brokers(self, outputs: Mapping[str, Mapping[str, Any]]) -> list[str]:
        cluster = outputs[SOURCE]["cluster"]
        prefix = f"kafka.{cluster['namespace']}.{cluster['name']}."
        return [name for name in self._processes.names() if name.startswith(prefix)]


def write_project_file(folder: Path) -> None:
    """Write a `Pulumi.yaml` with this project's program, for stack files in another folder."""
    document = yaml.safe_load((PROJECT / "Pulumi.yaml").read_text(encoding="utf-8"))
    document["main"] = str(PROJECT)
    document["runtime"]["options"]["virtualenv"] = str(PROJECT / document["runtime"]["options"]["virtualenv"])
    write_private(folder / "Pulumi.yaml", yaml.safe_dump(document, sort_keys=False))


def refuse_if_running(state: SandboxState) -> None:
    """Raise StageError if a sandbox runs in this folder: the demo starts from nothing and stops everything."""
    processes = Processes(state)
    running = [name for name in processes.names() if processes.alive(name)]
    if running:
        raise StageError(
            f"demo: state folder must not be of a running sandbox (got {state.path} with {len(running)} processes). "
            "Stop it: `venv/bin/python -m sandbox down`."
        )


def client_properties(folder: Path, stack: str, outputs: Mapping[str, Any]) -> Path:
    """Write librdkafka's properties of a stack's user (0600, with the password) and return the file's path."""
    config = client_config(outputs)
    certificate = folder / f"client.{stack}.ca.crt"
    write_private(certificate, config.pop("ssl.ca.pem"))
    config["ssl.ca.location"] = str(certificate)
    properties = folder / f"client.{stack}.properties"
    write_private(properties, "".join(f"{key}={value}\n" for key, value in config.items()))
    return properties


def next_steps_in_sandbox(state: SandboxState, clients: Mapping[str, Path], namespace: str) -> str:
    """Return what to type next in a sandbox. Holds no secret."""
    return f"""The sandbox is still running (state: {state.path}).

  export RT_INVENTORY_SANDBOX={state.path}
  eval "$(venv/bin/python -m sandbox env)"   # for kubectl, pulumi and ops
  kubectl get strimzi -A
  kubectl -n {namespace} get kmm2 mm2 -o yaml
  venv/bin/python -m sandbox pulumi -- preview -s stg
  venv/bin/python -m sandbox status

The source is back and active again. Send and verify, check the mirror, and
see what a failover would do:

  venv/bin/python -m ops produce --stack dev --count 100
  venv/bin/python -m ops verify --stack stg
  venv/bin/python -m ops status --stack stg
  venv/bin/python -m ops failover --to stg --exact --dry-run

Client properties (librdkafka; they contain a password, keep them to yourself):

{_lines(clients)}

Every command, with what it prints: docs/first-ten-minutes.md
Stop everything: venv/bin/python -m sandbox down
"""


def next_steps_on_clusters(
    project: Path, variables: Mapping[str, str], clients: Mapping[str, Path], remove: str
) -> str:
    """Return what to type next on the clusters of the kubeconfig. Holds no secret."""
    exports = "\n".join(f"  export {name}={shlex.quote(value)}" for name, value in variables.items())
    return f"""Both stacks are still there (stack files and Pulumi's state: {project}).

{exports}
  unset PULUMI_CONFIG_PASSPHRASE
  venv/bin/python -m ops produce --stack dev --count 100
  venv/bin/python -m ops verify --stack stg
  venv/bin/python -m ops status --stack stg -C {shlex.quote(str(project))}
  venv/bin/python -m ops failover --to stg --exact --dry-run -C {shlex.quote(str(project))}

Client properties (librdkafka; they contain a password, keep them to yourself):

{_lines(clients)}

Remove everything: {remove}
"""


def _lines(clients: Mapping[str, Path]) -> str:
    return "\n".join(f"  {stack}: {path}" for stack, path in sorted(clients.items()))
