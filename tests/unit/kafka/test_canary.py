"""The canary: what a request may ask for, and how its latencies are judged."""

from typing import Any

import pytest

from contract.documents import parse
from contract.fields import RequestError
from contract.verification_request import Limits, Request
from kafka.canary import CanaryResult, send
from kafka.mirror_position import Deadline
from spark.checks.replication import canary_latency


def request(canary: object, topics: list[str] | None = None) -> Request:
    side = {"client_config": {"bootstrap.servers": "h:1"}}
    mirror = {"topics": topics or ["items"], "topics_exclude": ["secret"], "canary": canary}
    return parse({"source": side | {"alias": "a"}, "target": side | {"alias": "b"}, "mirror": mirror}, {})


def result(*latencies: float, sent: int = 100, **changes: Any) -> CanaryResult:
    fields: dict[str, Any] = {"topic": "items", "run": "r", "sent": sent, "latencies_ms": tuple(sorted(latencies))}
    return CanaryResult(**(fields | changes))


def test_a_request_without_a_canary_has_no_check() -> None:
    assert request(None).mirror.canary is None
    assert canary_latency(None, Limits()) is None


@pytest.mark.parametrize("topic", ["orders", "secret", "mm2-offset-syncs.b.internal"])
def test_a_topic_that_the_mirror_does_not_carry_is_refused(topic: str) -> None:
    with pytest.raises(RequestError, match=f"mirror.canary: topic must be one that the mirror carries .got {topic}"):
        request({"topic": topic}, [".*"] if topic != "orders" else ["items"])


@pytest.mark.parametrize("wrong", [{}, {"topic": ""}, {"topic": "items", "records": 0}, {"topic": "items", "x": 1}])
def test_a_canary_that_is_wrong_is_reported(wrong: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=r"mirror\.canary"):
        request(wrong)


def test_percentiles_are_those_of_the_records_that_arrived() -> None:
    found = result(*(float(n) for n in range(1, 101)))
    assert [found.percentile(share) for share in (50, 95, 99, 100)] == [50.0, 95.0, 99.0, 100.0]
    assert result(7.0, sent=1).percentile(99) == 7.0
    assert result(sent=1).percentile(50) is None


@pytest.mark.parametrize(("limit", "ok"), [(None, True), (99, True), (98, False)])
def test_the_limit_bounds_99_of_100_records(limit: int | None, ok: bool) -> None:
    check = canary_latency(result(*(float(n) for n in range(1, 101))), Limits(canary_p99_ms_max=limit))
    assert check is not None
    assert check.ok is ok
    assert "p50 50 ms, p95 95 ms, p99 99 ms" in check.observed


def test_records_that_were_not_sent_in_time_prove_nothing() -> None:
    check = canary_latency(result(1.0, 2.0, sent=2, asked=100), Limits())
    assert check is not None
    assert (check.ok, check.observed) == (None, "only 2 of 100 records were sent before the deadline; all arrived")
    missing = canary_latency(result(1.0, sent=2, asked=100), Limits())
    assert missing is not None
    assert missing.ok is False


def test_a_record_that_does_not_arrive_fails_even_without_a_limit() -> None:
    check = canary_latency(result(1.0, 2.0, sent=3, waited_s=30.0), Limits())
    assert check is not None
    assert check.ok is False
    assert check.observed == "1 of 3 records not on the target after 30 s"


def test_a_canary_that_could_not_be_sent_is_unknown() -> None:
    check = canary_latency(result(sent=1, problem="user u must have Write on topic items"), Limits())
    assert check is not None
    assert check.ok is None
    assert "Write on topic items" in check.observed
    assert canary_latency(result(sent=0), Limits()).ok is None  # type: ignore[union-attr]  # is a check


@pytest.mark.parametrize(
    ("partitions", "partition", "what"), [((), None, "no such topic"), ((0, 1), 2, "no partition 2")]
)
def test_a_topic_or_partition_that_the_source_lacks_is_reported(
    partitions: tuple[int, ...], partition: int | None, what: str
) -> None:
    asked = request({"topic": "items", "partition": partition})
    clusters: tuple[Any, Any] = (None, None)
    found = send(*clusters, asked, partitions, Deadline(1))
    assert found.problem == f"topic items has {what} at the source"
