"""The report as one self-contained page."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape

BAD_KINDS = ("lost", "doubled", "foreign", "altered", "no_overlap")


def as_html(result: Mapping[str, Any]) -> str:
    """Return one HTML page that opens from disk: no script, no request to anywhere."""
    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("report.html.j2")
    return template.render(
        result=result, grid=grid(result["partitions"]), steps=bars(result["steps"]), totals=totals(result)
    )


def state_of(partition: Mapping[str, Any]) -> str:
    """Return how a partition is shown: bad, idle (nothing compared) or good."""
    if any(finding["kind"] in BAD_KINDS for finding in partition["findings"]):
        return "bad"
    return "good" if partition["compared"] else "idle"


def grid(partitions: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the cells of topic by partition: number, state and a text that says what was found."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for part in partitions:
        found = ", ".join(f"{one['count']} {one['kind'].replace('_', ' ')}" for one in part["findings"])
        text = f"{part['topic']}-{part['partition']}: {part['compared']} compared" + (f", {found}" if found else "")
        row = cells.setdefault(part["topic"], [])
        row.append({"x": 26 * len(row), "partition": part["partition"], "state": state_of(part), "text": text})
    return cells


def bars(steps: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps with the width in pixels of their bar; the longest is 400 wide."""
    rows = [dict(step) for step in steps]
    longest = max((row["seconds"] for row in rows), default=0) or 1
    return [
        row | {"y": 24 * number, "width": round(400 * row["seconds"] / longest, 1)} for number, row in enumerate(rows)
    ]


def totals(result: Mapping[str, Any]) -> dict[str, int]:
    """Return how many records of each kind were found in all partitions together."""
    found: dict[str, int] = {}
    for part in result["partitions"]:
        for finding in part["findings"]:
            found[finding["kind"]] = found.get(finding["kind"], 0) + finding["count"]
    return found
