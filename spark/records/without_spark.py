"""The engine of a comparison without Spark: for so few records that Spark would start longer than it reads.

Each range is read once, by this process or, where there is enough to read, by one process for each core. Of a record
only its hashes are kept.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from spark.clusters.cluster import Cluster, Partition
from spark.progress import Progress
from spark.records import chunks
from spark.records.engine import Digest, Occurrences, Pieces
from spark.records.hashing import digest_of
from spark.records.log_cache import LogCache, Part, parts
from spark.records.pairing import Row
from spark.records.ranges import Range
from spark.records.reading import (
    HEADERS,
    KEY,
    NULL_KEY,
    NULL_VALUE,
    NULLS,
    OFFSET,
    TIMESTAMP,
    VALUE,
    A,
    B,
)
from spark.request.model import Side


class WithoutSpark:
    """An `Engine` whose frames are parts that are read when somebody asks for what is in them."""

    def __init__(self, *clusters: Cluster) -> None:
        self.cache = LogCache(clusters)

    def read(self, side: Side, ranges: Sequence[Range], isolation: str, names: Mapping[str, str]) -> list[Part]:
        """Return the records of these ranges, which a job reads when it needs them."""
        return parts(side, ranges, isolation, names)

    def union(self, frames: Iterable[list[Part] | None]) -> list[Part] | None:
        """Return the records of all of these, None if there are none."""
        return [part for frame in frames if frame for part in frame] or None

    @contextmanager
    def watched(self, progress: Progress, stage: str, partitions: int, records: int) -> Iterator[None]:
        """Advance the progress while the block reads."""
        progress.stage(stage)
        seen: dict[str, int] = defaultdict(int)

        def advance(ended: int, read: int) -> None:
            seen["partitions"] += ended
            seen["records"] += read
            progress.advance(min(seen["partitions"], partitions), partitions, min(seen["records"], records), records)

        before, self.cache.advance = self.cache.advance, advance
        try:
            yield
        finally:
            self.cache.advance = before

    def scan(self, logs: Mapping[str, list[Part]], places: Sequence[Partition], bits: int) -> dict[str, Pieces]:
        """Return the pieces of chunks of each named log and partition."""
        self.cache.load([part for log in logs.values() for part in log])
        return {name: self._pieces(log, bits) for name, log in logs.items()}

    def inexact(self) -> set[Partition]:
        """Return no partition: every record is read as it is."""
        return set()

    def rows(self, records: list[Part] | None) -> dict[Partition, list[Row]]:
        """Return the records of each partition."""
        return {
            place: [_row(record) for record in log.tolist()] for place, log in self.cache.logs(records or []).items()
        }

    def offsets(self, records: list[Part] | None) -> dict[Partition, list[int]]:
        """Return the offsets of the records of each partition."""
        return {place: log[:, OFFSET].tolist() for place, log in self.cache.logs(records or []).items()}

    def occurrences(self, logs: Mapping[str, list[Part]], wanted: Iterable[Digest]) -> dict[str, Occurrences]:
        """Return where digests occur in whole logs."""
        sought = set(wanted)
        first_words = np.array([int(digest[:16], 16) for digest in sought], dtype=np.uint64).view(np.int64)
        found: dict[str, Occurrences] = {}
        for name, whole in logs.items():
            held = found[name] = {}
            for place, log in self.cache.logs(whole).items():
                likely = log[np.isin(log[:, A], first_words)]
                for offset, a, b in likely[:, [OFFSET, A, B]].tolist():
                    if (digest := digest_of(a, b)) in sought:
                        records, first = held.get((place, digest), (0, offset))
                        held[place, digest] = (records + 1, first)
        return found

    def _pieces(self, log_parts: Sequence[Part], bits: int) -> Pieces:
        found: Pieces = {}
        for place, log in self.cache.logs(log_parts).items():
            if not len(log):
                continue
            offsets, a, b = (np.ascontiguousarray(log[:, at]) for at in (OFFSET, A, B))
            found[place] = chunks.in_order(chunks.signed_pieces(offsets, a, b, bits))
        return found


def _row(record: Sequence[int]) -> Row:
    nulls = record[NULLS]
    return Row(
        record[OFFSET],
        digest_of(record[A], record[B]),
        None if nulls & NULL_KEY else record[KEY],
        None if nulls & NULL_VALUE else record[VALUE],
        record[HEADERS],
        record[TIMESTAMP],
    )
