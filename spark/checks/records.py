"""Checks of the records."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from contract.verification_request import Limits
from kafka.connector_status import ConnectorState
from kafka.mirror_position import CutState
from spark.checks.registry import DOCTOR, NAMED_MAX, NOTHING, Check, Remedy, check, named
from spark.comparison.findings import Finding, PartitionResult
from spark.run_context import RunContext


def _of(results: Iterable[PartitionResult], kinds: Iterable[str]) -> list[Finding]:
    wanted = set(kinds)
    return [finding for result in results for finding in result.findings if finding.kind in wanted]


def _shown(findings: Sequence[Finding]) -> str:
    ordered = sorted(findings, key=lambda finding: -finding.count)
    texts = [
        f"{_number(one)} {one.kind.replace('_', ' ')} in {one.topic}-{one.partition}{_place(one)}"
        for one in ordered[:NAMED_MAX]
    ]
    more = len(findings) - NAMED_MAX
    return "; ".join(texts) + (f"; and {more} more partitions" if more > 0 else "")


def _number(finding: Finding) -> str:
    """How many records, where the mirror's position parts a run in which some offsets hold none: about so many."""
    return f"about {finding.count}" if any(run.is_about for run in finding.runs) else str(finding.count)


def _place(finding: Finding) -> str:
    """Where the missing records stand, if they follow each other."""
    if finding.kind not in ("lost", "behind") or len(finding.runs) != 1 or finding.runs[0].where is None:
        return ""
    run = finding.runs[0]
    return f" ({run.where}, source offsets {run.first} to {run.last})"


def _records(name: str, expected: str, results: Sequence[PartitionResult], bad: list[Finding], good: str) -> Check:
    known = any(result.compared or result.verified_from is not None for result in results)
    idle = [f"{r.topic}-{r.partition}" for r in results if r.source_records and not r.compared]
    open_ones = [f"{r.topic}-{r.partition}: {r.undecided}" for r in results if r.undecided]
    observed, ok = good, True if known else None
    if bad:
        observed, ok = _shown(bad), False
    elif not known:
        observed = NOTHING
    elif idle:
        observed, ok = f"{NOTHING} in {', '.join(idle[:NAMED_MAX])}", None
    elif open_ones:
        observed, ok = "; ".join(open_ones[:NAMED_MAX]), None
    return Check(name=name, ok=ok, expected=expected, observed=observed, evidence=[one.document() for one in bad])


def records_complete(
    results: Sequence[PartitionResult], cut: CutState | None = None, connectors: Sequence[ConnectorState] | None = None
) -> Check:
    """No record before the cut is missing on the target; what retention removed is not counted.

    Args:
        results: a tail that the mirror's position has not passed is counted as behind in them, not as lost.
        cut: how long the mirror was waited for. If nobody knows how far it is, a missing tail may be on its way.
        connectors: what the mirror did when the wait for it ended; None if Connect did not answer.
    """
    cut = cut or CutState()
    bad = _of(results, ("lost", "behind", "no_overlap"))
    compared = sum(result.compared for result in results)
    check = _records(
        "records_complete", "every record before the cut is on the target", results, bad, f"{compared} records found"
    )
    if any(finding.kind == "behind" for finding in bad):
        observed = f"{check.observed}; behind: not copied after {cut.waited_s:.0f} s of waiting, {_doing(connectors)}"
        return replace(check, observed=observed)
    if not bad or not cut.unknown or not all(map(_on_its_way, results)):
        return check
    why = f"lost or on their way, for the mirror's position is not known: {cut.unknown}"
    return replace(check, ok=None, observed=f"{check.observed}; {why}")


def _doing(connectors: Sequence[ConnectorState] | None) -> str:
    if not connectors:
        return "what its connectors did is not known"
    faults = [fault for one in connectors for fault in one.faults]
    return named(faults) if faults else "its connectors and tasks ran when the wait ended"


