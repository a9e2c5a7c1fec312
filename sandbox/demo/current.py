"""The demo on the Kubernetes clusters of the kubeconfig, with Pulumi from PATH.

Owns a folder with Pulumi's state, its passphrase and the demo's stack files: the user's own stacks are not touched.
Everything that it makes is in namespaces of its own, which must not exist before and are gone afterwards.

The source is not lost here but left by a planned failover. To kill a broker means nothing where Strimzi starts it again
within seconds, and what would keep it down (to pause its operator, to delete the Kafka resource) leaves topics behind
whose finalizers nobody removes any more, so that the namespace could not be deleted. The sandbox loses its source.
"""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from sandbox.demo import SOURCE, TARGET, StageError, Stages

from ..state import ENVIRONMENT_VARIABLE, PROJECT, write_private
from . import in_sandbox
from .in_sandbox import write_project_file
from .kubernetes import NAMESPACES, DemoRefusedError, Document, KubernetesCluster, stack_files

FOLDER_VARIABLE = "RT_INVENTORY_DEMO"
STACKS = (SOURCE, TARGET)
_INIT_S, _UP_S, _OUTPUT_S, _CANCEL_S, _DESTROY_S = 120, 2400, 60, 60, 1800
_PROGRESS = "waiting up to"
# They would win over the demo's own backend and passphrase, or choose another stack.
_DROPPED = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_ACCESS_TOKEN", "PULUMI_STACK", ENVIRONMENT_VARIABLE)
REMOVE = "make demo CLUSTER=current REMOVE=1"


