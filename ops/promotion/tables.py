"""A promotion for people: what travels, what proves the source, what an `up` changes, and how it ended."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ops.promotion.promote import GOOD

Document = Mapping[str, Any]


def plan(document: Document) -> RenderableType:
    """Return what is known before the approval."""
    return Group(*_plan(document))


def outcome(document: Document) -> RenderableType:
    """Return the plan and the result."""
    return Group(*_plan(document), *_end(document))


def _plan(document: Document) -> Iterator[RenderableType]:
    title = f"{document['from']} → {document['to']}"
    if changes := document.get("changes"):
        table = Table(title=f"{title}: settings that travel", title_justify="left")
        for column in ("setting", f"{document['to']} now", "then"):
            table.add_column(column, overflow="fold")
        for change in changes:
            table.add_row(*(escape(_shown(change[key])) for key in ("key", "old", "new")))
        yield table
    else:
        yield f"{escape(title)}: every setting that travels is the same."
    for note in document.get("notes", ()):
        yield f"[yellow]note:[/yellow] {escape(note)}"
    for proof in document.get("proofs", ()):
        when = f", {proof['provenAt']}" if proof["provenAt"] else ""
        yield escape(f"proof: mirror {proof['mirror']} of {proof['stack']}: {proof['verdict'] or 'none'}{when}")
    if document.get("withoutVerification"):
        yield escape(f"proof: not insisted on: {document['withoutVerification']}")
    if "policy" in document:
        counts = document["policy"]["summary"]
        yield escape(f"policy: {counts['mandatory']} mandatory, {counts['advisory']} advisory")
    if "preview" in document:
        steps = [f"{step['operation']} {step['resource']}" for step in document["preview"]]
        yield escape(f"pulumi up: {', '.join(steps) or 'changes nothing'}")


def _end(document: Document) -> Iterator[RenderableType]:
    for proof in document.get("verification", ()):
        yield escape(f"verified: mirror {proof['mirror']} of {proof['stack']}: {proof['verdict']} ({proof['report']})")
    if document.get("verification") == []:
        yield escape(f"verified: nothing, for no mirror of {document['to']}, or that reads from it, is up and runs")
    color = "green" if document["result"] in GOOD else "red"
    yield f"[{color}]{document['result']}[/{color}]"
    if document["error"]:
        yield escape(document["error"])


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)
