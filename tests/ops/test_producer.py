"""Every delivery is accounted for."""

import time

from ops.events import inventory_events
from ops.producer import send
from tests.ops.fakes import FakeProducer


def test_what_was_delivered_is_counted_with_its_offsets_and_ids() -> None:
    events = list(inventory_events(3, seed=1))
    sent = send(FakeProducer(), "items", events)
    assert sent.account.records == [(0, number, event.record_id) for number, event in enumerate(events)]
    assert sent.as_json()["partitions"] == [{"partition": 0, "records": 3, "firstOffset": 0, "lastOffset": 2}]
    assert sent.failed == 0


def test_a_refused_record_is_counted_under_its_reason_and_not_as_delivered() -> None:
    events = list(inventory_events(3, seed=1))
    sent = send(FakeProducer(refused={events[1].key}), "items", events)
    assert (sent.account.total, sent.failed) == (2, 1)
    assert sent.failures == {"NOT_ENOUGH_REPLICAS": 1}
    assert events[1].record_id not in {row[2] for row in sent.account.records}


def test_a_record_without_a_delivery_report_counts_as_failed() -> None:
    assert send(FakeProducer(lost=2), "items", inventory_events(1)).failed == 2


def test_a_full_queue_is_waited_for() -> None:
    assert send(FakeProducer(queue_full_times=3), "items", inventory_events(2)).account.total == 2


def test_a_rate_is_kept() -> None:
    started = time.monotonic()
    send(FakeProducer(), "items", inventory_events(6), rate=50)
    assert time.monotonic() - started >= 5 / 50
