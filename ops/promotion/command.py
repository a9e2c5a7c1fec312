"""The command `python -m ops promote`: one stage gets the settings that another has proven.

Owns the options, the approval, and the tables for people.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from ops.connection import PROJECT
from ops.console import (
    EXIT_FAILED,
    AsJson,
    Debug,
    ProjectFolder,
    escape,
    guard,
    log,
    show,
    stderr,
    terminated_gently,
)
from ops.errors import OpsError
from ops.promotion.promote import DECLINED, GOOD, Options, Promotion
from ops.promotion.record import Record, now, who
from settings import SettingsError

MAX_AGE_H, WITHIN_S = 24.0, 600.0


def command(
    source: Annotated[str, typer.Option("--from", help="Stack whose settings are proven.")] = "dev",
    target: Annotated[str, typer.Option("--to", help="Stack that gets them.")] = "stg",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: somebody has approved already.")] = False,
    verify_now: Annotated[
        bool, typer.Option("--verify", help="Verify the source now, whatever its latest verification found.")
    ] = False,
    max_age_h: Annotated[
        float, typer.Option("--max-age-hours", min=0, help="How old the source's verification may be.")
    ] = MAX_AGE_H,
    unproven: Annotated[
        str | None,
        typer.Option("--without-verification", metavar="REASON", help="Accept a missing or old verification, and why."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="File of the record. [default: promotions/TIME-FROM-TO.json]")
    ] = None,
    pack: Annotated[Path, typer.Option("--pack", help="Folder of the policy pack.")] = PROJECT / "policies",
    pack_config: Annotated[
        Path | None, typer.Option("--policy-config", help="JSON file that configures the rules further.")
    ] = None,
    within_s: Annotated[float, typer.Option("--within", min=1, help="Deadline of a preview in seconds.")] = WITHIN_S,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Give a stack the settings that another has proven: compare, gate, preview, approval, up, verification, record.

    Example: [bold]python -m ops promote --from dev --to stg --dry-run[/bold]

    Values that belong to a stage never travel: names, addresses, users, sizes (docs/promotion.md). Refused while the
    source's verification is not green or is old, while the source is not deployed as in its file, or by the policy.
    Exit 0 if promoted, declined, or nothing is to be; 1 if refused or not proven afterwards; 2 if it cannot be judged.
    """
    with guard(as_json, debug, SettingsError), terminated_gently():
        if source == target:
            raise OpsError(f"promote: --from and --to must be two stacks (got {source} twice).")
        if unproven is not None and not unproven.strip():
            raise OpsError("promote: --without-verification must have a reason (got nothing). The record keeps it.")
        if not (yes or dry_run or _at_terminal()):
            raise OpsError(
                "promote: somebody must approve (got no terminal to ask at). Give --yes where a pipeline's environment "
                "has approved, or --dry-run."
            )
        options = Options(
            source=source,
            target=target,
            folder=folder.resolve(),
            pack=pack,
            pack_config=pack_config,
            max_age=timedelta(hours=max_age_h),
            verify_now=verify_now,
            unproven=unproven,
            dry_run=dry_run,
            within_s=within_s,
            record=record,
        )
        done = Promotion(options=options, environment=os.environ, log=log, ask=_approval(yes)).run()
        show(as_json, done.document, lambda: outcome_table(done.document))
        if done.file is not None:
            log(f"record: {done.file}")
    if done.document["result"] not in (*GOOD, DECLINED):
        raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("promote")(command)


def _at_terminal() -> bool:
    return sys.stdin.isatty()


def _approval(given: bool) -> Callable[[Record], bool]:
    """Return the function that asks for approval: `--yes` approves, else a person at the terminal, who gets the plan.

    With `--yes` the record names nobody: the pipeline knows who approved, and its user is the one who pushed.
    """

    def ask(record: Record) -> bool:
        if not given:
            stderr().print(plan_table(record.document))
            if not typer.confirm(f"Promote {record.document['from']} to {record.document['to']}?", err=True):
                return False
        by, how = (None, "--yes") if given else (who(os.environ), "at the terminal")
        record.note(approval={"by": by, "how": how, "at": now()})
        return True

    return ask


Document = Mapping[str, Any]


def plan_table(document: Document) -> RenderableType:
    """Return the plan, as it is shown before the approval."""
    return Group(*_plan(document))


def outcome_table(document: Document) -> RenderableType:
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
        yield escape(f"proof: not required: {document['withoutVerification']}")
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
