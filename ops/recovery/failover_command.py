"""The command `python -m ops failover`: applications move to the standby cluster.

Owns the options, the plan, what makes a failover impossible, and the summary. Does not own the steps (`failover.py`).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from contract.fields import VerificationError
from ops.connection import PROJECT
from ops.console import (
    EXIT_FAILED,
    AsJson,
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
from ops.inspection import probes, snapshot
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery import (
    break_glass,
    client_workloads,
    failover,
    failover_result,
    failover_scope,
    fence,
    fencing,
    mirror_context,
    stranded_records,
    topic_selection,
)
from ops.recovery.break_glass import BreakGlass
from ops.recovery.changes import FailoverChanges
from ops.recovery.failover import PLANNED, Options
from ops.recovery.fence import FENCING
from ops.recovery.fencing import STEP
from ops.recovery.journal import TARGET_LOST, Journal
from ops.recovery.mirror_context import FAILBACK_SUFFIX, connected
from ops.recovery.operation import (
    DRY_RUN_ENDED,
    DryRun,
    ReportDir,
    Step,
    WithoutFence,
    Yes,
    addressed,
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
from ops.recovery.topic_selection import TOPICS
from ops.status import document as status
from settings import SettingsError
from settings.text import format_count, format_names

DRAIN_S = 120.0
_ONLY_PLANNED = (
    "--topic: must be given for a planned failover by Pulumi only (got --unplanned or --break-glass). A source that is "
    "lost is lost for all topics: leave --topic out. Nothing was changed."
)

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
    without_preview: Annotated[
        bool,
        typer.Option("--without-preview", help="In an emergency: carry out unseen whatever else lies in the checkout."),
    ] = False,
    without_fence: WithoutFence = False,
    without_pulumi: BreakGlass = False,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="PATTERN", help="Only topics that this regular expression of Java matches."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    report_dir: ReportDir = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make the target of a mirror the active side.

    Example: [bold]python -m ops failover --to stg --exact[/bold]

    Planned, with a source that is alive: it takes the applications' right to write there away, waits until everything
    is copied, verifies it, stops the mirror, sets the groups' offsets and gives applications the target's properties.
    No record is lost; with --exact none is read again. If it ends before the switch, they may write again. With
    --unplanned the source is given up, and what stays behind is reported; it is fenced once it answers.

    With --topic only these topics fail over, planned, with the groups that read them and nothing else of the mirror.
    It goes on with the rest. The Secret of the active side stays as it is. A failover without --topic takes the rest
    over.

    An interrupted failover goes on with the same command; a planned one whose source is lost meanwhile goes on with
    --unplanned. Exit 0 if the target is active, 2 if not, 1 if you answer no, if after a planned failover the source
    has records that came later, or does not answer, if after an unplanned one a group may skip records, or if workloads
    that `clients.restart` shall restart are not restarted.
    """
    with guard(as_json, debug, VerificationError, SettingsError), terminated_gently():
        with only_reading(say), reading("the stack and its mirror"):
            if topic is not None and (unplanned or without_pulumi):
                raise OpsError(_ONLY_PLANNED)
            mirrored = break_glass.loader(without_pulumi)(to, mirror, os.environ, folder)
            options = failover.Options(
                path=failover.UNPLANNED if unplanned else failover.PLANNED,
                exact=exact,
                drain_s=drain_s,
                report_dir=report_dir or default_report_dir("failover", mirrored),
                break_glass=without_pulumi,
                without_fence=without_fence,
            )
            journal = Journal.load(mirrored.resource.namespace, mirrored.mirror, os.environ, mirrored.resource.context)
            if not dry_run:
                journal.require_free()
            file, of_outputs = folder / f"Pulumi.{mirrored.label}.yaml", mirrored
            mirrored = topic_selection.as_split(of_outputs, journal, file, os.environ, of_topics=topic is not None)
            how = FailoverChanges.of(
                of_outputs,
                folder,
                journal,
                without_pulumi=without_pulumi,
                of_topics=topic is not None,
                new_split=mirrored is not of_outputs,
            )
            known, scope = mirrored, None
            if topic is not None:
                chosen = topic_selection.select(mirrored, topic, journal, options.kept())
                options = replace(options, part=chosen.kept())
                known = mirror_context.narrowed(mirrored, chosen.topics, os.environ)
                scope = failover_scope.of(mirrored, chosen, how.changes.file, journal, os.environ, say)
            at_source, unfenced = fence.chosen(
                known, folder, os.environ, say, journal.require_held, without=without_fence
            )
            preview_afterwards = unplanned and not dry_run and how.reconciles and not without_preview
            reconcile = how.reconcile(preview_first=preview_afterwards)
            work = failover.Failover(known, options, how.changes, journal, say, at_source, reconcile, scope)
            steps = work.steps()
        with interruption_reported(steps, journal, known.stack, say, folder):
            with undone_unless_ended(partial(_lift_left, work), dry_run=dry_run):
                with reading("both clusters and the mirror"):
                    within_s = stranded_records.ANSWERS_WITHIN_S if unplanned else probes.ANSWER_WITHIN_S
                    seen = snapshot.collect(known, os.environ, source_within_s=within_s)
                work.unanswered = seen.source.problem if unplanned else None
                require_possible(seen, options, journal)
                if not journal.may_have_changed:
                    journal.require_room(_positions(seen, work))
                    how.changes.require_as_deployed(known.mirror, {"active": known.active, "state": known.state})
                if at_source is not None and not unplanned and STEP not in journal.steps:
                    at_source.require_reachable()
                if scope is not None and not journal.may_have_changed:
                    topic_selection.require_undivided(connected(known.source()), mirrored, scope.chosen.topics)
                warnings = how.previewed(
                    journal, without_preview=without_preview, preview_afterwards=preview_afterwards
                )
                if scope is None and not unplanned:
                    unfenced = [*unfenced, *topic_selection.not_followed(known)]
                of_preview = *warnings, *how.warnings, *unfenced
                plan = FailoverPlan(
                    seen=seen,
                    options=options,
                    steps=tuple(steps),
                    journal=journal,
                    of_preview=of_preview,
                    workloads={} if scope is not None else work.following.listed(),
                )
                if dry_run:
                    show(as_json, plan.document(), plan.table)
                    say(DRY_RUN_ENDED)
                    return
                stderr().print(plan.table())
                require_yes(yes, plan.question, as_json, unchanged(journal, known.stack, folder))
                gives_up = unplanned or without_pulumi
                journal.begin("failover", options.kept(), gives_up=gives_up, steps=[step.name for step in steps])
            carry_out(steps, journal, say, work.lift_fence)
        done = failover_result.result(known, options, journal)
        done = {**done, **({"reconcileWith": break_glass.reconcile_command(to, folder)} if without_pulumi else {})}
        options_of_mirror = addressed(known.mirror, folder, without_pulumi=without_pulumi)
        show(as_json, done, lambda: failover_result.summary(done, options_of_mirror))
        if failover_result.unsettled(done):
            raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("failover")(command)


