"""The state folder of one sandbox: where everything lies, and who may read it.

Owns names and modes of files. Does not own their content; `control_plane.down` removes the folder of a running sandbox.
"""

import json
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.files import NewFile, replace_files

ENVIRONMENT_VARIABLE = "RT_INVENTORY_SANDBOX"
PROJECT = Path(__file__).resolve().parent.parent
_MARKER = "sandbox.json"
_PRIVATE = 0o600
_KEPT = {_MARKER, "lock", "logs", "reports"}


class StateError(Exception):
    """The state folder cannot be used; the message has the reason and what to do."""


@dataclass(frozen=True)
class SandboxState:
    """Paths below one state folder. The folder and all below it belong to the user alone (0700, files 0600)."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", self.path.expanduser().absolute())

    @property
    def kubeconfig(self) -> Path:
        """Admin kubeconfig with a client certificate of this run."""
        return self.path / "kubeconfig"

    @property
    def operator_kubeconfig(self) -> Path:
        """Kubeconfig of the operator: its own user with only the rights that it needs."""
        return self.path / "operator.kubeconfig"

    @property
    def run_info(self) -> Path:
        """JSON file with the ports in use, written when the control plane is ready."""
        return self.path / "facts.json"

    @property
    def plane(self) -> Path:
        """Folder of the control plane: etcd's data, certificates, keys, the controllers' kubeconfig."""
        return self.path / "plane"

    @property
    def logs(self) -> Path:
        """Folder of the logs, `<process>.log` each."""
        return self.path / "logs"

    @property
    def processes(self) -> Path:
        """Folder of the process registry, `<name>.json` each."""
        return self.path / "processes"

    @property
    def clusters(self) -> Path:
        """The operator's folder of Kafka clusters."""
        return self.path / "clusters"

    @property
    def mirrors(self) -> Path:
        """The operator's folder of MirrorMaker 2 workers."""
        return self.path / "mirrors"

    @property
    def pulumi(self) -> Path:
        """Pulumi's file backend, and the copies of the stack files."""
        return self.path / "pulumi"

    @property
    def monitoring(self) -> Path:
        """Folder of Prometheus and Alertmanager: configuration, rules, targets, data."""
        return self.path / "monitoring"

    @property
    def network(self) -> Path:
        """Folder of the network between the sites: what is asked for, and toxiproxy's address."""
        return self.path / "network"

    @property
    def passphrase(self) -> Path:
        """File with the passphrase that encrypts the secrets in Pulumi's state."""
        return self.path / "passphrase"

    @property
    def reports(self) -> Path:
        """Folder of verification reports; `down` leaves it."""
        return self.path / "reports"

    @property
    def lock(self) -> Path:
        """Lock file of `up` and `down`."""
        return self.path / "lock"

    def log(self, name: str) -> Path:
        """The log of a process."""
        return self.logs / f"{name}.log"

    def create(self) -> None:
        """Make the folder and those below it; raises StateError if it has other content than a sandbox's."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self.path / _MARKER).exists() and any(entry.name != "lock" for entry in self.path.iterdir()):
                raise StateError(
                    f"sandbox: state folder must be empty or a sandbox's (got {self.path} with other files). "
                    f"Set {ENVIRONMENT_VARIABLE} to a folder of its own."
                )
            self.path.chmod(0o700)
            write_private(self.path / _MARKER, '{"version": 1}\n')
            for folder in (self.plane, self.logs, self.processes, self.pulumi, self.reports):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StateError(
                f"sandbox: state folder must be writable (got {self.path}: {error.strerror}). "
                f"Make room or give the rights, or set {ENVIRONMENT_VARIABLE} to another folder."
            ) from error

    def exists(self) -> bool:
        """True if this folder is a sandbox's."""
        return (self.path / _MARKER).is_file()

    def clear(self, *, logs: bool = False) -> None:
        """Remove everything that belongs to one run; reports stay, and logs unless `logs`."""
        if not self.exists():
            return
        kept = _KEPT - {"logs"} if logs else _KEPT
        for entry in self.path.iterdir():
            if entry.name in kept:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def read_run_info(self) -> dict[str, Any]:
        """What `write_run_info` wrote, empty if the control plane never was ready."""
        return read_json(self.run_info)

    def write_run_info(self, content: Mapping[str, Any]) -> None:
        """Keep ports and times of this run for the commands that come later."""
        write_json(self.run_info, content)


def default_state(environment: Mapping[str, str]) -> SandboxState:
    """The state folder that RT_INVENTORY_SANDBOX names, else `.sandbox` in the project."""
    return SandboxState(Path(environment.get(ENVIRONMENT_VARIABLE) or PROJECT / ".sandbox"))


def private_folder(path: Path) -> Path:
    """The folder `path`, made with mode 0700 (parents too) if it did not exist."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def write_private(path: Path, content: str | bytes) -> bool:
    """True if the file is another one now: with this content, mode 0600, in one step so that nobody sees half of it."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == data and stat.S_IMODE(path.stat().st_mode) == _PRIVATE:
        return False
    private_folder(path.parent)
    replace_files([NewFile(path=path, parts=[data])], durable=False)
    return True


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, empty if the file does not exist."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` as a private JSON file."""
    write_private(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
