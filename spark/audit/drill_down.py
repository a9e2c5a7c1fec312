"""Which records of a bucket are missing, extra or altered: the bucket is read once more, and compared one by one.

Reads by the consumer of the comparison without Spark: its digests are those of the sums. Owns no verdict.
"""

from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from contract.audit import AuditRecord
from contract.fields import VerificationError
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.audit.buckets import Place
from spark.audit.store import Role
from spark.comparison.difference import Row, pair
from spark.comparison.reading import TIMESTAMP, ReadRange, read_ranges
from spark.comparison.without_spark import row_of

RECORDS_MAX = 1_000_000
"""What is read of a log to name the records of a bucket; a bucket in front of more is not read."""
SHOWN_MAX = 20


class DrillDownError(VerificationError):
    """The records of a bucket cannot be named; the message says why."""


def records_of(
    clusters: Mapping[Role, Cluster], logs: Mapping[Role, TopicPartition], isolation: str, place: Place, bucket_ms: int
) -> list[AuditRecord]:
    """Return the first SHOWN_MAX records that only one side holds, or of which both hold different versions.

    `logs` are the partition's names on both sides. Raises DrillDownError if a log is too long to be read again, and
    what reading raises.
    """
    sides = {role: _rows(clusters[role], log, isolation, place, bucket_ms) for role, log in logs.items()}
    return compared(sides["source"], sides["target"])


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


def _rows(cluster: Cluster, log: TopicPartition, isolation: str, place: Place, bucket_ms: int) -> list[Row]:
    """Return the rows of a bucket. A timestamp may stand behind later ones: all from its first record on is read."""
    start = cluster.offsets([log], OffsetSpec.for_timestamp(place.start_ms), isolation)[log]
    end = cluster.ends([log], isolation)[log]
    if not 0 <= start < end:
        return []
    if end - start > RECORDS_MAX:
        raise DrillDownError(
            f"{cluster.side.role} {cluster.side.alias}: topic {log.topic} partition {log.partition} has "
            f"{end - start:,} offsets from the bucket on, more than the {RECORDS_MAX:,} that are read again"
        )
    records = read_ranges(cluster, isolation, [ReadRange(*log, start, end)], lambda *_: None)[log]
    times = records[:, TIMESTAMP]
    inside = records[(times >= place.start_ms) & (times < place.start_ms + bucket_ms)]
    return [row_of(record) for record in inside.tolist()]
