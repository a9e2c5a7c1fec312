"""The audit on real brokers: what was lost, doubled, altered or held back is found in its minute, also after a kill."""

from collections.abc import Iterator

import pytest

from contract.audit import AuditBucket, AuditDocument
from spark.signals import STOPPED

from ...support.running_audit import BUCKET_S, Auditor, auditing, faults
from ...support.written_topics import SIDES, Bench, Record, own_name, record

BUCKET_MS = BUCKET_S * 1000
EACH = 40  # records of a bucket
LOST, DOUBLED, HELD_BACK = 3, 2, 5
GOOD, CLEAN, MISSING, EXTRA, ALTERED, LATE = range(6)  # numbers of buckets


@pytest.fixture(scope="module")
def auditor(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Auditor]:
    """An audit of two topics of three partitions, a topic for each test, which has read both sides once."""
    topics = [bench.topic(own_name(name), partitions=3) for name in ("renewed", "audit")]
    with auditing(bench, topics, tmp_path_factory.mktemp("audits") / "audit") as auditor:
        auditor.start()
        auditor.wait("the first report", lambda document: None not in document.read_through.values())
        yield auditor


def now_ms(auditor: Auditor) -> int:
    """When the present bucket began, from which a test counts its own."""
    document = auditor.document()
    return document.from_ms + (document.at_ms - document.from_ms) // BUCKET_MS * BUCKET_MS


def of_bucket(from_ms: int, number: int) -> list[Record]:
    """Records of a bucket, whose timestamps are spread over its whole length."""
    step = BUCKET_MS // EACH
    return [record(number * EACH + n, timestamp=from_ms + number * BUCKET_MS + n * step) for n in range(EACH)]


def test_what_was_not_read_of_a_topic_that_is_created_again_is_unknown(bench: Bench, auditor: Auditor) -> None:
    (topic, _), from_ms = auditor.topics, now_ms(auditor)
    for side in SIDES:
        bench.write(side, topic, of_bucket(from_ms, GOOD))
    auditor.wait(
        "the records are read, in the time of the next ones",
        lambda document: read(document, topic) == (EACH, EACH) and document.at_ms > from_ms + 2 * BUCKET_MS,
    )
    auditor.kill()
    auditor.leave_planned("source", topic, more=EACH)  # which it has no more when Spark goes on with this batch
    bench.write("target", topic, of_bucket(from_ms, CLEAN))
    bench.create_again("source", topic, partitions=3)
    bench.write("source", topic, of_bucket(from_ms, CLEAN)[1:])
    auditor.start()

    document = auditor.wait(
        "the bucket is judged",
        lambda document: not document.problems and said(document, topic, from_ms) == {(0, CLEAN): ("unknown", 0)},
    )
    (bucket,) = of(document, topic, from_ms).values()
    assert "created again" in (bucket.reason or "")
    assert document.problems == ()


def test_every_fault_is_in_its_bucket_and_counted_also_after_a_kill(bench: Bench, auditor: Auditor) -> None:
    """The last one: the audit ends."""
    (_, topic), from_ms = auditor.topics, now_ms(auditor)
    held_back = of_bucket(from_ms, LATE)[:HELD_BACK]
    arrive: dict[int, list[Record]] = {
        GOOD: of_bucket(from_ms, GOOD),
        CLEAN: list(reversed(of_bucket(from_ms, CLEAN))),
        MISSING: of_bucket(from_ms, MISSING)[LOST:],
        EXTRA: of_bucket(from_ms, EXTRA) + of_bucket(from_ms, EXTRA)[:DOUBLED],
        ALTERED: [*of_bucket(from_ms, ALTERED)[1:], of_bucket(from_ms, ALTERED)[0] | {"value": b"another"}],
        LATE: of_bucket(from_ms, LATE)[HELD_BACK:],
    }
    for number in arrive:
        bench.write("source", topic, of_bucket(from_ms, number))
        bench.write("source", topic, of_bucket(from_ms, number), partition=1)
    # What is read before the kill and what is read after it are parts of the same buckets.
    for number, records in arrive.items():
        bench.write("target", topic, records[: EACH // 2])
        bench.write("target", topic, of_bucket(from_ms, number), partition=1)
    bench.write_transaction("source", topic, of_bucket(from_ms, GOOD), commit=False)
    auditor.wait("the first half is read", lambda document: read(document, topic) == (12 * EACH, 9 * EACH))
    auditor.kill()
    for records in arrive.values():
        bench.write("target", topic, records[EACH // 2 :])
    auditor.start()

    wanted = {MISSING: ("missing", LOST), EXTRA: ("extra", DOUBLED), ALTERED: ("altered", 0)}
    expected = {(0, number): found for number, found in wanted.items()}
    held = {(0, LATE): ("missing", HELD_BACK)}
    auditor.wait("every bucket is judged", lambda document: said(document, topic, from_ms) == expected | held)
    bench.write("target", topic, held_back)
    document = auditor.wait(
        "what was held back arrives late", lambda document: said(document, topic, from_ms) == expected
    )
    (own,) = (one for one in document.topics if one.topic == topic)
    buckets, spans = own.buckets, own.spans
    # On a slow machine the second half of other buckets comes after their time too.
    assert buckets.pop("complete", 0) + buckets.pop("late") == 9
    assert buckets == {"missing": 1, "extra": 1, "altered": 1}
    late_ms = from_ms + LATE * BUCKET_MS
    assert [span.state for span in spans if span.start_ms <= late_ms < span.end_ms] == ["late"]
    assert {
        number: [one.fault for one in found.found] for (_, number), found in of(document, topic, from_ms).items()
    } == {
        MISSING: ["missing"] * LOST,
        EXTRA: ["extra"] * DOUBLED,
        ALTERED: ["altered"],
    }
    assert document.latency_ms.p50 is not None
    assert auditor.stop() == STOPPED


def of(document: AuditDocument, topic: str, from_ms: int) -> dict[tuple[int, int], AuditBucket]:
    """The buckets of a topic that did not close well, by partition and number since the test began."""
    before = (from_ms - document.from_ms) // BUCKET_MS
    found = {place: bucket for place, bucket in faults(document).items() if place[0] == topic}
    return {(partition, number - before): bucket for (_, partition, number), bucket in found.items()}


def said(document: AuditDocument, topic: str, from_ms: int) -> dict[tuple[int, int], tuple[str, int]]:
    """State and number of records of each bucket of a topic that did not close well."""
    return {place: (bucket.state, bucket.records) for place, bucket in of(document, topic, from_ms).items()}


def read(document: AuditDocument, topic: str) -> tuple[int, int]:
    """Records that were read of both sides of a topic."""
    found = {one.topic: (one.source_records, one.target_records) for one in document.topics}
    return found.get(topic, (0, 0))
