"""How a properties file refers to secrets that it must not hold: Kafka's config providers.

EnvVarConfigProvider came with Kafka 3.5 (KIP-887), DirectoryConfigProvider with 2.7 (KIP-632). Owns the names of
variables and files. Never sees a value.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal

End = Literal["source", "target"]
Part = Literal["ca", "password", "certificate", "key"]
FOLDER = PurePosixPath("/opt/mirror/secrets")
ENV_SINCE = (3, 5)
_PACKAGE = "org.apache.kafka.common.config.provider"
_VARIABLE = "MM2_"
_FILES: dict[Part, str] = {"ca": "ca.crt", "password": "password", "certificate": "user.crt", "key": "user.key"}


class Kind(StrEnum):
    """Where a process finds its secrets: in its environment, or in files of one folder."""

    ENV = "env"
    DIRECTORY = "directory"


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """The provider of one file. `folder` is the directory provider's, on the machine that runs the mirror."""

    kind: Kind = Kind.ENV
    folder: PurePosixPath = FOLDER

    def place(self, end: End, part: Part) -> str:
        """Return the variable, or the path of the file, that holds a value."""
        if self.kind is Kind.ENV:
            return f"{_VARIABLE}{end}_{part}".upper()
        return str(self.folder / f"{end}.{_FILES[part]}")

    def reference(self, end: End, part: Part) -> str:
        """Return what stands in the file instead of the value."""
        if self.kind is Kind.ENV:
            return f"${{env:{self.place(end, part)}}}"
        return f"${{directory:{self.folder}:{end}.{_FILES[part]}}}"

    def properties(self) -> dict[str, str]:
        """Return the provider's own properties; it may read nothing but what belongs to the mirror."""
        name = self.kind.value
        classes = {Kind.ENV: "EnvVarConfigProvider", Kind.DIRECTORY: "DirectoryConfigProvider"}
        limits = {
            Kind.ENV: ("allowlist.pattern", f"{_VARIABLE}.*"),
            Kind.DIRECTORY: ("allowed.paths", str(self.folder)),
        }
        key, limit = limits[self.kind]
        return {
            "config.providers": name,
            f"config.providers.{name}.class": f"{_PACKAGE}.{classes[self.kind]}",
            f"config.providers.{name}.param.{key}": limit,
        }
