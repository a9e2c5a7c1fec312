"""The report as one self-contained page: its tables, and the grid of topics by partitions."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from kafka.errors import visible_document
from spark.checks.registry import ENDED, OTHER
from spark.report import plots, summary
from spark.report.summary import findings, is_failing

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Links:
    """Links of a page that lies in `folder`; without a folder, and to what is not there, there are none."""

    folder: Path | None = None
    index: Path | None = None
    project: Path = PROJECT

    def to_page(self, page: str) -> str | None:
        """Return the link to a document of the project, a path with or without an anchor; None if it is not there."""
        path, anchor, name = page.partition("#")
        found = self._to(self.project / path) if (self.project / path).is_file() else None
        return None if found is None else f"{found}{anchor}{name}"

    def to_index(self) -> str | None:
        """Return the link to the index of runs; None if the run is in none."""
        return None if self.index is None else self._to(self.index)

    def _to(self, file: Path) -> str | None:
        return None if self.folder is None else quote(os.path.relpath(file.resolve(), self.folder.resolve()))


NOWHERE = Links()


OPEN_ROWS = 40  # longer tables start folded
KIND_WORDS = {
    "skipped": "records skipped",
    "not_synced": "positions not synced",
    "read_again": "records read again",
}
SIGNS = {"skips records": "bad", "ahead, unexplained": "unknown", "not synced": "unknown", "active on target": "note"}


def as_html(result: Mapping[str, Any], links: Links = NOWHERE) -> str:
    """Return one HTML page that opens from disk and asks nothing of any other place; whole without its script.

    `links` lead to what lies beside the page.
    """
    result = visible_document(result)
    found = findings(result)
    return (
        templates()
        .get_template("report.html.j2")
        .render(
            result=result,
            headline=summary.headline(result),
            checks=summary.by_gravity(result["checks"]),
            check_state=summary.state_of,
            todo=todo(result),
            ended=ended(result),
            again=summary.again(result),
            unnamed=summary.STACK if not result.get("stack") else None,
            links=links,
            totals=totals(found),
            findings=found,
            kinds=sorted({one["kind"] for one in found}),
            grid=grid(result, found),
            groups=groups(result["groups"]),
            config=config_rows(result["checks"]),
            lag=(result.get("lag") or {}).get("at_end"),
            lag_plot=plots.lag(result.get("lag")),
            canary=result.get("canary"),
            latency_plot=plots.latency(result.get("canary")),
            steps=plots.bars(result["steps"]),
            plot={"width": plots.WIDTH, "height": plots.HEIGHT, "left": plots.LEFT, "top": plots.TOP}
            | {"right": plots.WIDTH - plots.RIGHT, "bottom": plots.HEIGHT - plots.BOTTOM},
            open_rows=OPEN_ROWS,
        )
    )


def number(value: float | None) -> str:
    """Return a number with thousands set apart by a thin space that does not break, a dash for none."""
    return "\N{EN DASH}" if value is None else f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def todo(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each check that does not hold with its remedy, the gravest first; `as_above`: its commands stand there."""
    found: list[dict[str, Any]] = []
    shown: set[str] = set()
    for check in summary.by_gravity(result["checks"]):
        if check["ok"] is True:
            continue
        remedy = summary.remedy(check)
        typed = summary.commands(remedy, result, check) or summary.commands(OTHER, result)
        found.append(
            {
                "check": check,
                "remedy": remedy,
                "commands": typed,
                "as_above": shown.issuperset(typed),
                "groups_left": summary.groups_left(check, result) if "{groups}" in "".join(remedy.commands) else 0,
            }
        )
        shown.update(typed)
    return found


