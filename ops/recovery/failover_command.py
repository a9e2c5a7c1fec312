"""The command `python -m ops failover`: makes the target active, planned or not."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ops.connection import PROJECT
from ops.errors import OpsError
from ops.recovery import failover, failover_plan, pair, sight
from ops.recovery.engine import Engine
from ops.recovery.journal import Journal
from ops.recovery.operation import carry_out
from ops.shell import AsJson, Debug, ProjectFolder, guard, say, show, stderr, terminated_gently
from spark.errors import VerificationError

DRAIN_S = 120.0

Exact = Annotated[
    bool, typer.Option("--exact", help="Set groups' offsets by the records themselves: nothing is skipped or repeated.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ReportDir = Annotated[Path | None, typer.Option("--report-dir", help="Folder for the verification's reports.")]


def command(
    to: Annotated[str, typer.Option("--to", help="Stack that becomes active: the one that declares the mirror.")],
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    exact: Exact = False,
    unplanned: Annotated[
        bool, typer.Option("--unplanned", help="The source is lost: go on with what has been copied.")
    ] = False,
    drain_s: Annotated[
        float, typer.Option("--drain", min=1, metavar="SECONDS", help="How long producers may take to stop.")
    ] = DRAIN_S,
    dry_run: DryRun = False,
    yes: Yes = False,
    report_dir: ReportDir = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make the target of a mirror the active side.

    Example: [bold]python -m ops failover --to stg --exact[/bold]

    Planned, with a source that is alive: stop the producers, run this; it waits until everything is copied, verifies
    it, stops the mirror, sets the groups' offsets and gives applications the target's properties. No record is lost;
    with --exact none is read again. With --unplanned the source is given up, and what stays behind is told.

    An interrupted failover goes on with the same command; a planned one whose source is lost meanwhile goes on with
    --unplanned. Exit 0 if the target is active, 2 if not.
    """
    with guard(as_json, debug, VerificationError), terminated_gently():
        known = pair.load(to, mirror, os.environ, folder)
        options = failover.Options(
            path=failover.UNPLANNED if unplanned else failover.PLANNED,
            exact=exact,
            drain_s=drain_s,
            report_dir=report_dir or default_report_dir("failover", known),
        )
        journal = Journal.load(known.resource.namespace, known.mirror, os.environ)
        engine = Engine(folder=folder, stack=to, environment=os.environ)
        work = failover.Failover(known, options, engine, journal, say)
        seen = sight.look(known, os.environ)
        failover_plan.insist_possible(seen, options, journal)
        plan = failover_plan.Plan(seen=seen, options=options, steps=tuple(work.steps()), journal=journal)
        if dry_run:
            show(as_json, plan.document(), plan.table)
            return
        stderr().print(plan.table())
        insist_on_yes(yes, f"Make {known.name_of('target')} active now?", as_json)
        journal.begin("failover", options.kept(), failover.HARMLESS, gives_up=unplanned)
        carry_out(work.steps(), journal, say)
        done = failover.result(known, options, journal)
        show(as_json, done, lambda: failover_plan.summary(done))


def default_report_dir(what: str, known: pair.Pair) -> Path:
    """Return `reports/<stack>-<mirror>-<what>-<UTC time>` below the working directory."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path("reports") / f"{known.stack}-{known.mirror}-{what}-{stamp}"


def insist_on_yes(yes: bool, question: str, as_json: bool) -> None:
    """Ask, unless told not to; raises OpsError if the answer is no or nobody is there to answer."""
    if yes:
        return
    if as_json or not (stderr().is_terminal and sys.stdin.isatty()):
        raise OpsError("--yes must be given where nobody can be asked: with --json or without a terminal.")
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        agreed = False
    if not agreed:
        raise OpsError("Nothing was changed.")


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("failover")(command)
