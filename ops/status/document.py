"""The status of a pair by a snapshot: its health, the active side, and what a failover now would cost.

Owns the document that `status --json` prints, and the screen of `ops status`, which is made from the document.
"""

from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType

from kafka.connector_status import ResourceStatus
from kafka.retention import worst
from ops import verify
from ops.console import AdaptiveTable, Column, Text
from ops.inspection.group_status import GroupStatus
from ops.inspection.snapshot import ClusterStatus, MirrorSnapshot
from ops.recovery.operation import NOTHING_CHANGED
from ops.status.record_problems import record_problems
from settings.text import format_count, format_duration, format_names

HEALTHY, DEGRADED, UNKNOWN = "healthy", "degraded", "unknown"
_GOOD, _BAD, _DIM = "green", "bold red", "dim"
GROUPS_SHOWN = 30


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
        "retention": retention(seen),
        "groups": [_group(one, pair.active) for one in seen.groups] if seen.groups is not None else None,
        "verification": verification(seen),
        "failover": cost(seen),
        "fence": seen.fence.document() if seen.fence is not None else None,
        "targetFence": seen.target_fence.document() if seen.target_fence is not None else None,
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
    if (why := _unproven(seen)) is not None:
        found["verification"] = why
    fences = {"fence": seen.fence_unknown, "target fence": seen.target_fence_unknown}
    return found | {name: why for name, why in fences.items() if why is not None}


def _unproven(seen: MirrorSnapshot) -> str | None:
    """Why the latest verification proves nothing, if it could not make a check, and did not forgive that.

    It forgives less than the limits do once there are records; an older release of this project does not say what.
    """
    proof = seen.pair.proof or {}
    names = [check["name"] for check in verify.checks_of(proof) if check["ok"] is None]
    by_limits = bool(names) and set(names) <= set(seen.pair.request.limits.allow_unknown)
    if proof.get("verdict") != "unknown" or proof.get("passed", by_limits):
        return None
    return f"the latest verdict is unknown ({', '.join(names) or 'no check was made'})"


def problems(seen: MirrorSnapshot) -> list[str]:
    """Return the problems in words; an empty list for a healthy pair."""
    found = list(seen.faults)
    proof = verification(seen)
    if proof is not None and proof["verdict"] not in (None, "pass", "unknown"):
        found.append(f"verification: the latest verdict is {proof['verdict']} ({', '.join(proof['failed']) or 'none'})")
    if seen.recovery is not None and seen.recovery.problem is not None:
        found.append(seen.recovery.problem)
    return found + record_problems(seen)


def retention(seen: MirrorSnapshot) -> dict[str, Any] | None:
    """Return how long what is not mirrored is safe from the source's retention, in the partition where it is worst.

    None if retention deletes nothing, or nobody knows what.
    """
    first = worst(seen.until_deletion or ())
    if first is None:
        return None
    return {
        "topic": first.topic,
        "partition": first.partition,
        "recordsNotMirrored": first.records,
        "secondsUntilDeletion": first.seconds,
        "bytesUntilDeletion": first.left_bytes,
        "catchUpSeconds": first.catch_up_s,
        "overtaken": [f"{one.topic}-{one.partition}" for one in seen.until_deletion or () if one.overtakes],
    }


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
        "ofEmptyPair": proves_too_little(seen),
        "failed": [check["name"] for check in verify.checks_of(proof) if check["ok"] is False],
        "report": proof.get("report"),
    }


def proves_too_little(seen: MirrorSnapshot) -> bool | None:
    """Whether the latest verification found no record and the source has some now; None if that is not known."""
    if not seen.pair.proof or not verify.is_of_empty_pair(seen.pair.proof):
        return False
    return None if seen.lag is None else any(one.source_end > one.log_start for one in seen.lag.partitions)


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


