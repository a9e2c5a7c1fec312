"""The command `python -m ops failback`: applications move back to the source cluster.

Owns the options, the plan, what makes a failback impossible, and what a finished one has come to: as JSON values, and
for people. Does not own the steps (`failback.py`).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from contract.fields import VerificationError
from ops.connection import PROJECT
from ops.console import (
    EXIT_FAILED,
    AdaptiveTable,
    AsJson,
    Column,
    Debug,
    ProjectFolder,
    Text,
    guard,
    reading,
    show,
    stderr,
    terminated_gently,
)
from ops.console import log as say
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.inspection.snapshot import MirrorSnapshot
from ops.pulumi.stack import PulumiStack
from ops.recovery import (
    changes,
    client_workloads,
    failback,
    fence,
    mirror_context,
    stranded_records,
    target_fence,
)
from ops.recovery.failover_command import DRAIN_S
from ops.recovery.fence import FENCING
from ops.recovery.fencing import STEP
from ops.recovery.journal import SOURCE_LOST_AGAIN, TARGET_LOST, Journal, begun
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import (
    DRY_RUN_ENDED,
    DryRun,
    ReportDir,
    Step,
    WithoutFence,
    Yes,
    carry_out,
    default_report_dir,
    interruption_reported,
    only_reading,
    require_yes,
    steps_document,
    steps_table,
    unchanged,
    undone_unless_ended,
)
from ops.status import document as status
from settings import SettingsError
from settings.text import format_count, format_names

CATCH_UP_S = 3600.0
_MIRROR_AGAIN = "Mirror everything again instead: docs/runbook.md#mirror-everything-again."


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
    without_fence: WithoutFence = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    report_dir: ReportDir = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Bring what was written on the target back, and make the source of a mirror active again.

    Example: [bold]python -m ops failback --to dev[/bold]

    Applications go on at the target until the command says `fence-target`: it takes their right to write there away. If
    it ends before the switch, they may write again. Records that only the source has, because they were not copied
    before an unplanned failover, are brought over first; they stand at the end then. Groups are set exactly, by the
    records.

    An interrupted failback goes on with the same command. Exit 0 if the source is active, 2 if not, 1 if you answer no,
    if the target has records that came after it was drained, or does not answer, or if workloads that `clients.restart`
    shall restart are not restarted.
    """
    with guard(as_json, debug, VerificationError, SettingsError), terminated_gently():
        with only_reading(say), reading("the stack and its mirror"):
            known = mirror_context.load(stack or mirror_context.declaring(to, folder), mirror, os.environ, folder)
            if known.source_stack != to:
                sources = known.source_stack or "none"
                raise OpsError(f"--to: must be the source of mirror {known.mirror} (got {to}, allowed {sources}).")
            options = failback.Options(
                catch_up_s=catch_up_s, drain_s=drain_s, report_dir=report_dir or default_report_dir("failback", known)
            )
            journal = Journal.load(known.resource.namespace, known.mirror, os.environ, known.resource.context)
            if not dry_run:
                journal.require_free()
            _survey_again(journal)
            pulumi = PulumiStack(
                folder=folder, name=known.stack, environment=os.environ, require_permission=journal.require_held
            )
            at_source, unfenced = fence.chosen(
                known, folder, os.environ, say, journal.require_held, without=without_fence
            )
            at_target, open_ = target_fence.chosen(
                known, folder, os.environ, say, journal.require_held, without=without_fence
            )
            work = failback.Failback(known, options, pulumi, journal, say, at_source, at_target)
            steps = work.steps()
        with interruption_reported(steps, journal, known.stack, say, folder):
            with undone_unless_ended(partial(_lift_left, work), dry_run=dry_run):
                with reading("both clusters and the mirror"):
                    seen = snapshot.collect(known, os.environ)
                require_possible(seen, journal, opens=at_source is not None)
                if not journal.may_have_changed:
                    pulumi.require_as_deployed(known.mirror, {"active": known.active, "state": known.state})
                if at_source is not None and STEP not in journal.steps:
                    at_source.require_reachable()
                if at_target is not None and target_fence.STEP not in journal.steps:
                    at_target.require_reachable()
                with reading("what `pulumi up` would change, by a preview with the policy pack"):
                    of_preview = changes.require_none(
                        pulumi, known.mirror, resumes=journal.may_have_changed, fails_back=True
                    )
                with reading("what only the source has"):
                    emptied = work.to_be_emptied()
                plan = FailbackPlan(
                    seen=seen,
                    steps=tuple(steps),
                    journal=journal,
                    emptied=emptied,
                    of_preview=(*of_preview, *unfenced, *open_),
                    workloads=work.following.listed(),
                )
                if dry_run:
                    show(as_json, plan.document(), plan.table)
                    say(DRY_RUN_ENDED)
                    return
                stderr().print(plan.table())
                require_yes(
                    yes,
                    f"Make {known.name_of('source')} active again?",
                    as_json,
                    unchanged(journal, known.stack, folder),
                )
                if not journal.may_have_changed:
                    work.require_support()
                kept = {"to": to, **({"withoutFence": True} if without_fence else {})}
                journal.begin("failback", kept, steps=[step.name for step in steps])
            carry_out(steps, journal, say, work.lift_fence)
        done = result(known, journal)
        show(as_json, done, lambda: summary(done))
        if unsettled(done):
            raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("failback")(command)