class CurrentClusters:
    """The clusters of the kubeconfig; see `DemoClusters`."""

    timeout_factor = 3.0
    failover: tuple[str, ...] = ("--exact",)

    def __init__(self, folder: Path, files: Mapping[str, Document], *, keep: bool) -> None:
        """Take a folder that no demo uses, and the stack files to deploy."""
        self._folder = folder
        self._files = files
        self._keep = keep

    @property
    def logs(self) -> Path:
        """They stay."""
        return self._folder / "logs"

    @property
    def reports(self) -> Path:
        """They stay."""
        return self._folder / "reports"

    @property
    def project(self) -> Path:
        """Stack files, state and passphrase; it exists for as long as something may be left in a cluster."""
        return self._folder / "project"

    def environment(self) -> dict[str, str]:
        """The user's environment with the demo's own Pulumi state, without the Pulumi of a sandbox."""
        return _environment(self.project)

    def plan(self) -> list[str]:
        """What will be made and where, in lines to show before anything is done."""
        lines = ["The demo makes, and deletes at its end:" if not self._keep else "The demo makes, and keeps:"]
        for stack, file in self._files.items():
            values = file["config"]
            cluster, operator = values["rt-inventory:cluster"], values["rt-inventory:operator"]
            lines.append(
                f"  {stack}: context {values['kubernetes:context']}, namespace {cluster['namespace']}: one broker, "
                f"exposed by {' at '.join(cluster['expose'].values())}, {_described(operator)}"
            )
        lines.append("  a MirrorMaker 2 worker beside the target's broker; 1 GiB of memory for each of the three")
        if any(file["config"]["rt-inventory:operator"]["install"] != "none" for file in self._files.values()):
            lines.append("Strimzi's custom resource definitions stay: other clusters may use them.")
        return [*lines, f"Pulumi's state is in {self.project}; no other stack is touched."]

    def begin(self, stages: Stages) -> None:
        """Write the stack files and make both stacks in a backend of their own; they are empty."""
        with stages.stage("pulumi stack init"):
            self.project.mkdir(mode=0o700, parents=True)
            (self.project / "state").mkdir(mode=0o700)
            write_private(self.project / "passphrase", secrets.token_urlsafe(32))
            write_project_file(self.project)
            for stack, document in self._files.items():
                write_private(self.project / f"Pulumi.{stack}.yaml", yaml.safe_dump(document, sort_keys=False))
                self._pulumi(stages, "stack", "init", stack, "--no-select", timeout_s=_INIT_S)

    def up(self, stages: Stages, stack: str) -> None:
        """Bring a stack up, and report what it waits for."""
        self._pulumi(stages, "up", "--stack", stack, "--yes", "--skip-preview", timeout_s=_UP_S)

    def outputs(self, stack: str) -> dict[str, Any]:
        """A stack's outputs, secrets in plain text: they reach no log."""
        command = ["pulumi", "-C", str(self.project), "stack", "output", "--stack", stack, "--json", "--show-secrets"]
        try:
            result = subprocess.run(
                command, env=self.environment(), capture_output=True, text=True, timeout=_OUTPUT_S, check=True
            )
        except subprocess.SubprocessError as error:
            raise StageError(f"stack {stack}: its outputs must be readable (got {type(error).__name__}).") from None
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def resident_mib(self) -> None:
        """Not known."""

    def lose_source(self, stages: Stages, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        """Nothing: the failover is planned, see above."""

    def bring_source_back(self, stages: Stages, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        """Nothing: it runs."""

    def next_steps(self) -> str:
        """What to type next with the stacks that are kept."""
        outputs = {stack: self.outputs(stack) for stack in STACKS}
        clients = {stack: in_sandbox.client_properties(self.project, stack, outputs[stack]) for stack in outputs}
        return in_sandbox.next_steps_on_clusters(self.project, pulumi_variables(self.project), clients, REMOVE)

    def end(self, stages: Stages, *, keep: bool, complete: bool) -> None:
        """Destroy both stacks, unless they are to be kept; raises StageError naming what is left."""
        if not self.project.exists():
            return
        if not keep:
            remove(self._folder, stages)
        elif not complete:
            stages.report(f"{_left(self.project)} Remove it: {REMOVE}")

    def _pulumi(self, stages: Stages, *arguments: str, timeout_s: float) -> None:
        _pulumi(self.project, stages, *arguments, timeout_s=timeout_s)


def prepare(
    folder: Path,
    contexts: Mapping[str, str | None],
    release: Path | None,
    expose: str | None,
    *,
    keep: bool,
) -> CurrentClusters:
    """Return the demo's clusters when all that can be checked before is right; raises DemoRefusedError."""
    if shutil.which("pulumi", path=_path_without_sandbox(os.environ)) is None:
        raise DemoRefusedError(
            "Pulumi: pulumi must be on PATH (not found). Install it: https://www.pulumi.com/docs/install"
        )
    if (folder / "project").exists():
        raise DemoRefusedError(f"{_left(folder / 'project')} Remove it before another one runs: {REMOVE}")
    if release is not None and not any(release.glob("*.y*ml")):
        raise DemoRefusedError(
            f"STRIMZI: must be a folder with the YAML files of a release (got {release} without one). "
            "Download them: make strimzi."
        )
    clusters = {stack: KubernetesCluster.read(contexts[stack]) for stack in STACKS}
    shipped = {
        stack: yaml.safe_load((PROJECT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")) for stack in STACKS
    }
    files = stack_files(shipped, clusters, release and release.absolute(), expose)
    return CurrentClusters(folder, files, keep=keep)


def default_folder(environment: Mapping[str, str]) -> Path:
    """The folder that RT_INVENTORY_DEMO names, else `.demo` in the project."""
    return Path(environment.get(FOLDER_VARIABLE) or PROJECT / ".demo").expanduser().absolute()


def remove(folder: Path, stages: Stages) -> bool:
    """Destroy what a demo has left, the target first; return whether there was something.

    Raises StageError naming what is left. A lock that an interrupted Pulumi left is removed: nobody else has
    these stacks, see `alone`.
    """
    project = folder / "project"
    if not project.exists():
        return False
    try:
        for stack in reversed(STACKS):
            if not any((project / "state").glob(f".pulumi/stacks/*/{stack}.json*")):
                continue  # the demo ended before it had made the stack
            with stages.stage(f"pulumi destroy -s {stack}"):
                with suppress(StageError):  # it fails where there is no lock
                    _pulumi(project, stages, "cancel", stack, "--yes", timeout_s=_CANCEL_S)
                _pulumi(project, stages, "destroy", "--stack", stack, "--yes", "--skip-preview", timeout_s=_DESTROY_S)
    except StageError as error:
        raise StageError(f"{error} {_left(project)} Try again: {REMOVE}", error.log, error.tail) from None
    shutil.rmtree(project)
    return True


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder for one demo at a time; raises DemoRefusedError while another one has it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoRefusedError(
                f"demo: folder {folder} must not be used by another demo (got one that runs). Wait until it has ended."
            ) from None
        yield


def pulumi_variables(project: Path) -> dict[str, str]:
    """The variables by which Pulumi uses the demo's own state. Hold no secret."""
    return {
        "PULUMI_BACKEND_URL": f"file://{project}/state",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(project / "passphrase"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def _environment(project: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    return {**kept, **pulumi_variables(project), "PATH": _path_without_sandbox(os.environ)}


def _pulumi(project: Path, stages: Stages, *arguments: str, timeout_s: float) -> None:
    label = "-".join(["pulumi", *(word for word in arguments if not word.startswith("-"))])
    command = ["pulumi", "-C", str(project), *arguments, "--non-interactive", "--color", "never"]
    stages.run(label, command, _environment(project), timeout_s, interrupted_once=True, show=_PROGRESS)


def _left(project: Path) -> str:
    """What a demo has left, by its stack files."""
    places = []
    for stack in STACKS:
        with suppress(OSError):
            file = yaml.safe_load((project / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))
            places.append(f"namespace {NAMESPACES[stack]} in context {file['config']['kubernetes:context']}")
    return f"A demo is still there: {', '.join(places) or 'its stacks'} (state: {project})."


def _described(operator: Mapping[str, Any]) -> str:
    texts = {
        "none": "Strimzi's operator for all namespaces",
        "olm": "Strimzi's operator by OLM",
        "yaml": f"Strimzi's operator from {operator.get('folder')}"
        + (", for all namespaces" if operator.get("allNamespaces") else ""),
    }
    return texts[operator["install"]]


def _path_without_sandbox(environment: Mapping[str, str]) -> str:
    """PATH without the Pulumi of a sandbox, which has a state of its own."""
    sandbox = environment.get(ENVIRONMENT_VARIABLE)
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(each for each in folders if not sandbox or each != str(Path(sandbox).absolute() / "bin"))
