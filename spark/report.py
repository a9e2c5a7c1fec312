"""Writes the report: report.json, report.html (one self-contained file) and junit.xml.

Refuses to write any text that holds a secret of the request.
"""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape

BAD_KINDS = ("lost", "doubled", "foreign", "altered", "no_overlap")


def write(folder: Path, result: Mapping[str, Any], secrets: Iterable[str]) -> None:
    """Write the three files into a folder that is made when missing; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    held = sorted((secret for secret in secrets if len(secret) >= 4), key=len, reverse=True)
    files = {"report.json": as_json(result), "report.html": as_html(result), "junit.xml": as_junit(result)}
    for name, text in files.items():
        for secret in held:
            text = text.replace(secret, "[hidden]")
        (folder / name).write_text(text, encoding="utf-8")


def as_json(result: Mapping[str, Any]) -> str:
    """Return the result as JSON text."""
    return json.dumps(result, indent=2) + "\n"


def as_junit(result: Mapping[str, Any]) -> str:
    """Return the checks as a JUnit test suite: a failed check is a failure, an unknown one is an error."""
    checks = result["checks"]
    suite = ElementTree.Element(
        "testsuite",
        name=f"verification {result['mirror']}",
        tests=str(len(checks)),
        failures=str(sum(check["ok"] is False for check in checks)),
        errors=str(sum(check["ok"] is None for check in checks)),
        time=str(result["seconds"]),
        timestamp=result["started_at"],
    )
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{result['mirror']}", name=check["name"])
        if check["ok"] is not True:
            kind = "failure" if check["ok"] is False else "error"
            problem = ElementTree.SubElement(case, kind, message=check["observed"])
            problem.text = f"expected {check['expected']}\n{json.dumps(check['evidence'], indent=1)}"
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


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
