"""The command `python -m ops failover`: makes the target active, planned or not."""

import os
from typing import Annotated

import typer

from ops.connection import PROJECT
from ops.recovery import failover, failover_plan, pair, sight
from ops.recovery.engine import Engine
from ops.recovery.journal import Journal
from ops.recovery.operation import carry_out, interruption_reported, only_reading
from ops.recovery.options import DRY_RUN_ENDED, DryRun, ReportDir, Yes, default_report_dir, insist_on_yes
from ops.shell import AsJson, Debug, ProjectFolder, guard, reading, say, show, stderr, terminated_gently
from settings import SettingsError
from spark.errors import VerificationError

DRAIN_S = 120.0

Exact = Annotated[
    bool, typer.Option("--exact", help="Set groups' offsets by the records themselves: nothing is skipped or repeated.")
]


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
    --unplanned. Exit 0 if the target is active, 2 if not, 1 if you answer no.
    """
    with guard(as_json, debug, VerificationError, SettingsError), terminated_gently():
        with only_reading(say), reading("the stack and its mirror"):
            known = pair.load(to, mirror, os.environ, folder)
            options = failover.Options(
                path=failover.UNPLANNED if unplanned else failover.PLANNED,
                exact=exact,
                drain_s=drain_s,
                report_dir=report_dir or default_report_dir("failover", known),
            )
            journal = Journal.load(known.resource.namespace, known.mirror, os.environ, known.resource.context)
            if not dry_run:
                journal.require_free()
            engine = Engine(folder=folder, stack=to, environment=os.environ)
            work = failover.Failover(known, options, engine, journal, say)
            steps = work.steps()
        with interruption_reported(steps, journal, known.stack, say, folder):
            with reading("both clusters and the mirror"):
                seen = sight.look(known, os.environ)
            failover_plan.insist_possible(seen, options, journal)
            if not journal.may_have_changed:
                engine.insist_as_deployed(known.mirror, {"active": known.active, "state": known.state})
            plan = failover_plan.Plan(seen=seen, options=options, steps=tuple(steps), journal=journal)
            if dry_run:
                show(as_json, plan.document(), plan.table)
                say(DRY_RUN_ENDED)
                return
            stderr().print(plan.table())
            insist_on_yes(yes, f"Make {known.name_of('target')} active now?", as_json)
            journal.begin("failover", options.kept(), gives_up=unplanned, steps=[step.name for step in steps])
            carry_out(steps, journal, say)
        done = failover.result(known, options, journal)
        show(as_json, done, lambda: failover_plan.summary(done))


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("failover")(command)
