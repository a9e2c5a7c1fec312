"""Waiting until a side is written to no longer and the mirror has copied everything that is there.

Owns the wait and its deadline. Does not stop who writes: that is the applications' own matter.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contract.verification_request import Request
from kafka import mirror_position
from kafka.cluster import Cluster
from kafka.errors import ClusterError, RefusedError
from kafka.lag import LagMeter, Measure
from kafka.mirror_position import PositionReader
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

QUIET_S = 5.0
EVERY_S = 1.0
LOG_EVERY_S = 5.0
SETTLED_AFTER_S, SETTLE_WITHIN_S = 2.0, 60.0
CONNECTS_WITHIN_S = 5.0
_NAMED_MAX = 5


def drain(
    source: Cluster,
    target: Cluster,
    request: Request,
    within_s: float,
    say: Callable[[str], None],
    who_may_write: str = "",
) -> dict[str, Any]:
    """Return the source's ends once nothing was added for `QUIET_S`, no transaction is open and nothing left to copy.

    Connects both sides. One that does not answer is waited for, and its quiet time begins again: nobody knows what was
    written. Raises OpsError at the deadline, with what is still being written or copied, and who is known to have the
    right to, and RefusedError at once.
    """
    wait = _Wait(within_s, say)
    reader = _opened(source, target, request, wait, "drain")
    try:
        quiet_since = time.monotonic()
        ends: dict[TopicPartition, int] | None = None
        meter, measured = None, list[TopicPartition]()
        while True:
            try:
                topic_partitions = _places(source, request)
                if meter is None or topic_partitions != measured:
                    meter, measured = LagMeter(source, request, reader, topic_partitions), topic_partitions
                measure = _measured(meter)
                now, stable = (
                    source.ends(topic_partitions, "read_uncommitted"),
                    source.ends(topic_partitions, "read_committed"),
                )
            except ClusterError as error:
                wait.for_answer(error)
                quiet_since = time.monotonic()
                continue
            grown = {} if ends is None else {tp: end for tp, end in now.items() if end != ends.get(tp)}
            open_ = [tp for tp in topic_partitions if stable[tp] < now[tp]]
            quiet_since = time.monotonic() if grown else quiet_since
            quiet_s = time.monotonic() - quiet_since
            if measure is not None and measure.records == 0 and not grown and not open_ and quiet_s >= QUIET_S:
                return {"ends": format_places(now), "records": sum(now.values())}
            # A side that answers late is not taken for one that is written to: whether it is shows within QUIET_S.
            if wait.over and (grown or open_ or quiet_s >= QUIET_S):
                raise _late(source, request, _Unrest(grown, open_, who_may_write), meter, within_s)
            wait.pause(_state(meter, quiet_s))
            ends = now
    finally:
        reader.close()


def grown_since(side: Cluster, request: Request, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return how many offsets were added to partitions since they ended there; new ones, also anew, count from 0."""
    now = side.ends(_places(side, request), "read_uncommitted")
    added = {tp: end - noted_end(ends, tp, end) for tp, end in sorted(now.items())}
    return {tp: offsets for tp, offsets in added.items() if offsets}


def noted_end(ends: Mapping[TopicPartition, int], tp: TopicPartition, end: int) -> int:
    """Return where a partition ended by what was noted; 0 if it was not there, or if it ends before that: made anew."""
    noted = ends.get(tp, 0)
    return noted if noted <= end else 0


def catch_up(source: Cluster, target: Cluster, request: Request, within_s: float, say: Callable[[str], None]) -> None:
    """Wait until the mirror was once as far as its source; who writes there may go on.

    Connects both sides, and waits for one that does not answer. Raises OpsError at the deadline, RefusedError at once.
    """
    wait = _Wait(within_s, say)
    reader = _opened(source, target, request, wait, "follow")
    try:
        while True:
            try:
                topic_partitions = _places(source, request)
                ends = source.ends(topic_partitions, request.limits.isolation)
                break
            except ClusterError as error:
                wait.for_answer(error)
        meter = LagMeter(source, request, reader, topic_partitions)
        while True:
            measure = _measured(meter)
            reached = (
                {TopicPartition(one.topic, one.partition): one.source_end - one.records for one in measure.partitions}
                if measure
                else {}
            )
            behind = {tp: end - reached.get(tp, 0) for tp, end in ends.items() if reached.get(tp, 0) < end}
            if measure is not None and not behind:
                return
            if wait.over:
                raise _late(source, request, _Unrest({}, []), meter, within_s)
            wait.pause(f"{sum(behind.values())} records to copy" if measure else _no_position(meter))
    finally:
        reader.close()


def settled(side: Cluster, ends_of: Callable[[Cluster], dict[TopicPartition, int]], name: str) -> None:
    """Wait until a side no longer grows: what stopped tasks had in flight has arrived. Raises OpsError."""
    deadline = time.monotonic() + SETTLE_WITHIN_S
    before = ends_of(side)
    while True:
        time.sleep(SETTLED_AFTER_S)
        after = ends_of(side)
        if after == before:
            return
        if time.monotonic() > deadline:
            grown = sorted(
                f"{topic}-{number}"
                for (topic, number), end in after.items()
                if end != before.get(TopicPartition(topic, number))
            )
            raise OpsError(
                f"cluster {name}: nothing may be written to the copies while the mirror is stopped (grew for "
                f"{SETTLE_WITHIN_S:.0f} s: {', '.join(grown[:_NAMED_MAX])}). Stop who does, run this again."
            )
        before = after


