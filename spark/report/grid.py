"""Topics by partitions, each cell with its state."""

from collections.abc import Mapping, Sequence
from typing import Any

from spark.report.summary import is_failing

SIGNS = {"bad": "✕", "unknown": "?", "note": "•", "empty": "\N{EN DASH}", "good": "✓"}
# of one partition and of several
MEANINGS = {
    "bad": ("does not hold", "do not hold"),
    "unknown": ("could not be compared", "could not be compared"),
    "note": ("holds, with a note", "hold, with a note"),
    "empty": ("holds no records", "hold no records"),
    "good": ("holds", "hold"),
}


def state_of(part: Mapping[str, Any], checks: Mapping[str, Any]) -> str:
    """Return a partition's state: one of SIGNS."""
    if any(is_failing(finding["kind"], checks) for finding in part["findings"]):
        return "bad"
    if part.get("undecided") or (part["source_records"] and not part["compared"] and not _all_before(part)):
        return "unknown"
    if part["findings"]:
        return "note"
    return "good" if part["compared"] or _all_before(part) else "empty"


def _all_before(part: Mapping[str, Any]) -> bool:
    """Whether an earlier run had verified everything up to the cut."""
    start = part.get("verified_from")
    return start is not None and start >= part["cut"] > part["source_start"]


def grid(result: Mapping[str, Any], ordered: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return `rows` (topic, cells), `columns` (partition numbers) and `counts` of states; topics with faults first.

    `differs` says whether there is something to see: partitions of more than one state.
    """
    checks = {check["name"]: check["ok"] for check in result["checks"]}
    anchors: dict[tuple[str, int], str] = {}
    for one in ordered:
        if "group" in one:
            continue
        anchors.setdefault((one["topic"], one["partition"]), one["anchor"])
    cells: dict[str, dict[int, dict[str, Any]]] = {}
    counts = dict.fromkeys(SIGNS, 0)
    for part in result["partitions"]:
        state = state_of(part, checks)
        counts[state] += 1
        cells.setdefault(part["topic"], {})[part["partition"]] = {
            "state": state,
            "sign": SIGNS[state],
            "text": _text(part, state),
            "anchor": anchors.get((part["topic"], part["partition"])),
        }
    width = 1 + max((number for row in cells.values() for number in row), default=-1)
    rows = [
        {
            "topic": topic,
            "bad": sum(cell["state"] == "bad" for cell in row.values()),
            "cells": [row.get(number) for number in range(width)],
        }
        for topic, row in cells.items()
    ]
    rows.sort(key=lambda row: (-row["bad"], row["topic"]))
    differs = sum(count > 0 for count in counts.values()) > 1
    shape = {"rows": rows, "columns": range(width), "differs": differs}
    return {**shape, "counts": counts, "signs": SIGNS, "meanings": MEANINGS}


def _text(part: Mapping[str, Any], state: str) -> str:
    found = [f"{one['count']} {one['kind'].replace('_', ' ')}" for one in part["findings"]]
    words = [MEANINGS[state][0], f"{part['compared']} compared", *found, *filter(None, [part.get("undecided")])]
    return f"{part['topic']}-{part['partition']}: {', '.join(words)}"