def table(found: dict[str, Any], *, planned: bool = False) -> RenderableType:
    """Return the screen of a document; `planned`: as part of a failover's plan, which reports the cost itself."""
    parts: list[RenderableType] = [_head(found), _clusters(found), _mirror(found)]
    if found["groups"]:
        parts.append(_groups(found["groups"], found["active"]))
    if not planned:
        parts.append(_failover(found))
    recovery = found["recovery"]
    if recovery is not None and recovery["state"] == NOTHING_CHANGED:
        parts.append(
            Text(f"A {recovery['command']} of {recovery['startedAt']} ended before it changed anything.", _DIM)
        )
    parts += [Text(f"! {problem}", style=_BAD) for problem in found["problems"]]
    parts += [Text(f"? {what} unknown: {why}", style=_DIM) for what, why in found["unknown"].items()]
    return Group(*parts)


def _head(found: dict[str, Any]) -> Text:
    style = {HEALTHY: _GOOD, UNKNOWN: "yellow"}.get(found["health"], _BAD)
    line = Text(f"{found['mirror']} of stack {found['stack']}: ", style="bold")
    line.append(found["health"], style)
    return line.append(f"; active: {found['activeCluster']} ({found['active']})", "bold")


def _clusters(found: dict[str, Any]) -> AdaptiveTable:
    names = Column("side"), Column("cluster", name=True), Column("stack", name=True)
    grid = AdaptiveTable("clusters", (*names, Column("answers"), Column("resource"), Column("operator")))
    for role in ("source", "target"):
        side, resource = found[role], found[role]["resource"]
        star = " *" if found["active"] == role else ""
        grid.add_row(
            f"{role}{star} ({side['alias']})",
            str(side["cluster"]),
            str(side["stack"] or "none"),
            _word(side["reachable"]),
            _readiness(resource),
            _operator(resource),
        )
    return grid


def _mirror(found: dict[str, Any]) -> AdaptiveTable:
    grid = AdaptiveTable("mirror", (Column("what", name=True), Column("value")), show_header=False)
    grid.add_row("declared", f"{found['state']}, naming {found['naming']}")
    if split := found["failedOver"]:
        grid.add_row("failed over alone", f"{format_names(split['topics'])}: left out of what follows")
    grid.add_row("resource", _readiness(found["resource"]))
    for one in found["connectors"] or []:
        wanted = {"RUNNING"} if found["state"] == "running" else {"STOPPED", "PAUSED"}
        tasks = f", tasks {', '.join(one['tasks'])}" if one["tasks"] else ""
        grid.add_row(
            one["name"], Text(f"{one['state']}{tasks}", _GOOD if {one["state"], *one["tasks"]} <= wanted else _BAD)
        )
    if found["connectors"] is None:
        grid.add_row("connectors", Text("unknown: Connect does not answer", _BAD))
    grid.add_row("lag", _lag(found["lag"]))
    if found["retention"] is not None:
        grid.add_row("deleted first", _deleted_first(found["retention"]))
    grid.add_row("verified", _verification(found["verification"]))
    if found["clientsSecret"]:
        grid.add_row("clients read", f"Secret {found['clientsSecret']}")
    return grid


def _groups(groups: list[dict[str, Any]], active: str) -> AdaptiveTable:
    costs = ("unread", "would read again", "would skip") if active == "source" else ()
    more = len(groups) - GROUPS_SHOWN
    grid = AdaptiveTable(
        "consumer groups",
        (
            Column("group", name=True),
            Column("at the source"),
            Column("on the target"),
            *(Column(column, number=True) for column in costs),
        ),
        caption=f"and {more} more: --json shows all" if more > 0 else "",
    )
    for one in groups[:GROUPS_SHOWN]:
        missing = one["withoutPosition"]
        again = f"no position in {format_count(len(missing), 'partition')}" if missing else _number(one["readAgain"])
        skipped = _number(one["skipped"])
        numbers = _number(one["unread"]), again, Text(skipped, _BAD if one["skipped"] else "")
        cells = numbers if costs else ()
        grid.add_row(one["group"], _state(one["sourceState"]), _state(one["targetState"]), *cells)
    return grid


