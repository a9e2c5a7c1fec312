"""Writes the report: report.json, report.html (one self-contained file), junit.xml and metrics.prom.

What it gets is fit to be shown: `spark.redaction` has taken the secrets out.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark.report.html import as_html
from spark.report.index import PAGE
from spark.report.junit import as_junit
from spark.report.links import Links
from spark.report.metrics import to_file


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
