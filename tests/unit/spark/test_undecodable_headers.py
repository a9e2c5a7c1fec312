"""Records with headers whose names are not UTF-8, written to a made-up broker and read by the job's own consumers."""

import time
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition

from kafka.canary import HEADER, _CanaryRun
from kafka.cluster import Cluster
from kafka.raw_consumer import (
    REPLACED,
    Headers,
    RawConsumer,
    RawMessage,
    UndecodableError,
    headers,
    headers_as_copied,
    headers_of,
)
from spark.comparison.findings import contents
from spark.comparison.reading import OFFSET, A, B, ReadRange, hashes, read_ranges
from spark.state import resume as tails

from ...support.undecodable_headers import ALTERED, AT_ALTERED, COUNT, RECORDS, UNDECODABLE


def consumed(consumer: Any) -> list[Any]:
    try:
        consumer.assign([TopicPartition("named", 0, 0)])
        found: list[Any] = []
        end = time.monotonic() + 30
        while len(found) < COUNT and time.monotonic() < end:
            found += consumer.consume(100, timeout=0.5)
        return found
    finally:
        consumer.close()


def test_headers_are_those_that_were_written_or_an_error_and_never_the_end_of_the_process(cluster: Cluster) -> None:
    found = consumed(cluster.consumer("read_committed"))
    undecodable = 0
    for message, written in zip(found, RECORDS, strict=True):
        try:
            wanted: Headers | None = [(name.decode(), value) for name, value in written["headers"]] or None
        except UnicodeDecodeError:
            undecodable += 1
            with pytest.raises(UndecodableError):
                headers(message)
        else:
            assert headers(message) == wanted
    assert undecodable == UNDECODABLE


def test_headers_of_several_messages_end_in_front_of_a_name_that_is_not_utf8(cluster: Cluster) -> None:
    left = consumed(cluster.consumer("read_committed"))
    written = [[(name, value) for name, value in record["headers"]] for record in RECORDS]
    undecodable = 0
    while left:
        found = headers_of(left)
        for held, wanted in zip(found, written, strict=False):
            assert [(name.encode(), value) for name, value in held or ()] == wanted
        undecodable += len(found) < len(left)
        left, written = left[len(found) + 1 :], written[len(found) + 1 :]
    assert undecodable == UNDECODABLE


def test_a_mirrors_copy_of_a_name_that_is_not_utf8_has_the_same_headers(cluster: Cluster) -> None:
    for message, record in zip(consumed(cluster.consumer("read_committed")), RECORDS, strict=True):
        copied = [(name.decode(errors="replace"), value) for name, value in record["headers"]]
        found = headers_as_copied(message)
        assert found == headers_as_copied(RawMessage("t", 0, 0, 0, None, None, copied or None))
        assert (found == [(REPLACED, None)]) == any(REPLACED in name for name, _ in copied)


def test_a_raw_consumer_hands_out_what_was_written_byte_by_byte(cluster: Cluster) -> None:
    found = consumed(cluster.raw_consumer("read_committed"))
    assert [(one.topic(), one.partition(), one.offset()) for one in found] == [("named", 0, n) for n in range(COUNT)]
    for message, written in zip(found, RECORDS, strict=True):
        assert message.error() is None
        assert (message.key(), message.value()) == (written["key"], written["value"])
        assert message.timestamp()[1] == written["timestamp"]
        assert headers(message) == (written["headers"] or None)


def test_a_raw_consumer_says_where_it_stands_and_reads_no_more_of_what_was_taken_away(cluster: Cluster) -> None:
    consumer = cluster.raw_consumer("read_committed", {"enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition("named", 0, COUNT - 2)])
        found: list[RawMessage] = []
        end = time.monotonic() + 30
        while len(found) < 3 and time.monotonic() < end:
            found += consumer.consume(10, 0.5)
        (last,) = (one for one in found if (error := one.error()) and error.name() == "_PARTITION_EOF")
        assert last.offset() == COUNT
        (tp,) = consumer.position([TopicPartition("named", 0)])
        assert tp.offset == COUNT
        consumer.pause([tp])
        consumer.incremental_unassign([tp])
        with pytest.raises(KafkaException):
            consumer.incremental_unassign([tp])
    finally:
        consumer.close()


def test_a_property_that_librdkafka_does_not_know_is_refused() -> None:
    with pytest.raises(KafkaException, match="no\\.such\\.property"):
        RawConsumer({"no.such.property": 1})


def test_the_comparison_without_spark_reads_each_record_as_it_is(cluster: Cluster) -> None:
    found = {
        topic: read_ranges(cluster, "read_committed", [ReadRange(topic, 0, 0, COUNT)], lambda *_: None)[topic, 0]
        for topic in ("named", "altered")
    }
    for topic, records in (("named", RECORDS), ("altered", ALTERED)):
        wanted = [hashes(one["key"], one["value"], one["headers"], one["timestamp"]) for one in records]
        assert found[topic].tolist() == [[n, *one, 0] for n, one in enumerate(wanted)]
    differ = (found["named"] != found["altered"])[:, [OFFSET, A, B]]
    assert [n for n in range(COUNT) if differ[n].any()] == [AT_ALTERED]


def test_a_name_as_bytes_has_the_hash_of_the_same_name_as_text() -> None:
    name = "gr\u00fcn"
    assert hashes(None, None, [(name, b"1")], 0) == hashes(None, None, [(name.encode(), b"1")], 0)


def test_progress_counts_each_partition_and_record_once(cluster: Cluster) -> None:
    reported: list[tuple[int, int]] = []
    read_ranges(cluster, "read_committed", [ReadRange("named", 0, 0, COUNT)], lambda *numbers: reported.append(numbers))
    assert (sum(ended for ended, _ in reported), sum(read for _, read in reported)) == (1, COUNT)


def test_tails_are_recognised_and_an_altered_name_is_not(cluster: Cluster) -> None:
    ranges = {("named", 0): (30, COUNT), ("altered", 0): (30, COUNT)}
    found = tails.records(cluster, ranges, "read_committed")
    named, altered = found["named", 0], found["altered", 0]
    assert [offset for offset, _ in named] == list(range(30, COUNT))
    assert [one[0] for one, other in zip(named, altered, strict=True) if one != other] == [AT_ALTERED]


def test_samples_show_a_name_that_is_no_text_as_hexadecimal_digits(cluster: Cluster) -> None:
    found = contents(cluster, {("altered", 0): [2, AT_ALTERED]})
    assert found["altered", 0, AT_ALTERED].headers[0][0] == "0x6772fd6e"
    assert [name for name, _ in found["altered", 0, 2].headers] == ["plain", "plain"]


def test_a_canary_passes_over_records_that_it_cannot_decode(cluster: Cluster) -> None:
    canary_run = _CanaryRun(*[None] * 3, None, "run", [], None)  # type: ignore[arg-type]  # it only takes what arrives
    canary_run.sent_at[0] = 0.0
    for message in consumed(cluster.consumer("read_committed")):
        canary_run._arrived(message, 1.0)
    assert canary_run.took_ms == {}
    arrived = RawMessage("t", 0, 0, 0, None, b'{"sequence": 0}', [(HEADER, b"run")])
    canary_run._arrived(arrived, 1.0)  # type: ignore[arg-type]  # has what it asks for
    assert canary_run.took_ms == {0: 1000.0}
