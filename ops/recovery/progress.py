"""How far a failover or failback is, as its journal says, for whoever looks at the pair.

Owns what an operation that has not ended means: under way, interrupted, or ended before it changed anything. Does not
own the journal.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.connection import PROJECT
from ops.recovery import holder
from ops.recovery.journal import Journal

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


def of_journal(journal: Journal, stack: str, project: Path = PROJECT) -> Progress | None:
    """Return how far the operation of a journal is; None if there is none or it has finished.

    `stack` declares the mirror, in the Pulumi project `project`: what people are told to type names both.
    """
    entry = journal.entry
    if entry is None or not journal.under_way:
        return None
    held = entry.get("holder")
    names, done = [str(name) for name in entry.get("of") or []], set(entry["steps"])
    at = entry.get("at")
    if at is None or at in done:
        at = next((name for name in names if name not in done), None)
    return Progress(
        command=entry["command"],
        state=_state(journal, held),
        step=at,
        number=names.index(at) + 1 if at in names else len(done) + 1,
        total=len(names) or None,
        started_at=entry["startedAt"],
        held_by=holder.described(held) if held else None,
        continue_with=_command(journal, entry, stack, project),
    )


def _state(journal: Journal, held: Mapping[str, Any] | None) -> str:
    if holder.is_alive(held):
        return UNDER_WAY
    return INTERRUPTED if journal.may_have_changed else NOTHING_CHANGED


def _command(journal: Journal, entry: Mapping[str, Any], stack: str, project: Path) -> str:
    """The command that goes on, which works whatever else the stack declares and wherever it is typed."""
    options = entry["options"]
    words = ["python -m ops", entry["command"], "--to"]
    words += [str(options.get("to")), "--stack", stack] if entry["command"] == "failback" else [stack]
    words += ["--mirror", journal.mirror]
    words += ["--exact"] if options.get("exact") else []
    words += ["--unplanned"] if options.get("path") == "unplanned" else []
    words += ["-C", shlex.quote(str(project.resolve()))] if project.resolve() != PROJECT else []
    return " ".join(words)
