"""Grafana's dashboards: JSON that is committed and shipped, and what writes it.

Reading the JSON needs nothing but the standard library; only `monitoring.dashboards.generation` and what it imports
need Grafana's Foundation SDK.
"""

import json
from collections.abc import Iterator, Mapping
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


def panels_of(document: Mapping[str, Any]) -> Iterator[Document]:
    """Every panel of a dashboard, also those in folded rows; rows themselves are none."""
    for panel in document["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def texts(runbook_url: str | None = None, scrape_seconds: int | None = None) -> dict[str, str]:
    """Return each dashboard as JSON by its file's name, with the runbook and the scrapes where they are given."""
    return {
        f"{uid}.json": text(with_scrapes(with_runbook(each, runbook_url), scrape_seconds))
        for uid, each in documents().items()
    }


def text(document: Mapping[str, Any]) -> str:
    """Return a document as it is committed: the same for the same content."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def with_scrapes(document: Document, seconds: int | None) -> Document:
    """Return a dashboard whose rates hold scrapes that are so far apart; None leaves them as they are."""
    if seconds is not None:
        for panel in panels_of(document):
            for target in panel["targets"]:
                target["interval"] = f"{seconds}s"
    return document


def with_runbook(document: Document, url: str | None) -> Document:
    """Return a dashboard whose runbook is found at the address; None leaves it where it is."""
    if url is not None:
        for variable in document["templating"]["list"]:
            if variable["name"] == RUNBOOK:
                variable["query"] = url
    return document
