"""An operation in steps: each is noted when it is done, and an operation that was interrupted goes on after the last.

Owns the order and what is said. Does not own what a step does; each must be safe to run again.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ops.adaptive_table import AdaptiveTable, Column
from ops.connection import PROJECT
from ops.recovery.journal import HARMLESS, Journal
from ops.recovery.progress import NOTHING_CHANGED, Progress, of_journal
from ops.shell import EXIT_INTERRUPTED

Say = Callable[[str], None]
Facts = dict[str, Any]
_NOTHING = "Interrupted. Nothing was changed."


@dataclass(frozen=True)
class Step:
    """One step: its name in the journal, what it does in words, and the action, which returns what it learned."""

    name: str
    words: str
    action: Callable[[], Facts]


def carry_out(steps: Sequence[Step], journal: Journal, say: Say) -> None:
    """Run every step that is not done yet, in order; an error leaves the journal at the last step that was done."""
    with journal.held():
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
def interruption_reported(
    steps: Sequence[Step], journal: Journal, stack: str, say: Say, project: Path = PROJECT
) -> Iterator[None]:
    """Report what was changed and how to go on if the command is ended by Ctrl-C, a signal or a lost connection."""
    try:
        yield
    except KeyboardInterrupt:
        _report_interruption(steps, journal, of_journal(journal, stack, project), say)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except SystemExit:
        _report_interruption(steps, journal, of_journal(journal, stack, project), say)
        raise


@contextmanager
def only_reading(say: Say) -> Iterator[None]:
    """Report that nothing was changed if Ctrl-C ends the command while it still reads."""
    try:
        yield
    except KeyboardInterrupt:
        say(_NOTHING)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _report_interruption(steps: Sequence[Step], journal: Journal, found: Progress | None, say: Say) -> None:
    if not journal.begun_here:
        say(_NOTHING)
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
