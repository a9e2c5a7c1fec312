"""Secrets that one mirror refers to, in files that its workers read: written, removed, compared with what is in use.

Owns the folder of these files. Does not own the references to them (see `connectors`) nor any restart.
"""

import fnmatch
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import connectors
from .errors import NotReadyError
from .files import write_private
from .kubernetes_api import Kubernetes


@dataclass(frozen=True)
class MirrorSecrets:
    """The files of one KafkaMirrorMaker2."""

    kubernetes: Kubernetes
    namespace: str
    name: str
    spec: dict[str, Any]
    folder: Path

    def write(self) -> None:
        """Put all values into files and remove the others; raises NotReadyError that names what is missing."""
        wanted: dict[str, str] = {}
        for entry in connectors.secret_files(self.spec):
            wanted[entry.file] = self._value(entry)
        for cluster in connectors.sides(self.spec):
            parts = [self._certificates(entry) for entry in connectors.trusted(cluster)]
            if parts:
                wanted[self._trust_file(cluster)] = "\n".join(part.strip() for part in parts) + "\n"
        for path, value in wanted.items():
            write_private(self.folder / path, value)
        for file in [path for path in self.folder.glob("*/*") if str(path.relative_to(self.folder)) not in wanted]:
            file.unlink(missing_ok=True)

    def fingerprint(self, *clusters: dict[str, Any]) -> str:
        """Changes when a secret changes that the connection to one of these sides uses, and with nothing else."""
        digest = hashlib.sha256()
        for cluster in clusters:
            files = [entry.file for entry in connectors.secret_files_of(cluster)]
            for file in [*files, self._trust_file(cluster)]:
                path = self.folder / file
                digest.update(file.encode() + b"\0" + (path.read_bytes() if path.exists() else b"") + b"\0")
        return digest.hexdigest()

    def _trust_file(self, cluster: dict[str, Any]) -> str:
        return f"{connectors.trust_folder(self.name)}/{connectors.trust_key(cluster['alias'])}"

    def _value(self, entry: connectors.SecretFile) -> str:
        value = self._secret(entry.secret).get(entry.key)
        if value is None:
            raise NotReadyError(
                "SecretKeyNotFound",
                f"KafkaMirrorMaker2 {self.name}: Secret {entry.secret} must have the key {entry.key} (it has none). "
                "Add it.",
                retry_s=2,
            )
        return value

    def _certificates(self, entry: connectors.SecretFile) -> str:
        if not entry.pattern:
            return self._value(entry)
        values = self._secret(entry.secret)
        matching = [values[key] for key in sorted(values) if fnmatch.fnmatchcase(key, entry.key)]
        if not matching:
            raise NotReadyError(
                "SecretKeyNotFound",
                f"KafkaMirrorMaker2 {self.name}: Secret {entry.secret} must have a key that matches {entry.key} (it "
                "has none). Add it or change the pattern.",
                retry_s=2,
            )
        return "\n".join(matching)

    def _secret(self, name: str) -> dict[str, str]:
        values = self.kubernetes.secret(self.namespace, name)
        if values is None:
            raise NotReadyError(
                "SecretNotFound",
                f"KafkaMirrorMaker2 {self.name}: must name an existing Secret (got {name}, there is none in "
                f"{self.namespace}). Create it.",
                retry_s=2,
            )
        return values
