"""Exact positions on the other side, which the verification job finds by the records' content.

Owns the job's request for that, and what is read from its report. Does not own how it translates.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from contract.verification_request import Mirror
from ops import verify
from ops.console import AdaptiveTable, Column
from ops.errors import OpsError
from ops.offsets.entries import Entry, format_offset
from ops.recovery.mirror_context import MirrorContext

Log = Callable[[str], None]
WAIT_S = 30
# Parts of a request that translate nothing, or make the job wait or write.
_LEFT_OUT = ("canary", "internal_topics", "resource", "replication_factor", "positions")


@dataclass(frozen=True, kw_only=True)
class Translated:
    """An entry and its counterpart on the other side; if that is None, `problem` is the reason.

    `removed` are the offsets in front of the entry that its own log has deleted.
    """

    entry: Entry
    topic: str
    exact: int | None
    removed: int
    problem: str | None

    def as_json(self, side: str) -> dict[str, Any]:
        """Return what `--json` shows; `side` is that of the entry."""
        entry = self.entry
        there = "target" if side == "source" else "source"
        return {
            **({"group": entry.group} if entry.group is not None else {}),
            "partition": entry.partition,
            side: {"topic": entry.topic, "offset": entry.offset},
            there: {"topic": self.topic, "offset": self.exact},
            "removed": self.removed,
            "problem": self.problem,
        }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The translations in the order of the entries, what the job found wrong with the records, and its report."""

    rows: list[Translated]
    faults: list[str]
    report: Path


def source_name(mirror: Mirror, topic: str) -> str | None:
    """Return the source's name of a topic of the target; None if it is no remote topic of the mirror."""
    prefix = mirror.target_topic("")
    name = topic.removeprefix(prefix) if topic.startswith(prefix) else None
    return name if name and mirror.carries_topic(name) else None


def name_at_source(mirror: Mirror, side: str, topic: str) -> str | None:
    """Return the source's name of a topic of either side; None if the mirror does not carry it."""
    if side == "target":
        return source_name(mirror, topic)
    return topic if mirror.carries_topic(topic) else None


def translate(
    pair: MirrorContext, side: str, entries: Sequence[Entry], report_dir: Path, environment: Mapping[str, str], log: Log
) -> Outcome:
    """Return the exact counterpart of each position of one side.

    It takes as long as the job needs to compare the topics of the entries.

    Args:
        pair: the mirror.
        side: `source` or `target`, which the entries are of.
        entries: the positions.
        report_dir: folder for the job's report.
        environment: environment of the job.
        log: gets each line of its progress.

    Raises:
        OpsError: the mirror does not carry some topics, each of which it names, or the job could not judge.
    """
    mirror = pair.request.mirror
    names = {one.topic: name_at_source(mirror, side, one.topic) for one in entries}
    if problems := [topic for topic, name in names.items() if name is None]:
        raise OpsError(
            "\n".join(
                f"topic {topic}: must be one that mirror {pair.mirror} carries, by its name on the {side} (topics "
                f"{', '.join(mirror.topics)}; copies are named {mirror.target_topic('NAME')})."
                for topic in problems
            )
        )
    asked = [
        {"side": side, "topic": names[one.topic], "partition": one.partition, "offset": one.offset} for one in entries
    ]
    counted = pair.plan.request["mirror"].get("counts_from") or {}
    changes = {
        "topics": _named(names.values()),
        "counts_from": {topic: where for topic, where in counted.items() if topic in names.values()},
        "groups_exclude": [".*"],
        "positions": asked,
    }
    verdict = verify.run(_request_with(pair, changes), report_dir, environment, log)
    rows = verdict.report.get("positions") or []
    if len(rows) != len(asked):
        raise OpsError(f"mirror {pair.mirror}: the report must hold {len(asked)} positions (got {len(rows)}).")
    return Outcome(
        rows=[
            Translated(
                entry=entry,
                topic=str(row["target_topic"] if side == "source" else row["topic"]),
                exact=row["exact"],
                removed=row["removed"],
                problem=row["problem"],
            )
            for entry, row in zip(entries, rows, strict=True)
        ],
        faults=_faults(verdict),
        report=verdict.html,
    )


def judged_groups(
    pair: MirrorContext, groups: Sequence[str], report_dir: Path, environment: Mapping[str, str], log: Log
) -> tuple[dict[tuple[str, str, int], Mapping[str, Any]], list[str], Path]:
    """Return the job's row of each position, what is wrong with the records, and the path of the report.

    Args:
        pair: the mirror.
        groups: names of groups; none for all that the mirror carries.
        report_dir: folder for the job's report.
        environment: environment of the job.
        log: gets each line of its progress.

    Raises:
        OpsError: the job could not judge.
    """
    changes = {"groups": _named(groups)} if groups else {}
    verdict = verify.run(_request_with(pair, changes), report_dir, environment, log)
    rows = {(one["group"], one["topic"], one["partition"]): one for one in verdict.report.get("groups") or []}
    return rows, _faults(verdict), verdict.html


def _request_with(pair: MirrorContext, changes: Mapping[str, Any]) -> verify.Plan:
    """Return the mirror's own request with these changes. The job waits for nothing longer than WAIT_S."""
    request = pair.plan.request
    mirror = {key: value for key, value in request["mirror"].items() if key not in _LEFT_OUT}
    mirror |= {"topic_configs": {"sync": False}, "sync_topic_acls": False, **changes}
    limits = dict(request.get("limits") or {})
    limits["mirror_wait_seconds"] = min(WAIT_S, int(pair.request.limits.mirror_wait_seconds))
    return replace(pair.plan, request={**request, "mirror": mirror, "limits": limits})


def _named(names: Any) -> list[str]:
    return sorted({re.escape(str(name)) for name in names})


def _faults(verdict: verify.Verdict) -> list[str]:
    return [
        f"{check['name']}: {check['observed']}"
        for check in verdict.report.get("checks") or []
        if check["ok"] is False and str(check["name"]).startswith("records_")
    ]


def translations_table(side: str, rows: Sequence[Translated]) -> RenderableType:
    """Return a line per position, with why one has no counterpart."""
    there = "target" if side == "source" else "source"
    grouped = any(one.entry.group is not None for one in rows)
    names_of = [*(["group"] if grouped else []), f"topic on the {side}", f"topic on the {there}"]
    table = AdaptiveTable(
        f"from the {side} to the {there}",
        (
            *(Column(name, name=True) for name in names_of),
            Column("partition", name=True, number=True),
            *(Column(name, number=True) for name in (side, there)),
            Column("to know"),
        ),
    )
    for one in rows:
        said = one.problem or (f"{one.removed} in front are deleted" if one.removed else "")
        names = [one.entry.group or ""] if grouped else []
        names += [one.entry.topic, one.topic]
        table.add_row(*names, str(one.entry.partition), str(one.entry.offset), format_offset(one.exact), said)
    return table
