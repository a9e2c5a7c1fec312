"""A judgement for people: a table of the findings, the exceptions in force, and one line that counts."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ops.policy.findings import ADVISORY, MANDATORY, REMEDIATE, Finding, Judgement
from ops.size_clients import count

_COLORS = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan"}
_STOPPED = "The preview stopped at what Pulumi protects: rules over the whole stack were not judged."


def judgement(judged: Judgement) -> RenderableType:
    """Return the table, or one line if nothing was found."""
    return Group(*_parts(judged))


def _parts(judged: Judgement) -> Iterator[RenderableType]:
    pack = f"{judged.pack.name} {judged.pack.version}".strip()
    where = f"stack {judged.stack}, {count(judged.resources, 'resource')}, pack {pack}"
    if judged.findings:
        yield _findings(judged.findings)
    if judged.exceptions:
        yield _exceptions(judged.exceptions)
    if not judged.complete:
        yield f"[yellow]{_STOPPED}[/yellow]"
    counts = [
        f"{judged.count(MANDATORY)} mandatory",
        f"{judged.count(ADVISORY)} advisory",
        *([f"{judged.count(REMEDIATE)} corrected by an update"] if judged.count(REMEDIATE) else []),
        *([count(len(judged.exceptions), "active exception")] if judged.exceptions else []),
    ]
    words = ", ".join(counts) if judged.findings or judged.exceptions else "nothing found"
    color = "green" if judged.passed else "red"
    yield f"[{color}]{words}[/{color}]: {escape(where)}"


def _findings(findings: tuple[Finding, ...]) -> Table:
    table = Table(show_lines=True)
    for column in ("severity", "level", "rule"):
        table.add_column(column, no_wrap=True)
    for column in ("resource", "message"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        color = _COLORS.get(finding.severity)
        table.add_row(
            f"[{color}]{finding.severity}[/{color}]" if color else finding.severity,
            finding.level,
            escape(finding.rule),
            escape(str(finding.resource)),
            escape(finding.message),
        )
    return table


def _exceptions(findings: tuple[Finding, ...]) -> Table:
    table = Table(title="Active exceptions", title_justify="left", show_lines=True)
    for column in ("resource", "exception"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(escape(str(finding.resource)), escape(finding.message))
    return table
