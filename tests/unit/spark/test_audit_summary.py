"""The document of an audit, its page and its metrics: what is not known is never green."""

import re
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from contract.audit import AuditDocument, AuditRecord, Found
from contract.audit_metrics import families
from monitoring.alerts.audit import AUDIT, OBJECTIVE
from monitoring.metrics.catalog import Part, of_part
from spark.audit.buckets import Judged, Place, State, Sums, Verdict
from spark.audit.drill_down import SHOWN_MAX, compared
from spark.audit.page import as_html, judged
from spark.audit.summary import WINDOWS, About, summarized

MINUTE_MS = 60_000
NOW_MS = 100 * MINUTE_MS
KNOWN: dict[str, Any] = {"source": NOW_MS, "target": NOW_MS}


def about(**changes: Any) -> About:
    fields: dict[str, Any] = {
        "mirror": "mm2",
        "stack": "stg",
        "from_ms": 0,
        "bucket_seconds": 60,
        "within_seconds": 60,
        "every_seconds": 10,
        "at_ms": NOW_MS,
        "read_through": KNOWN,
        "problems": (),
    }
    return About(**fields | changes)


def bucket(minute: int, state: State, records: int = 0, *, topic: str = "items", partition: int = 0) -> Judged:
    """A bucket of 100 records at the source, or as many as make the state."""
    latency = 1000 * minute if state in {State.COMPLETE, State.LATE} else None
    return Judged(
        place=Place(topic, partition, minute * MINUTE_MS),
        source=Sums(100, 1, 1, minute * MINUTE_MS),
        target=Sums(100 + records * (1 if state is State.EXTRA else -1), 2, 2, minute * MINUTE_MS),
        verdict=Verdict(state=state, records=records, latency_ms=latency),
    )


def document(*ones: Judged, found: Found | None = None, **changes: Any) -> AuditDocument:
    return summarized(about(**changes), ones, lambda place, key: found)


