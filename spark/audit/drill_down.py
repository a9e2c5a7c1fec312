"""Which records of a bucket are missing, extra or altered: its part of both logs is read again and compared.

Reads by the consumer of the comparison without Spark: its digests are those of the sums. Owns no verdict.
"""

from collections.abc import Iterable, Mapping, Sequence

from contract.audit import AuditRecord
from contract.fields import VerificationError
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.audit.buckets import Judged, Sums
from spark.audit.store import Role
from spark.comparison.difference import Row, pair
from spark.comparison.reading import TIMESTAMP, ReadRange, read_ranges
from spark.comparison.without_spark import row_of

RECORDS_MAX = 1_000_000
"""What is read of a log to name the records of a bucket; one whose records lie further apart is not read."""
SHOWN_MAX = 20


class DrillDownError(VerificationError):
    """The records of a bucket cannot be named; the message says why."""


def records_of(
    clusters: Mapping[Role, Cluster], logs: Mapping[Role, TopicPartition], isolation: str, one: Judged, bucket_ms: int
) -> list[AuditRecord]:
    """Return the first SHOWN_MAX records that only one side holds, or of which both hold different versions.

    `logs` are the partition's names on both sides. Raises DrillDownError if too much of a log would have to be read
    again, and what reading raises.
    """
    span = range(one.place.start_ms, one.place.start_ms + bucket_ms)
    source = _rows(clusters["source"], logs["source"], isolation, one.source, span)
    target = _rows(clusters["target"], logs["target"], isolation, one.target, span)
    return compared(source, target)


def compared(source: Sequence[Row], target: Sequence[Row]) -> list[AuditRecord]:
    """Return what differs between the rows of a bucket, in the order of its offsets."""
    altered, missing, extra = pair(_more_than(source, target), _more_than(target, source))
    found = [
        AuditRecord(
            fault="altered",
            source_offset=one.source.offset,
            target_offset=one.target.offset,
            timestamp_ms=one.source.timestamp,
            differs=one.differs,
        )
        for one in altered
    ]
    found += [AuditRecord(fault="missing", source_offset=row.offset, timestamp_ms=row.timestamp) for row in missing]
    found += [AuditRecord(fault="extra", target_offset=row.offset, timestamp_ms=row.timestamp) for row in extra]
    return sorted(found, key=_order)[:SHOWN_MAX]


def _order(one: AuditRecord) -> tuple[int, int]:
    return (one.source_offset if one.source_offset is not None else -1, one.target_offset or 0)


def _more_than(rows: Iterable[Row], others: Iterable[Row]) -> list[Row]:
    """Rows beyond as many equal ones as the other side has: the last ones."""
    left: dict[str, int] = {}
    for row in others:
        left[row.digest] = left.get(row.digest, 0) + 1
    found = []
    for row in rows:
        if left.get(row.digest, 0):
            left[row.digest] -= 1
        else:
            found.append(row)
    return found


def _rows(cluster: Cluster, log: TopicPartition, isolation: str, sums: Sums, span: range) -> list[Row]:
    """Return the rows of a log whose timestamps lie in a span of milliseconds, as far as they are still there."""
    if sums.end - sums.start > RECORDS_MAX:
        raise DrillDownError(
            f"{cluster.side.role} {cluster.side.alias}: topic {log.topic} partition {log.partition} has the bucket's "
            f"records in {sums.end - sums.start:,} offsets, more than the {RECORDS_MAX:,} that are read again"
        )
    start, end = max(sums.start, cluster.starts([log])[log]), min(sums.end, cluster.ends([log], isolation)[log])
    if start >= end:
        return []
    records = read_ranges(cluster, isolation, [ReadRange(*log, start, end)], lambda *_: None)[log]
    times = records[:, TIMESTAMP]
    inside = records[(times >= span.start) & (times < span.stop)]
    return [row_of(record) for record in inside.tolist()]
