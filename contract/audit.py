"""The document of an audit: what `python -m spark audit` writes to audit.json after each reading.

Times are milliseconds since 1970 unless a name says otherwise.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

BucketState = Literal["open", "complete", "late", "missing", "extra", "altered", "unknown"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditRecord(_Part):
    """A record that only one side holds, or of which both hold different versions: its offsets, and what differs."""

    fault: Literal["missing", "extra", "altered"]
    source_offset: int | None = None
    target_offset: int | None = None
    timestamp_ms: int
    differs: tuple[str, ...] = ()


class Found(_Part):
    """The records of a bucket that differ, the first of them, or why they cannot be named."""

    records: tuple[AuditRecord, ...] = ()
    not_found: str | None = None


class AuditBucket(_Part):
    """A bucket that did not close well: `records` are those that are missing, or more than the source has.

    `found` names some of them; `not_found` is why they could not be named.
    """

    topic: str
    partition: int
    start_ms: int
    state: BucketState
    source_records: int
    target_records: int
    records: int = 0
    reason: str | None = None
    found: tuple[AuditRecord, ...] = ()
    not_found: str | None = None


class AuditSpan(_Part):
    """A part of a topic's time in which the worst state of its buckets is the same; records are of all of them."""

    start_ms: int
    end_ms: int
    state: BucketState
    source_records: int
    target_records: int


class AuditTopic(_Part):
    """How many buckets of a topic are in each state, how many records both sides hold in them, and its time."""

    topic: str
    buckets: dict[BucketState, int]
    source_records: int
    target_records: int
    spans: tuple[AuditSpan, ...] = ()


class AuditLatency(_Part):
    """Milliseconds between the readings of both sides, of the newest record of each complete or late bucket.

    They are no more exact than the readings are frequent: `every_seconds` of the document.
    """

    p50: int | None
    p95: int | None
    p99: int | None


class AuditObjective(_Part):
    """The share of records that should be in complete buckets, and which share was not, by window.

    `missed` is by the windows' names in Prometheus' notation: of the buckets that were due in the last so many minutes
    or hours, the share of records in buckets that were not complete in time. None where no record was due.
    """

    objective: float
    missed: dict[str, float | None]


class AuditDocument(_Part):
    """The state of an audit.

    `read_through` is up to when each side was read, None if it was not yet; `problems` are why a side was not read the
    last time. What is older than the older one of both is judged, and nothing else.
    """

    version: Literal[1] = 1
    mirror: str
    stack: str | None
    from_ms: int
    bucket_seconds: int
    within_seconds: int
    every_seconds: int
    at_ms: int
    read_through: dict[Literal["source", "target"], int | None]
    problems: tuple[str, ...]
    topics: tuple[AuditTopic, ...]
    faults: tuple[AuditBucket, ...]
    latency_ms: AuditLatency
    objective: AuditObjective
