"""The checks: each a pure function from facts to a Check. No cluster and no Spark in here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from spark.cluster import Topic
from spark.connect import ConnectorState
from spark.findings import Finding, PartitionResult
from spark.offsets import GroupPosition
from spark.request import Limits, Mirror

Verdict = Literal["pass", "fail", "unknown"]
NOTHING = "nothing to compare"
NAMED_MAX = 5


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: `ok` is None when it could not be made. Evidence holds JSON values only."""

    name: str
    ok: bool | None
    expected: str
    observed: str
    evidence: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        names = ("name", "ok", "expected", "observed", "evidence")
        return {name: getattr(self, name) for name in names}


def verdict(checks: Iterable[Check], limits: Limits) -> tuple[Verdict, int]:
    """Return the verdict and the exit code: unknown is never green, but may be allowed by name to exit 0."""
    found = list(checks)
    if any(check.ok is False for check in found):
        return "fail", 1
    unknown = [check.name for check in found if check.ok is None]
    if unknown:
        return "unknown", 0 if set(unknown) <= set(limits.allow_unknown) else 1
    return "pass", 0


def topics_present(mirror: Mirror, source: Mapping[str, Topic], target: Mapping[str, Topic]) -> Check:
    """Every topic of the source that the mirror carries is on the target."""
    missing = sorted(name for name in source if mirror.target_topic(name) not in target)
    observed = f"missing: {', '.join(missing)}" if missing else f"{len(source)} topics"
    return Check(
        name="topics_present",
        ok=not missing if source else None,
        expected="every mirrored topic is on the target",
        observed=observed if source else "no topic of the source matches the mirror's patterns",
        evidence=[{"topic": name, "target_topic": mirror.target_topic(name)} for name in missing],
    )


def partitions_match(mirror: Mirror, source: Mapping[str, Topic], target: Mapping[str, Topic]) -> Check:
    """Topics have as many partitions on the target as at the source."""
    common = {name: mirror.target_topic(name) for name in source if mirror.target_topic(name) in target}
    odd = [
        {"topic": name, "source": len(source[name].replicas), "target": len(target[there].replicas)}
        for name, there in sorted(common.items())
        if len(source[name].replicas) != len(target[there].replicas)
    ]
    shown = "; ".join(
        f"{item['topic']}: {item['source']} at the source, {item['target']} on the target" for item in odd
    )
    return Check(
        name="partitions_match",
        ok=not odd if common else None,
        expected="the same number of partitions on both sides",
        observed=(shown or f"{len(common)} topics agree") if common else NOTHING,
        evidence=odd,
    )


def replication_factor(mirror: Mirror, target: Mapping[str, Topic]) -> Check:
    """Every partition of the mirrored topics has at least the mirror's replication factor."""
    wanted = mirror.replication_factor
    low = [
        {"topic": topic.name, "partition": number, "replicas": replicas}
        for topic in target.values()
        for number, replicas in sorted(topic.replicas.items())
        if wanted is not None and replicas < wanted
    ]
    known = wanted is not None and bool(target)
    shown = "; ".join(f"{item['topic']}-{item['partition']} has {item['replicas']}" for item in low[:NAMED_MAX])
    return Check(
        name="replication_factor",
        ok=not low if known else None,
        expected=f"at least {wanted} replicas" if wanted is not None else "a factor stated in the request",
        observed=(shown or f"{len(target)} topics hold it") if known else NOTHING,
        evidence=low,
    )


def connectors_running(states: Sequence[ConnectorState] | None, url: str | None) -> Check:
    """The mirror's connectors and all their tasks run."""
    bad = [state for state in states or [] if not state.running]
    shown = "; ".join(f"{one.name} is {one.state}, tasks {', '.join(one.tasks) or 'none'}" for one in bad)
    return Check(
        name="connectors_running",
        ok=not bad if states else None,
        expected="every connector and task RUNNING",
        observed=(shown or f"{len(states)} connectors run") if states else _silent(url),
        evidence=[{"connector": one.name, "state": one.state, "tasks": list(one.tasks)} for one in states or []],
    )


def _silent(url: str | None) -> str:
    return f"Connect at {url} does not answer" if url else "the request names no Connect address"


def _of(results: Iterable[PartitionResult], kinds: Iterable[str]) -> list[Finding]:
    wanted = set(kinds)
    return [finding for result in results for finding in result.findings if finding.kind in wanted]


def _shown(findings: Sequence[Finding]) -> str:
    ordered = sorted(findings, key=lambda finding: -finding.count)
    named = [f"{one.count} {one.kind.replace('_', ' ')} in {one.topic}-{one.partition}" for one in ordered[:NAMED_MAX]]
    more = len(findings) - NAMED_MAX
    return "; ".join(named) + (f"; and {more} more partitions" if more > 0 else "")


