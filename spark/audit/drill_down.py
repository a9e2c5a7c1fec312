"""Which records of a bucket are missing, extra or altered: its part of both logs is read again and compared.

Reads by the consumer of the comparison without Spark: its digests are those of the sums. Owns no verdict.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from contract.audit import AuditRecord
from contract.fields import VerificationError
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.audit.buckets import Judged, Sums
from spark.audit.store import Role
from spark.comparison.difference import pair
from spark.comparison.reading import COLUMNS, TIMESTAMP, A, B, Log, ReadRange, read_ranges
from spark.comparison.without_spark import row_of

RECORDS_MAX = 1_000_000
"""What is read of a log to name the records of a bucket; one whose records lie further apart is not read."""
SHOWN_MAX = 20
# Kafka's client reads ahead, also beyond the end of a bucket.
_AHEAD = {"queued.min.messages": 2000, "queued.max.messages.kbytes": 8192, "fetch.message.max.bytes": 1 << 20}
Numbers = npt.NDArray[np.intp]


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
    source = _log(clusters["source"], logs["source"], isolation, one.source, span)
    target = _log(clusters["target"], logs["target"], isolation, one.target, span)
    return compared(source, target)


def compared(source: Log, target: Log) -> list[AuditRecord]:
    """Return what differs between a bucket's parts of both logs, in the order of its offsets."""
    _, digests = np.unique(np.concatenate([source, target])[:, [A, B]], axis=0, return_inverse=True)
    of_source, of_target = digests[: len(source)], digests[len(source) :]
    left = source[_more_than(of_source, of_target)], target[_more_than(of_target, of_source)]
    altered, missing, extra = pair(*([row_of(record) for record in log.tolist()] for log in left))
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


def _more_than(digests: Numbers, others: Numbers) -> Numbers:
    """Return the places of those beyond as many equal ones as the other side has, in order: the last ones."""
    order = np.argsort(digests, kind="stable")
    equal = digests[order]
    number = np.arange(len(equal)) - np.searchsorted(equal, equal)  # of each among its equals
    held = np.bincount(others, minlength=int(digests.max(initial=0)) + 1)
    return np.sort(order[number >= held[equal]])


def _log(cluster: Cluster, log: TopicPartition, isolation: str, sums: Sums, span: range) -> Log:
    """Return the records of a log whose timestamps lie in a span of milliseconds, as far as they are still there."""
    if sums.end - sums.start > RECORDS_MAX:
        raise DrillDownError(
            f"{cluster.side.role} {cluster.side.alias}: topic {log.topic} partition {log.partition} has the bucket's "
            f"records in {sums.end - sums.start:,} offsets, more than the {RECORDS_MAX:,} that are read again"
        )
    start, end = max(sums.start, cluster.starts([log])[log]), min(sums.end, cluster.ends([log], isolation)[log])
    if start >= end:
        return np.empty((0, COLUMNS), dtype=np.int64)
    records = read_ranges(cluster, isolation, [ReadRange(*log, start, end)], lambda *_: None, _AHEAD)[log]
    times = records[:, TIMESTAMP]
    return records[(times >= span.start) & (times < span.stop)]
