"""The document of an audit: what `python -m spark audit` writes to audit.json after each reading.

Times are milliseconds since 1970 unless a name says otherwise.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

BucketState = Literal["open", "complete", "late", "missing", "extra", "altered", "unknown"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditBucket(_Part):
    """A bucket that did not close well: `records` are those that are missing, or more than the source has."""

    topic: str
    partition: int
    start_ms: int
    state: BucketState
    source_records: int
    target_records: int
    records: int = 0
    reason: str | None = None


class AuditTopic(_Part):
    """How many buckets of a topic are in each state, and how many records both sides hold in them."""

    topic: str
    buckets: dict[BucketState, int]
    source_records: int
    target_records: int


class AuditLatency(_Part):
    """Milliseconds between the readings of both sides, of the newest record of each complete or late bucket.

    They are no more exact than the readings are frequent: `every_seconds` of the document.
    """

    p50: int | None
    p95: int | None
    p99: int | None


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