def _survey_again(journal: Journal) -> None:
    """Let a failback that goes on survey again: topics may have changed since. From `settle` on its record stays."""
    entry = journal.entry or {}
    if journal.under_way and entry["command"] == "failback" and "settle" not in begun(entry):
        journal.repeat("survey", "realign")


def _lift_left(work: failback.Failback) -> None:
    """Take the target's fence down if a killed failback does not go on: applications would find no side to write.

    A killed command leaves it, and a source that is lost since keeps the next one from beginning.
    """
    work.target_fencing.lift_left(failback.SWITCHING)


@dataclass(frozen=True, kw_only=True)
class FailbackPlan:
    """A failback that may begin: what was seen, its steps, and the offsets in each partition that it will empty.

    `of_preview` are warnings of the preview, and of a side that is not fenced, `workloads` what `FollowingClients`
    has listed.
    """

    seen: MirrorSnapshot
    steps: tuple[Step, ...]
    journal: Journal
    emptied: Mapping[str, int]
    of_preview: tuple[str, ...] = ()
    workloads: Mapping[str, Any] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """What should not be missed."""
        found = stranded_records.deletion_warning(self.emptied, self.seen.pair.name_of("source"))
        return [*self.of_preview, *([found] if found else [])]

    def document(self) -> dict[str, Any]:
        """Return the plan as `--dry-run --json` prints it."""
        return {
            "stack": self.seen.pair.stack,
            "mirror": self.seen.pair.mirror,
            "to": self.seen.pair.source_stack,
            "resumes": self.journal.under_way,
            "steps": steps_document(self.steps, self.journal),
            "emptied": dict(self.emptied),
            "warnings": self.warnings,
            **self.workloads,
            "status": status.document(self.seen),
        }

    def table(self) -> RenderableType:
        """Return the plan for people."""
        known = self.seen.pair
        word = f"Failback of {known.mirror} to {known.name_of('source')}"
        word += ", goes on where it stopped" if self.journal.under_way else ""
        screen = status.table(status.document(self.seen))
        notes = [Text(f"! {warning}", "yellow") for warning in self.warnings]
        notes += client_workloads.planned(known, self.workloads)
        return Group(Text(word, "bold"), screen, steps_table(self.steps, self.journal), *notes)


def require_possible(seen: MirrorSnapshot, journal: Journal, *, opens: bool = True) -> None:
    """Raise OpsError with everything that keeps a failback from beginning, or from going on; nothing is changed.

    `opens`: it has the fence of the source in reach, and takes it down.
    """
    ways = {"target": f" If it is lost: {TARGET_LOST}."} if seen.pair.active == "target" else {}
    if journal.under_way and failback.SWITCHING in journal.steps:  # or it has the source active: nothing is known then
        ways = {"source": f" If it is lost again: {SOURCE_LOST_AGAIN}."}
    problems = [
        f"{side.role} {side.name}: must be usable for a failback. {side.problem}{ways.get(side.role, '')}"
        for side in (seen.source, seen.target)
        if side.problem is not None
    ]
    if journal.begins("failback"):  # of one under way it was judged then who is active: it may have changed
        problems += _problems(seen, journal)
    if not opens and _leaves_fence(journal):
        problems.append(
            f"source {seen.pair.name_of('source')}: the fence of the failover must be in reach (got none), for with it "
            "applications could write at neither side once the source is active. Leave --without-fence out, and give "
            "access to the source's stack file and Kubernetes cluster."
        )
    if problems:
        end = "\nNothing was changed." if journal.begins("failback") else ""
        raise OpsError("\n".join(problems) + end)


