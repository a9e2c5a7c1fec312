"""An operation in steps, its progress, and the options that such commands share.

Each step is recorded when it is done, and an interrupted operation resumes after the last one. Owns the order, the
messages, and whether an unfinished operation is under way, interrupted, or ended before it changed anything. Does not
own what a step does; each must be safe to repeat.
"""

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from ops.connection import PROJECT
from ops.console import EXIT_FAILED, EXIT_INTERRUPTED, AdaptiveTable, Column, stderr
from ops.console import log as say
from ops.errors import OpsError
from ops.recovery import mirror_context
from ops.recovery.journal import HARMLESS, Journal
from ops.recovery.lease import Holder

UNDER_WAY, INTERRUPTED, NOTHING_CHANGED = "under way", "interrupted", "ended before it changed anything"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """An operation that has not finished: its state, the step that it is at, and the command that goes on with it.

    `number` of `total` is the place of the step, `total` None in journals that do not name all steps.
    """

    command: str
    state: str
    step: str | None
    number: int
    total: int | None
    started_at: str
    held_by: str | None
    continue_with: str

    @property
    def place(self) -> str:
        """The place of the step in words, such as `5/6 (switch)`."""
        of = "" if self.total is None else f"/{self.total}"
        return f"{self.number}{of}" + (f" ({self.step})" if self.step else "")

    @property
    def problem(self) -> str | None:
        """What is not well because of it, None if nothing has changed."""
        if self.state == NOTHING_CHANGED:
            return None
        if self.state == UNDER_WAY:
            return f"{self.command} under way at {self.place}, held by {self.held_by}"
        return (
            f"{self.command} interrupted at {self.place}, begun {self.started_at}: applications may find neither side "
            f"ready. Run `{self.continue_with}`: it goes on there"
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "command": self.command,
            "state": self.state,
            "step": self.step,
            "number": self.number,
            "total": self.total,
            "startedAt": self.started_at,
            "heldBy": self.held_by,
            "continueWith": self.continue_with,
        }


def of_journal(journal: Journal, stack: str, project: Path = PROJECT, holder: Holder | None = None) -> Progress | None:
    """Return how far the operation of a journal is; None if there is none or it has finished.

    Args:
        journal: Where the operation is recorded.
        stack: The stack that declares the mirror; commands that are printed name it.
        project: The folder of its Pulumi project, which they name as well.
        holder: Who holds the mirror's Lease, if anybody does.
    """
    entry = journal.entry
    if entry is None or not journal.under_way:
        return None
    names, done = [str(name) for name in entry.get("of") or []], set(entry["steps"])
    at = entry.get("at")
    if at is None or at in done:
        at = next((name for name in names if name not in done), None)
    return Progress(
        command=entry["command"],
        state=_state(journal, holder),
        step=at,
        number=names.index(at) + 1 if at in names else len(done) + 1,
        total=len(names) or None,
        started_at=entry["startedAt"],
        held_by=str(holder) if holder else None,
        continue_with=_command(journal, entry, stack, project),
    )


def _state(journal: Journal, holder: Holder | None) -> str:
    if holder is not None and holder.seems_at_work:
        return UNDER_WAY
    return INTERRUPTED if journal.may_have_changed else NOTHING_CHANGED


def _command(journal: Journal, entry: Mapping[str, Any], stack: str, project: Path) -> str:
    """The command that goes on, which works whatever else the stack declares and wherever it is typed."""
    options = entry["options"]
    words = ["python -m ops", entry["command"], "--to"]
    words += [str(options.get("to")), "--stack", stack] if entry["command"] == "failback" else [stack]
    more = ["--exact"] if options.get("exact") else []
    more += ["--topic", shlex.quote(str(options["topic"]))] if options.get("topic") else []
    more += ["--unplanned"] if options.get("path") == "unplanned" else []
    more += ["--without-fence"] if options.get("withoutFence") else []
    without_pulumi = bool(options.get("breakGlass"))
    return " ".join(words) + addressed(journal.mirror, project, *more, without_pulumi=without_pulumi)


def addressed(mirror: str, project: Path, *more: str, without_pulumi: bool = False) -> str:
    """Return the options, each behind a space, by which a command finds a mirror wherever it is typed, and `more`."""
    words = ["", "--mirror", shlex.quote(mirror), *more]
    words += ["--break-glass"] if without_pulumi else []
    words += ["-C", shlex.quote(str(project.resolve()))] if project.resolve() != PROJECT else []
    return " ".join(words)


DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
WithoutFence = Annotated[
    bool, typer.Option("--without-fence", help="Leave the applications' rights as they are: you stop them yourself.")
]
_NOTHING = "Nothing was changed."
DRY_RUN_ENDED = f"{_NOTHING} The same command without --dry-run carries this out."
ReportDir = Annotated[Path | None, typer.Option("--report-dir", help="Folder for the verification's reports.")]


