"""How far the mirror is: what its source connector has committed, where its records begin, and waits for the cut.

Positions come from Connect's offsets topic (OffsetStorageWriter and MirrorUtils.wrapPartition), or from its REST
interface. The waits for remote topics, connectors and the cut share one deadline. A wait that ends by the deadline is
no error: the checks judge what is there.
"""

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import httpx
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from contract.verification_request import Mirror, Request, may_exist
from kafka import connector_status
from kafka.cluster import READER_WITHIN_S, Cluster, Topic, TopicReader
from kafka.connector_status import NO_ANSWER, REST_DEADLINE_S, ConnectorState
from kafka.errors import DeniedError
from kafka.topic_partition import TopicPartition

Record = tuple[bytes | None, bytes | None]


class PositionReader:
    """Committed positions of the source connector: from Connect's offsets topic, or from its REST interface."""

    def __init__(self, request: Request, topic: TopicReader | None) -> None:
        self._request = request
        self._topic = topic
        self._known: dict[TopicPartition, int] = {}

    def read(self, within_s: float = READER_WITHIN_S) -> dict[TopicPartition, int]:
        """Return the last source offset copied per partition; raises ClusterError, also if it takes longer."""
        mirror = self._request.mirror
        if self._topic is not None:
            apply_positions(self._known, self._topic.read(within_s), mirror)
        elif mirror.connect_url is not None:
            self._known = positions_from_rest(mirror.connect_url, mirror) or self._known
        return dict(self._known)

    def close(self) -> None:
        """Give the connection back."""
        if self._topic is not None:
            self._topic.close()


def open_reader(target: Cluster, request: Request, log: Callable[[str], None]) -> tuple[PositionReader | None, str]:
    """Return a reader of the positions; None and the reason if neither the topic nor the REST interface has them."""
    mirror = request.mirror
    why: list[str] = []
    if mirror.offset_storage_topic is not None:
        try:
            reader = target.topic_reader(mirror.offset_storage_topic)
        except DeniedError as error:
            log(f"{error} Until then the mirror's position is read from Connect.")
            why.append(str(error))
        else:
            if reader.exists:
                return PositionReader(request, reader), ""
            why.append(
                f"target {request.target.alias}: topic {mirror.offset_storage_topic} is not there, or user "
                f"{request.target.user} may not Describe and Read it."
            )
    if mirror.connect_url is not None:
        if positions_from_rest(mirror.connect_url, mirror) is not None:
            return PositionReader(request, None), ""
        why.append(f"Connect at {mirror.connect_url} reports no position of {mirror.source_connector}.")
    return None, " ".join(why)


def positions_from_rest(url: str, mirror: Mirror) -> dict[TopicPartition, int] | None:
    """Return the last source offset copied per partition from `/connectors/NAME/offsets`, None without an answer."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/connectors/{mirror.source_connector}/offsets", timeout=REST_DEADLINE_S)
        answer.raise_for_status()
        return {
            TopicPartition(entry["partition"]["topic"], int(entry["partition"]["partition"])): int(
                entry["offset"]["offset"]
            )
            for entry in answer.json()["offsets"]
            if entry["partition"].get("cluster") == mirror.source_alias and entry.get("offset")
        }
    except NO_ANSWER:
        return None


def apply_positions(known: dict[TopicPartition, int], records: Iterable[Record], mirror: Mirror) -> None:
    """Bring the last source offset copied per partition up to date with records of Connect's offsets topic."""
    for key, value in records:
        tp = _position_key(key, mirror)
        if tp is None:
            continue
        offset = json.loads(value).get("offset") if value else None
        if offset is None:
            known.pop(tp, None)
        else:
            known[tp] = int(offset)


def _position_key(key: bytes | None, mirror: Mirror) -> TopicPartition | None:
    try:
        connector, part = json.loads(key or b"null")
        if connector != mirror.source_connector or part["cluster"] != mirror.source_alias:
            return None
        return TopicPartition(str(part["topic"]), int(part["partition"]))
    except (ValueError, TypeError, KeyError):
        return None


def first_judged(target: Cluster, mirror: Mirror, there: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the first offset that counts, by topic and partition of the target, where the request names one.

    For a time it is the offset of the first record that is not older, or the log end offset if there is none.
    """
    wanted = {mirror.target_topic(topic): where for topic, where in mirror.counts_from.items()}
    found: dict[TopicPartition, int] = {}
    timed: dict[int, list[TopicPartition]] = {}
    for topic, partition in there:
        where = wanted.get(topic)
        if isinstance(where, datetime):
            timed.setdefault(int(where.timestamp() * 1000), []).append(TopicPartition(topic, partition))
        elif where is not None and partition in where:
            found[TopicPartition(topic, partition)] = where[partition]
    for moment, partitions in sorted(timed.items()):
        found |= first_from(target, partitions, moment)
    return found


def first_from(cluster: Cluster, partitions: Collection[TopicPartition], moment_ms: int) -> dict[TopicPartition, int]:
    """Return the offset of the first record that is not older than a time, else the log end offset.

    The ends are asked for first: what is written before the other answer comes lies behind them.
    """
    ends = cluster.ends(partitions, "read_uncommitted")
    firsts = cluster.offsets(partitions, OffsetSpec.for_timestamp(moment_ms), "read_uncommitted")
    return {tp: firsts[tp] if firsts[tp] >= 0 else ends[tp] for tp in partitions}


def older_records(offsets: Iterable[tuple[TopicPartition, int]]) -> list[str]:
    """Return a line for each topic of the target of which some records are not judged."""
    by_topic: dict[str, list[str]] = {}
    for (topic, partition), offset in sorted(offsets):
        if offset:
            by_topic.setdefault(topic, []).append(f"{partition}: {offset}")
    return [
        f"target topic {topic}: the mirror counts from the offsets {', '.join(parts)} (by partition); what stands in "
        "front of them is older than the mirror and not judged"
        for topic, parts in by_topic.items()
    ]


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
    remote = {request.mirror.target_topic(name): topic for name, topic in source_topics.items()}
    wanted = {name: topic for name, topic in remote.items() if may_exist(name)}
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
