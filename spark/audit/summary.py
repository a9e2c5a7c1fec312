"""The document of an audit, made of its judged buckets: totals, time by topic, faults, latencies, and the objective."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from contract.audit import (
    AuditBucket,
    AuditDocument,
    AuditLatency,
    AuditObjective,
    AuditSpan,
    AuditTopic,
    BucketState,
    Found,
)
from spark.audit.buckets import CLOSED_WELL, FAULTS, Judged, Place, Rule, State, due_ms, percentile
from spark.audit.store import Role

OBJECTIVE = 0.999
WINDOWS = {"5m": 300, "30m": 1800, "1h": 3600, "6h": 21_600, "3d": 259_200}
"""Seconds by the names of the windows."""
FAULTS_MAX = 10_000
# The worst first: what is known to be wrong, then what is not known.
_GRAVITY = (State.MISSING, State.ALTERED, State.EXTRA, State.UNKNOWN, State.LATE, State.OPEN, State.COMPLETE)
_NOTHING = Found()


@dataclass(frozen=True, kw_only=True)
class About:
    """What a document says of its audit, by the fields of `AuditDocument`."""

    mirror: str
    stack: str | None
    from_ms: int
    bucket_seconds: int
    within_seconds: int
    every_seconds: int
    at_ms: int
    read_through: dict[Role, int | None]
    problems: tuple[str, ...]

    @property
    def rule(self) -> Rule:
        """Length and time of its buckets."""
        return Rule(bucket_ms=self.bucket_seconds * 1000, within_ms=self.within_seconds * 1000)


def summarized(about: About, judged: Sequence[Judged], found: Callable[[Place, str], Found | None]) -> AuditDocument:
    """Return the document of an audit. `found` names records of a bucket, by its place and key."""
    by_topic: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        by_topic[one.place.topic].append(one)
    faults = [one for one in judged if one.verdict.state in FAULTS or one.verdict.state is State.UNKNOWN]
    faults.sort(key=lambda one: one.place)
    latencies = [
        one.verdict.latency_ms
        for one in judged
        if one.verdict.state in CLOSED_WELL and one.verdict.latency_ms is not None
    ]
    return AuditDocument(
        **asdict(about),
        topics=tuple(_topic(topic, ones, about.rule) for topic, ones in sorted(by_topic.items())),
        faults=tuple(_bucket(one, found(one.place, one.key) or _NOTHING) for one in faults[:FAULTS_MAX]),
        latency_ms=AuditLatency(
            p50=percentile(latencies, 0.5), p95=percentile(latencies, 0.95), p99=percentile(latencies, 0.99)
        ),
        objective=AuditObjective(objective=OBJECTIVE, missed=_missed(about, judged)),
    )


def _bucket(one: Judged, found: Found) -> AuditBucket:
    return AuditBucket(
        topic=one.place.topic,
        partition=one.place.partition,
        start_ms=one.place.start_ms,
        state=one.verdict.state.value,
        source_records=one.source.count,
        target_records=one.target.count,
        records=one.verdict.records,
        reason=one.verdict.reason,
        found=found.records,
        not_found=found.not_found,
    )


def _topic(topic: str, ones: Sequence[Judged], rule: Rule) -> AuditTopic:
    states: Counter[BucketState] = Counter(one.verdict.state.value for one in ones)
    return AuditTopic(
        topic=topic,
        buckets=dict(sorted(states.items())),
        source_records=sum(one.source.count for one in ones),
        target_records=sum(one.target.count for one in ones),
        spans=tuple(_spans(ones, rule)),
    )


def _spans(ones: Iterable[Judged], rule: Rule) -> Iterable[AuditSpan]:
    """Yield the runs of a topic's time with one worst state; time without records is in none."""
    columns: dict[int, list[Judged]] = defaultdict(list)
    for one in ones:
        columns[one.place.start_ms].append(one)
    worst = {start: min((one.verdict.state for one in held), key=_GRAVITY.index) for start, held in columns.items()}
    starts = sorted(columns)

    def run(item: tuple[int, int]) -> tuple[int, State]:
        number, start = item
        return start - number * rule.bucket_ms, worst[start]

    for (_, state), items in groupby(enumerate(starts), key=run):
        inside = [start for _, start in items]
        held = [one for start in inside for one in columns[start]]
        yield AuditSpan(
            start_ms=inside[0],
            end_ms=inside[-1] + rule.bucket_ms,
            state=state.value,
            source_records=sum(one.source.count for one in held),
            target_records=sum(one.target.count for one in held),
        )


def _missed(about: About, judged: Iterable[Judged]) -> dict[str, float | None]:
    """Return which share of records was in buckets that were not complete in time, by window."""
    times = [at for at in about.read_through.values() if at is not None]
    if len(times) < len(about.read_through):
        return dict.fromkeys(WINDOWS)
    now, records, bad = min(times), Counter[str](), Counter[str]()
    for one in judged:
        if one.verdict.state is State.OPEN:
            continue
        age_s = (now - due_ms(one.place, one.source, one.target, about.rule)) / 1000
        weight = max(one.source.count, one.target.count)
        for window, seconds in WINDOWS.items():
            if age_s <= seconds:
                records[window] += weight
                bad[window] += 0 if one.verdict.state is State.COMPLETE else weight
    return {window: bad[window] / records[window] if records[window] else None for window in WINDOWS}
