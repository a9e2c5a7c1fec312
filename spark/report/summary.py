"""The verdict in words, findings by gravity, and what to do: the remedy of each check with commands to type."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from contract.report_rows import columns
from contract.verification_metrics import JUDGED_BY
from spark.checks.registry import OTHER, UNPROVEN, VERIFY, Remedy, definitions

HEADLINES = {
    "pass": (
        "Every check holds",
        "Everything before the cut that retention has not deleted is on the target. A failover would rest on what is "
        "shown here.",
    ),
    "fail": ("Do not fail over on this mirror", "Put right what is listed here, then verify again."),
    "unknown": ("Not proven", "Nothing was found wrong, but not everything could be judged. Treat it as not verified."),
    "stopped": ("Stopped before the end", "Somebody ended the run. What is shown here is what was known by then."),
    "error": ("Nothing was judged", "The run ended before it could judge. Remove the cause, then verify again."),
}


# What a failover would lose is reported before what only differs.
GRAVEST = (
    *("records_complete", "groups_no_loss", "topics_present", "records_intact", "records_ordered", "records_foreign"),
    *("records_unique", "groups_synced", "connectors_running", "lag"),
)


def by_gravity(checks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return checks in the order in which to read them: failed, unknown, held; the gravest of each first."""
    rank = {name: number for number, name in enumerate(GRAVEST)}
    return sorted(checks, key=lambda one: (one["ok"] is True, one["ok"] is None, rank.get(one["name"], len(GRAVEST))))


def remedy(check: Mapping[str, Any]) -> Remedy:
    """Return what to do about a check that does not hold."""
    if check["ok"] is not False:
        return UNPROVEN
    found = definitions().get(check["name"])
    return found.remedy if found is not None else OTHER


def state_of(check: Mapping[str, Any]) -> str:
    """Return good, bad or unknown."""
    return "good" if check["ok"] else "unknown" if check["ok"] is None else "bad"


def is_failing(kind: str, checks: Mapping[str, Any]) -> bool:
    """Return whether findings of this kind count against the mirror: their check does not hold."""
    name = JUDGED_BY.get(kind)
    return name is not None and checks.get(name) is not True


