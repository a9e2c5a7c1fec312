"""The documents that the steps of a pipeline leave for its comment and its summary: JSON files in one folder.

A file's name says what it is about: preview-STACK, drift-STACK, verification-STACK, drill. What a step could not do
stands in its document as `{"error": ...}`, so that it is reported and not missed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.errors import OpsError

FOLDER = Path("reports/pipeline")
PREVIEW, DRIFT, VERIFICATION, DRILL = "preview", "drift", "verification", "drill"
KINDS = (PREVIEW, DRIFT, VERIFICATION, DRILL)


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document: what it is about, the stack if it is about one, and what was found."""

    kind: str
    stack: str
    content: Mapping[str, Any]

    @property
    def error(self) -> str | None:
        """Why there is nothing else in it, if that is so."""
        error = self.content.get("error")
        return str(error) if error else None


def file(folder: Path, kind: str, stack: str) -> Path:
    """Return where a stack's document lies; of a name with its organization the last part counts."""
    return folder / f"{kind}-{short(stack)}.json"


def short(stack: str) -> str:
    """Return the name of a stack without its organization and project."""
    return stack.rsplit("/", 1)[-1]


def write(folder: Path, kind: str, stack: str, content: Mapping[str, Any]) -> Path:
    """Write a document and return its path."""
    path = file(folder, kind, stack)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(folder: Path) -> list[Document]:
    """Return all documents, in the order of their kinds and then of their stacks' names.

    One that cannot be read is an error of its own: a step that was killed must not look as if it had found nothing.
    """
    paths = [(kind, path) for kind in KINDS for path in sorted(folder.glob(f"{kind}*.json"))]
    return [
        Document(kind=kind, stack=path.stem.removeprefix(kind).removeprefix("-"), content=_content(path))
        for kind, path in paths
    ]


def previews(folder: Path, expected: Sequence[str] = ()) -> list[Document]:
    """Return the previews; an expected stack without one is an error of its own. Raises OpsError if there is none."""
    found = [document for document in read(folder) if document.kind == PREVIEW]
    known = {document.stack for document in found}
    why = {"error": "Its job ended before the preview. See the run."}
    found += [Document(kind=PREVIEW, stack=stack, content=why) for stack in map(short, expected) if stack not in known]
    if not found:
        raise OpsError(f"folder {folder}: must hold a preview (got none). Run `make preview STACK=...` first.")
    return sorted(found, key=lambda document: document.stack)


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {"error": f"{path.name} must be JSON ({error}). The step that writes it did not end."}
    return content if isinstance(content, dict) else {"error": f"{path.name} must hold an object."}
