"""Where a page leads: to the project's documents and to the index of runs, as paths relative to the page's folder."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Links:
    """Links of a page that lies in `folder`; without a folder, and to what is not there, there are none."""

    folder: Path | None = None
    index: Path | None = None
    project: Path = PROJECT

    def to_page(self, page: str) -> str | None:
        """Return the link to a document of the project, a path with or without an anchor; None if it is not there."""
        path, anchor, name = page.partition("#")
        found = self._to(self.project / path) if (self.project / path).is_file() else None
        return None if found is None else f"{found}{anchor}{name}"

    def to_index(self) -> str | None:
        """Return the link to the index of runs; None if the run is in none."""
        return None if self.index is None else self._to(self.index)

    def _to(self, file: Path) -> str | None:
        return None if self.folder is None else quote(os.path.relpath(file.resolve(), self.folder.resolve()))


NOWHERE = Links()
