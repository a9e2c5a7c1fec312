"""The command `python -m ops failback`: makes the source active again."""

import os
from typing import Annotated

import typer

from ops.connection import PROJECT
from ops.errors import OpsError
from ops.recovery import failback, failback_plan, pair, sight
from ops.recovery.engine import Engine
from ops.recovery.failover_command import DRAIN_S
from ops.recovery.journal import Journal
from ops.recovery.operation import carry_out, interruption_reported, only_reading
from ops.recovery.options import DRY_RUN_ENDED, DryRun, ReportDir, Yes, default_report_dir, insist_on_yes
from ops.shell import AsJson, Debug, ProjectFolder, guard, reading, say, show, stderr, terminated_gently
from settings import SettingsError
from spark.errors import VerificationError

CATCH_UP_S = 3600.0


def command(
    to: Annotated[str, typer.Option("--to", help="Stack that becomes active again: the mirror's source.")],
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="Stack that declares the mirror, if several have this source.")
    ] = None,
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    catch_up_s: Annotated[
        float, typer.Option("--catch-up", min=1, metavar="SECONDS", help="How long copying back may take.")
    ] = CATCH_UP_S,
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
    """Bring what was written on the target back, and make the source of a mirror active again.

    Example: [bold]python -m ops failback --to dev[/bold]

    Applications go on at the target until the command says `drain`: then the producers are stopped. Records that only
    the source has, because they were not copied before an unplanned failover, are brought over first; they stand at
    the end then. Groups are set exactly, by the records.

    An interrupted failback goes on with the same command. Exit 0 if the source is active, 2 if not, 1 if you answer no.
    """
    with guard(as_json, debug, VerificationError, SettingsError), terminated_gently():
        with only_reading(say), reading("the stack and its mirror"):
            known = pair.load(stack or pair.declaring(to, folder), mirror, os.environ, folder)
            if known.source_stack != to:
                sources = known.source_stack or "none"
                raise OpsError(f"--to: must be the source of mirror {known.mirror} (got {to}, allowed {sources}).")
            options = failback.Options(
                catch_up_s=catch_up_s, drain_s=drain_s, report_dir=report_dir or default_report_dir("failback", known)
            )
            journal = Journal.load(known.resource.namespace, known.mirror, os.environ, known.resource.context)
            if not dry_run:
                journal.require_free()
            engine = Engine(folder=folder, stack=known.stack, environment=os.environ)
            work = failback.Failback(known, options, engine, journal, say)
            steps = work.steps()
        with interruption_reported(steps, journal, known.stack, say, folder):
            with reading("both clusters and the mirror"):
                seen = sight.look(known, os.environ)
            failback_plan.insist_possible(seen, journal)
            if not journal.may_have_changed:
                engine.insist_as_deployed(known.mirror, {"active": known.active, "state": known.state})
            plan = failback_plan.Plan(seen=seen, steps=tuple(steps), journal=journal)
            if dry_run:
                show(as_json, plan.document(), plan.table)
                say(DRY_RUN_ENDED)
                return
            stderr().print(plan.table())
            insist_on_yes(yes, f"Make {known.name_of('source')} active again?", as_json)
            if not journal.may_have_changed:
                work.require_support()
            journal.begin("failback", {"to": to}, steps=[step.name for step in steps])
            carry_out(steps, journal, say)
        done = failback.result(known, journal)
        show(as_json, done, lambda: failback_plan.summary(done))


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("failback")(command)
