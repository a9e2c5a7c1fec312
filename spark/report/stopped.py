"""The content of report.json for a run that could not judge: the same keys, the error, and what was known by then."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from spark.checks.judge import judge_part
from spark.facts import Facts
from spark.report.document import document
from spark.request.model import Limits, Mirror, Request, Side
from spark.request.reader import SIDE_NAMES
from spark.visible import visible


def stopped_document(
    facts: Facts, error: str, exit_code: int, started_at: datetime, steps: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what report.json holds when a run ended early: verdict `error`, or `stopped` if somebody ended it."""
    checks = judge_part(facts)
    return document(facts, checks, started_at, steps) | _end(error, exit_code)


def refused_document(path: Path, error: str, exit_code: int, started_at: datetime) -> dict[str, Any]:
    """Return what report.json holds when the request itself is wrong; names are taken from it if it has any."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = {}
    sides = {
        role: Side(
            role=role,
            alias=_text(found, role, "alias"),
            client_config={"sasl.username": ""},
            **{key: _text(found, role, key) for key in SIDE_NAMES},
        )
        for role in ("source", "target")
    }
    mirror = Mirror(
        name=_text(found, "mirror", "name") or "mirror",
        source_alias=sides["source"].alias,
        target_alias=sides["target"].alias,
        topics=(),
    )
    nothing = Facts(request=Request(**sides, mirror=mirror, limits=Limits(), stack=_text(found, "stack") or None))
    return document(nothing, [], started_at, []) | _end(error, exit_code) | {"not_judged": []}


def _end(error: str, exit_code: int) -> dict[str, Any]:
    return {"verdict": "error" if exit_code == 2 else "stopped", "exit_code": exit_code, "error": error}


def _text(found: object, *path: str) -> str:
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return visible(found) if isinstance(found, str) else ""
