"""What is read of both clusters for the time that retention leaves: rates by two looks, and sizes where one counts."""

import time
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.errors import Answers
from kafka.lag import Measure, PartitionLag
from kafka.topic_metadata import Setting
from kafka.topic_partition import TopicPartition
from ops.inspection import retention
from tests.support.recovery_pair import known

LOOK_S = 2.0
ITEMS, KEPT, ALL = (TopicPartition(topic, 0) for topic in ("items", "items.inventory", "store.inventory"))
CONFIGS = {
    "items": {"cleanup.policy": "delete", "retention.ms": "3600000", "retention.bytes": "100000"},
    "items.inventory": {"cleanup.policy": "compact", "retention.ms": "3600000", "retention.bytes": "-1"},
    "store.inventory": {"cleanup.policy": "delete", "retention.ms": "3600000", "retention.bytes": "-1"},
}


class Growing:
    """A cluster whose log ends have grown by `step` at each look; `open` offsets are behind an open transaction."""

    def __init__(self, step: int) -> None:
        self.step, self.open, self.looks, self.asked = step, 0, Counter[str](), set[TopicPartition]()

    def ends(self, partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        self.looks[isolation] += 1
        self.asked |= {*partitions}
        return dict.fromkeys(
            partitions,
            100 + self.step * self.looks[isolation] + (self.open if isolation.endswith("uncommitted") else 0),
        )


class Clock:
    """A clock that only sleeping moves, so that a loaded machine changes no rate."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds

    def time(self) -> float:
        return time.time()


def part(tp: TopicPartition, records: int, position: int = 9, log_start: int = 0) -> PartitionLag:
    first_ms = int(time.time() * 1000) - 600_000 if records else None
    fields: dict[str, Any] = {"position": position, "source_end": position + 1 + records, "seconds": None}
    return PartitionLag(**tp._asdict(), **fields, records=records, first_ms=first_ms, log_start=log_start)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(retention, "time", made)
    return made


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> dict[str, Growing]:
    answers: Answers[Any] = Answers()
    answers.found |= {
        topic: {name: Setting(value, "topic") for name, value in one.items()} for topic, one in CONFIGS.items()
    }
    monkeypatch.setattr(retention, "topic_configs", lambda *_: answers)
    monkeypatch.setattr(retention, "existing", lambda _, wanted: [*wanted])
    monkeypatch.setattr(retention, "record_bytes", lambda _, following, __: dict.fromkeys(following, 100))
    return {"source": Growing(20), "target": Growing(40)}


def observed(clusters: dict[str, Growing], *parts: PartitionLag) -> tuple[dict[str, Any], str | None]:
    sides = {role: SimpleNamespace(cluster=cluster) for role, cluster in clusters.items()}
    readings: Any = SimpleNamespace(pair=known(), **sides)
    found, why = retention.observe(readings, Measure(at_s=0.0, partitions=parts))
    return {one.topic: one for one in found}, why


def test_rates_are_measured_of_what_is_behind_alone(clusters: dict[str, Growing]) -> None:
    found, why = observed(clusters, part(ITEMS, 500), part(KEPT, 500), part(ALL, 0))
    assert (set(found), why) == ({"items", "store.inventory"}, None)
    assert clusters["target"].asked == {ITEMS}
    one = found["items"]
    assert one.catch_up_s == pytest.approx(500 / (40 / LOOK_S))
    assert (one.left_bytes, one.waited_s) == (50_000, pytest.approx(600, abs=5))
    assert one.seconds == pytest.approx(50_000 / (20 / LOOK_S * 100)), "by size, which is nearer"
    assert (found["store.inventory"].seconds, found["store.inventory"].catch_up_s) == (3600, 0)


def test_a_pair_without_lag_is_looked_at_once(clusters: dict[str, Growing], clock: Clock) -> None:
    found, _ = observed(clusters, part(ITEMS, 0))
    assert (max(clusters["source"].looks.values()), clusters["target"].looks) == (1, {})
    assert clock.monotonic() == 0, "nobody waited"
    assert found["items"].seconds == 3600


def test_what_was_deleted_and_what_could_not_be_read_is_reported(
    clusters: dict[str, Growing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "record_bytes", lambda *_: {})
    found, why = observed(clusters, part(ITEMS, 5, log_start=40))
    assert (found["items"].deleted, found["items"].left_bytes) == (30, None)
    assert why == "items-0: the first record that is not copied could not be read in time"


@pytest.mark.parametrize("records", [0, 500])
def test_what_stands_behind_an_open_transaction_is_not_safe(
    clusters: dict[str, Growing], monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    source = clusters["source"]
    clusters["target"].step = 0
    source.open, begun_ms = 300, int(time.time() * 1000) - 3_000_000
    asked = list[Any]()
    monkeypatch.setattr(
        retention, "first_records", lambda *given: asked.append(given[1:]) or dict.fromkeys(given[1], (150, begun_ms))
    )
    one = part(ITEMS, records, position=119 - records)  # copied up to where the transaction began, or not yet
    found, _ = observed(clusters, one)
    if records:
        assert (asked[0][0], found["items"].records, found["items"].held) == ({}, 500 + 300, False)
        return
    assert asked == [({ITEMS: 120}, {ITEMS: 420}, "read_uncommitted")]
    assert (found["items"].records, found["items"].held) == (270, True), "no mirror could copy them"
    assert found["items"].waited_s == pytest.approx(3000, abs=5)
    assert found["items"].overtakes, "most of an hour's retention is over, and nobody copies it"


class Written:
    """A record as a consumer hands it out."""

    def __init__(self, key: bytes | None, value: bytes | None, *headers: tuple[str, bytes | None]) -> None:
        self._parts = key, value, list(headers)

    def key(self) -> bytes | None:
        return self._parts[0]

    def value(self) -> bytes | None:
        return self._parts[1]

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self._parts[2]


def test_a_records_size_is_what_kafkas_producer_compares_with_its_limit() -> None:
    """The first number is from the message of a RecordTooLargeException; a remedy that is smaller does not help."""
    assert retention._size(Written(None, bytes(2 * 1024 * 1024))) == 2_097_240
    assert retention._size(Written(b"key", b"value")) == 82 + (1 + 3) + (1 + 5) + 1
    assert retention._size(Written(b"", None, ("a", None), ("ü", bytes(64)))) == 82 + 1 + 1 + 1 + (2 + 1) + (3 + 66)
