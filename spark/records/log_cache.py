"""The ranges of partitions that this process reads: each is read once, whoever asks for it and however often.

Owns what was read. Of a record only its hashes are kept, 64 bytes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spark.clusters.cluster import Cluster, Partition
from spark.records.ranges import Range
from spark.records.reading import OFFSET, Log, in_order
from spark.records.reading_processes import Task, read_all
from spark.request.model import Side


@dataclass(frozen=True)
class Part:
    """A range of one side, read with an isolation level; `place` is the partition by the source's name."""

    role: str
    isolation: str
    range: Range
    place: Partition

    @property
    def log(self) -> tuple[str, str, Partition]:
        """The log of which several ranges may be read at once."""
        return self.role, self.isolation, self.place


def parts(side: Side, ranges: Sequence[Range], isolation: str, names: Mapping[str, str]) -> list[Part]:
    """Return these ranges of one side; `names` maps a topic of its cluster to the source's name."""
    return [Part(side.role, isolation, one, (names.get(one.topic, one.topic), one.partition)) for one in ranges]


class LogCache:
    """Reads parts when their records are asked for, and keeps what it has read.

    `advance` is called with the numbers of partitions and records read since the last call.
    """

    def __init__(self, clusters: Iterable[Cluster]) -> None:
        self._clusters = {cluster.side.role: cluster for cluster in clusters}
        self._read: dict[tuple[str, str, Partition], list[tuple[Range, Log]]] = defaultdict(list)
        self.advance: Callable[[int, int], None] = lambda *_: None

    def logs(self, wanted: Sequence[Part]) -> dict[Partition, Log]:
        """Return the records of each partition in the order of their offsets, each once."""
        self.load(wanted)
        found: dict[Partition, list[Log]] = defaultdict(list)
        for part in wanted:
            whole = self._holding(part)
            if whole is not None:
                start, end = np.searchsorted(whole[:, OFFSET], [part.range.start, part.range.end])
                found[part.place].append(whole[start:end])
        return {place: logs[0] if len(logs) == 1 else in_order(np.concatenate(logs)) for place, logs in found.items()}

    def load(self, wanted: Iterable[Part]) -> None:
        """Read what was not read yet, as much of it together as a consumer can: one range of a partition at a time."""
        turns: dict[tuple[str, str], list[dict[Partition, Part]]] = defaultdict(list)
        for part in dict.fromkeys(wanted):
            if self._holding(part) is not None:
                continue
            waiting = turns[part.role, part.isolation]
            free = next((turn for turn in waiting if part.place not in turn), None)
            if free is None:
                waiting.append(free := {})
            free[part.place] = part
        every = [(*log, [*turn.values()]) for log, waiting in turns.items() for turn in waiting]
        tasks = [
            Task(self._clusters[role], isolation, tuple(part.range for part in turn)) for role, isolation, turn in every
        ]
        for (_, _, turn), read in zip(every, read_all(tasks, self.advance), strict=True):
            for part in turn:
                self._read[part.log].append((part.range, read[part.range.topic, part.range.partition]))

    def _holding(self, part: Part) -> Log | None:
        """Return what was read of this range or of a longer one, None if neither was."""
        for held, log in self._read[part.log]:
            if held.start <= part.range.start and part.range.end <= held.end:
                return log
        return None
