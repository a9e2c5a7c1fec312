"""Writes the report: report.json, report.html (one self-contained file) and junit.xml.

Refuses to write any text that holds a secret of the request.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spark.report.html import as_html
from spark.report.junit import as_junit


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
