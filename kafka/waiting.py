"""Waits for the mirror: topics on the target, connectors, its own committed position past the cut.

All waits share one deadline. A wait that ends by the deadline is no error: the checks judge what is there.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from contract.verification_request import Request, may_exist
from kafka import connector_status
from kafka.cluster import Cluster, Topic
from kafka.connector_status import ConnectorState
from kafka.mirror_position import PositionReader
from kafka.topic_partition import TopicPartition

INTERVAL_S = 1.0
Log = Callable[[str], None]


@dataclass
class Deadline:
    """A point in time, in seconds from now."""

    seconds: float
    started: float = field(default_factory=time.monotonic)
    _given_up: threading.Event = field(default_factory=threading.Event)

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        return self._given_up.is_set() or time.monotonic() - self.started >= self.seconds

    def pause(self) -> None:
        """Sleep for one interval, at most up to the deadline."""
        left = self.seconds - (time.monotonic() - self.started)
        self._given_up.wait(max(0.0, min(INTERVAL_S, left)))

    def give_up(self) -> None:
        """Let every wait end now: the run is over before its time."""
        self._given_up.set()


@dataclass
class CutState:
    """The cut and how far the mirror is. `positions` is None where its position is not known or not asked for.

    `unknown`: why it is not known although the request says where it is found.
    """

    cut: Mapping[TopicPartition, int] = field(default_factory=dict)
    positions: dict[TopicPartition, int] | None = None
    behind: list[TopicPartition] = field(default_factory=list)
    waited_s: float = 0.0
    unknown: str = ""


def target_topics(
    target: Cluster, request: Request, source_topics: Mapping[str, Topic], deadline: Deadline, log: Log
) -> dict[str, Topic]:
    """Return the mirrored topics on the target by their names there; waits until all are there with all partitions.

    One whose name there would be too long for Kafka is not asked for: it is missing, and the others are judged.
    """
    copies = {request.mirror.target_topic(name): topic for name, topic in source_topics.items()}
    wanted = {name: topic for name, topic in copies.items() if may_exist(name)}
    while True:
        found = target.topics(lambda name: name in wanted, named=wanted)
        missing = [
            name
            for name, topic in wanted.items()
            if name not in found or len(found[name].replicas) < len(topic.replicas)
        ]
        if not missing or deadline.over:
            return found
        log(f"waiting for the mirror to create {', '.join(sorted(missing))} with all partitions on the target")
        deadline.pause()


def connectors(request: Request, deadline: Deadline, log: Log) -> list[ConnectorState] | None:
    """Return the state of the mirror's connectors, None without an answer; waits until all run."""
    url = request.mirror.connect_url
    if url is None:
        return None
    names = request.mirror.connector_names
    while True:
        states = connector_status.connector_states(url, names)
        if states is not None and all(state.running for state in states):
            return states
        if deadline.over:
            return states
        log("waiting for the mirror's connectors and tasks to run" if states else f"waiting for Connect at {url}")
        if states is None and time.monotonic() - deadline.started > 10:
            return None  # a dead worker is reported soon; the wait for the records goes on
        deadline.pause()


def connectors_now(request: Request, before: list[ConnectorState] | None) -> list[ConnectorState] | None:
    """Return the state of the mirror's connectors again, after a wait that ended at its deadline.

    If Connect does not answer, a fault that was observed before the wait is returned; None if all ran then.
    """
    url = request.mirror.connect_url
    if url is None:
        return before
    states = connector_status.connector_states(url, request.mirror.connector_names)
    if states is None and before is not None and not all(state.running for state in before):
        return before
    return states


def past_cut(
    source: Cluster,
    request: Request,
    reader: PositionReader | None,
    starts: Mapping[TopicPartition, int],
    cut: Mapping[TopicPartition, int],
    deadline: Deadline,
    log: Log,
    observe: Callable[[Mapping[TopicPartition, int]], None],
) -> CutState:
    """Wait until the source connector's committed position has passed the cut in each partition that holds records.

    `observe` gets the positions with each reading.
    """
    state = CutState(cut)
    began = time.monotonic()
    if reader is None:
        return state
    state.behind = [tp for tp in sorted(cut) if cut[tp] > starts[tp]]
    checked: dict[TopicPartition, int] = {}
    while True:
        state.positions = reader.read()
        observe(state.positions)
        state.behind = [
            tp
            for tp in state.behind
            if not _passed(source, request, tp, starts[tp], cut[tp], state.positions.get(tp), checked)
        ]
        if not state.behind or deadline.over:
            break
        topic, partition = state.behind[0]
        at = state.positions.get(TopicPartition(topic, partition), "nothing copied")
        end = cut[TopicPartition(topic, partition)]
        log(f"waiting for the mirror: {topic}-{partition} at {at} of {end - 1}, {len(state.behind)} partitions behind")
        deadline.pause()
    state.waited_s = time.monotonic() - began
    return state


def _passed(
    source: Cluster,
    request: Request,
    tp: TopicPartition,
    start: int,
    cut: int,
    position: int | None,
    checked: dict[TopicPartition, int],
) -> bool:
    following = start if position is None else position + 1
    if following >= cut:
        return True
    if checked.get(tp) == following:
        return False
    checked[tp] = following
    return not source.has_records(tp, following, cut, request.limits.isolation)