def headline(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words at the top: title, advice, and the checks counted."""
    title, advice = HEADLINES.get(result["verdict"], HEADLINES["unknown"])
    checks = by_gravity(result["checks"])
    if result["verdict"] == "unknown" and result.get("exit_code") == 0:
        advice = "What could not be judged is allowed by name in the limits; the rest holds."
    return {
        "title": title,
        "advice": advice,
        "failed": [check for check in checks if check["ok"] is False],
        "unknown": [check for check in checks if check["ok"] is None],
        "held": sum(check["ok"] is True for check in checks),
        "total": len(checks),
    }


POSITIONS_MAX = 20  # of a group's finding; report.json has all
GROUP_FINDINGS_MAX = 500  # of a check; the table of groups names more
# Of groups, with the check that judges each, and what is counted.
GROUP_KINDS = {
    "skipped": ("groups_no_loss", "skipped"),
    "not_synced": ("groups_synced", None),
    "read_again": ("groups_reread_bounded", "repeated"),
}
# What a failover would lose comes first; kinds that are not named follow by number.
ORDER = (
    *("lost", "no_overlap", "skipped", "behind", "altered", "wrong_partition", "out_of_order", "foreign", "doubled"),
    *("not_synced", "read_again"),
)


def findings(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all findings, what counts against the mirror first, the gravest kind first; `anchor` is each one's name.

    `sign` is bad, unknown or note, `fails` whether it is bad. A finding about a group has the key `group`.
    """
    checks = {check["name"]: check["ok"] for check in result["checks"]}
    found = [
        dict(finding) | {"sign": "bad" if is_failing(finding["kind"], checks) else "note"}
        for part in result["partitions"]
        for finding in part["findings"]
    ]
    found += [one for check in result["checks"] for one in _of_groups(check, result)]
    rank = {kind: number for number, kind in enumerate(ORDER)}
    signs = ("bad", "unknown", "note")
    found.sort(
        key=lambda one: (
            *(signs.index(one["sign"]), rank.get(one["kind"], len(ORDER)), -one["count"]),
            *(one.get("group", ""), one["topic"], one["partition"]),
        )
    )
    return [one | {"anchor": f"f{number}", "fails": one["sign"] == "bad"} for number, one in enumerate(found)]


def _of_groups(check: Mapping[str, Any], result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The groups that keep a check of groups from holding, one finding each."""
    kind = next((kind for kind, (name, _) in GROUP_KINDS.items() if name == check["name"]), None)
    if kind is None or check["ok"] is True:
        return []
    _, counted = GROUP_KINDS[kind]
    # A check that fails for some groups leaves others open: which no checkpoint explains.
    answers = [False, None] if kind == "skipped" and check["ok"] is False else [check["ok"]]
    found = []
    for answer in answers:
        shown = groups_of({**check, "ok": answer}, result)[:GROUP_FINDINGS_MAX]
        sign = "unknown" if answer is None else "bad"
        for group, of_group in _counting(result["groups"], counted, shown, is_open=answer is None).items():
            if of_group.number:
                found.append(_finding(kind, group, of_group, result["groups"], sign))
    return found


class _Counting:
    """The rows of one group that count against the mirror: how many, their sum, and those with the most of it."""

    def __init__(self) -> None:
        self.number = self.total = 0
        self._places: list[tuple[int, str, int, int]] = []

    def add(self, count: int, topic: str, partition: int, at: int) -> None:
        """Take in the row at a place of the report."""
        self.number += 1
        self.total += count
        self._places.append((-count, topic, partition, at))
        if len(self._places) > 5 * POSITIONS_MAX:
            self._places = sorted(self._places)[:POSITIONS_MAX]

    @property
    def most(self) -> list[int]:
        """Places of the POSITIONS_MAX rows that count most."""
        return [at for *_, at in sorted(self._places)[:POSITIONS_MAX]]


def _counting(
    rows: Sequence[Mapping[str, Any]], counted: str | None, groups: Sequence[str], *, is_open: bool
) -> dict[str, _Counting]:
    """Return what counts against the mirror by group; `is_open`: only skipped records that no checkpoint explains."""
    found = {group: _Counting() for group in groups}
    keys = ("group", "topic", "partition", "synced", "active", "unclaimed", "judged", counted or "synced")
    for at, (group, topic, partition, synced, active, unclaimed, judged, number) in enumerate(columns(rows, *keys)):
        if group not in found:
            continue
        if counted is None:
            if synced is None and not active:
                found[group].add(1, topic, partition, at)
        elif judged and synced is not None and number and (counted != "skipped" or bool(unclaimed) is is_open):
            found[group].add(number, topic, partition, at)
    return found


def _finding(
    kind: str, group: str, counting: _Counting, rows: Sequence[Mapping[str, Any]], sign: str
) -> dict[str, Any]:
    shown = [rows[at] for at in counting.most]
    return {
        "kind": kind,
        "group": group,
        "count": counting.total,
        "topic": shown[0]["topic"],
        "partition": shown[0]["partition"],
        "positions": shown,
        "more": counting.number - len(shown),
        "samples": [],
        "sign": sign,
    }


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
    """Return the command that verifies the mirror of a run again."""
    return VERIFY.format_map(_known(result))


def groups_of(check: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    """Return the groups that a check is about, those with most records or positions first."""
    weights: dict[str, int] = {}
    if check["name"] == "groups_reread_bounded":
        bound = (result.get("limits") or {}).get("reread_records_max", 0)
        rows = check.get("evidence") or []
        weights = {str(row["group"]): row["repeated"] for row in rows if row.get("repeated", 0) > bound}
    else:
        for group, weight in _weights(check, result["groups"]):
            weights[group] = weights.get(group, 0) + weight
    return sorted(weights, key=lambda name: (-weights[name], name))


def groups_left(check: Mapping[str, Any], result: Mapping[str, Any]) -> int:
    """Return how many groups of a check its command does not name."""
    return max(0, len(groups_of(check, result)) - GROUPS_MAX)


def _weights(check: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """Yield the group of each row that a check is about, with its records or positions."""
    if check["name"] == "groups_synced":
        unsynced = columns(rows, "group", "synced", "active")
        yield from ((group, 1) for group, synced, active in unsynced if synced is None and not active)
    elif check["name"] == "groups_no_loss":
        is_open = check["ok"] is None
        for group, synced, active, judged, skipped, unclaimed in columns(
            rows, "group", "synced", "active", "judged", "skipped", "unclaimed"
        ):
            if skipped and judged and synced is not None and not active and bool(unclaimed) is is_open:
                yield group, int(skipped)


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
