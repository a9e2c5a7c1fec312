"""What of a log is read again to name a bucket's records, and that the next reading does not wait for all of them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from contract.audit import Found
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.audit import audit, drill_down
from spark.audit.audit import Audit, Options
from spark.audit.buckets import Judged, Place, State, Sums, Verdict
from spark.audit.drill_down import RECORDS_MAX, DrillDownError, records_of
from spark.audit.store import AuditStore, Role
from spark.comparison.reading import COLUMNS, OFFSET, TIMESTAMP, A, ReadRange

from .test_audit_judging import MINUTE_MS, request

ITEMS = TopicPartition("items", 0)
LOGS: Mapping[Role, TopicPartition] = {"source": ITEMS, "target": TopicPartition("here.items", 0)}


class Log:
    """A cluster of one log, from its first offset to before its last one. A record's time is 1 s times its offset."""

    def __init__(self, start: int, end: int, alias: str) -> None:
        self.bounds, self.asked = (start, end), list[tuple[int, int]]()
        self.side = type("Side", (), {"role": "source", "alias": alias})

    def starts(self, logs: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(logs, self.bounds[0])

    def ends(self, logs: Sequence[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        return dict.fromkeys(logs, self.bounds[1])


def rows_of(cluster: Any, isolation: str, ranges: Iterable[ReadRange], *_: Any) -> dict[TopicPartition, Any]:
    (asked,) = ranges
    cluster.asked.append((asked.start, asked.end))
    rows = np.zeros((asked.end - asked.start, COLUMNS), dtype=np.int64)
    rows[:, OFFSET] = rows[:, A] = np.arange(asked.start, asked.end)
    rows[:, TIMESTAMP] = rows[:, OFFSET] * 1000
    return {TopicPartition(asked.topic, asked.partition): rows}


@pytest.fixture(autouse=True)
def reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill_down, "read_ranges", rows_of)


def bucket(source: tuple[int, int], target: tuple[int, int], minute: int = 1) -> Judged:
    def sums(offsets: tuple[int, int]) -> Sums:
        return Sums(offsets[1] - offsets[0], start=offsets[0], end=offsets[1])

    place = Place("items", 0, minute * MINUTE_MS)
    return Judged(place=place, source=sums(source), target=sums(target), verdict=Verdict(state=State.MISSING))


def found(one: Judged, source: Log, target: Log) -> list[int | None]:
    clusters = cast("Mapping[Role, Cluster]", {"source": source, "target": target})
    return [record.source_offset for record in records_of(clusters, LOGS, "read_committed", one, MINUTE_MS)]


def test_only_the_offsets_of_the_bucket_are_read_of_a_log_that_goes_on() -> None:
    source, target = Log(0, 9_000_000, "es-src"), Log(0, 9_000_000, "es-tgt")
    # Offset 121 is of the next minute.
    assert found(bucket((60, 122), (60, 118)), source, target) == [118, 119]
    assert (source.asked, target.asked) == ([(60, 122)], [(60, 118)])


def test_what_a_side_never_had_is_not_asked_for_and_what_is_gone_is_left_out() -> None:
    source, target = Log(118, 120, "es-src"), Log(0, 1, "es-tgt")
    assert found(bucket((60, 122), (0, 0)), source, target) == [118, 119]
    assert (source.asked, target.asked) == ([(118, 120)], [])


def test_records_that_lie_too_far_apart_are_not_read() -> None:
    source, target = Log(0, 9_000_000, "es-src"), Log(0, 9_000_000, "es-tgt")
    far = bucket((60, 61 + RECORDS_MAX), (60, 118))
    with pytest.raises(DrillDownError, match=r"source es-src: topic items partition 0 .* 1,000,001 offsets"):
        found(far, source, target)
    assert source.asked == []


def test_after_an_interval_both_sides_are_read_before_more_faults_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def slow(*_: Any) -> list[Any]:
        now[0] += 4.0
        return []

    monkeypatch.setattr(audit, "records_of", slow)
    monkeypatch.setattr("spark.audit.audit.time.monotonic", lambda: now[0])
    store = AuditStore(tmp_path, "mirror mm2", 0)
    one = Audit(request(), store, Options(every_s=10))
    faults = {each.place: each for minute in range(5) for each in [bucket((0, 9), (0, 8), minute)]}
    one._judged = faults
    named = []
    for _ in range(3):
        one._drill_down()
        named.append(sum(store.found(each.place, each.key) == Found(records=()) for each in faults.values()))
    store.close()
    assert named == [3, 5, 5]