def _on_its_way(result: PartitionResult) -> bool:
    """Whether all that a partition misses is behind everything that has arrived."""
    ends = ("tail", "whole") if not result.target_records else ("tail",)
    return all(
        finding.kind == "lost"
        and sum(run.records for run in finding.runs) == finding.count
        and all(run.where in ends for run in finding.runs)
        for finding in _of([result], ("lost", "no_overlap"))
    )


def records_unique(results: Sequence[PartitionResult], limits: Limits) -> Check:
    """No more than the allowed number of records occur more often on the target than at the source."""
    doubled = _of(results, ("doubled",))
    number = sum(finding.count for finding in doubled)
    bad = doubled if number > limits.duplicates_max else []
    expected = f"at most {limits.duplicates_max} doubled records"
    check = _records("records_unique", expected, results, bad, f"{number} doubled")
    return check if bad else Check(**{**vars(check), "evidence": [one.document() for one in doubled]})


def records_intact(results: Sequence[PartitionResult]) -> Check:
    """Every record arrived as it was, in its own partition."""
    bad = _of(results, ("altered", "wrong_partition"))
    expected = "no altered record, none in another partition"
    return _records("records_intact", expected, results, bad, "none altered, each in its partition")


def records_ordered(results: Sequence[PartitionResult]) -> Check:
    """No record on the target is behind one that followed it at the source."""
    bad = _of(results, ("out_of_order",))
    return _records("records_ordered", "the order of the source in each partition", results, bad, "all in order")


def records_foreign(results: Sequence[PartitionResult]) -> Check:
    """The mirrored topics of the target hold no record that the source never had."""
    bad = _of(results, ("foreign",))
    return _records("records_foreign", "no record that the source never had", results, bad, "none foreign")


def has_records(context: RunContext) -> bool:
    """Whether the source holds records of the mirrored topics before the cut."""
    return any(one.source_records or one.verified_from is not None for one in context.partitions)


@check(
    "records_complete",
    after="canary_latency",
    expires=has_records,
    remedy=Remedy(
        text="Do not fail over. Records that are behind are still at the source: the mirror has not copied them. Wait "
        "for it (a longer mirrorWaitSeconds), or find out with doctor why it has stopped. A gap or a head that is "
        "lost stays lost until the mirror copies everything again, into empty topics.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#copy-everything-again",
    ),
)
def _records_complete(context: RunContext) -> Check:
    return records_complete(context.partitions, context.cut, context.connectors)


@check(
    "records_unique",
    after="records_complete",
    expires=has_records,
    remedy=Remedy(
        text="A restart of an at-least-once mirror repeats records. Turn on exactly-once support in Connect, or raise "
        "limits.duplicates_max if consumers are idempotent.",
        commands=(DOCTOR,),
        page="docs/verification.md#how-terms-are-settled",
    ),
)
def _records_unique(context: RunContext) -> Check:
    return records_unique(context.partitions, context.request.limits)


@check(
    "records_intact",
    after="records_unique",
    expires=has_records,
    remedy=Remedy(
        text="Something changes records on their way: look for transforms (SMT), converters other than "
        "ByteArrayConverter, and message.timestamp.type=LogAppendTime on the target topic.",
        commands=("python -m ops topics describe {topic} {target}",),
        page="docs/verification.md#how-terms-are-settled",
    ),
)
def _records_intact(context: RunContext) -> Check:
    return records_intact(context.partitions)


@check(
    "records_ordered",
    after="records_intact",
    expires=has_records,
    remedy=Remedy(
        text="Look for two mirrors or workers that write the same topic, and for producer retries with more than one "
        "request in flight without idempotence.",
        commands=(DOCTOR,),
        page="docs/verification.md#how-terms-are-settled",
    ),
)
def _records_ordered(context: RunContext) -> Check:
    return records_ordered(context.partitions)


@check(
    "records_foreign",
    after="records_ordered",
    expires=has_records,
    remedy=Remedy(
        text="Something else writes to the target topic. Find the producer (ACLs with WRITE) and stop it; under "
        "identity naming exactly one direction may feed a topic.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#names",
    ),
)
def _records_foreign(context: RunContext) -> Check:
    return records_foreign(context.partitions)
