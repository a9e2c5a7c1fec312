"""The page of an audit: when, and in which topics, records did not arrive. It asks nothing of any other place."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from contract.audit import AuditDocument, AuditSpan, BucketState
from kafka.errors import visible_document
from spark.audit.buckets import FAULTS
from spark.report.html import templates

WIDTH, HEIGHT = 600, 18
BAR_MIN = 2.0  # a minute of a week is seen too
FAULTS_SHOWN = 500  # audit.json has all
# A state differs by sign and height, not only by colour.
SIGN_OF: dict[BucketState, str] = {
    "open": "note",
    "complete": "good",
    "late": "unknown",
    "unknown": "unknown",
    "missing": "bad",
    "extra": "bad",
    "altered": "bad",
}
_HEIGHTS = {"good": 0.4, "note": 0.4, "unknown": 0.7, "bad": 1.0}
_FAULTY = {state.value for state in FAULTS}


def as_html(document: AuditDocument) -> str:
    """Return the page of an audit's document."""
    audit = AuditDocument.model_validate(visible_document(document.model_dump()))
    spans = [span for topic in audit.topics for span in topic.spans]
    begin = min((span.start_ms for span in spans), default=audit.from_ms)
    end = max((span.end_ms for span in spans), default=audit.at_ms)
    verdict, headline = judged(audit)
    environment = templates()
    environment.filters |= {"moment": moment, "percent": _percent, "seconds": _seconds}
    return environment.get_template("audit.html.j2").render(
        audit=audit,
        verdict=verdict,
        headline=headline,
        through=_through(audit),
        begin_ms=begin,
        end_ms=end,
        topics=[
            {"topic": topic, "bars": list(_bars(topic.spans, begin, end)), "text": _words(topic.buckets)}
            for topic in audit.topics
        ],
        faults=sorted(audit.faults, key=lambda one: -one.start_ms)[:FAULTS_SHOWN],
        more=max(0, len(audit.faults) - FAULTS_SHOWN),
        signs={"good": "✓", "unknown": "?", "bad": "✕", "note": "…"},
        sign_of=SIGN_OF,
        width=WIDTH,
        height=HEIGHT,
    )


def judged(audit: AuditDocument) -> tuple[str, str]:
    """Return the verdict, pass, fail or unknown, and one sentence."""
    faulty = sum(one.state in _FAULTY for one in audit.faults)
    if faulty:
        return "fail", f"{faulty:,} bucket{'s are' if faulty > 1 else ' is'} not the same on both sides"
    if audit.problems or None in audit.read_through.values():
        return "unknown", "Not both sides could be read"
    unknown = sum(one.state == "unknown" for one in audit.faults)
    if unknown:
        return "unknown", f"{unknown:,} bucket{'s' if unknown > 1 else ''} cannot be judged"
    closed = sum(count for topic in audit.topics for state, count in topic.buckets.items() if state != "open")
    if not closed:
        return "unknown", "No bucket with records has closed yet"
    late = sum(topic.buckets.get("late", 0) for topic in audit.topics)
    return "pass", f"All {closed:,} closed buckets arrived" + (f", {late:,} of them late" if late else "")


def moment(milliseconds: int) -> str:
    """Return a time in UTC to the second; the number itself for one that no calendar has."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


def _bars(spans: Iterable[AuditSpan], begin: int, end: int) -> Iterable[dict[str, Any]]:
    scale = WIDTH / max(1, end - begin)
    for span in spans:
        sign = SIGN_OF[span.state]
        height = HEIGHT * _HEIGHTS[sign]
        yield {
            "sign": sign,
            "x": round((span.start_ms - begin) * scale, 2),
            "y": round(HEIGHT - height, 2),
            "width": round(max(BAR_MIN, (span.end_ms - span.start_ms) * scale), 2),
            "height": round(height, 2),
            "text": f"{span.state}: {moment(span.start_ms)} to {moment(span.end_ms)}, "
            f"{span.source_records:,} records at the source, {span.target_records:,} at the target",
        }


def _words(buckets: dict[BucketState, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in buckets.items())


def _through(audit: AuditDocument) -> str:
    return ", ".join(
        f"{role}: {moment(at) + ' UTC' if at is not None else 'not yet'}" for role, at in audit.read_through.items()
    )


def _percent(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else f"{share:.2%}"


def _seconds(milliseconds: int | None) -> str:
    return "\N{EN DASH}" if milliseconds is None else f"{milliseconds / 1000:.1f} s"
