"""What the comparison found: plain data, shared by the comparison, the checks and the report.

The contents of records are added to the samples of findings if the user asked for them (`--show-values`): single
records, read by their offsets.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Mirror
from kafka.cluster import Cluster
from kafka.raw_consumer import UndecodableError, headers
from kafka.topic_partition import TopicPartition

SHOWN_MAX = 500  # characters of a key, a value or a header
RECORD_WITHIN_S = 5.0
ALL_WITHIN_S = 60.0
RecordOffset = tuple[str, int, int]
"""Topic, partition and offset."""
SAMPLES_MAX = 20
RUNS_MAX = 20
KINDS = (
    "lost",
    "behind",
    "doubled",
    "altered",
    "out_of_order",
    "foreign",
    "wrong_partition",
    "aborted",
    "expired_at_source",
    "expired_at_target",
    "no_overlap",
)


@dataclass(frozen=True)
class Content:
    """Key, value and headers as text (bytes that are no text as hexadecimal digits), timestamp in milliseconds."""

    key: str | None
    value: str | None
    headers: tuple[tuple[str, str | None], ...]
    timestamp: int

    def document(self) -> dict[str, Any]:
        """Return the content as JSON values."""
        headers = [list(header) for header in self.headers]
        return {"key": self.key, "value": self.value, "headers": headers, "timestamp": self.timestamp}


def contents(cluster: Cluster, wanted: Mapping[TopicPartition, Iterable[int]]) -> dict[RecordOffset, Content]:
    """Return the records at these offsets; those that are gone, or do not come in time, are left out."""
    deadline = time.monotonic() + ALL_WITHIN_S
    found, undecodable = _read(cluster.consumer("read_uncommitted"), wanted, deadline)
    if undecodable:
        found |= _read(cluster.raw_consumer("read_uncommitted"), undecodable, deadline)[0]
    return found


def _read(
    consumer: Any, wanted: Mapping[TopicPartition, Iterable[int]], deadline: float
) -> tuple[dict[RecordOffset, Content], dict[TopicPartition, list[int]]]:
    """Read with this consumer and close it; return what came, and the offsets of what it cannot decode."""
    found: dict[RecordOffset, Content] = {}
    undecodable: dict[TopicPartition, list[int]] = {}
    try:
        for (topic, partition), offsets in wanted.items():
            for offset in sorted(set(offsets)):
                if time.monotonic() > deadline:
                    return found, undecodable
                consumer.assign([ClientTopicPartition(topic, partition, offset)])
                for message in consumer.consume(1, RECORD_WITHIN_S):
                    if message.error() is not None or message.offset() != offset:
                        continue
                    try:
                        found[topic, partition, offset] = content(message)
                    except UndecodableError:
                        undecodable.setdefault(TopicPartition(topic, partition), []).append(offset)
    finally:
        consumer.close()
    return found, undecodable


def content(message: Any) -> Content:
    """Return what a record holds, in a form that can be shown; raises UndecodableError for a name of a header."""
    named = tuple((text_of(name) or "", text_of(value)) for name, value in headers(message) or ())
    return Content(text_of(message.key()), text_of(message.value()), named, message.timestamp()[1])


def text_of(data: str | bytes | None) -> str | None:
    """Return bytes as text, cut to SHOWN_MAX characters; None stays None."""
    if data is None:
        return None
    try:
        shown = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        shown = "0x" + bytes(data).hex()  # type: ignore[arg-type]  # a str was no bytes to decode
    return shown if len(shown) <= SHOWN_MAX else shown[:SHOWN_MAX] + "…"


@dataclass(frozen=True)
class Sample:
    """One offending record: offsets on both sides (None where it is not), digest, and which parts differ.

    `source_partition` and `target_partition` are set where they are not the same; `source` and `target` are what the
    record holds on either side, if that is to be shown.
    """

    source_offset: int | None
    target_offset: int | None
    digest: str
    differs: tuple[str, ...] = ()
    source_partition: int | None = None
    target_partition: int | None = None
    source: Content | None = None
    target: Content | None = None

    def document(self) -> dict[str, Any]:
        """Return the sample as JSON values; the digest is shortened to 16 hexadecimal digits."""
        found: dict[str, Any] = {
            "source_offset": self.source_offset,
            "target_offset": self.target_offset,
            "digest": self.digest[:16],
        }
        if self.differs:
            found["differs"] = list(self.differs)
        if self.source_partition != self.target_partition:
            found |= {"source_partition": self.source_partition, "target_partition": self.target_partition}
        sides = {"source": self.source, "target": self.target}
        return found | {name: held.document() for name, held in sides.items() if held is not None}


@dataclass(frozen=True)
class Run:
    """Records that follow each other: offsets of the first and the last one, and how many they are.

    `where`, for records that are lost or behind: they are the `head`, a `gap`, the `tail` or the `whole` of what was
    compared. For records that were only counted: the `head` or the `whole`, and other records may lie between them.
    `is_about`: how many records of a longer run these are is an estimate.
    """

    first: int
    last: int
    records: int
    where: str | None = None
    is_about: bool = False

    def document(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        return {"first": self.first, "last": self.last, "records": self.records, "where": self.where}


@dataclass(frozen=True)
class Finding:
    """All records of one kind in one partition: the exact number, up to SAMPLES_MAX of them, and where they stand.

    Offsets of runs are the source's for what the source holds, the target's for doubled, foreign and aborted records.
    """

    kind: str
    topic: str
    partition: int
    count: int
    samples: tuple[Sample, ...] = ()
    runs: tuple[Run, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {
            "kind": self.kind,
            "topic": self.topic,
            "partition": self.partition,
            "count": self.count,
            "samples": [sample.document() for sample in self.samples[:SAMPLES_MAX]],
            "runs": [run.document() for run in self.runs[:RUNS_MAX]],
        }


@dataclass
class PartitionResult:
    """Comparison of one partition. `source_records` counts the committed data records before the cut.

    `verified_from` is the source offset that an earlier run had verified up to, None if all was compared. `anchors` are
    source and target offsets that correspond: everything in front of each pair is verified. `undecided` says what
    could not be judged, and why. `cleaned_at_source` and `cleaned_at_target` count records without a key that a log
    cleaner has removed from a compacted topic: only the other side holds them, and they are out of scope.
    `read_at_source` and `read_at_target` are where each side's records stood that were read, None if it is not known.
    """

    topic: str
    partition: int
    source_start: int
    cut: int
    target_start: int
    target_end: int
    source_records: int = 0
    target_records: int = 0
    compared: int = 0
    findings: list[Finding] = field(default_factory=list)
    verified_from: int | None = None
    anchors: list[tuple[int, int]] = field(default_factory=list)
    undecided: str | None = None
    cleaned_at_source: int = 0
    cleaned_at_target: int = 0
    read_at_source: list[Run] | None = None
    read_at_target: list[Run] | None = None

    def count(self, kind: str) -> int:
        """Return how many records of a kind were found."""
        return sum(finding.count for finding in self.findings if finding.kind == kind)


def cleaned_warnings(results: Iterable[PartitionResult]) -> list[str]:
    """Return one line for each partition and side whose log cleaner has removed records without a key."""
    return [
        f"{result.topic}-{result.partition}: {records} records without a key are out of scope, for the log cleaner of "
        f"the {side} has removed them (the topic is compacted)"
        for result in results
        for side, records in (("source", result.cleaned_at_source), ("target", result.cleaned_at_target))
        if records
    ]


def expired_warnings(results: Iterable[PartitionResult]) -> list[str]:
    """Return one line for each topic of which retention has deleted on the target what the source still holds."""
    records: Counter[str] = Counter()
    for result in results:
        records[result.topic] += sum(one.count for one in result.findings if one.kind == "expired_at_target")
    return [
        f"topic {topic}: retention of the target has deleted {count} records that the source still holds. Who goes on "
        "there does not read them (compare retention.ms and retention.bytes of both sides, and their brokers' defaults)"
        for topic, count in sorted(records.items())
        if count
    ]


CONTENTS_MAX = 200  # samples of all findings together whose records are read again


def sample_offsets(
    results: Iterable[PartitionResult], mirror: Mirror
) -> tuple[dict[TopicPartition, list[int]], dict[TopicPartition, list[int]]]:
    """Return the offsets of all samples at the source and on the target, by each side's own topics."""
    source: dict[TopicPartition, list[int]] = defaultdict(list)
    target: dict[TopicPartition, list[int]] = defaultdict(list)
    samples = [(finding, sample) for result in results for finding in result.findings for sample in finding.samples]
    for finding, sample in samples[:CONTENTS_MAX]:
        here, there = _partitions(finding, sample)
        if sample.source_offset is not None:
            source[TopicPartition(finding.topic, here)].append(sample.source_offset)
        if sample.target_offset is not None:
            target[TopicPartition(mirror.target_topic(finding.topic), there)].append(sample.target_offset)
    return source, target


def with_contents(
    results: Sequence[PartitionResult],
    mirror: Mirror,
    source: Mapping[RecordOffset, Content],
    target: Mapping[RecordOffset, Content],
) -> list[PartitionResult]:
    """Return the results with the contents of their samples."""

    def filled(finding: Finding, sample: Sample) -> Sample:
        here, there = _partitions(finding, sample)
        ours, theirs = sample.source_offset, sample.target_offset
        return replace(
            sample,
            source=None if ours is None else source.get((finding.topic, here, ours)),
            target=None if theirs is None else target.get((mirror.target_topic(finding.topic), there, theirs)),
        )

    return [
        replace(
            result,
            findings=[
                replace(finding, samples=tuple(filled(finding, sample) for sample in finding.samples))
                for finding in result.findings
            ],
        )
        for result in results
    ]


def _partitions(finding: Finding, sample: Sample) -> tuple[int, int]:
    here = finding.partition if sample.source_partition is None else sample.source_partition
    there = finding.partition if sample.target_partition is None else sample.target_partition
    return here, there
