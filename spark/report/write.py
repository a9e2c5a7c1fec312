"""Writes the report: report.json, report.html (one self-contained file), junit.xml and metrics.prom.

What it gets is fit to be shown: `spark.redaction` has taken the secrets out.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark.report.html import as_html
from spark.report.junit import as_junit
from spark.report.metrics import to_file


def write(folder: Path, result: Mapping[str, Any]) -> None:
    """Write the files into a folder that is made when missing; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    # One after the other: a page that cannot be made takes nothing with it.
    (folder / "report.json").write_text(as_json(result), encoding="utf-8")
    to_file(folder / "metrics.prom", result)
    for name, render in {"report.html": as_html, "junit.xml": as_junit}.items():
        (folder / name).write_text(render(result), encoding="utf-8")


def as_json(result: Mapping[str, Any]) -> str:
    """Return the result as JSON text."""
    return json.dumps(result, indent=2) + "\n"
