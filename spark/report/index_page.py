"""index.html: the mirrors of a folder of reports with their trend, and their runs, newest first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from spark.report import plots
from spark.report.html import templates
from spark.report.runs import Run

MARK = '<meta name="generator" content="rt-inventory verification runs">'  # of a page that may be replaced
STRIP_MAX = 30  # runs of a trend
# A verdict differs by sign and height, not only by colour.
SIGNS = {"pass": ("good", "✓"), "unknown": ("unknown", "?"), "stopped": ("unknown", "?")}
BAD = ("bad", "✕")
HEIGHTS = {"good": 0.4, "unknown": 0.7, "bad": 1.0}
BAR = 6


def as_page(runs: Sequence[Run], folder: Path) -> str:
    """Return the page of a folder's runs, which come newest first; it asks nothing of any other place."""
    mirrors = _mirrors(runs)
    good = sum(mirror["sign"] == "good" for mirror in mirrors)
    worst = next((sign for sign in ("bad", "unknown") if any(one["sign"] == sign for one in mirrors)), "good")
    return (
        templates()
        .get_template("index.html.j2")
        .render(
            runs=[{"run": run, "sign": _sign(run), "link": link} for run, link in _linked(runs, folder)],
            mirrors=mirrors,
            mark=MARK,
            good=good,
            verdict={"good": "pass", "unknown": "unknown", "bad": "fail"}[worst],
            signs={"good": "✓", "unknown": "?", "bad": "✕"},
            plot={"width": plots.SPARK_WIDTH, "height": plots.SPARK_HEIGHT},
        )
    )


def _sign(run: Run) -> str:
    return SIGNS.get(run.verdict, BAD)[0]


def _linked(runs: Sequence[Run], folder: Path) -> list[tuple[Run, str | None]]:
    """Each run with the link to its report, if that is still there: a later run may have replaced it."""
    seen: set[str] = set()
    found = []
    for run in runs:
        link = None if run.report in seen else _link(folder, run.report)
        seen.add(run.report)
        found.append((run, link))
    return found


def _link(folder: Path, report: str) -> str | None:
    try:
        return quote(report) if (folder / report).is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def _mirrors(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The mirrors by their latest run, those that do not pass first."""
    by_mirror: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        by_mirror.setdefault((run.stack or "", run.mirror), []).append(run)
    rows = [_row(own) for own in by_mirror.values()]
    order = ("bad", "unknown", "good")
    return sorted(rows, key=lambda row: (order.index(row["sign"]), row["latest"].stack or "", row["latest"].mirror))


def _row(own: Sequence[Run]) -> dict[str, Any]:
    recent = list(reversed(own[:STRIP_MAX]))
    return {
        "latest": own[0],
        "sign": _sign(own[0]),
        "number": len(own),
        "strip": [_bar(number, run) for number, run in enumerate(recent)],
        "strip_width": BAR * len(recent),
        "verdicts": ", ".join(run.verdict for run in recent),
        "trends": [
            _trend("records compared", [run.records_compared for run in recent]),
            _trend("against the mirror", [run.against for run in recent if run.records_compared is not None]),
            _trend("lag", [run.lag_records for run in recent]),
            _trend("seconds", [run.seconds for run in recent]),
        ],
    }


def _bar(number: int, run: Run) -> dict[str, Any]:
    sign = _sign(run)
    height = round(plots.SPARK_HEIGHT * HEIGHTS[sign], 1)
    return {
        "x": BAR * number,
        "y": round(plots.SPARK_HEIGHT - height, 1),
        "height": height,
        "width": BAR - 1,
        "sign": sign,
        "text": f"{run.verdict}, {run.finished_at}",
    }


def _trend(name: str, values: Sequence[float | None]) -> dict[str, Any]:
    """The latest of the values, and their line if there is something to see in it."""
    known = [value for value in values if value is not None]
    latest = values[-1] if values else None
    return {"name": name, "latest": latest, "line": plots.sparkline(known), "known": known}