def _records(name: str, expected: str, results: Sequence[PartitionResult], bad: list[Finding], good: str) -> Check:
    compared = sum(result.compared for result in results)
    idle = [f"{r.topic}-{r.partition}" for r in results if r.source_records and not r.compared]
    observed, ok = good, True if compared else None
    if bad:
        observed, ok = _shown(bad), False
    elif not compared:
        observed = NOTHING
    elif idle:
        observed, ok = f"{NOTHING} in {', '.join(idle[:NAMED_MAX])}", None
    return Check(name=name, ok=ok, expected=expected, observed=observed, evidence=[one.document() for one in bad])


def records_complete(results: Sequence[PartitionResult]) -> Check:
    """No record before the cut is missing on the target; what retention removed is not counted."""
    bad = _of(results, ("lost", "no_overlap"))
    compared = sum(result.compared for result in results)
    return _records(
        "records_complete", "every record before the cut is on the target", results, bad, f"{compared} records found"
    )


def records_unique(results: Sequence[PartitionResult], limits: Limits) -> Check:
    """No more than the allowed number of records stands more often on the target than at the source."""
    doubled = _of(results, ("doubled",))
    number = sum(finding.count for finding in doubled)
    bad = doubled if number > limits.duplicates_max else []
    expected = f"at most {limits.duplicates_max} doubled records"
    check = _records("records_unique", expected, results, bad, f"{number} doubled")
    return check if bad else Check(**{**vars(check), "evidence": [one.document() for one in doubled]})


def records_intact(results: Sequence[PartitionResult]) -> Check:
    """No record was altered on its way, and the target holds none that the source never had (foreign)."""
    bad = _of(results, ("altered", "foreign"))
    return _records("records_intact", "no altered and no foreign records", results, bad, "none altered, none foreign")


def _position(one: GroupPosition) -> dict[str, Any]:
    names = ("group", "topic", "partition", "committed", "synced", "lowest", "highest", "unread", "skipped", "repeated")
    return {name: getattr(one, name) for name in names} | {"active_on_target": one.active or one.own_progress}


def _named(positions: Sequence[GroupPosition], what: str) -> str:
    shown = [f"{one.group} on {one.topic}-{one.partition}{_amount(one, what)}" for one in positions[:NAMED_MAX]]
    more = len(positions) - NAMED_MAX
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _amount(one: GroupPosition, what: str) -> str:
    return f": {getattr(one, what)} {what}" if what else ""


def groups_synced(positions: Sequence[GroupPosition]) -> Check:
    """Each committed position of a mirrored group has its copy on the target, unless the group is active there."""
    missing = [one for one in positions if one.synced is None and not one.active]
    active = [one for one in positions if one.active or one.own_progress]
    good = f"{len(positions)} positions of {len({one.group for one in positions})} groups"
    good += f", {len({one.group for one in active})} active on target" if active else ""
    return Check(
        name="groups_synced",
        ok=not missing if positions else None,
        expected="a synced offset for each committed offset",
        observed=(f"not synced: {_named(missing, '')}" if missing else good) if positions else NOTHING,
        evidence=[_position(one) for one in positions],
    )


def groups_no_loss(positions: Sequence[GroupPosition]) -> Check:
    """A consumer that goes on at the target from its synced offset skips no record."""
    judged = [one for one in positions if one.judged and one.synced is not None]
    bad = [one for one in judged if one.skipped and not (one.active or one.own_progress)]
    return Check(
        name="groups_no_loss",
        ok=not bad if judged else None,
        expected="0 records skipped",
        observed=(_named(bad, "skipped") if bad else f"{len(judged)} positions, 0 skipped") if judged else NOTHING,
        evidence=[_position(one) for one in bad],
    )


def groups_reread_bounded(positions: Sequence[GroupPosition], limits: Limits) -> Check:
    """No group reads more records again on the target than the limit allows, all its partitions together."""
    judged = [one for one in positions if one.judged and one.synced is not None]
    totals: dict[str, int] = {}
    for one in judged:
        totals[one.group] = totals.get(one.group, 0) + one.repeated
    over = sorted(group for group, total in totals.items() if total > limits.reread_records_max)
    shown = "; ".join(f"{group} would read {totals[group]} again" for group in over[:NAMED_MAX])
    most = f"at most {max(totals.values(), default=0)} read again"
    return Check(
        name="groups_reread_bounded",
        ok=not over if judged else None,
        expected=f"at most {limits.reread_records_max} records read again per group",
        observed=(shown or most) if judged else NOTHING,
        evidence=[{"group": group, "repeated": total} for group, total in sorted(totals.items())],
    )
