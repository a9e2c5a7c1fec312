"""The commands of a remedy with the names of a run in them, to be copied into a shell."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from spark.report.remedies import VERIFY, Remedy

GROUPS_MAX = 20  # in one command
STACK = "STACK"  # where nobody said which stack declares the mirror


def commands(remedy: Remedy, result: Mapping[str, Any], check: Mapping[str, Any] | None = None) -> list[str]:
    """Return what to type about a check of a run; a command of which something is not known is left out."""
    known = _known(result)
    if check is not None:
        known |= _of_check(check, result)
    found = (_filled(one, known) for one in remedy.commands)
    return [one for one in found if one is not None]


def again(result: Mapping[str, Any]) -> str:
    """Return what verifies the mirror of a run again."""
    return VERIFY.format_map(_known(result))


def groups_of(check: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    """Return the groups that a check is about, those with most records or positions first."""
    weights: dict[str, int] = {}
    if check["name"] == "groups_reread_bounded":
        bound = (result.get("limits") or {}).get("reread_records_max", 0)
        rows = check.get("evidence") or []
        weights = {str(row["group"]): row["repeated"] for row in rows if row.get("repeated", 0) > bound}
    else:
        for row in result["groups"]:
            weight = _weight(check, row)
            if weight:
                weights[row["group"]] = weights.get(row["group"], 0) + weight
    return sorted(weights, key=lambda name: (-weights[name], name))


def groups_left(check: Mapping[str, Any], result: Mapping[str, Any]) -> int:
    """Return how many groups of a check its command does not name."""
    return max(0, len(groups_of(check, result)) - GROUPS_MAX)


def _weight(check: Mapping[str, Any], row: Mapping[str, Any]) -> int:
    if row["active"]:
        return 0
    if check["name"] == "groups_synced":
        return int(row["synced"] is None)
    if check["name"] == "groups_no_loss" and row["judged"] and row["synced"] is not None:
        return int(row["skipped"]) if bool(row["unclaimed"]) is (check["ok"] is None) else 0
    return 0


def _known(result: Mapping[str, Any]) -> dict[str, str]:
    """What a run knows, by the name that stands for it in a command."""
    stack = _words(result["stack"]) if result.get("stack") else STACK
    known = {"mirror": f"--stack {stack} --mirror {_words(result['mirror'])}"}
    sides = {role: result[role].get("stack") for role in ("source", "target")}
    return known | {role: f"--stack {_words(name)}" for role, name in sides.items() if name}


def _of_check(check: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    if groups := groups_of(check, result)[:GROUPS_MAX]:
        found["groups"] = " ".join(f"--group {_words(name)}" for name in groups)
    if topic := next(_topics(check, result), None):
        found["topic"] = _words(topic)
    return found


def _topics(check: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    """Topics of a check by the name on the side that its command asks: the target's where it is known."""
    scope = result.get("scope") or {}
    for row in check.get("evidence") or ():
        if "target_topic" in row:
            yield str(row["target_topic"])
        elif row.get("topic") and (check["name"] in ("partitions_match", "replication_factor") or _keeps(scope)):
            yield str(row["topic"])


def _keeps(scope: Mapping[str, Any]) -> bool:
    return scope.get("naming") == "identity"


def _filled(command: str, known: Mapping[str, str]) -> str | None:
    try:
        return command.format_map(known)
    except KeyError:
        return None


def _words(name: str) -> str:
    return shlex.quote(str(name))
