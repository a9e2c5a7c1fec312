"""What a run leaves behind: report.json, report.html, junit.xml, metrics.prom.

Here is the content of report.json: of a run with a verdict, and of one that ended before it could judge.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contract.verification_request import ClusterConfig, Limits, Mirror, Request, Resource
from kafka.errors import visible
from kafka.topic_partition import TopicPartition
from spark.checks.registry import Check, judge_part, not_judged, verdict
from spark.run_context import RunContext

VERSION = 1
"""Of the shape that report.schema.json describes: higher when a field goes or changes its meaning."""
SCOPE = ("topics", "topics_exclude", "groups", "groups_exclude", "naming")


def document(
    context: RunContext, checks: Sequence[Check], started_at: datetime, steps: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what report.json holds: JSON values only, the verdict and the exit code among them."""
    request, state = context.request, context.cut
    word, exit_code = verdict(checks, request.limits)
    finished_at = datetime.now(UTC)
    return {
        "version": VERSION,
        "verdict": word,
        "exit_code": exit_code,
        "error": None,
        "warnings": list(context.warnings),
        "stack": request.stack,
        "mirror": request.mirror.name,
        "source": _side(request.source),
        "target": _side(request.target),
        "resource": _resource(request.mirror.resource),
        "started_at": started_at.isoformat(timespec="seconds"),
        "finished_at": finished_at.isoformat(timespec="seconds"),
        "seconds": round((finished_at - started_at).total_seconds(), 1),
        "cut": {
            "waited_seconds": round(state.waited_s, 1),
            "position_known": state.positions is not None,
            "behind": [f"{topic}-{partition}" for topic, partition in state.behind],
            "offsets": {f"{topic}-{partition}": end for (topic, partition), end in sorted(state.cut.items())},
        },
        "records_compared": sum(result.compared for result in context.partitions),
        "allowed_unknown": list(request.limits.allow_unknown),
        "limits": {name: _plain(value) for name, value in vars(request.limits).items()},
        "scope": {name: _plain(getattr(request.mirror, name)) for name in SCOPE},
        "checks": [check.document() for check in checks],
        "not_judged": not_judged(request.mirror),
        "partitions": [
            {
                **{name: value for name, value in vars(result).items() if name not in ("findings", "anchors")},
                "position": (state.positions or {}).get(TopicPartition(result.topic, result.partition)),
                "findings": [finding.document() for finding in result.findings],
            }
            for result in context.partitions
        ],
        "lag": context.lag.document(),
        "state": context.state,
        "canary": context.canary.document() if context.canary else None,
        "groups": [context.groups.row(position, request.mirror) for position in context.groups.positions],
        "positions": [dict(row) for row in context.translated],
        "steps": list(steps),
    }


def _side(side: ClusterConfig) -> dict[str, str]:
    address = side.client_config.get("bootstrap.servers")
    known = {"bootstrap_servers": address} if address else {}
    return {"alias": side.alias, "user": side.user, **known, **side.names}


def _resource(resource: Resource | None) -> dict[str, str | None] | None:
    if resource is None:
        return None
    return {key: getattr(resource, key) for key in ("kind", "namespace", "name", "context")}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def stopped_document(
    context: RunContext, error: str, exit_code: int, started_at: datetime, steps: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what report.json holds when a run ended early: verdict `error`, or `stopped` if somebody ended it."""
    checks = judge_part(context)
    return document(context, checks, started_at, steps) | _end(error, exit_code)


def refused_document(path: Path, error: str, exit_code: int, started_at: datetime) -> dict[str, Any]:
    """Return what report.json holds when the request itself is wrong; names are taken from it if it has any."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = {}
    sides = {
        role: ClusterConfig.model_construct(
            role=role,
            alias=_text(found, role, "alias"),
            client_config={"sasl.username": ""},
            cluster=_text(found, role, "cluster"),
            stack=_text(found, role, "stack"),
            namespace=_text(found, role, "namespace"),
        )
        for role in ("source", "target")
    }
    mirror = Mirror.model_construct(
        name=_text(found, "mirror", "name") or "mirror",
        source_alias=sides["source"].alias,
        target_alias=sides["target"].alias,
        topics=(),
    )
    nothing = RunContext(
        request=Request.model_construct(
            source=sides["source"],
            target=sides["target"],
            mirror=mirror,
            limits=Limits(),
            stack=_text(found, "stack") or None,
        )
    )
    return document(nothing, [], started_at, []) | _end(error, exit_code) | {"not_judged": []}


def _end(error: str, exit_code: int) -> dict[str, Any]:
    return {"verdict": "error" if exit_code == 2 else "stopped", "exit_code": exit_code, "error": error}


def _text(found: object, *path: str) -> str:
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return visible(found) if isinstance(found, str) else ""