def _lift_left(work: failover.Failover) -> None:
    """Take the source's fence down if a failover that was killed does not go on, as it is if a step is interrupted.

    One that gives the source up leaves the fence, and reports it.
    """
    lift = work.lift_fence if work.fencing is not None and work.options.path == PLANNED else None
    fencing.lift_left(work.pair, work.journal, FENCING, "failover", failover.SWITCHING, lift, say)


@dataclass(frozen=True, kw_only=True)
class FailoverPlan:
    """A failover that may begin: what was seen, its steps, and what the person on call should know.

    `of_preview` are warnings of the preview, and of a source that is not fenced, `workloads` what `FollowingClients`
    has listed.
    """

    seen: MirrorSnapshot
    options: Options
    steps: tuple[Step, ...]
    journal: Journal
    of_preview: tuple[str, ...] = ()
    workloads: Mapping[str, Any] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """What does not keep the failover from happening and should not be missed."""
        found = [*self.of_preview]
        if self.topics:
            found.append(failover_result.POINTED_BY_PEOPLE.format(secret=self.seen.pair.outputs.clients_secret))
        elif split := self.seen.pair.failed_over:
            found.append(
                f"{format_names(split.topics)} failed over before: this is for the rest, and a failback brings all back"
            )
        if self.seen.pair.outputs.clients_secret is None:
            found.append(
                "nobody switches the applications: the mirror has no `clients` in its settings, so there is no Secret "
                "with the properties of the active side"
            )
        if self.options.path != PLANNED:
            left = self.seen.lag.records if self.seen.lag is not None else None
            lost = failover_result.lost(left, self.seen.source.problem)
            found.append(f"{lost} Records that the source still has are brought over by the failback.")
        proof = status.verification(self.seen)
        if proof is None:
            found.append("nobody has verified this mirror yet: `python -m ops verify`")
        elif proof["verdict"] != "pass":
            found.append(f"the latest verification has the verdict {proof['verdict']}")
        return found

    @property
    def topics(self) -> list[str]:
        """The topics that fail over by themselves; empty for a whole mirror."""
        return list(self.options.part.get(TOPICS) or ())

    @property
    def question(self) -> str:
        """What the person on call is asked."""
        name = self.seen.pair.name_of("target")
        if self.topics:
            return f"Let applications use {format_names(self.topics)} at {name} now?"
        return f"Make {name} active now?"

    def document(self) -> dict[str, Any]:
        """Return the plan as `--dry-run --json` prints it."""
        found = status.document(self.seen)
        return {
            "stack": self.seen.pair.stack,
            "mirror": self.seen.pair.mirror,
            "path": self.options.path,
            "exact": self.options.exact,
            "topics": self.topics or None,
            "resumes": self.journal.under_way,
            "steps": steps_document(self.steps, self.journal),
            "cost": found["failover"],
            "groups": found["groups"],
            "verification": found["verification"],
            "warnings": self.warnings,
            **self.workloads,
        }

    def table(self) -> RenderableType:
        """Return the plan for people."""
        found = status.document(self.seen)
        word = f"Failover of {self.seen.pair.mirror} to stack {self.seen.pair.stack}, {self.options.path}"
        word += f", of {format_names(self.topics)} alone" if self.topics else ""
        word += ", goes on where it stopped" if self.journal.under_way else ""
        notes = [Text(f"! {warning}", "yellow") for warning in self.warnings]
        notes += client_workloads.planned(self.seen.pair, self.workloads)
        seen = status.table(found, planned=True)
        return Group(Text(word, "bold"), seen, steps_table(self.steps, self.journal), *self._costs(found), *notes)

    def _costs(self, found: dict[str, Any]) -> list[Text]:
        """What this failover costs by what is known now. --exact ignores where the mirror has put the groups."""
        cost = found["failover"]
        if cost is None:
            return []
        again = sum(number or 0 for number in cost["recordsReadAgain"].values())
        groups = "with --exact no group reads a record again or skips one"
        if not self.options.exact:
            groups = f"groups would read about {format_count(again, 'record')} again"
            groups += ", with --exact none" if self.options.path == PLANNED else ""
        return [Text(f"{status.not_mirrored(cost).capitalize()} now; {groups}.")]


