"""What Alertmanager runs with: a file of the user's as it is, or the own one and what AlertmanagerConfigs add to it."""

import hashlib
import json
import logging
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sandbox.monitoring_files import MonitoringFiles

from . import alertmanager_objects
from .files import write_json, write_private
from .kubernetes_api import Kubernetes, Object

logger = logging.getLogger(__name__)

CHECK_S = 20.0
# Nobody is told of anything unless a file or an object says so.
SILENT = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


class MissingSecretError(ValueError):
    """A Secret that an AlertmanagerConfig names, or its key, is not there."""


@dataclass
class Routing:
    """Writes the configuration; what Alertmanager would refuse of an object is left out and logged once."""

    kubernetes: Kubernetes
    files: MonitoringFiles
    amtool: Path
    _checked: dict[str, str] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def write(self, own: str | None, objects: Iterable[Object]) -> Path:
        """The file to run with; `own` is the user's, which knows of no objects."""
        if own:
            return Path(own)
        if not self.files.alertmanager.exists():
            write_json(self.files.alertmanager, SILENT)
        accepted = [found for resource in objects if (found := self._accepted(resource))]
        if not accepted:
            return self.files.alertmanager
        try:
            result = yaml.safe_load(self.files.alertmanager.read_text(encoding="utf-8"))
            for found in reversed(accepted):  # each comes first
                result = alertmanager_objects.merged(result, found)
        except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            self._tell(f"{self.files.alertmanager}: not read: {error!r}")
        else:
            write_private(self.files.routing, json.dumps(result, indent=1) + "\n")
        return self.files.routing if self.files.routing.exists() else self.files.alertmanager

    def _accepted(self, resource: Object) -> dict[str, Any] | None:
        name = f"AlertmanagerConfig {resource['metadata']['namespace']}/{resource['metadata']['name']}"
        try:
            found = alertmanager_objects.configuration(resource, self._secret_file)
        except ValueError as error:
            problem = str(error)
        else:
            problem = self._refusal(alertmanager_objects.merged(SILENT, found))
            if not problem:
                return found
        self._tell(f"{name}: left out: {problem}")
        return None

    def _tell(self, problem: str) -> None:
        """Log a problem when it comes up, and not again in every pass."""
        if problem not in self._told:
            self._told.add(problem)
            logger.error("%s", problem)

    def _refusal(self, content: Mapping[str, Any]) -> str:
        """What Alertmanager's checker says against a configuration; empty if nothing."""
        text = json.dumps(content)
        key = hashlib.sha256(text.encode()).hexdigest()
        if key not in self._checked:
            scratch = self.files.folder / "checked.yml"
            write_private(scratch, text)
            command = [str(self.amtool), "check-config", str(scratch)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False)
            words = " ".join((done.stderr or done.stdout).split())[:1000]
            self._checked[key] = words or "amtool refuses it" if done.returncode else ""
        return self._checked[key]

    def _secret_file(self, namespace: str, name: str, key: str) -> Path:
        value = (self.kubernetes.secret(namespace, name) or {}).get(key)
        if value is None:
            raise MissingSecretError(f"Secret {name} must have the key {key} (there is none). Create it.")
        path = self.files.secrets / f"{namespace}.{name}.{key}"
        write_private(path, value)
        return path
