"""`python -m ops doctor`: inspects a mirror once, recognises known issues and prints the remedies."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from ops.console import EXIT_FAILED, EXIT_UNUSABLE, AdaptiveTable, AsJson, Column, Debug, guard, log, show
from ops.doctor import pulumi_state
from ops.doctor.collection import CERTIFICATE_DAYS, collect
from ops.doctor.diagnosis import diagnose, redacted
from ops.doctor.known_issues import KNOWN_ISSUES, Finding
from ops.doctor.observations import Observations
from ops.recovery import break_glass
from ops.recovery.break_glass import BreakGlass


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror, for example stg.")],
    mirror: Annotated[
        str | None, typer.Option("--mirror", "-m", help="Mirror of the stack; not needed if it has only one.")
    ] = None,
    worker_log: Annotated[
        list[Path] | None,
        typer.Option("--worker-log", help="File with a worker's log, where no pod's log can be read. May be repeated."),
    ] = None,
    certificate_days: Annotated[
        int, typer.Option("--certificate-days", min=0, help="Days before its end that a certificate is reported.")
    ] = CERTIFICATE_DAYS,
    without_pulumi: BreakGlass = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Inspect everything around a mirror once, recognise known issues and print what to do.

    Example: [bold]python -m ops doctor --stack stg[/bold]

    It inspects both clusters (connection, advertised addresses, certificates, rights, topics, groups, the first records
    of remote topics), Connect with the traces of what failed, the mirror's resource and other mirrors in Kubernetes,
    and the last minutes of the workers' logs. It is read-only and joins no group. Each finding has the evidence, where
    it is, and what to type or change; docs/doctor.md lists all known issues.

    A log that Kubernetes does not give: [bold]kubectl logs POD --since=15m > worker.log[/bold], then
    [bold]--worker-log worker.log[/bold].

    Exit 0 if nothing is found, 1 if something is, 2 if nothing is found but something could not be inspected.
    """
    with guard(as_json, debug):
        found = break_glass.loader(without_pulumi)(stack, mirror, os.environ)
        seen = collect(
            found,
            os.environ,
            log,
            worker_logs=worker_log or (),
            certificate_days=certificate_days,
            pulumi_state=partial(pulumi_state.observe, found, os.environ),
            debug=debug,
        )
        findings = diagnose(seen, found.request.secrets)
        seen = redacted(seen, found.request.secrets)
        show(as_json, document(seen, findings), lambda: shown(seen, findings))
    if findings:
        raise typer.Exit(EXIT_FAILED)
    if seen.unseen:
        raise typer.Exit(EXIT_UNUSABLE)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("doctor")(command)


def document(seen: Observations, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "stack": seen.stack,
        "mirror": seen.mirror.name,
        "healthy": not findings and not seen.unseen,
        "findings": [one.as_json() for one in findings],
        "notLookedAt": list(seen.unseen),
        "notes": list(seen.notes),
    }


def shown(seen: Observations, findings: Sequence[Finding]) -> RenderableType:
    """Return what people read: a row a finding, and what could not be inspected."""
    parts: list[RenderableType] = []
    if findings:
        columns = Column("trouble", name=True), Column("where"), Column("what"), Column("remedy")
        table = AdaptiveTable(f"mirror {seen.mirror.name}", columns, lines=True)
        for one in findings:
            color = "red" if one.severity == "error" else "yellow"
            table.add_row(Text(one.trouble, color), one.where, one.what, one.remedy)
        parts.append(table)
    else:
        parts.append(f"mirror {escape(seen.mirror.name)}: none of {len(KNOWN_ISSUES)} known issues found")
    parts += [f"[yellow]not inspected:[/yellow] {escape(one)}" for one in seen.unseen]
    parts += [f"note: {escape(one)}" for one in seen.notes]
    return Group(*parts)
