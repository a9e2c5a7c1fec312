"""Grafana's dashboards: JSON that is committed and shipped, and what writes it.

Reading the JSON needs nothing but the standard library; only `monitoring.dashboards.generating` and what it imports
need Grafana's Foundation SDK.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "json"
RUNBOOK = "runbook"
Document = dict[str, Any]
Documents = Mapping[str, Document]


def documents() -> Documents:
    """Return each committed dashboard by its uid, in the order of their names."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json")))
    return {document["uid"]: document for document in found}


def texts(runbook_url: str | None = None) -> dict[str, str]:
    """Return each dashboard as JSON by its file's name, with the runbook's address where one is given."""
    return {f"{uid}.json": text(with_runbook(each, runbook_url)) for uid, each in documents().items()}


def text(document: Mapping[str, Any]) -> str:
    """Return a document as it is committed: the same for the same content."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def with_runbook(document: Document, url: str | None) -> Document:
    """Return a dashboard whose runbook is found at the address; None leaves it where it is."""
    if url is not None:
        for variable in document["templating"]["list"]:
            if variable["name"] == RUNBOOK:
                variable["query"] = url
    return document
