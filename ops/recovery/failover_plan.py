"""Whether a failover may begin, and what it would do and cost, before anything is changed.

Owns the refusals and the plan's document and table. Does not own the steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ops.adaptive_table import AdaptiveTable, Column
from ops.errors import OpsError
from ops.recovery import status, status_table
from ops.recovery.failover import PLANNED, Options
from ops.recovery.journal import Journal
from ops.recovery.operation import Step, steps_document, steps_table
from ops.recovery.pair import RETURNING
from ops.recovery.sight import Sight
from ops.size_clients import count


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A failover that may begin: what was seen, its steps, and what the person on call should know."""

    seen: Sight
    options: Options
    steps: tuple[Step, ...]
    journal: Journal

    @property
    def warnings(self) -> list[str]:
        """What does not keep the failover from happening and should not be missed."""
        found = []
        if self.seen.pair.facts.get("clientsSecret") is None:
            found.append(
                "applications are told by nobody: the mirror has no `clients` in its settings, so there is no Secret "
                "with the properties of the active side"
            )
        if self.options.path != PLANNED:
            left = self.seen.lag.records if self.seen.lag is not None else None
            found.append(f"{_lost(left)} Records that the source still has are brought over by the failback.")
        proof = status.verification(self.seen)
        if proof is None:
            found.append("nobody has verified this mirror yet: `python -m ops verify`")
        elif proof["verdict"] != "pass":
            found.append(f"the latest verification has the verdict {proof['verdict']}")
        return found

    def document(self) -> dict[str, Any]:
        """Return the plan as `--dry-run --json` prints it."""
        found = status.document(self.seen)
        return {
            "stack": self.seen.pair.stack,
            "mirror": self.seen.pair.mirror,
            "path": self.options.path,
            "exact": self.options.exact,
            "resumes": self.journal.under_way,
            "steps": steps_document(self.steps, self.journal),
            "cost": found["failover"],
            "groups": found["groups"],
            "verification": found["verification"],
            "warnings": self.warnings,
        }

    def table(self) -> RenderableType:
        """Return the plan for people."""
        found = status.document(self.seen)
        word = f"Failover of {self.seen.pair.mirror} to stack {self.seen.pair.stack}, {self.options.path}"
        word += ", goes on where it stopped" if self.journal.under_way else ""
        notes = [Text(f"! {warning}", "yellow") for warning in self.warnings]
        seen = status_table.table(found, planned=True)
        return Group(Text(word, "bold"), seen, steps_table(self.steps, self.journal), *self._costs(found), *notes)

    def _costs(self, found: dict[str, Any]) -> list[Text]:
        """What this failover costs by what is known now. --exact ignores where the mirror has put the groups."""
        cost = found["failover"]
        if cost is None:
            return []
        again = sum(number or 0 for number in cost["recordsReadAgain"].values())
        groups = "with --exact no group reads a record again or skips one"
        if not self.options.exact:
            groups = f"groups would read about {count(again, 'record')} again"
            groups += ", with --exact none" if self.options.path == PLANNED else ""
        return [Text(f"{status_table.not_mirrored(cost).capitalize()} now; {groups}.")]


def insist_possible(seen: Sight, options: Options, journal: Journal) -> None:
    """Raise OpsError with everything that keeps a failover from beginning; nothing has changed then."""
    begins = journal.begins("failover")  # else it was judged when it began, and may have stopped the mirror
    problems = _problems(seen, options) if begins else _contradictions(options)
    if problems:
        raise OpsError("\n".join(problems) + "\nNothing was changed.")


def _contradictions(options: Options) -> list[str]:
    if not options.exact or options.path == PLANNED:
        return []
    return [
        "--exact: must be given for a planned failover only: without the source nobody knows where its groups stand. "
        "Leave it out: MirrorMaker's own translation is used, which may repeat records."
    ]


def _problems(seen: Sight, options: Options) -> list[str]:
    known = seen.pair
    if "active" in known.facts and known.facts["active"] is None:
        forward = known.mirror.removesuffix("-reverse").removesuffix(RETURNING)
        return [f"--mirror: must be the forward direction (got {known.mirror}, allowed {forward})."]
    if known.active == "target":
        return [
            f"mirror {known.mirror}: must have the source active (the target is already). To go back: "
            f"python -m ops failback --to {known.source_stack or 'STACK'}."
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


def _at_work(seen: Sight) -> list[str]:
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


def summary(done: Mapping[str, Any]) -> RenderableType:
    """Return what a finished failover has come to, for people."""
    lines: list[RenderableType] = [
        Text(f"{done['mirror']}: the target of stack {done['stack']} is active since {done['switchedAt']}.", "bold"),
        Text("No record was lost: all were compared." if done["path"] == PLANNED else _lost(done["recordsLost"])),
    ]
    if done["newestMirrored"]:
        newest = ", ".join(f"{topic} {moment}" for topic, moment in done["newestMirrored"].items())
        lines.append(Text(f"Newest copied records: {newest}."))
    if done["groups"]:
        costs = [Column(title, number=True) for title in ("left to read", "of these again", "skipped")]
        grid = AdaptiveTable("consumer groups on the target", (Column("group", name=True), *costs))
        for group, found in done["groups"].items():
            again = f"at most {found['left']}" if found["repeated"] is None else str(found["repeated"])
            grid.add_row(
                group, str(found["left"]), again, "unknown" if found["skipped"] is None else str(found["skipped"])
            )
        lines.append(grid)
    secret = done["clientsSecret"]
    told = (
        f"Applications find the target's properties in Secret {secret}." if secret else "No Secret tells applications."
    )
    lines.append(Text(told))
    return Group(*lines)


def _lost(left: int | None) -> str:
    if left is None:
        return "Unplanned: how many records are lost is unknown, because the source does not answer."
    return f"Unplanned: {count(left, 'record')} of the source are not on the target."