def _problems(seen: MirrorSnapshot, journal: Journal) -> list[str]:
    known, problems = seen.pair, []
    if known.active != "target" and (split := known.failed_over) is not None:
        return [
            f"mirror {known.mirror}: must have failed over as a whole to fail back (got {format_names(split.topics)} "
            f"alone). Take the rest over, python -m ops failover --to {known.stack}, then fail back: all topics return."
        ]
    if known.active != "target":
        problems.append(
            f"mirror {known.mirror}: must have the target active (the source is). There is nothing to fail back from."
        )
    if not known.keeps_names:
        problems.append(
            f"mirror {known.mirror}: naming must be identity to fail back by a command (got prefixed). With prefixed "
            "names, what the target's applications write returns by the mirror's `reverse`: "
            "docs/runbook.md#prefixed-names."
        )
    if known.outputs.alters_offsets is False:
        problems.append(
            f"mirror {known.mirror}: its operator must alter connectors' offsets to fail back by a command (Strimzi "
            f"does since 0.44, Event Streams since 12.0, without configDefaults: false). {_MIRROR_AGAIN}"
        )
    entry = journal.entry or {}
    if entry.get("command") != "failover" or entry.get("finishedAt") is None:
        problems.append(
            f"ConfigMap {journal.namespace}/{journal.name}: must record the failover (got "
            f"{entry.get('command') or 'nothing'}): where both sides were equal is written there. It was not done by "
            f"`ops failover`, or the ConfigMap was deleted. {_MIRROR_AGAIN}"
        )
    elif entry["steps"]["stop"].get("copied") is None:
        problems.append(
            f"ConfigMap {journal.namespace}/{journal.name}: must record how far the mirror had copied (got nothing: "
            f"its position could not be read then). {_MIRROR_AGAIN}"
        )
    return problems


def _leaves_fence(journal: Journal) -> bool:
    """Whether a failback that does not take the source's fence down leaves one that its failover has put up.

    One that has begun so under an earlier release must be finished as it began.
    """
    entry = journal.entry or {}
    if entry.get("command") == "failback":
        if "switch" in entry["steps"] or (journal.may_have_changed and entry["options"].get("withoutFence")):
            return False
        entry = entry.get("before") or {}
    return FENCING in (entry.get("steps") or {})


def result(known: MirrorContext, journal: Journal) -> Mapping[str, Any]:
    """Return what a finished failback has come to, as `--json` prints it.

    `stranded` are the records, by partition, that the target got after it was drained and that the mirror did not copy
    there; None: a side could not be asked, `strandedWhy` is the reason. `recordsLost` is their sum.
    `recordsDeletedUnproven` are those that only the source had and that somebody deleted there before they were found
    on the target. `workloads` and what belongs to them: `client_workloads.result`.
    """
    steps = journal.steps
    left = steps["confirm"].get("stranded")
    return {
        "stack": known.stack,
        "mirror": known.mirror,
        "active": steps["confirm"]["active"],
        "clientsSecret": steps["confirm"]["clientsSecret"],
        "recordsLost": None if left is None else sum(left.values()),
        "stranded": left,
        "strandedWhy": steps["confirm"].get("why"),
        **client_workloads.result(steps),
        "recordsBroughtOver": steps["settle"]["records"],
        "recordsDeletedUnproven": steps["settle"].get("deletedUnproven", 0),
        "groups": {
            group: {key: found[key] for key in ("repeated", "skipped")}
            for group, found in steps["offsets"]["groups"].items()
        },
        "verification": {key: steps["prove"][key] for key in ("verdict", "failed", "recordsCompared", "report")},
        "startedAt": (journal.entry or {})["startedAt"],
        "switchedAt": steps["switch"]["switchedAt"],
        "seconds": {name: found["seconds"] for name, found in steps.items() if "seconds" in found},
    }


def summary(done: Mapping[str, Any]) -> RenderableType:
    """Return what a finished failback has come to, for people."""
    compared = format_count(done["verification"]["recordsCompared"], "record")
    lines: list[RenderableType] = [
        Text(f"{done['mirror']}: the source is active again since {done['switchedAt']}.", "bold"),
        _losses(done),
        Text(f"{compared.capitalize()} compared on the way back."),
    ]
    if done["recordsBroughtOver"]:
        brought = format_count(done["recordsBroughtOver"], "record")
        lines.append(Text(f"{brought} that only the source had are on both sides now."))
    if done["groups"]:
        costs = [Column(title, number=True) for title in ("read again", "skipped")]
        grid = AdaptiveTable("consumer groups on the source", (Column("group", name=True), *costs))
        for group, found in done["groups"].items():
            grid.add_row(group, str(found["repeated"]), str(found["skipped"]))
        lines.append(grid)
    secret = done["clientsSecret"]
    lines.append(Text(f"Applications find the source's properties in Secret {secret}." if secret else ""))
    return Group(*lines, *client_workloads.summary(done))


def _losses(done: Mapping[str, Any]) -> RenderableType:
    """Return what is known of records that are on one side only, or on none."""
    written = stranded_records.written_afterwards(
        done["stranded"], "target", "source", "write them to the source again", done["strandedWhy"]
    )
    if not done["recordsDeletedUnproven"]:
        return written
    gone = format_count(done["recordsDeletedUnproven"], "record")
    deleted = Text(f"! {gone} that only the source had were deleted there before they were found on the target.", "red")
    return deleted if done["stranded"] == {} else Group(deleted, written)


def unsettled(done: Mapping[str, Any]) -> bool:
    """Return whether records may be lost after a finished failback, pods may be old, or nobody can tell."""
    return done["recordsLost"] != 0 or done["recordsDeletedUnproven"] != 0 or client_workloads.is_unsettled(done)