def ended(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to type after a run that could not judge; None for one that could."""
    remedy = ENDED.get(result["verdict"])
    return {"page": remedy.page, "commands": summary.commands(remedy, result)} if remedy else None


def totals(found: list[dict[str, Any]]) -> dict[str, int]:
    """Return how many records or positions count against the mirror, by kind, in the order of the findings."""
    counted: dict[str, int] = {}
    for one in found:
        if one["fails"]:
            counted[one["kind"]] = counted.get(one["kind"], 0) + one["count"]
    return counted


def kind_words(kind: str) -> str:
    """Return what is counted by a kind of finding."""
    return KIND_WORDS.get(kind, kind.replace("_", " "))


def groups(positions: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row a group, those that would skip records first: totals, state and its positions."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for one in positions:
        by_name.setdefault(one["group"], []).append(one)
    rows = []
    for name, own in by_name.items():
        active = any(one["active"] for one in own)
        ahead = any(one["unclaimed"] and one["skipped"] for one in own)
        skips = any(one["skipped"] and not one["unclaimed"] for one in own)
        missing = sum(one["synced"] is None for one in own)
        skipped = sum(one["skipped"] for one in own)
        states = {
            "active on target": active,
            "skips records": skips,
            "ahead, unexplained": ahead,
            "not synced": missing,
        }
        state = next((name for name, holds in states.items() if holds), "synced")
        rows.append(
            {
                "group": name,
                "positions": own,
                "missing": missing,
                "skipped": skipped,
                "repeated": sum(one["repeated"] for one in own),
                "unread": sum(one["unread"] for one in own),
                "state": state,
                "sign": SIGNS.get(state, "good"),
            }
        )
    order = ("bad", "unknown", "note", "good")
    return sorted(rows, key=lambda row: (order.index(str(row["sign"])), row["group"]))


def config_rows(checks: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the evidence of `topic_config`: topic, property, and its value on both sides."""
    evidence = [row for check in checks if check["name"] == "topic_config" for row in check["evidence"]]
    return [
        {
            "topic": row["topic"],
            "property": row.get("property", row.get("key")),
            "source": row.get("source"),
            "target": row.get("target"),
        }
        for row in evidence
    ]


@cache
def templates() -> Environment:
    """Return the page's templates with their filters; the package may be a zip that was submitted with the job."""
    environment = Environment(
        loader=PackageLoader("spark.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"words": lambda name: str(name).replace("_", " "), "kind": kind_words}
    environment.filters["number"] = number
    return environment


CELL_SIGNS = {"bad": "✕", "unknown": "?", "note": "•", "empty": "\N{EN DASH}", "good": "✓"}
# of one partition and of several
MEANINGS = {
    "bad": ("does not hold", "do not hold"),
    "unknown": ("could not be compared", "could not be compared"),
    "note": ("holds, with a note", "hold, with a note"),
    "empty": ("holds no records", "hold no records"),
    "good": ("holds", "hold"),
}


def cell_state(part: Mapping[str, Any], checks: Mapping[str, Any]) -> str:
    """Return a partition's state: one of CELL_SIGNS."""
    if any(is_failing(finding["kind"], checks) for finding in part["findings"]):
        return "bad"
    if part.get("undecided") or (part["source_records"] and not part["compared"] and not _is_verified_before(part)):
        return "unknown"
    if part["findings"]:
        return "note"
    return "good" if part["compared"] or _is_verified_before(part) else "empty"


def _is_verified_before(part: Mapping[str, Any]) -> bool:
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
    counts = dict.fromkeys(CELL_SIGNS, 0)
    for part in result["partitions"]:
        state = cell_state(part, checks)
        counts[state] += 1
        cells.setdefault(part["topic"], {})[part["partition"]] = {
            "state": state,
            "sign": CELL_SIGNS[state],
            "text": _cell_text(part, state),
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
    return {**shape, "counts": counts, "signs": CELL_SIGNS, "meanings": MEANINGS}


def _cell_text(part: Mapping[str, Any], state: str) -> str:
    found = [f"{one['count']} {one['kind'].replace('_', ' ')}" for one in part["findings"]]
    words = [MEANINGS[state][0], f"{part['compared']} compared", *found, *filter(None, [part.get("undecided")])]
    return f"{part['topic']}-{part['partition']}: {', '.join(words)}"
