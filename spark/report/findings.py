"""What a run has found, of records and of consumer groups, in the order in which to read it."""

from collections.abc import Mapping
from typing import Any

from spark.report.commands import groups_of
from spark.report.summary import is_failing

POSITIONS_MAX = 20  # of a group's finding; the table of groups has all
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
        for group in groups_of({**check, "ok": answer}, result):
            rows = [row for row in result["groups"] if row["group"] == group and _counts(row, counted)]
            if kind == "skipped":
                rows = [row for row in rows if bool(row["unclaimed"]) is (answer is None)]
            rows.sort(key=lambda row: (-row.get(counted or "", 0), row["topic"], row["partition"]))
            if rows:
                total = sum(row[counted] for row in rows) if counted else len(rows)
                found.append(_finding(kind, group, total, rows, "unknown" if answer is None else "bad"))
    return found


def _counts(row: Mapping[str, Any], counted: str | None) -> bool:
    if counted is None:
        return row["synced"] is None and not row["active"]
    return bool(row["judged"] and row["synced"] is not None and row[counted])


def _finding(kind: str, group: str, count: int, rows: list[Mapping[str, Any]], sign: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "group": group,
        "count": count,
        "topic": rows[0]["topic"],
        "partition": rows[0]["partition"],
        "positions": rows[:POSITIONS_MAX],
        "more": len(rows) - len(rows[:POSITIONS_MAX]),
        "samples": [],
        "sign": sign,
    }
