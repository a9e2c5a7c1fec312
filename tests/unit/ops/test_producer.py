"""Every delivery is accounted for."""

import time

from ops.demo_client import Kind, events
from ops.demo_client.producer import send
from tests.support.kafka_doubles import FakeProducer


def test_what_was_delivered_is_counted_with_its_offsets_and_ids() -> None:
    made = list(events(Kind.ITEMS, 3, seed=1))
    seen: list[tuple[int, int, str | None]] = []
    sent = send(FakeProducer(), "items", made, each=lambda *record: seen.append(record))
    assert seen == [(0, number, event.record_id) for number, event in enumerate(made)]
    assert sent.as_json()["partitions"] == [{"partition": 0, "records": 3, "firstOffset": 0, "lastOffset": 2}]
    assert sent.failed == 0


def test_a_refused_record_is_counted_under_its_reason_and_not_as_delivered() -> None:
    made = list(events(Kind.ITEMS, 3, seed=1))
    seen: list[str | None] = []
    client = FakeProducer(refused={made[1].key})
    sent = send(client, "items", made, each=lambda _partition, _offset, record_id: seen.append(record_id))
    assert (sent.account.total, sent.failed) == (2, 1)
    assert sent.failures == {"NOT_ENOUGH_REPLICAS": 1}
    assert seen == [made[0].record_id, made[2].record_id]


def test_a_record_without_a_delivery_report_counts_as_failed() -> None:
    assert send(FakeProducer(lost=2), "items", events(Kind.ITEMS, 1)).failed == 2


def test_a_full_queue_is_waited_for() -> None:
    assert send(FakeProducer(queue_full_times=3), "items", events(Kind.ITEMS, 2)).account.total == 2


def test_a_rate_is_kept() -> None:
    started = time.monotonic()
    send(FakeProducer(), "items", events(Kind.ITEMS, 6), rate=50)
    assert time.monotonic() - started >= 5 / 50


def test_a_producer_without_end_stops_when_reported_and_waits_for_what_is_queued() -> None:
    client = FakeProducer()
    sent = send(client, "items", events(Kind.ITEMS, None), stopped=lambda: len(client.sent) >= 7)
    assert (sent.account.total, len(client.sent), client.flushed, sent.failed) == (7, 7, True, 0)


def test_nobody_waits_for_the_pace_once_reported() -> None:
    client, started = FakeProducer(), time.monotonic()
    sent = send(client, "items", events(Kind.ITEMS, None), rate=0.01, stopped=lambda: bool(client.sent))
    assert (sent.account.total, time.monotonic() - started < 5) == (1, True)


def test_a_full_queue_is_left_when_reported() -> None:
    client = FakeProducer(queue_full_times=10**9)
    reported = iter([False])
    sent = send(client, "items", events(Kind.ITEMS, None), stopped=lambda: next(reported, True))
    assert (sent.account.total, sent.failed, client.flushed) == (0, 0, True)


def test_what_a_producer_without_end_remembers_does_not_grow() -> None:
    client = FakeProducer()
    sent = send(client, "items", events(Kind.ITEMS, None), stopped=lambda: len(client.sent) >= 5000)
    assert sent.account.partitions.keys() == {0}
    assert not any(isinstance(value, list) for value in vars(sent.account).values())
