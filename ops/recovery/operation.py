"""An operation in steps: each is noted when it is done, and an operation that was interrupted goes on after the last.

Owns the order and what is said. Does not own what a step does; each must be safe to run again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ops.recovery.journal import Journal

Say = Callable[[str], None]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One step: its name in the journal, what it does in words, and the action, which returns what it learned."""

    name: str
    words: str
    action: Callable[[], Facts]


def carry_out(steps: Sequence[Step], journal: Journal, say: Say) -> None:
    """Run every step that is not done yet, in order; an error leaves the journal at the last step that was done."""
    for number, step in enumerate(steps, 1):
        place = f"[{number}/{len(steps)}] {step.name}"
        if step.name in journal.steps:
            say(f"{place}: done before, at {journal.steps[step.name]['finishedAt']}")
            continue
        say(f"{place}: {step.words}")
        began = time.monotonic()
        facts = step.action()
        seconds = round(time.monotonic() - began, 1)
        journal.done(step.name, {**facts, "seconds": seconds})
        say(f"{place}: done in {seconds} s")
    journal.finish()


def steps_table(steps: Sequence[Step], journal: Journal) -> Table:
    """Return the steps for people, with those that an interrupted operation has done."""
    grid = Table(title="steps", title_justify="left", title_style="bold", show_header=False)
    for number, step in enumerate(steps, 1):
        grid.add_row(str(number), step.name, step.words, "done" if is_done(step, journal) else "")
    return grid


def steps_document(steps: Sequence[Step], journal: Journal) -> list[Facts]:
    """Return the same as JSON values."""
    return [{"name": step.name, "words": step.words, "done": is_done(step, journal)} for step in steps]


def is_done(step: Step, journal: Journal) -> bool:
    """Whether the operation under way has done a step."""
    return journal.under_way and step.name in journal.steps
