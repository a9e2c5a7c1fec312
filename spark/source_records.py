"""Whether the source of a mirror holds records: `python -m spark.source_records REQUEST.json`, without Spark.

Pulumi asks this before it runs the verification again: a run that found a pair empty proves nothing of what was written
since. Exit 0 if there is a record, 1 if there is none, 2 if nobody knows.
"""

import os
import sys
from pathlib import Path

from contract.documents import load
from contract.fields import VerificationError
from contract.verification_request import Request
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition

HAS, HAS_NOT, UNKNOWN = 0, 1, 2
CONNECTED_WITHIN_S = 10.0


def has_records(source: Cluster, request: Request) -> bool:
    """Return whether a mirrored topic of the connected source holds anything; raises ClusterError."""
    topics = source.topics(request.mirror.carries_topic)
    there = [TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas]
    starts, ends = source.starts(there), source.ends(there, request.limits.isolation)
    return any(ends[tp] > start for tp, start in starts.items())


def main(path: str) -> int:
    """Ask the source that a request names; returns the exit code."""
    try:
        request = load(Path(path), os.environ)
        source = Cluster(request.source)
        source.connect(CONNECTED_WITHIN_S)
        return HAS if has_records(source, request) else HAS_NOT
    except VerificationError as error:
        sys.stderr.write(f"{error}\n")
        return UNKNOWN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
