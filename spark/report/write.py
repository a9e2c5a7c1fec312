"""Writes the report: report.json, report.html (one self-contained file), junit.xml and metrics.prom.

The result that it gets holds no secret: `kafka.errors` has taken them out.
"""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka.errors import visible
from spark.report.html import Links, as_html
from spark.report.index import PAGE
from spark.report.publish import to_file


def write(folder: Path, result: Mapping[str, Any], index: Path | None = None) -> None:
    """Write the files into a folder that is made when missing; raises OSError. `index` is the folder of the index."""
    folder.mkdir(parents=True, exist_ok=True)
    # One after the other: a page that cannot be made takes nothing with it.
    (folder / "report.json").write_text(as_json(result), encoding="utf-8")
    to_file(folder / "metrics.prom", result)
    links = Links(folder=folder, index=index / PAGE if index is not None else None)
    (folder / "report.html").write_text(as_html(result, links), encoding="utf-8")
    (folder / "junit.xml").write_text(as_junit(result), encoding="utf-8")


def as_json(result: Mapping[str, Any]) -> str:
    """Return the result as JSON text."""
    return json.dumps(result, indent=2) + "\n"


def as_junit(result: Mapping[str, Any]) -> str:
    """Return the checks as a JUnit test suite: a failed check is a failure, an unknown one is an error.

    A run that could not judge has an error of its own, named `verification`.
    """
    checks, error, mirror = result["checks"], result.get("error"), visible(result["mirror"])
    suite = ElementTree.Element(
        "testsuite",
        name=f"verification {mirror}",
        tests=str(len(checks) + (error is not None)),
        failures=str(sum(check["ok"] is False for check in checks)),
        errors=str(sum(check["ok"] is None for check in checks) + (error is not None)),
        time=str(result["seconds"]),
        timestamp=result["started_at"],
    )
    if error is not None:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{mirror}", name="verification")
        ElementTree.SubElement(case, "error", message=visible(error))
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{mirror}", name=check["name"])
        if check["ok"] is not True:
            kind = "failure" if check["ok"] is False else "error"
            problem = ElementTree.SubElement(case, kind, message=visible(check["observed"]))
            problem.text = f"expected {visible(check['expected'])}\n{json.dumps(check['evidence'], indent=1)}"
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
