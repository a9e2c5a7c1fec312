"""The screen of `ops status`, from its document. Owns words and colours only."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ops.console import AdaptiveTable, Column
from ops.recovery.operation import NOTHING_CHANGED
from ops.status.document import HEALTHY, UNKNOWN
from settings.text import format_count, format_names

_GOOD, _BAD, _DIM = "green", "bold red", "dim"
GROUPS_SHOWN = 30


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
        running = one["state"] == "RUNNING" and set(one["tasks"]) <= {"RUNNING"}
        tasks = f", tasks {', '.join(one['tasks'])}" if one["tasks"] else ""
        grid.add_row(one["name"], Text(f"{one['state']}{tasks}", _GOOD if running else _BAD))
    if found["connectors"] is None:
        grid.add_row("connectors", Text("unknown: Connect does not answer", _BAD))
    grid.add_row("lag", _lag(found["lag"]))
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


def _verification(proof: dict[str, Any] | None) -> Text:
    if proof is None:
        return Text("never: python -m ops verify", _DIM)
    age = proof["ageSeconds"]
    when = "" if age is None else f" {_ago(age)} ago"
    compared = (
        "" if proof["recordsCompared"] is None else f", {format_count(proof['recordsCompared'], 'record')} compared"
    )
    style = _GOOD if proof["verdict"] == "pass" else "yellow" if proof["verdict"] == "unknown" else _BAD
    return Text(f"{proof['verdict']}{when}{compared}", style)


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _state(state: str | None) -> str:
    return state.lower().replace("_", " ") if state else "not there"


def _number(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _word(yes: bool) -> Text:
    return Text("yes", _GOOD) if yes else Text("no", _BAD)