def _failover(found: dict[str, Any]) -> Text:
    cost = found["failover"]
    if cost is None and found["source"]["stack"] is None:
        return Text("The target is active, and no command leads back: no stack describes the source.")
    if cost is None:
        return Text("The target is active: a failback is what comes next.")
    if not cost["possible"]:
        return Text("A failover is not possible now: the target does not answer.", _BAD)
    again = [number for number in cost["recordsReadAgain"].values() if number is not None]
    words = f"A failover now would be {cost['path']}: {not_mirrored(cost)}"
    words += f", groups would read about {format_count(sum(again), 'record')} again" if again else ""
    unplanned = "" if cost["path"] == "planned" else " --unplanned"
    return Text(f"{words}. `python -m ops failover --to {found['stack']}{unplanned} --dry-run` shows its steps.")


def not_mirrored(cost: dict[str, Any]) -> str:
    """Return how many records of the source are not on the target yet, in words."""
    left = cost["recordsNotMirrored"]
    return f"{'an unknown number of records' if left is None else format_count(left, 'record')} not mirrored"


def _readiness(resource: dict[str, Any] | None) -> Text:
    if resource is None:
        return Text("none", _DIM)
    if resource["ready"] is None:
        return Text(f"unknown: {resource['reason']}", _DIM)
    ready = f"{resource['kind']} Ready" if resource["ready"] else f"{resource['kind']} not Ready: {resource['reason']}"
    return Text(ready, _GOOD if resource["ready"] else _BAD)


def _operator(resource: dict[str, Any] | None) -> Text:
    if resource is None or resource["ready"] is None:
        return Text("unknown", _DIM)
    if not resource["reconciled"]:
        return Text("has not seen the latest change", _BAD)
    return Text(f"{resource['operator'] or ''} up to date".strip(), _GOOD)


def _lag(lag: dict[str, Any] | None) -> Text:
    if lag is None:
        return Text("unknown", _DIM)
    seconds = "unknown" if lag["seconds"] is None else f"{lag['seconds']:g} s"
    return Text(f"{format_count(lag['records'], 'record')}, {seconds}")


def _deleted_first(retention: dict[str, Any]) -> Text:
    """Return when the source may delete the first record that is not mirrored, in words."""
    where, left = f"{retention['topic']}-{retention['partition']}", format_duration(retention["secondsUntilDeletion"])
    size = retention["bytesUntilDeletion"]
    or_bytes = "" if size is None else f" or {size:,} bytes"
    if not retention["recordsNotMirrored"]:
        return Text(f"what is written now is safe for {left}{or_bytes} ({where})")
    text = f"{format_count(retention['recordsNotMirrored'], 'record')} of {where} safe for {left}{or_bytes}"
    return Text(text, _BAD if retention["overtaken"] else "")


def _verification(proof: dict[str, Any] | None) -> Text:
    if proof is None:
        return Text("never: python -m ops verify", _DIM)
    age = proof["ageSeconds"]
    when = "" if age is None else f" {format_duration(age)} ago"
    compared = (
        "" if proof["recordsCompared"] is None else f", {format_count(proof['recordsCompared'], 'record')} compared"
    )
    if proof["ofEmptyPair"]:
        return Text(f"{proof['verdict']}{when}, of an empty pair: nothing proves the records since. Verify again", _BAD)
    style = _GOOD if proof["verdict"] == "pass" else "yellow" if proof["verdict"] == "unknown" else _BAD
    return Text(f"{proof['verdict']}{when}{compared}", style)


def _state(state: str | None) -> str:
    return state.lower().replace("_", " ") if state else "not there"


def _number(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _word(yes: bool) -> Text:
    return Text("yes", _GOOD) if yes else Text("no", _BAD)
