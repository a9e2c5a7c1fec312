"""Where the files of monitoring lie in the state folder: what the command line asks for, what the operator answers."""

from dataclasses import dataclass
from pathlib import Path

from .state import SandboxState, read_json

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
        """What `routing` begins with; may be edited, and is read again then."""
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
        """All that exports metrics, as Kubernetes would tell it of pods."""
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
