"""What earlier runs have verified: where it is kept, whether it still holds, and from where a run may go on.

Here is the state of one mirror as plain data, and its JSON document with a checksum over the content.
"""

import hashlib
import itertools
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from contract.verification_request import Request
from kafka.topic_partition import TopicPartition

VERSION = 2  # 1 moved past records that were taken for expired without evidence
TAIL_RECORDS = 16
ANCHORS_MAX = 64
DENSE = 16  # newest anchors that are never thinned out
BASE = 4
LEVELS = range(2, 26)  # distances of 4^2 to 4^25 offsets; two anchors each, with the dense ones at most ANCHORS_MAX

Anchor = tuple[int, int]
"""Source and target offset before which the two logs hold the same records."""
TailRecord = tuple[int, str]
"""Offset and digest of one record."""


class DamagedStateError(Exception):
    """The document is not what this job has written; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a state is about. A state with another identity does not count for this mirror."""

    source_cluster_id: str
    target_cluster_id: str
    source_alias: str
    target_alias: str
    naming: str
    separator: str
    isolation: str

    @classmethod
    def of(cls, request: Request, source_cluster_id: str, target_cluster_id: str) -> "Identity":
        """Return the identity of the request's mirror between two clusters."""
        return cls(
            source_cluster_id=source_cluster_id,
            target_cluster_id=target_cluster_id,
            source_alias=request.mirror.source_alias,
            target_alias=request.mirror.target_alias,
            naming=request.mirror.naming,
            separator=request.mirror.separator,
            isolation=request.limits.isolation,
        )

    def differs(self, other: "Identity") -> str:
        """Return what differs, as `naming identity instead of prefixed`; empty when nothing does."""
        mine, there = asdict(self), asdict(other)
        return ", ".join(
            f"{name.replace('_', ' ')} {mine[name]} instead of {there[name]}"
            for name in mine
            if mine[name] != there[name]
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is verified of one partition. The last anchor is the verified offset on both sides."""

    topic: str
    partition: int
    source_topic_id: str
    target_topic_id: str
    anchors: tuple[Anchor, ...]
    source_tail: tuple[TailRecord, ...]
    target_tail: tuple[TailRecord, ...]

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic of the source, and partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def verified(self) -> int:
        """Source offset before which everything is verified."""
        return self.anchors[-1][0]

    def same_logs(self, other: "Entry") -> bool:
        """Whether both are of the same topics, and neither of a re-created one."""
        return (self.source_topic_id, self.target_topic_id) == (other.source_topic_id, other.target_topic_id)


@dataclass(frozen=True, kw_only=True)
class State:
    """What is verified of one mirror."""

    identity: Identity
    entries: Mapping[TopicPartition, Entry] = field(default_factory=dict)


def thin(anchors: Iterable[Anchor]) -> tuple[Anchor, ...]:
    """Return at most ANCHORS_MAX anchors in order: the newest ones, and ever fewer the older they are.

    For each power of BASE the last anchor at or before its two newest multiples is kept. What is kept for a multiple
    today is kept for it tomorrow, so that thinning again and again loses nothing. A position d offsets before the
    verified one therefore finds an anchor at most 8 d before it, or the next older one there ever was.
    """
    every = sorted(dict(anchors).items())
    if not every:
        return ()
    kept = set(every[-DENSE:])
    sources = [source for source, _ in every]
    newest = sources[-1]
    for level in LEVELS:
        step = BASE**level
        for multiple in (newest // step * step, (newest // step - 1) * step):
            older = bisect_right(sources, multiple)
            kept |= set(every[older - 1 : older] if older else ())
    return tuple(sorted(kept))


def merge(
    stored: Mapping[TopicPartition, Entry], loaded: Mapping[TopicPartition, Entry], mine: Mapping[TopicPartition, Entry]
) -> dict[TopicPartition, Entry]:
    """Return the entries to store: `mine` was made from `loaded`, and others may have written `stored` meanwhile.

    Where nobody has, mine counts, also when it is gone or lower. Where somebody has, the greater verified offset of
    the same topics counts.
    """
    found: dict[TopicPartition, Entry] = {}
    for tp in sorted({*stored, *mine}):
        there, here = stored.get(tp), mine.get(tp)
        if there == loaded.get(tp) or there is None:
            kept = here
        elif here is None or here == loaded.get(tp):
            kept = there
        else:
            kept = there if here.same_logs(there) and there.verified > here.verified else here
        if kept is not None:
            found[tp] = kept
    return found


def encode(state: State) -> bytes:
    """Return the JSON document of a state."""
    content = {
        "version": VERSION,
        "mirror": asdict(state.identity),
        "partitions": [asdict(entry) for _, entry in sorted(state.entries.items())],
    }
    return (json.dumps({**content, "checksum": _checksum(content)}, separators=(",", ":")) + "\n").encode()


def decode(data: bytes) -> State:
    """Return the state of a JSON document; raises DamagedStateError."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise DamagedStateError("it is no JSON document" if data.strip() else "it is empty") from None
    if not isinstance(document, dict) or "version" not in document:
        raise DamagedStateError("it is no state of a verification")
    if document["version"] != VERSION:
        raise DamagedStateError(f"its version is {str(document['version'])[:20]}, this job knows {VERSION}")
    content = {key: value for key, value in document.items() if key != "checksum"}
    if document.get("checksum") != _checksum(content):
        raise DamagedStateError("its checksum does not fit its content")
    try:
        identity = Identity(**{name: _text(value) for name, value in content["mirror"].items()})
        entries = [_entry(part) for part in content["partitions"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DamagedStateError("its content has another form") from None
    return State(identity=identity, entries={entry.topic_partition: entry for entry in entries})


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _entry(part: Mapping[str, Any]) -> Entry:
    anchors = tuple((_whole(source), _whole(target)) for source, target in part["anchors"])
    rising = all(one[0] < two[0] and one[1] <= two[1] for one, two in itertools.pairwise(anchors))
    if not anchors or not rising:
        raise ValueError
    return Entry(
        topic=_text(part["topic"]),
        partition=_whole(part["partition"]),
        source_topic_id=_text(part["source_topic_id"]),
        target_topic_id=_text(part["target_topic_id"]),
        anchors=anchors,
        source_tail=_tail(part["source_tail"]),
        target_tail=_tail(part["target_tail"]),
    )


def _tail(records: Sequence[Sequence[Any]]) -> tuple[TailRecord, ...]:
    return tuple((_whole(offset), _text(digest)) for offset, digest in records)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
