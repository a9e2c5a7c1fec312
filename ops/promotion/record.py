"""The record of a promotion: who, when, from what to what, and the findings of each step. It contains no secret.

Owns the document and its file. It is written again after each step, so that an interrupted promotion leaves one too.
"""

import getpass
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ops.pulumi.stack_file import replace_text

VERSION = 1
FOLDER = "promotions"
GIT_WITHIN_S = 20.0
# Who started a pipeline, by what runs it.
_ACTORS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN")


@dataclass
class Record:
    """The document, and the file that it is written to; None while there is nothing to keep."""

    document: dict[str, Any]
    file: Path | None

    @classmethod
    def begin(cls, source: str, target: str, folder: Path, environment: Mapping[str, str]) -> "Record":
        """Return the record of a promotion that begins now."""
        return cls(
            {
                "version": VERSION,
                "from": source,
                "to": target,
                "by": who(environment),
                "startedAt": now(),
                "finishedAt": None,
                "result": "started",
                "error": None,
                "git": commit(folder, source, target),
            },
            None,
        )

    def note(self, **fields: Any) -> None:
        """Add the findings of a step; with a file the record is written at once."""
        self.document |= fields
        self._write()

    def end(self, result: str, error: str | None = None) -> None:
        """Add the result, and the error if there is one."""
        self.note(result=result, error=error, finishedAt=now())

    def keep(self, file: Path) -> None:
        """Write the record to a file, now and after each further step."""
        self.file = file
        self._write()

    def default_file(self, folder: Path) -> Path:
        """Return `promotions/<UTC time>-<from>-<to>.json` in the project's folder."""
        started = datetime.fromisoformat(self.document["startedAt"])
        return folder / FOLDER / f"{started:%Y%m%dT%H%M%SZ}-{self.document['from']}-{self.document['to']}.json"

    def _write(self) -> None:
        if self.file is not None:
            replace_text(self.file, json.dumps(self.document, indent=2) + "\n")


def who(environment: Mapping[str, str]) -> str:
    """Return who promotes: who started the pipeline, else the user of this machine."""
    named = next((environment[name] for name in _ACTORS if environment.get(name)), None)
    if named is not None:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def commit(folder: Path, source: str, target: str) -> dict[str, Any] | None:
    """Return the project's commit and whether the two stack files differ from it; None outside of git."""
    files = [f"Pulumi.{stack}.yaml" for stack in (source, target)]
    try:
        head, changed = (_git(folder, *words) for words in (("rev-parse", "HEAD"), ("status", "--porcelain", *files)))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": head, "uncommitted": bool(changed)}


def now() -> str:
    """Return this moment, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=GIT_WITHIN_S, check=True)
    return result.stdout.strip()