def require_possible(seen: MirrorSnapshot, options: Options, journal: Journal) -> None:
    """Raise OpsError with everything that keeps a failover from beginning; nothing has changed then."""
    begins = journal.begins("failover")  # else it was judged when it began, and may have stopped the mirror
    problems = _problems(seen, options) if begins else _contradictions(options)
    if problems:
        raise OpsError("\n".join(problems) + ("\nNothing was changed." if begins else ""))


def _positions(seen: MirrorSnapshot, work: failover.Failover) -> int:
    """The most offsets that the journal may have to keep: of each group in each partition.

    Twice: a failback keeps where each group stands on either side.
    """
    partitions = len(seen.lag.partitions) if seen.lag is not None else work.count_partitions()
    return 2 * len(seen.groups or ()) * partitions


def _contradictions(options: Options) -> list[str]:
    if not options.exact or options.path == PLANNED:
        return []
    return [
        "--exact: must be given for a planned failover only: without the source nobody knows where its groups stand. "
        "Leave it out: MirrorMaker's own translation is used, which may repeat records."
    ]


def _problems(seen: MirrorSnapshot, options: Options) -> list[str]:
    known = seen.pair
    if known.outputs.active is None:
        forward = known.mirror.removesuffix("-reverse").removesuffix(FAILBACK_SUFFIX)
        return [f"--mirror: must be the forward direction (got {known.mirror}, allowed {forward})."]
    if known.active == "target":
        lost = f" If the target is lost: {TARGET_LOST}." if seen.target.problem is not None else ""
        return [
            f"mirror {known.mirror}: must have the source active (the target is already). To go back: "
            f"python -m ops failback --to {known.source_stack or 'STACK'}.{lost}"
        ]
    problems = []
    if seen.target.problem is not None:
        problems.append(f"target {seen.target.name}: must be usable. {seen.target.problem}")
    planned = options.path == PLANNED
    if planned and seen.source.problem is not None:
        problems.append(
            f"source {seen.source.name}: must be usable for a planned failover. {seen.source.problem} "
            "If it is lost: --unplanned."
        )
    elif planned:
        problems += _at_work(seen)
    problems += _contradictions(options)
    active = [one.group for one in seen.groups or () if one.active_on_target]
    if planned and active:
        problems.append(
            f"target {seen.target.name}: consumer groups must be inactive there (members in {', '.join(active)}). "
            "Stop these applications there first."
        )
    return problems


def _at_work(seen: MirrorSnapshot) -> list[str]:
    """What keeps the mirror from copying the rest."""
    known = seen.pair
    if known.state != "running":
        return [
            f"mirror {known.mirror}: must be declared running for a planned failover (got {known.state}). Set "
            f"state: running, run `pulumi up -s {known.stack}`; or, without what is not copied yet: --unplanned."
        ]
    faults = [fault for one in seen.connectors or () for fault in one.faults]
    if faults:
        return [
            f"mirror {known.mirror}: connectors must run to copy the rest ({'; '.join(faults)}). See "
            "`python -m ops doctor`; or, without what is not copied yet: --unplanned."
        ]
    return []
