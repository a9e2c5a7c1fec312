"""Whether a failback may begin, and what it would do, before anything is changed.

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
from ops.recovery.journal import Journal
from ops.recovery.operation import Step, steps_document, steps_table
from ops.recovery.sight import Sight
from ops.size_clients import count


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A failback that may begin: what was seen and its steps."""

    seen: Sight
    steps: tuple[Step, ...]
    journal: Journal

    def document(self) -> dict[str, Any]:
        """Return the plan as `--dry-run --json` prints it."""
        return {
            "stack": self.seen.pair.stack,
            "mirror": self.seen.pair.mirror,
            "to": self.seen.pair.source_stack,
            "resumes": self.journal.under_way,
            "steps": steps_document(self.steps, self.journal),
            "status": status.document(self.seen),
        }

    def table(self) -> RenderableType:
        """Return the plan for people."""
        known = self.seen.pair
        word = f"Failback of {known.mirror} to {known.name_of('source')}"
        word += ", goes on where it stopped" if self.journal.under_way else ""
        screen = status_table.table(status.document(self.seen))
        return Group(Text(word, "bold"), screen, steps_table(self.steps, self.journal))


def insist_possible(seen: Sight, journal: Journal) -> None:
    """Raise OpsError with everything that keeps a failback from beginning; nothing has changed then."""
    problems = [
        f"{side.role} {side.name}: must be usable for a failback. {side.problem}"
        for side in (seen.source, seen.target)
        if side.problem is not None
    ]
    if journal.begins("failback"):  # of one under way it was judged then who is active: it may have changed
        problems += _problems(seen, journal)
    if problems:
        raise OpsError("\n".join(problems) + "\nNothing was changed.")


def _problems(seen: Sight, journal: Journal) -> list[str]:
    known, problems = seen.pair, []
    if known.active != "target":
        problems.append(
            f"mirror {known.mirror}: must have the target active (the source is). There is nothing to fail back from."
        )
    if not known.keeps_names:
        problems.append(
            f"mirror {known.mirror}: naming must be identity to fail back by a command (got prefixed). With prefixed "
            "names, what the target's applications write returns by the mirror's `reverse`: see docs/runbook.md."
        )
    if known.facts.get("altersOffsets") is False:
        problems.append(
            f"mirror {known.mirror}: its operator must alter connectors' offsets to fail back by a command (Strimzi "
            "does since 0.44, Event Streams since 12.0, without configDefaults: false). Mirror everything anew "
            "instead: see docs/runbook.md."
        )
    entry = journal.entry or {}
    if entry.get("command") != "failover" or entry.get("finishedAt") is None:
        problems.append(
            f"ConfigMap {journal.namespace}/{journal.name}: must tell of the failover (got "
            f"{entry.get('command') or 'nothing'}): where both sides were equal is written there. It was not done by "
            "`ops failover`, or the ConfigMap was deleted. Mirror everything anew instead: see docs/runbook.md."
        )
    elif entry["steps"]["stop"].get("copied") is None:
        problems.append(
            f"ConfigMap {journal.namespace}/{journal.name}: must tell how far the mirror had copied (got nothing: its "
            "position could not be read then). Mirror everything anew instead: see docs/runbook.md."
        )
    return problems


def summary(done: Mapping[str, Any]) -> RenderableType:
    """Return what a finished failback has come to, for people."""
    compared = count(done["verification"]["recordsCompared"], "record")
    lines: list[RenderableType] = [
        Text(f"{done['mirror']}: the source is active again since {done['switchedAt']}.", "bold"),
        Text(f"No record was lost: {compared} compared on the way back."),
    ]
    if done["recordsBroughtOver"]:
        brought = count(done["recordsBroughtOver"], "record")
        lines.append(Text(f"{brought} that only the source had are on both sides now."))
    if done["groups"]:
        costs = [Column(title, number=True) for title in ("read again", "skipped")]
        grid = AdaptiveTable("consumer groups on the source", (Column("group", name=True), *costs))
        for group, found in done["groups"].items():
            grid.add_row(group, str(found["repeated"]), str(found["skipped"]))
        lines.append(grid)
    secret = done["clientsSecret"]
    lines.append(Text(f"Applications find the source's properties in Secret {secret}." if secret else ""))
    return Group(*lines)