def test_time_has_the_worst_state_of_all_partitions_and_holes_where_nothing_was_written() -> None:
    made = document(
        bucket(1, State.COMPLETE),
        bucket(2, State.COMPLETE),
        bucket(2, State.LATE, partition=1),
        bucket(3, State.COMPLETE),
        bucket(3, State.MISSING, 7, partition=1),
        bucket(5, State.MISSING, 1),
        bucket(6, State.OPEN, topic="other"),
    )
    (items, other) = made.topics
    spans = [(span.start_ms // MINUTE_MS, span.end_ms // MINUTE_MS, span.state) for span in items.spans]
    assert spans == [(1, 2, "complete"), (2, 3, "late"), (3, 4, "missing"), (5, 6, "missing")]
    assert items.spans[1].source_records == 200
    assert items.buckets == {"complete": 3, "late": 1, "missing": 2}
    assert [span.state for span in other.spans] == ["open"]
    assert [(one.start_ms // MINUTE_MS, one.partition, one.records) for one in made.faults] == [(5, 0, 1), (3, 1, 7)]
    assert made.latency_ms.p99 == 3000


def test_the_objective_counts_each_record_of_a_bucket_that_was_not_complete_in_time_and_nothing_that_is_open() -> None:
    made = document(
        bucket(1, State.MISSING, 1),  # due in minute 3, 97 minutes ago
        bucket(80, State.LATE),  # due 18 minutes ago
        bucket(95, State.COMPLETE),
        bucket(96, State.COMPLETE),
        bucket(97, State.UNKNOWN),
        bucket(98, State.OPEN),
    )
    assert made.objective.objective == 0.999
    missed = {window: share and round(share, 3) for window, share in made.objective.missed.items()}
    assert missed == {"5m": 0.333, "30m": 0.5, "1h": 0.5, "6h": 0.6, "3d": 0.6}
    assert set(document(bucket(1, State.COMPLETE)).objective.missed.values()) == {None, 0.0}


def test_of_a_side_that_was_never_read_no_share_is_known() -> None:
    made = document(bucket(95, State.COMPLETE), read_through={"source": NOW_MS, "target": None})
    assert set(made.objective.missed.values()) == {None}
    assert judged(made)[0] == "unknown"


@pytest.mark.parametrize(
    ("ones", "changes", "verdict", "words"),
    [
        ([], {}, "unknown", "No bucket with records has closed yet"),
        ([bucket(98, State.OPEN)], {}, "unknown", "No bucket with records has closed yet"),
        ([bucket(1, State.COMPLETE)], {"problems": ("target: is gone",)}, "unknown", "Not both sides could be read"),
        ([bucket(1, State.UNKNOWN)], {}, "unknown", "1 bucket cannot be judged"),
        (
            [bucket(1, State.COMPLETE), bucket(2, State.LATE)],
            {},
            "pass",
            "All 2 closed buckets arrived, 1 of them late",
        ),
        ([bucket(1, State.EXTRA, 2)], {"problems": ("x",)}, "fail", "1 bucket is not the same on both sides"),
    ],
)
def test_the_verdict_is_green_only_if_both_sides_were_read_and_every_closed_bucket_arrived(
    ones: list[Judged], changes: dict[str, Any], verdict: str, words: str
) -> None:
    assert judged(document(*ones, **changes)) == (verdict, words)


def test_the_page_shows_time_faults_and_their_records_and_escapes_names() -> None:
    found = Found(records=(AuditRecord(fault="missing", source_offset=41, timestamp_ms=3 * MINUTE_MS),))
    ones = [bucket(3, State.MISSING, 1, topic="<script>"), bucket(4, State.COMPLETE, topic="items")]
    page = as_html(document(*ones, found=found))
    assert "source offset 41" in page
    assert "1970-01-01 00:03:00" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert len(re.findall(r"<rect class=\"(?:bad|good)\"", page)) == 2


def test_metrics_have_what_is_known_and_a_side_that_was_never_read_is_behind_since_the_beginning() -> None:
    made = document(bucket(96, State.COMPLETE), bucket(3, State.MISSING, 7), bucket(4, State.EXTRA, 2, partition=1))
    text = exported(made)
    labels = 'mirror="mm2",stack="stg",topic="items"'
    assert f"rt_inventory_audit_missing_records{{{labels}}} 7.0" in text
    assert f"rt_inventory_audit_extra_records{{{labels}}} 2.0" in text
    assert 'rt_inventory_audit_missed_ratio{mirror="mm2",stack="stg",window="5m"} 0.0' in text
    assert 'rt_inventory_audit_read_through_timestamp_seconds{mirror="mm2",side="source",stack="stg"} 6000.0' in text
    unread = exported(document(read_through={"source": None, "target": None}, problems=("x", "y")))
    owner = 'mirror="mm2"'
    assert [line for line in unread.splitlines() if not line.startswith("#")] == [
        f'rt_inventory_audit_read_through_timestamp_seconds{{{owner},side="source",stack="stg"}} 0.0',
        f'rt_inventory_audit_read_through_timestamp_seconds{{{owner},side="target",stack="stg"}} 0.0',
        f'rt_inventory_audit_interval_seconds{{{owner},stack="stg"}} 10.0',
        f'rt_inventory_audit_problems{{{owner},stack="stg"}} 2.0',
    ]


def test_every_metric_is_in_the_catalogue_and_alerts_know_the_objective() -> None:
    assert {family.name for family in families(document())} == {metric.name for metric in of_part(Part.AUDIT)}
    assert document().objective.objective == OBJECTIVE
    windows = set(re.findall(r'window="(\w+)"', str(AUDIT)))
    assert windows == {"5m", "30m", "1h", "6h"} < set(WINDOWS)


def exported(made: AuditDocument) -> str:
    """The metrics as Prometheus reads them, labels sorted."""

    class Made:
        def collect(self) -> Any:
            return families(made)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Made())
    return re.sub(
        r"\{(.*?)\}",
        lambda found: "{" + ",".join(sorted(found[1].split(","))) + "}",
        generate_latest(registry).decode(),
    )


def log(*rows: tuple[int, int, int, int, int]) -> Any:
    """Records of offset, digest, key, value and timestamp."""
    return np.array([(at, one, 7, key, value, 0, time, 0) for at, one, key, value, time in rows], dtype=np.int64)


def test_records_that_differ_are_named_by_their_offsets() -> None:
    same = [(offset, 50 + offset, 100 + offset, offset, offset) for offset in range(5)]
    source = log(*same, (10, 60, 8, 8, 10), (11, 61, 9, 1, 11))
    target = log(*same, (31, *same[4][1:]), (21, 62, 9, 2, 11))
    found = [(one.fault, one.source_offset, one.target_offset, one.differs) for one in compared(source, target)]
    assert found == [("extra", None, 31, ()), ("missing", 10, None, ()), ("altered", 11, 21, ("value",))]


def test_of_many_records_some_are_named() -> None:
    source = log(*((offset, offset, offset, offset, offset) for offset in range(1000)))
    assert len(compared(source, source[:0])) == SHOWN_MAX
    assert len(compared(source[:0], source)) == SHOWN_MAX
    assert compared(source, source) == []


def test_of_equal_records_the_last_ones_are_more() -> None:
    source = log(*((offset, 5, 1, 1, 1) for offset in range(4)))
    assert [one.source_offset for one in compared(source, source[:2])] == [2, 3]
