"""What a group would skip and read again on the target, by the records: the judge of the follower, and of MirrorMaker.

It shares no code with the follower. A record of the target counts as read if it lies in front of what the group has
read at the source, or is of an earlier incarnation of the topic.
"""

import statistics
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientTopicPartition

from benchmarks.clusters import BenchmarkError
from benchmarks.follow.traffic import Log, Place, numbers_of

READ_WITHIN_S, CALL_S = 120.0, 20.0
PAST, AHEAD = -1, 1 << 62
Row = dict[str, Any]


@dataclass
class TargetLog:
    """The records of a target partition in their order: offset, incarnation and number."""

    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    incarnations: "array[int]" = field(default_factory=lambda: array("q"))
    numbers: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, offset: int, value: bytes) -> None:
        """Take in the next record."""
        incarnation, number = numbers_of(value)
        self.offsets.append(offset)
        self.incarnations.append(incarnation)
        self.numbers.append(number)

    @property
    def next_offset(self) -> int:
        """The offset behind the last record."""
        return self.offsets[-1] + 1 if self.offsets else 0

    def holds(self, incarnation: int, number: int) -> bool:
        """Whether a record is there, or one that was written behind it."""
        return any(
            found == incarnation and at >= number
            for found, at in zip(reversed(self.incarnations[-5000:]), reversed(self.numbers[-5000:]), strict=True)
        )


class TargetReading:
    """A plain consumer's reading of target partitions, which goes on where it stopped."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        config = {**client, "group.id": "judge", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**config, "log_level": 0})
        self.logs: dict[Place, TargetLog] = {}

    def read(self, places: Iterable[Place]) -> None:
        """Read all that these partitions hold now; raises BenchmarkError."""
        until = time.monotonic() + READ_WITHIN_S
        left: dict[Place, int] = {}
        for place in places:
            log = self.logs.setdefault(place, TargetLog())
            end = self._consumer.get_watermark_offsets(ClientTopicPartition(*place), timeout=CALL_S)[1]
            if end > log.next_offset:
                left[place] = end
        self._consumer.assign([ClientTopicPartition(*place, self.logs[place].next_offset) for place in left])
        while left:
            if time.monotonic() > until:
                raise BenchmarkError(f"target: {left} must be read within {READ_WITHIN_S:.0f} s.")
            messages: list[Any] = self._consumer.consume(5000, timeout=0.1)
            for message in messages:
                place = message.topic(), message.partition()
                if message.error() is None:
                    self.logs[place].add(message.offset(), message.value())
                    if message.offset() + 1 >= left.get(place, message.offset() + 2):
                        del left[place]
        self._consumer.unassign()

    def forget(self, places: Iterable[Place]) -> None:
        """Read these partitions from their beginning next time: compaction has removed records."""
        for place in places:
            self.logs.pop(place, None)

    def close(self) -> None:
        """Give the connection back."""
        self._consumer.close()


@dataclass(frozen=True)
class Cost:
    """Records that a group skips where it goes on, and that it reads again."""

    skipped: int
    read_again: int


def source_offsets(log: Log, target: TargetLog) -> Sequence[int]:
    """Return the source offset of each record of the target: `PAST` of earlier incarnations, `AHEAD` if unknown."""
    return [
        (known if (known := log.offset_of[number]) >= 0 else AHEAD)
        if incarnation == log.incarnation
        else (PAST if incarnation < log.incarnation else AHEAD)
        for incarnation, number in zip(target.incarnations, target.numbers, strict=True)
    ]


def cost(offsets: Sequence[int], target: TargetLog, read_up_to: int, at: int) -> Cost:
    """Judge a target offset; `offsets` are the source offsets of the target's records in their order.

    `read_up_to` is the source offset behind all that the group has read. A record that is there twice is skipped only
    if each of its copies lies in front of the offset.
    """
    split = bisect_left(target.offsets, at)
    unread = {target.numbers[row] for row in range(split) if offsets[row] >= read_up_to}
    behind = offsets[split:]
    if unread:
        unread -= {number for number, of in zip(target.numbers[split:], behind, strict=True) if of >= read_up_to}
    return Cost(len(unread), sum(1 for of in behind if of < read_up_to))


def holds(row: Mapping[str, Any]) -> bool:
    """Whether a group skips nothing, and reads at most again what the last round could not know, or the last second."""
    return bool(row["skipped"] == 0 and row["readAgain"] <= max(row["lastSecond"], row["sinceRound"]))


def within_last_second(row: Mapping[str, Any]) -> bool:
    """Whether a group reads at most again what it has read in the last second."""
    return bool(row["skipped"] == 0 and row["readAgain"] <= row["lastSecond"])


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return what was found for each case, topic and group, over all seeds."""
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["case"], row["topic"], row["group"]), []).append(row)
    made = []
    for (case, topic, group), of in found.items():
        again, makers = [row["readAgain"] for row in of], [row["mirrorMakerReadAgain"] for row in of]
        made.append(
            {
                "case": case,
                "topic": topic,
                "group": group,
                "seeds": len(of),
                "within": sum(map(holds, of)),
                "withinLastSecond": sum(map(within_last_second, of)),
                "skipped": sum(row["skipped"] for row in of),
                "readAgainMedian": statistics.median(again),
                "readAgainMost": max(again),
                "lastSecondMedian": statistics.median(row["lastSecond"] for row in of),
                "sinceRoundMedian": statistics.median(row["sinceRound"] for row in of),
                "roundAgeMedianS": round(statistics.median(row["roundAgeS"] for row in of), 1),
                "mirrorMakerSkipped": sum(row["mirrorMakerSkipped"] for row in of),
                "mirrorMakerMedian": statistics.median(makers),
                "mirrorMakerMost": max(makers),
            }
        )
    return made
