"""The content of report.json."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from spark.checks.check import Check, verdict
from spark.checks.judge import not_judged
from spark.facts import Facts
from spark.request.model import Resource, Side

VERSION = 1
"""Of the shape that report.schema.json describes: higher when a field goes or changes its meaning."""
SCOPE = ("topics", "topics_exclude", "groups", "groups_exclude", "naming")


def document(
    facts: Facts, checks: Sequence[Check], started_at: datetime, steps: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what report.json holds: JSON values only, the verdict and the exit code among them."""
    request, state = facts.request, facts.cut
    word, exit_code = verdict(checks, request.limits)
    finished_at = datetime.now(UTC)
    return {
        "version": VERSION,
        "verdict": word,
        "exit_code": exit_code,
        "error": None,
        "warnings": list(facts.warnings),
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
        "records_compared": sum(result.compared for result in facts.partitions),
        "allowed_unknown": list(request.limits.allow_unknown),
        "limits": {name: _plain(value) for name, value in vars(request.limits).items()},
        "scope": {name: _plain(getattr(request.mirror, name)) for name in SCOPE},
        "checks": [check.document() for check in checks],
        "not_judged": not_judged(request.mirror),
        "partitions": [
            {
                **{name: value for name, value in vars(result).items() if name not in ("findings", "anchors")},
                "position": (state.positions or {}).get((result.topic, result.partition)),
                "findings": [finding.document() for finding in result.findings],
            }
            for result in facts.partitions
        ],
        "lag": facts.lag.document(),
        "state": facts.state,
        "canary": facts.canary.document() if facts.canary else None,
        "groups": [facts.groups.row(position, request.mirror) for position in facts.groups.positions],
        "positions": [dict(row) for row in facts.translated],
        "steps": list(steps),
    }


def _side(side: Side) -> dict[str, str]:
    address = side.client_config.get("bootstrap.servers")
    known = {"bootstrap_servers": address} if address else {}
    return {"alias": side.alias, "user": side.user, **known, **side.names}


def _resource(resource: Resource | None) -> dict[str, str | None] | None:
    if resource is None:
        return None
    return {key: getattr(resource, key) for key in ("kind", "namespace", "name", "context")}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
