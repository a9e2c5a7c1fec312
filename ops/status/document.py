"""The status of a pair by a snapshot: its health, the active side, and what a failover now would cost.

Owns the document that `status --json` prints. Does not own how it is shown.
"""

from datetime import UTC, datetime
from typing import Any

from kafka.connector_status import ResourceStatus
from ops import verify
from ops.inspection.group_status import GroupStatus
from ops.inspection.snapshot import ClusterStatus, MirrorSnapshot

SKIPPING_NAMED = 3
HEALTHY, DEGRADED, UNKNOWN = "healthy", "degraded", "unknown"


def document(seen: MirrorSnapshot) -> dict[str, Any]:
    """Return everything of a snapshot as JSON values; `health` is `healthy`, `degraded` or `unknown`."""
    pair = seen.pair
    return {
        "stack": pair.stack,
        "mirror": pair.mirror,
        "health": health(seen),
        "problems": problems(seen),
        "active": pair.active,
        "activeCluster": pair.name_of(pair.active),
        "state": pair.state,
        "naming": pair.request.mirror.naming,
        "failedOver": pair.failed_over.document() if pair.failed_over is not None else None,
        "clientsSecret": pair.outputs.clients_secret,
        "source": {**_side(seen.source), "stack": pair.source_stack},
        "target": {**_side(seen.target), "stack": pair.stack},
        "connectors": _connectors(seen),
        "resource": _resource(seen.mirror),
        "lag": seen.lag.document() if seen.lag is not None else None,
        "groups": [_group(one, pair.active) for one in seen.groups] if seen.groups is not None else None,
        "verification": verification(seen),
        "failover": cost(seen),
        "fence": seen.fence.document() if seen.fence is not None else None,
        "recovery": seen.recovery.document() if seen.recovery is not None else None,
        "unknown": unknown(seen),
    }


def health(seen: MirrorSnapshot) -> str:
    """Return `degraded` if there is a problem, `unknown` if something could not be learned, else `healthy`."""
    if problems(seen):
        return DEGRADED
    return UNKNOWN if unknown(seen) else HEALTHY


def unknown(seen: MirrorSnapshot) -> dict[str, str]:
    """Return what could not be learned and why, by what it is about.

    The custom resource of the source does not count: its cluster answers by itself, and may be in another Kubernetes
    cluster.
    """
    found = dict(seen.unknown)
    for resource in (seen.mirror, seen.target.resource):
        if resource is not None and resource.silent is not None:
            found[str(resource.resource)] = resource.silent
    if seen.connectors is None and seen.pair.state == "running":
        found["connectors"] = "neither Connect nor the mirror's resource reports them"
    return found


def problems(seen: MirrorSnapshot) -> list[str]:
    """Return the problems in words; an empty list for a healthy pair."""
    found = list(seen.faults)
    proof = verification(seen)
    if proof is not None and proof["verdict"] not in (None, "pass", "unknown"):
        found.append(f"verification: the latest verdict is {proof['verdict']} ({', '.join(proof['failed']) or 'none'})")
    if seen.recovery is not None and seen.recovery.problem is not None:
        found.append(seen.recovery.problem)
    return found + _skipping(seen)


def _skipping(seen: MirrorSnapshot) -> list[str]:
    """Return the problem of groups that would skip records if they went on at the target now; none once they do."""
    skipped = {one.group: one.skipped for one in seen.groups or () if one.skipped}
    if not skipped or seen.pair.active == "target":
        return []
    most = sorted(skipped, key=lambda group: (-skipped[group], group))[:SKIPPING_NAMED]
    named = ", ".join(f"{group} {skipped[group]:,}" for group in most)
    more = f" and {len(skipped) - len(most)} more" if len(skipped) > len(most) else ""
    groups = "1 group" if len(skipped) == 1 else f"{len(skipped)} groups"
    return [
        f"{groups} would skip about {sum(skipped.values()):,} records after a failover ({named}{more}). Count them: "
        f"`python -m ops verify --stack {seen.pair.stack}`; `failover --exact` skips none"
    ]


def verification(seen: MirrorSnapshot) -> dict[str, Any] | None:
    """Return verdict, age in seconds and failed checks of the latest verification; None if there is none."""
    proof = seen.pair.proof
    if not proof:
        return None
    finished = proof.get("finishedAt")
    return {
        "verdict": proof.get("verdict"),
        "finishedAt": finished,
        "ageSeconds": _age_s(finished, seen.at),
        "recordsCompared": proof.get("recordsCompared"),
        "failed": [check["name"] for check in verify.checks_of(proof) if check["ok"] is False],
        "report": proof.get("report"),
    }


def cost(seen: MirrorSnapshot) -> dict[str, Any] | None:
    """Return what a failover right now would cost; None where the target is active already.

    `recordsNotMirrored` is what would stay behind, None if unknown. Groups' numbers are by offsets alone: approximate.
    """
    if seen.pair.active == "target":
        return None
    groups = seen.groups or ()
    return {
        "path": "planned" if seen.source_alive else "unplanned",
        "possible": seen.target_alive,
        "recordsNotMirrored": seen.lag.records if seen.lag is not None else None,
        "lagSeconds": seen.lag.seconds if seen.lag is not None else None,
        "recordsReadAgain": {one.group: one.again for one in groups},
        "recordsSkipped": {one.group: one.skipped for one in groups if one.skipped},
        "withoutPosition": {one.group: list(one.unsynced) for one in groups if one.unsynced},
        "activeOnTarget": [one.group for one in groups if one.active_on_target],
    }


def _side(side: ClusterStatus) -> dict[str, Any]:
    return {
        "alias": side.alias,
        "cluster": side.name,
        "reachable": side.problem is None,
        "problem": side.problem,
        "resource": _resource(side.resource),
    }


def _resource(found: ResourceStatus | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "kind": found.resource.kind,
        "namespace": found.resource.namespace,
        "name": found.resource.name,
        "ready": found.ready if found.silent is None else None,
        "reason": found.silent or found.reason or None,
        "operator": found.operator or None,
        "reconciled": found.current if found.silent is None else None,
    }


def _connectors(seen: MirrorSnapshot) -> list[dict[str, Any]] | None:
    if seen.connectors is None:
        return None
    return [{"name": one.name, "state": one.state, "tasks": list(one.tasks)} for one in seen.connectors]


def _group(one: GroupStatus, active: str) -> dict[str, Any]:
    """Return a group's row. What it would read again is reported only while the source is active."""
    ahead = active == "source"
    return {
        "group": one.group,
        "sourceState": one.source_state,
        "targetState": one.target_state,
        "unread": one.unread,
        "readAgain": one.again if ahead else None,
        "skipped": one.skipped if ahead else None,
        "notCarriedOverSeconds": one.behind_s if ahead else None,
        "withoutPosition": list(one.unsynced),
    }


def _age_s(finished: object, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(str(finished))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(max(0.0, now - moment.timestamp()), 1)
