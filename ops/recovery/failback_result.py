"""What a finished failback has come to: as JSON values, and for people.

Owns the words. Does not own what the steps find.
"""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ops.console import AdaptiveTable, Column
from ops.recovery import client_workloads, stranded_records
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext
from settings.text import format_count


def result(known: MirrorContext, journal: Journal) -> Mapping[str, Any]:
    """Return what a finished failback has come to, as `--json` prints it.

    `stranded` are the records, by partition, that the target got after it was drained and that the mirror did not copy
    there; None: a side could not be asked. `recordsLost` is their sum. `workloads` and what belongs to them:
    `client_workloads.result`.
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
        **client_workloads.result(steps),
        "recordsBroughtOver": steps["settle"]["records"],
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
        stranded_records.written_afterwards(done["stranded"], "target", "source", "write them to the source again"),
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


def unsettled(done: Mapping[str, Any]) -> bool:
    """Return whether records may be lost after a finished failback, pods may be old, or nobody can tell."""
    return done["recordsLost"] != 0 or client_workloads.is_unsettled(done)
