"""How far the mirror is: what its source connector has committed, and from which target offset it counts.

Positions come from Connect's offsets topic (OffsetStorageWriter and MirrorUtils.wrapPartition), or from its REST
interface.
"""

import json
from collections.abc import Callable, Iterable
from datetime import datetime

import httpx
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from contract.verification_request import Mirror, Request
from kafka.cluster import TAIL_WITHIN_S, Cluster, Tail
from kafka.connector_status import NO_ANSWER, REST_DEADLINE_S
from kafka.errors import DeniedError
from kafka.topic_partition import TopicPartition

Record = tuple[bytes | None, bytes | None]


class PositionReader:
    """Committed positions of the source connector: from Connect's offsets topic, or from its REST interface."""

    def __init__(self, request: Request, tail: Tail | None) -> None:
        self._request = request
        self._tail = tail
        self._known: dict[TopicPartition, int] = {}

    def read(self, within_s: float = TAIL_WITHIN_S) -> dict[TopicPartition, int]:
        """Return the last source offset copied per partition; raises ClusterError, also if it takes longer."""
        mirror = self._request.mirror
        if self._tail is not None:
            apply_positions(self._known, self._tail.read(within_s), mirror)
        elif mirror.connect_url is not None:
            self._known = positions_from_rest(mirror.connect_url, mirror) or self._known
        return dict(self._known)

    def close(self) -> None:
        """Give the connection back."""
        if self._tail is not None:
            self._tail.close()


def open_reader(target: Cluster, request: Request, log: Callable[[str], None]) -> tuple[PositionReader | None, str]:
    """Return a reader of the positions; None and the reason if neither the topic nor the REST interface has them."""
    mirror = request.mirror
    why: list[str] = []
    if mirror.offset_storage_topic is not None:
        try:
            tail = target.tail(mirror.offset_storage_topic)
        except DeniedError as error:
            log(f"{error} Until then the mirror's position is read from Connect.")
            why.append(str(error))
        else:
            if tail.exists:
                return PositionReader(request, tail), ""
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


def offsets(target: Cluster, mirror: Mirror, there: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
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
        ends = target.ends(partitions, "read_uncommitted")
        first = target.offsets(partitions, OffsetSpec.for_timestamp(moment), "read_uncommitted")
        found |= {tp: first[tp] if first[tp] >= 0 else ends[tp] for tp in partitions}
    return found


def warnings_of(offsets: Iterable[tuple[TopicPartition, int]]) -> list[str]:
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
