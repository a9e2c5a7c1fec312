"""Lag in records and seconds: what is measured, what is judged, and when nothing can be said."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from contract.documents import parse
from contract.verification_request import Limits, Mirror
from kafka import lag as measuring
from kafka.lag import POINTS_MAX, Lag, LagMeter, Measure, PartitionLag
from spark.checks.replication import lag

MIRROR = Mirror(name="mm2", source_alias="a", target_alias="b", topics=("items",), offset_storage_topic="mm2-offsets")
PLACES = [("items", 0), ("items", 1)]


def part(number: int = 0, records: int = 0, seconds: float | None = 0.0) -> PartitionLag:
    fields: dict[str, Any] = {"topic": "items", "partition": number, "position": 4, "source_end": 5 + records}
    return PartitionLag(**fields, records=records, seconds=seconds)


def measured(*parts: PartitionLag) -> Lag:
    return Lag(at_end=Measure(at_s=1.0, partitions=parts))


def test_lag_without_limits_is_shown_and_holds() -> None:
    check = lag(measured(part(0, 70, 9.5), part(1, 30, 2.0)), MIRROR, Limits())
    assert check is not None
    assert check.ok is True
    assert "100 records and 9.5 seconds behind: items-0 70, items-1 30" in check.observed


@pytest.mark.parametrize(
    ("limits", "ok"),
    [
        (Limits(lag_records_max=100), True),
        (Limits(lag_records_max=99), False),
        (Limits(lag_seconds_max=10), True),
        (Limits(lag_seconds_max=9), False),
        (Limits(lag_records_max=100, lag_seconds_max=9), False),
    ],
)
def test_each_limit_bounds_all_partitions_together(limits: Limits, ok: bool) -> None:
    check = lag(measured(part(0, 70, 9.5), part(1, 30, 2.0)), MIRROR, limits)
    assert check is not None
    assert check.ok is ok


def test_an_age_that_could_not_be_read_is_unknown_unless_another_is_too_old_already() -> None:
    unread = part(1, 30, None)
    for parts, ok in (((part(0, 1, 3.0), unread), None), ((part(0, 1, 11.0), unread), False)):
        check = lag(measured(*parts), MIRROR, Limits(lag_seconds_max=10))
        assert check is not None
        assert check.ok is ok


def test_a_position_that_is_not_known_is_unknown_and_one_that_nobody_asked_for_is_no_check() -> None:
    check = lag(Lag(), MIRROR, Limits())
    assert check is not None
    assert check.ok is None
    silent = Mirror(name="mm2", source_alias="a", target_alias="b", topics=("items",))
    assert lag(Lag(), silent, Limits()) is None
    assert lag(Lag(), silent, Limits(lag_records_max=0)) is not None


class Source:
    """A source of which only offsets are asked."""

    def starts(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(partitions, 10)

    def ends(self, partitions: Iterable[tuple[str, int]], isolation: str) -> dict[tuple[str, int], int]:
        return dict.fromkeys(partitions, 100)


class Reader:
    """Positions that do not change."""

    def __init__(self, positions: dict[tuple[str, int], int]) -> None:
        self.positions = positions

    def read(self) -> dict[tuple[str, int], int]:
        return self.positions


def meter(positions: dict[tuple[str, int], int]) -> LagMeter:
    side = {"alias": "a", "client_config": {"bootstrap.servers": "h:1"}}
    request = parse({"source": side, "target": side, "mirror": {"topics": ["items"]}}, {})
    return LagMeter(Source(), request, Reader(positions), PLACES)  # type: ignore[arg-type]  # stand-ins


def test_what_is_behind_is_counted_from_the_first_record_left_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[tuple[str, int], int]] = []

    def first(_: Any, following: Mapping[tuple[str, int], int], *rest: Any) -> dict[Any, Any]:
        asked.append(following)
        return {("items", 0): (92, int(time.time() * 1000) - 60_000), ("items", 1): (100, None)}

    monkeypatch.setattr(measuring, "first_records", first)
    one = meter({("items", 0): 89})
    one.at_cut()
    assert asked == [{("items", 0): 90, ("items", 1): 10}]  # 10: the log start, for nothing is copied yet
    found = one.lag.at_cut
    assert found is not None
    assert [part.records for part in found.partitions] == [8, 0]  # only markers are left in the second
    assert found.seconds == pytest.approx(60, abs=2)
    assert one.lag.series == [(found.at_s, 8)]


def test_a_record_that_does_not_answer_leaves_the_age_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "first_records", lambda *_: {})
    one = meter({("items", 0): 89, ("items", 1): 99})
    one.at_end()
    found = one.lag.at_end
    assert found is not None
    assert (found.records, found.seconds) == (10, None)
    assert [part.seconds for part in found.partitions] == [None, 0.0]


@pytest.mark.parametrize(("ahead_s", "seconds"), [(30, 0.0), (3600, None), (31_536_000, None)])
def test_records_of_a_clock_that_is_ahead_have_no_age_and_no_lag_in_seconds_is_proven_by_them(
    monkeypatch: pytest.MonkeyPatch, ahead_s: int, seconds: float | None
) -> None:
    stamp = int(time.time() * 1000) + 1000 * ahead_s
    monkeypatch.setattr(measuring, "first_records", lambda *_: {("items", 0): (90, stamp)})
    one = meter({("items", 0): 89, ("items", 1): 99})
    one.at_end()
    found = one.lag.at_end
    assert found is not None
    assert (found.records, found.seconds) == (10, seconds)
    check = lag(one.lag, MIRROR, Limits(lag_seconds_max=10))
    assert check is not None
    assert check.ok is (True if seconds is not None else None)


def test_a_clock_that_is_an_hour_behind_makes_records_older_and_no_lag_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = int(time.time() * 1000) - 3_600_000
    monkeypatch.setattr(measuring, "first_records", lambda *_: {("items", 0): (90, stamp)})
    one = meter({("items", 0): 89, ("items", 1): 99})
    one.at_end()
    check = lag(one.lag, MIRROR, Limits(lag_seconds_max=10))
    assert check is not None
    assert check.ok is False


def test_the_series_never_grows_beyond_its_bound() -> None:
    one = meter({})
    for second in range(5 * POINTS_MAX):
        one._add(float(second), second)
    assert len(one.lag.series) <= POINTS_MAX
    assert one.lag.series[0] == (0.0, 0)
    assert one.lag.series[-1] == (5.0 * POINTS_MAX - 1, 5 * POINTS_MAX - 1)
    stamps = [at for at, _ in one.lag.series]
    assert stamps == sorted(stamps)