def default_report_dir(what: str, known: mirror_context.MirrorContext) -> Path:
    """Return `reports/<stack>-<mirror>-<what>-<UTC time>` below the working directory."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path("reports") / f"{known.stack}-{known.mirror}-{what}-{stamp}"


def unchanged(journal: Journal, stack: str, project: Path = PROJECT) -> str:
    """Return that nothing was changed, or what goes on with an interrupted operation: that one has changed something.

    `stack` and `project` are those of `of_journal`.
    """
    found = of_journal(journal, stack, project) if journal.may_have_changed else None
    if found is None:
        return _NOTHING
    return (
        f"Nothing was changed by this command. The {found.command} that was interrupted at {found.place} is not "
        f"finished; to go on: {found.continue_with}"
    )


def require_yes(yes: bool, question: str, as_json: bool, otherwise: str = _NOTHING) -> None:
    """Ask for confirmation, unless --yes was given; raises OpsError if nobody is there to answer.

    `otherwise` is reported if the answer is no. Raises typer.Exit with exit code 1 then: that is no error, but nothing
    was done. Raises it with `EXIT_INTERRUPTED` after Ctrl-C or the end of the input.
    """
    if yes:
        return
    if as_json or not _somebody_is_there():
        raise OpsError("--yes must be given where nobody can be asked: with --json or without a terminal.")
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        say(otherwise)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not agreed:
        say(otherwise)
        raise typer.Exit(EXIT_FAILED)


def _somebody_is_there() -> bool:
    return stderr().is_terminal and sys.stdin.isatty()


Say = Callable[[str], None]
Facts = dict[str, Any]


class StackChanges(Protocol):
    """What a step changes a stack with: Pulumi (`PulumiStack`), or without it (`break_glass.DirectChanges`)."""

    @property
    def file(self) -> Path:
        """The stack file."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of what is started."""

    @property
    def require_permission(self) -> Callable[[], None]:
        """Raises to forbid a change; called before each."""

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs; raises OpsError."""

    def require_as_deployed(self, mirror: str, deployed: Mapping[str, str]) -> None:
        """Raise OpsError if the stack file has other settings of a mirror than are deployed."""

    def set_mirror(self, mirror: str, values: Mapping[str, str | None]) -> None:
        """Write settings of a mirror into the stack file."""

    def up(self, mirror: str | None, log: Say) -> None:
        """Carry the settings out; `mirror` is the one whose active side may change. Raises OpsError."""


@dataclass(frozen=True)
class Step:
    """One step: its name in the journal, what it does in words, and the action, which returns what it learned."""

    name: str
    words: str
    action: Callable[[], Facts]


def carry_out(steps: Sequence[Step], journal: Journal, say: Say, undo: Callable[[], None] = lambda: None) -> None:
    """Run every step that is not done yet, in order; an error leaves the journal at the last step that was done.

    `undo` is called if the command ends before its last step, for what must not outlive it; it raises nothing that is
    foreseen.
    """
    with journal.held(), undone_unless_ended(undo):
        for number, step in enumerate(steps, 1):
            place = f"[{number}/{len(steps)}] {step.name}"
            if step.name in journal.steps:
                say(f"{place}: done before, at {journal.steps[step.name]['finishedAt']}")
                continue
            say(f"{place}: {step.words}")
            began = time.monotonic()
            journal.start(step.name)
            facts = step.action()
            seconds = round(time.monotonic() - began, 1)
            journal.done(step.name, {**facts, "seconds": seconds})
            say(f"{place}: done in {seconds} s")
        journal.finish()


@contextmanager
def undone_unless_ended(undo: Callable[[], None], *, dry_run: bool = False) -> Iterator[None]:
    """Call `undo` if the block does not reach its end, by an error, Ctrl-C or a signal; a dry run undoes nothing."""
    try:
        yield
    except BaseException:
        if not dry_run:
            undo()
        raise


@contextmanager
def interruption_reported(
    steps: Sequence[Step], journal: Journal, stack: str, say: Say, project: Path = PROJECT
) -> Iterator[None]:
    """Report what was changed and how to go on if the command is ended by Ctrl-C, a signal or a lost connection."""
    try:
        yield
    except KeyboardInterrupt:
        _report_interruption(steps, journal, stack, project, say)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except SystemExit:
        _report_interruption(steps, journal, stack, project, say)
        raise


@contextmanager
def only_reading(say: Say) -> Iterator[None]:
    """Report that nothing was changed if Ctrl-C ends the command while it still reads, also the journal."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"Interrupted. {_NOTHING} If an earlier command was interrupted: `python -m ops status` shows where.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _report_interruption(steps: Sequence[Step], journal: Journal, stack: str, project: Path, say: Say) -> None:
    found = of_journal(journal, stack, project)
    if not journal.begun_here:
        say(f"Interrupted. {unchanged(journal, stack, project)}")
    elif found is None:
        say("Interrupted after the last step: everything is done.")
    elif found.state == NOTHING_CHANGED:
        say(f"Interrupted at {found.place}. Nothing was changed. To begin again: {found.continue_with}")
    else:
        harmless = HARMLESS.get(found.command, ())
        done = [step for step in steps if step.name in journal.steps and step.name not in harmless]
        say(f"Interrupted at {found.place}. Changed until then:")
        for step in done:
            say(f"  {step.name}: {step.words}")
        if found.step is not None and found.step not in harmless:
            say(f"  {found.step}: in part, it is done again")
        say(f"To go on behind the last step that was done: {found.continue_with}")


def steps_table(steps: Sequence[Step], journal: Journal) -> AdaptiveTable:
    """Return the steps for people, with those that an interrupted operation has done."""
    columns = Column("", name=True, number=True), Column("step", name=True), Column("what it does"), Column("done")
    grid = AdaptiveTable("steps", columns, show_header=False)
    for number, step in enumerate(steps, 1):
        grid.add_row(str(number), step.name, step.words, "done" if is_done(step, journal) else "")
    return grid


def steps_document(steps: Sequence[Step], journal: Journal) -> list[Facts]:
    """Return the same as JSON values."""
    return [{"name": step.name, "words": step.words, "done": is_done(step, journal)} for step in steps]


def is_done(step: Step, journal: Journal) -> bool:
    """Whether the operation under way has done a step."""
    return journal.under_way and step.name in journal.steps
