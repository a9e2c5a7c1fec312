"""Where a set-up works: the project, the cache and the environment it was started with."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from .cache import Entry, cache_root, workspace

PROJECT = Path(__file__).resolve().parents[2]
GO_MODULE = Path(__file__).resolve().parent / "go"
LANGUAGE_HOST = Path(__file__).resolve().parent / "language_host"


@dataclass(frozen=True)
class Place:
    """The project, the cache folder and the environment variables."""

    project: Path
    cache: Path
    environ: Mapping[str, str]

    @property
    def venv_python(self) -> Path:
        """The interpreter of the project's virtual environment."""
        return self.project / "venv" / "bin" / "python"

    @property
    def logs(self) -> Path:
        """The folder of the steps' logs."""
        return self.cache / "logs"

    def workspace(self, name: str) -> AbstractContextManager[Path]:
        """An empty folder on the cache's disk, removed in the end."""
        return workspace(self.cache, name)

    def entry(self, name: str, key: str) -> Entry:
        """An entry of the cache."""
        return Entry(self.cache, name, key)


def here() -> Place:
    """This project, with the process's environment."""
    return Place(PROJECT, cache_root(os.environ), dict(os.environ))
