"""The report as one self-contained page: its tables, the grid of topics by partitions, and the geometry of its plots.

Coordinates are in the units of a plot's view box.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from contract.report_rows import columns
from kafka.errors import visible_document
from spark.checks.registry import ENDED, OTHER
from spark.report import summary
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
GROUPS_SHOWN, POSITIONS_SHOWN = 1000, 2000  # report.json has all
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
            lag_plot=lag_plot(result.get("lag")),
            canary=result.get("canary"),
            latency_plot=latency_plot(result.get("canary")),
            steps=step_bars(result["steps"]),
            plot={"width": WIDTH, "height": HEIGHT, "left": LEFT, "top": TOP}
            | {"right": WIDTH - RIGHT, "bottom": HEIGHT - BOTTOM},
            open_rows=OPEN_ROWS,
            groups_shown=GROUPS_SHOWN,
            positions_shown=POSITIONS_SHOWN,
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


def groups(positions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row a group, those that would skip records first: totals, state and its `positions`.

    Of all groups together no more than `POSITIONS_SHOWN` positions: a page with a million of them opens nowhere.
    """
    by_name: dict[str, dict[str, Any]] = {}
    keys = ("group", "active", "unclaimed", "synced", "skipped", "repeated", "unread")
    for name, active, unclaimed, synced, skipped, repeated, unread in columns(positions, *keys):
        row = by_name.get(name)
        if row is None:
            row = by_name[name] = {"group": name, "positions": [], **dict.fromkeys(_TOTALS, 0)}
        row["number"] += 1
        row["active"] += bool(active)
        row["ahead"] += bool(unclaimed and skipped)
        row["skips"] += bool(skipped and not unclaimed)
        row["missing"] += synced is None
        row["skipped"] += skipped
        row["repeated"] += repeated
        row["unread"] += unread
    for row in by_name.values():
        states = {"active on target": row["active"], "skips records": row["skips"]}
        states |= {"ahead, unexplained": row["ahead"], "not synced": row["missing"]}
        row["state"] = next((name for name, holds in states.items() if holds), "synced")
        row["sign"] = SIGNS.get(row["state"], "good")
    order = ("bad", "unknown", "note", "good")
    found = sorted(by_name.values(), key=lambda row: (order.index(str(row["sign"])), row["group"]))
    room, left = dict[str, int](), POSITIONS_SHOWN
    for row in found:
        room[row["group"]] = min(row["number"], left)
        left -= room[row["group"]]
    for at, (name,) in enumerate(columns(positions, "group")):
        if room[name]:
            room[name] -= 1
            by_name[name]["positions"].append(positions[at])
    return found


_TOTALS = ("number", "active", "ahead", "skips", "missing", "skipped", "repeated", "unread")


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


WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 34
SPARK_WIDTH, SPARK_HEIGHT = 120, 24
BINS = 24
TICKS = 4
POINTS_MIN = 3  # of a line, RECORDS_MIN of a histogram: fewer are said in words
RECORDS_MIN = 10
STEP_MIN_S = 1.0


def lag_plot(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the line of records behind over seconds; None when it has few points or they are all alike."""
    points = (found or {}).get("series") or []
    seconds, records = [point[0] for point in points], [point[1] for point in points]
    if len(points) < POINTS_MIN or min(records) == max(records):
        return None
    first, last = min(seconds), max(seconds)
    top = _round_up(max(records))
    line = [(_x(s - first, last - first), _y(r, top)) for s, r in zip(seconds, records, strict=True)]
    return {
        "line": " ".join(f"{x},{y}" for x, y in line),
        "area": " ".join(f"{x},{y}" for x, y in [(line[0][0], _y(0, top)), *line, (line[-1][0], _y(0, top))]),
        "y_ticks": [{"y": _y(top * n / TICKS, top), "text": short_number(top * n / TICKS)} for n in range(TICKS + 1)],
        "x_ticks": [
            {"x": _x(n, TICKS), "text": f"{short_number(first + (last - first) * n / TICKS)} s"}
            for n in range(TICKS + 1)
        ],
        "text": f"{records[0]} records behind at {first:.0f} s, at most {max(records)}, {records[-1]} at {last:.0f} s",
    }


def latency_plot(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the histogram of the stamped records' latencies, or None of few and when all are alike."""
    values: Sequence[float] = (found or {}).get("latencies_ms") or []
    if not found or len(values) < RECORDS_MIN or min(values) == max(values):
        return None
    top_ms = _round_up(max(values))
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(value / top_ms * BINS))] += 1
    tallest = _round_up(max(counts))
    width = (WIDTH - LEFT - RIGHT) / BINS
    marks = [(name, found.get(f"{name}_ms")) for name in ("p50", "p95", "p99")]
    return {
        "bars": [
            {
                "x": _x(n, BINS),
                "y": _y(count, tallest),
                "w": round(width - 1, 1),
                "h": round(_y(0, 1) - _y(count, tallest), 1),
            }
            for n, count in enumerate(counts)
            if count
        ],
        "marks": [
            {
                "name": name,
                "x": _x(min(value, top_ms), top_ms),
                "y": TOP + 10 + 13 * row,
                "text": f"{name} {value:.0f} ms",
            }
            | {"left": value > top_ms / 2}
            for row, (name, value) in enumerate(marks)
            if value is not None
        ],
        "y_ticks": [
            {"y": _y(tallest * n / TICKS, tallest), "text": short_number(tallest * n / TICKS)} for n in range(TICKS + 1)
        ],
        "x_ticks": [{"x": _x(n, TICKS), "text": f"{short_number(top_ms * n / TICKS)} ms"} for n in range(TICKS + 1)],
        "text": ", ".join(f"{name} {value:.0f} ms" for name, value in marks if value is not None),
    }


def step_bars(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps with the share in percent that each has of the longest; None where no step took long."""
    longest = max((step["seconds"] for step in steps), default=0)
    drawn = longest >= STEP_MIN_S and len({step["seconds"] for step in steps}) > 1
    return [dict(step) | {"percent": round(100 * step["seconds"] / longest, 2) if drawn else None} for step in steps]


def sparkline(values: Sequence[float]) -> str | None:
    """Return the points of a small line from 0 to the greatest value; None of few values or of equal ones."""
    if len(values) < POINTS_MIN or min(values) == max(values):
        return None
    top, step = max(values), SPARK_WIDTH / (len(values) - 1)
    return " ".join(f"{step * n:.1f},{SPARK_HEIGHT * (1 - value / top):.1f}" for n, value in enumerate(values))


def short_number(number: float) -> str:
    """Return a number in at most four or five characters: 950, 1.5k, 12k, 3.2M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{sign}"
    return f"{number:.3g}"


def _round_up(number: float) -> float:
    """Return the next of 4, 8, 20, 40, 80, 200 and so on: a scale of which a quarter is a round number."""
    scale = 4.0
    while True:
        for factor in (1, 2, 5):
            if number <= scale * factor:
                return scale * factor
        scale *= 10


def _x(value: float, top: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * (value / top if top else 0), 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top, 1)
