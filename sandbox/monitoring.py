"""Prometheus and Alertmanager of a running sandbox: asked for here, started and supervised by the operator."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.processes import Processes
from sandbox.state import SandboxState, StateError, read_json, write_private
from sandbox.toolchain import ToolchainError, Tools

PROMETHEUS, ALERTMANAGER = "prometheus", "alertmanager"
VARIABLES = {PROMETHEUS: "PROMETHEUS_URL", ALERTMANAGER: "ALERTMANAGER_URL"}
CONFIGURED_BY = "alertmanager_config"  # in the request and in the answer: the user's file, or null


@dataclass(frozen=True)
class MonitoringFiles:
    """Paths below one folder."""

    folder: Path

    @property
    def request(self) -> Path:
        """Written by the command line: monitoring is wanted, and with which configuration of Alertmanager."""
        return self.folder / "request.json"

    @property
    def addresses(self) -> Path:
        """Written by the operator: name of a server → host and port, and what it was configured by."""
        return self.folder / "addresses.json"

    @property
    def prometheus(self) -> Path:
        """Prometheus' configuration, written by the operator."""
        return self.folder / "prometheus.yml"

    @property
    def alertmanager(self) -> Path:
        """The user's part of Alertmanager's configuration, to which `routing` adds; read again after an edit."""
        return self.folder / "alertmanager.yml"

    @property
    def routing(self) -> Path:
        """Alertmanager's configuration unless the request names another, with what AlertmanagerConfigs add.

        Written by the operator.
        """
        return self.folder / "alertmanager-in-use.yml"

    @property
    def secrets(self) -> Path:
        """Folder of addresses that AlertmanagerConfigs name by Secrets, a file each."""
        return self.folder / "secrets"

    @property
    def pods(self) -> Path:
        """Everything that exports metrics, as Kubernetes' discovery would list its pods."""
        return self.folder / "pods.json"

    @property
    def targets(self) -> Path:
        """Folder for files of targets that are no pods, in Prometheus' format, JSON."""
        return self.folder / "targets"

    @property
    def rules(self) -> Path:
        """Folder for files of rules beside those of PrometheusRules, YAML."""
        return self.folder / "rules"

    @property
    def from_objects(self) -> Path:
        """Folder of the rules of PrometheusRules, written by the operator."""
        return self.folder / "rules-of-objects"

    def rule_files(self) -> list[Path]:
        """All files of rules."""
        return sorted([*self.rules.glob("*.y*ml"), *self.from_objects.glob("*.json")])


def urls(state: SandboxState) -> dict[str, str]:
    """Addresses of both servers by name, empty unless they were asked for and the operator chose their ports."""
    found = read_json(MonitoringFiles(state.monitoring).addresses)
    return {name: f"http://{found[name]}" for name in VARIABLES if name in found}


def environment(state: SandboxState) -> dict[str, str]:
    """The addresses as variables, for commands that ask or feed the servers."""
    return {VARIABLES[name]: url for name, url in urls(state).items()}


READY_WITHIN_S, STOPPED_WITHIN_S = 60.0, 60.0
CHECK_S = 20.0


class MonitoringError(Exception):
    """Prometheus or Alertmanager does not start or stop; the message names it and its log."""


def check(tools: Tools, alertmanager_config: Path | None) -> None:
    """Raise ToolchainError if the programs are not installed, StateError if Alertmanager refuses the file."""
    missing = [path.name for path in (tools.prometheus, tools.promtool, tools.alertmanager) if not path.exists()]
    if missing:
        raise ToolchainError(f"monitoring: not installed: {', '.join(missing)}. Run `make setup`.")
    if alertmanager_config is None:
        return
    if not alertmanager_config.is_file():
        raise StateError(f"--alertmanager-config: must be a file (got {alertmanager_config}). Name one that exists.")
    command = [str(tools.amtool), "check-config", str(alertmanager_config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False)
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[:1000]
        raise StateError(f"--alertmanager-config: amtool must accept the file (got: {words}). Correct it.")


def up(state: SandboxState, alertmanager_config: Path | None, report: Callable[[str], None]) -> None:
    """Ask the operator for both servers, or for another file of Alertmanager's, and wait until they answer.

    Without a file Alertmanager keeps the one that it has. Raises MonitoringError if one does not answer in time.
    """
    files = MonitoringFiles(state.monitoring)
    files.folder.mkdir(mode=0o700, exist_ok=True)
    before = read_json(files.request)
    wanted = {CONFIGURED_BY: str(alertmanager_config.absolute()) if alertmanager_config else None}
    if not before or alertmanager_config:
        write_private(files.request, json.dumps(wanted) + "\n")
    began = time.monotonic()
    waiting = {PROMETHEUS, ALERTMANAGER}
    while waiting := {name for name in waiting if not _is_ready(state, name)}:
        if time.monotonic() > began + READY_WITHIN_S:
            words = ", ".join(f"{name} (log: {state.log(name)})" for name in sorted(waiting))
            raise MonitoringError(
                f"monitoring: must be ready within {READY_WITHIN_S:.0f} s (got no answer of {words}). "
                f"See the operator's log: {state.log('operator')}."
            )
        time.sleep(0.2)
    for name, url in urls(state).items():
        report(f"{name}: ready at {url}")


def down(state: SandboxState) -> bool:
    """True if it was asked for or ran; what it read and wrote stays. Raises MonitoringError if it runs on."""
    files = MonitoringFiles(state.monitoring)
    asked = files.request.exists()
    files.request.unlink(missing_ok=True)
    if not asked and not _is_left(state):
        return False
    began = time.monotonic()
    while _is_left(state):
        if time.monotonic() > began + STOPPED_WITHIN_S:
            raise MonitoringError(
                f"monitoring: must be stopped within {STOPPED_WITHIN_S:.0f} s (got at least one still running). "
                f"See the operator's log: {state.log('operator')}."
            )
        time.sleep(0.2)
    return True


def _is_left(state: SandboxState) -> bool:
    known = {PROMETHEUS, ALERTMANAGER}.intersection(Processes(state).names())
    return bool(known) or MonitoringFiles(state.monitoring).addresses.exists()


def _is_ready(state: SandboxState, name: str) -> bool:
    files, url = MonitoringFiles(state.monitoring), urls(state).get(name)
    answered = read_json(files.addresses).get(CONFIGURED_BY) == read_json(files.request).get(CONFIGURED_BY)
    if url is None or not answered or not Processes(state).alive(name):
        return False
    import httpx  # loads slowly, and each `pulumi` of a sandbox imports this module

    try:
        return httpx.get(f"{url}/-/ready", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False