def format_places(topic_partitions: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Return offsets by partition as a journal keeps them: `topic-partition` to offset."""
    return {format_place(tp): offset for tp, offset in sorted(topic_partitions.items())}


def format_place(tp: TopicPartition) -> str:
    """Return a partition as a journal names it: one text for all groups, of which a journal has many."""
    return sys.intern(f"{tp[0]}-{tp[1]}")


def read_places(positions: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Return what `format_places` wrote."""
    found = {}
    for name, offset in positions.items():
        topic, _, partition = name.rpartition("-")
        found[TopicPartition(topic, int(partition))] = int(offset)
    return found


def _opened(source: Cluster, target: Cluster, request: Request, wait: "_Wait", purpose: str) -> PositionReader:
    """Return a reader of the mirror's positions, once both sides answer."""
    while True:
        try:
            for side in (source, target):
                side.connect(CONNECTS_WITHIN_S)
            reader, why = mirror_position.open_reader(target, request, wait.say)
        except ClusterError as error:
            wait.for_answer(error)
            continue
        if reader is None:
            raise OpsError(f"mirror {request.mirror.name}: its position must be known to {purpose} it. {why}")
        return reader


def _measured(meter: LagMeter) -> Measure | None:
    """The lag now; None if it cannot be measured, whatever it was before."""
    meter.lag.at_end = None
    meter.at_end()
    return meter.lag.at_end


def _state(meter: LagMeter, quiet_s: float) -> str:
    measure = meter.lag.at_end
    copied = _no_position(meter) if measure is None else f"{measure.records} records to copy"
    return f"{copied}, nothing written for {quiet_s:.0f} s"


def _no_position(meter: LagMeter) -> str:
    return f"the mirror's position cannot be read{f' ({meter.unanswered})' if meter.unanswered else ''}"


@dataclass
class _Wait:
    """A wait with a deadline, which says every `LOG_EVERY_S` seconds what it waits for."""

    within_s: float
    say: Callable[[str], None]
    began: float = field(default_factory=lambda: time.monotonic())
    logged: float | None = None

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.began + self.within_s

    def pause(self, what: str) -> None:
        if self.logged is None or time.monotonic() - self.logged >= LOG_EVERY_S:
            self.logged = time.monotonic()
            self.say(f"  {what}")
        time.sleep(EVERY_S)

    def for_answer(self, error: ClusterError) -> None:
        """Wait before a cluster is asked again; raises OpsError at the deadline, and a refusal at once."""
        if isinstance(error, RefusedError):
            raise error
        if self.over:
            raise OpsError(
                f"{error} It must answer within {self.within_s:.0f} s. Run the command again once it does; who is "
                "active has not changed."
            )
        self.pause(f"waiting for an answer: {error}")


@dataclass(frozen=True)
class _Unrest:
    """What keeps a side from being at rest: partitions that grew, those with open transactions, and who may write."""

    grown: Mapping[TopicPartition, int]
    open_: list[TopicPartition]
    who_may_write: str = ""


def _places(side: Cluster, request: Request) -> list[TopicPartition]:
    """Partitions of the mirrored topics that are there now: some may have come since the last look."""
    topics = side.topics(request.mirror.carries_topic, request.mirror.named_topics)
    return sorted(TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas)


def _late(source: Cluster, request: Request, unrest: _Unrest, meter: LagMeter, within_s: float) -> OpsError:
    alias, mirror, measure = source.side.alias, request.mirror.name, meter.lag.at_end
    if unrest.grown:
        who = f"These may write: {unrest.who_may_write}. " if unrest.who_may_write else ""
        return OpsError(
            f"cluster {alias}: applications must stop writing (still written within {within_s:.0f} s: "
            f"{named(unrest.grown)}). {who}Stop the producers and run the command again; who is active "
            "has not changed."
        )
    if unrest.open_:
        return OpsError(
            f"cluster {alias}: no transaction may be open (still open after {within_s:.0f} s: {named(unrest.open_)}). "
            "Stop the producers, or abort it (kafka-transactions.sh abort), and run the command again; who is active "
            "has not changed."
        )
    if measure is None:
        return OpsError(
            f"mirror {mirror}: its position must be readable (got none within {within_s:.0f} s"
            f"{f': {meter.unanswered}' if meter.unanswered else ''}). "
            "See `python -m ops status`; who is active has not changed."
        )
    behind = [f"{one.topic}-{one.partition} by {one.records}" for one in measure.partitions if one.records]
    return OpsError(
        f"mirror {mirror}: must copy everything within {within_s:.0f} s (still behind: "
        f"{', '.join(behind[:_NAMED_MAX])}). See `python -m ops doctor`; who is active has not changed."
    )


def named(topic_partitions: Iterable[TopicPartition]) -> str:
    """Return the first few partitions in words."""
    return ", ".join([str(tp) for tp in sorted(topic_partitions)][:_NAMED_MAX])
