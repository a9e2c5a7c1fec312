"""MirrorMaker's offset translation: its checkpoints and offset syncs, decoded. Does not judge.

Formats: org.apache.kafka.connect.mirror.Checkpoint and OffsetSync. Both topics have one partition, so the order of
their records is the order in which they were written.
"""

import struct
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from contract.verification_request import Mirror
from kafka.cluster import Cluster, TopicReader
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition

Record = tuple[bytes | None, bytes | None] | tuple[bytes | None, bytes | None, int | None]
"""Key and value of a record, and its timestamp (ms) if the log has one."""
CheckpointKey = tuple[str, str, int]
SourceOffset = tuple[str, int, int]
HISTORY = 50  # records of one key that compaction has left
SYNCS_JUDGED = 3
_PER_CHECKPOINT, _NO_TIME = 3, -1
_NUMBER, _CHECKPOINT = struct.Struct(">i"), struct.Struct(">hqq")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group whose committed offset at the source is `upstream` may go on at `downstream` on the target."""

    upstream: int
    downstream: int
    written_ms: int | None = field(default=None, compare=False)


class CheckpointHistory:
    """The last `HISTORY` checkpoints of one key that the topic holds, 24 bytes each: a mirror may have a million keys.

    `numbers` are the greatest `downstream` of all checkpoints, and source offset, target offset and time of the last.
    """

    __slots__ = ("_numbers",)

    def __init__(self, numbers: "array[int] | None" = None) -> None:
        self._numbers = array("q", (-1,)) if numbers is None else numbers

    @property
    def highest(self) -> int:
        """The greatest `downstream` of all of them, however many followed it; -1 if there is none."""
        return self._numbers[0]

    @property
    def newest(self) -> list[Checkpoint]:
        """The last `HISTORY` checkpoints, the newest at the end."""
        return [self._at(start) for start in range(1, len(self._numbers), _PER_CHECKPOINT)]

    @property
    def last(self) -> Checkpoint | None:
        """The newest checkpoint, None if there is none."""
        return None if self.is_empty else self._at(len(self._numbers) - _PER_CHECKPOINT)

    @property
    def last_offsets(self) -> list[int] | None:
        """Source and target offset of the newest checkpoint, None if there is none."""
        return None if self.is_empty else self._numbers[-_PER_CHECKPOINT:-1].tolist()

    def newest_up_to(self, upstream: int) -> Checkpoint | None:
        """Return the newest checkpoint whose source offset is at most this one."""
        numbers = self._numbers
        for start in range(len(numbers) - _PER_CHECKPOINT, 0, -_PER_CHECKPOINT):
            if numbers[start] <= upstream:
                return self._at(start)
        return None

    def add(self, checkpoint: Checkpoint) -> None:
        """Take in the next checkpoint."""
        self.append(checkpoint.upstream, checkpoint.downstream, checkpoint.written_ms)

    def append(self, upstream: int, downstream: int, written_ms: int | None) -> None:
        """Take in the next checkpoint by its values."""
        numbers = self._numbers
        numbers[0] = max(numbers[0], downstream)
        numbers.extend((upstream, downstream, _NO_TIME if written_ms is None else written_ms))
        if len(numbers) > 1 + HISTORY * _PER_CHECKPOINT:
            del numbers[1 : 1 + _PER_CHECKPOINT]

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return len(self._numbers) == 1

    def proves(self, committed: int, synced: int) -> bool:
        """Whether one of them leads from `committed` or before it to `synced` or beyond."""
        numbers = self._numbers
        starts = range(1, len(numbers), _PER_CHECKPOINT)
        return any(numbers[start] <= committed and numbers[start + 1] >= synced for start in starts)

    def _at(self, start: int) -> Checkpoint:
        upstream, downstream, written_ms = self._numbers[start : start + _PER_CHECKPOINT]
        return Checkpoint(upstream, downstream, None if written_ms == _NO_TIME else written_ms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckpointHistory) and self._numbers == other._numbers

    __hash__ = None  # type: ignore[assignment]  # it grows


class CheckpointHistories(Mapping[CheckpointKey, CheckpointHistory]):
    """The histories of many keys: for each a small array, and neither the key nor the history as an object."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], dict[int, array[int]]] = {}

    def of_partitions(self, group: str, topic: str) -> "dict[int, array[int]]":
        """Return the numbers of the histories of a group in a topic, by partition: what is added to it is here."""
        return self._held.setdefault((group, topic), {})

    def __getitem__(self, key: CheckpointKey) -> CheckpointHistory:
        return CheckpointHistory(self._held[key[:2]][key[2]])

    def __iter__(self) -> Iterator[CheckpointKey]:
        return ((group, topic, number) for (group, topic), held in self._held.items() for number in held)

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))


class LastDownstream(Mapping[CheckpointKey, int]):
    """The target offset of the newest checkpoint of each key."""

    def __init__(self, histories: Mapping[CheckpointKey, CheckpointHistory]) -> None:
        self._histories = histories

    def __getitem__(self, key: CheckpointKey) -> int:
        found = self._histories[key].last_offsets
        if found is None:
            raise KeyError(key)
        return found[1]

    def __iter__(self) -> Iterator[CheckpointKey]:
        return (key for key, history in self._histories.items() if not history.is_empty)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class OffsetSync:
    """The record at `upstream` of the source was written to `downstream` of the target."""

    upstream: int
    downstream: int


@dataclass
class OffsetSyncHistory:
    """The offset syncs of one partition since the last that MirrorMaker does not discard.

    An `upstream` that goes back makes MirrorMaker forget every sync before it (OffsetSyncStore): a topic was created
    again, or a restart repeats records. `contradictions` are the syncs after that whose `downstream` goes back although
    `upstream` does not: the older ones point past the record that they translate.
    """

    contradictions: list[tuple[OffsetSync, OffsetSync]] = field(default_factory=list)
    newest: deque[OffsetSync] = field(default_factory=lambda: deque(maxlen=HISTORY))

    def add(self, sync: OffsetSync) -> None:
        """Take in the next sync of the partition."""
        last = self.newest[-1] if self.newest else None
        if last is not None and sync.upstream < last.upstream:
            self.contradictions.clear()
            self.newest.clear()
        elif last is not None and sync.downstream < last.downstream and len(self.contradictions) < HISTORY:
            self.contradictions.append((last, sync))
        self.newest.append(sync)


@dataclass
class OffsetTranslation:
    """Checkpoints by group, target topic and partition; syncs by source topic and partition.

    `syncs` is None if the request does not name the topic. A problem says why something could not be read.
    """

    checkpoints: Mapping[CheckpointKey, CheckpointHistory] = field(default_factory=dict)
    syncs: dict[TopicPartition, OffsetSyncHistory] | None = None
    problems: tuple[str, ...] = ()

    def last_checkpoint(self, key: CheckpointKey) -> Checkpoint | None:
        """Return the newest checkpoint of a group in a partition of the target."""
        history = self.checkpoints.get(key)
        return history.last if history else None

    def proves(self, key: CheckpointKey, committed: int, synced: int) -> bool:
        """Whether a checkpoint in the topic proves that a group at `committed` has read all before `synced`."""
        history = self.checkpoints.get(key)
        return history is not None and history.proves(committed, synced)


def read_checkpoints(target: Cluster, mirror: Mirror) -> OffsetTranslation:
    """Return the checkpoints that are on the target now; a topic that cannot be read is reported in `problems`."""
    if not mirror.keeps(mirror.checkpoints_name):
        return OffsetTranslation()
    try:
        return OffsetTranslation(checkpoints=checkpoints(_records(target, mirror.checkpoints_name)))
    except ClusterError as error:
        return OffsetTranslation(problems=(str(error),))


def with_syncs(found: OffsetTranslation, source: Cluster, target: Cluster, mirror: Mirror) -> OffsetTranslation:
    """Return the translation with the offset syncs that are there now, if the mirror keeps any."""
    if mirror.offset_syncs_topic is None or not mirror.keeps(mirror.offset_syncs_topic.name):
        return found
    side = source if mirror.offset_syncs_topic.location == "source" else target
    try:
        return replace(found, syncs=syncs(_records(side, mirror.offset_syncs_topic.name)))
    except ClusterError as error:
        return replace(found, problems=(*found.problems, str(error)))


def _records(cluster: Cluster, topic: str) -> Iterable[Record]:
    reader: TopicReader | None = None
    try:
        reader = cluster.topic_reader(topic)
        if not reader.exists:
            side = cluster.side
            raise ClusterError(
                f"{side.role} {side.alias}: topic {topic} must exist and user {side.user} must have Describe and Read "
                "on it (got no such topic). Without it MirrorMaker's offset translation cannot be checked."
            )
        yield from reader.with_timestamps()
    finally:
        if reader is not None:
            reader.close()


def checkpoints(records: Iterable[Record]) -> CheckpointHistories:
    """Return the last checkpoints per group, target topic and partition; a tombstone forgets them."""
    found = CheckpointHistories()
    names: dict[str, str] = {}  # all keys of a group share its name, and those of a topic the topic's
    of_prefix: dict[bytes, dict[int, array[int]] | None] = {}  # of a group in a topic
    for raw, value, *written in records:
        prefix, number = (raw or b"")[: -_NUMBER.size], (raw or b"")[-_NUMBER.size :]
        if prefix not in of_prefix:
            known = _group_and_topic(prefix, names)
            of_prefix[prefix] = None if known is None else found.of_partitions(*known)
        histories = of_prefix[prefix]
        if histories is None:
            continue
        (partition,) = _NUMBER.unpack(number)
        if value is None:
            histories.pop(partition, None)
        elif len(value) >= _CHECKPOINT.size:
            _, upstream, downstream = _CHECKPOINT.unpack_from(value)
            numbers = histories.get(partition)
            if numbers is None:
                numbers = histories[partition] = array("q", (-1,))
            CheckpointHistory(numbers).append(upstream, downstream, written[0] if written else None)
    return found


def _group_and_topic(prefix: bytes, names: dict[str, str]) -> tuple[str, str] | None:
    """Return the two strings that the key of a checkpoint begins with; None if it is none."""
    try:
        group, at = _string(prefix, 0)
        topic, at = _string(prefix, at)
    except (struct.error, UnicodeDecodeError):
        return None
    return (names.setdefault(group, group), names.setdefault(topic, topic)) if at == len(prefix) else None


def syncs(records: Iterable[Record]) -> dict[TopicPartition, OffsetSyncHistory]:
    """Return the offset syncs per source topic and partition; a tombstone forgets them."""
    found: dict[TopicPartition, OffsetSyncHistory] = {}
    for raw, value, *_ in records:
        decoded = decode_sync(raw, value)
        if decoded is None:
            continue
        tp, sync = decoded
        if sync is None:
            found.pop(tp, None)
        else:
            found.setdefault(tp, OffsetSyncHistory()).add(sync)
    return found


def decode_sync(raw: bytes | None, value: bytes | None) -> tuple[TopicPartition, OffsetSync | None] | None:
    """Return the source partition and the sync of a record's key and value, without a sync for a tombstone.

    None if the record is none of MirrorMaker's.
    """
    try:
        topic, at = _string(raw or b"", 0)
        tp = TopicPartition(topic, struct.unpack_from(">i", raw or b"", at)[0])
        return tp, None if value is None else OffsetSync(*struct.unpack_from(">qq", value, 0))
    except (struct.error, UnicodeDecodeError):
        return None


def offsets_to_verify(
    found: OffsetTranslation, wanted: Iterable[tuple[CheckpointKey, TopicPartition]], cut: Mapping[TopicPartition, int]
) -> "dict[TopicPartition, array[int]]":
    """Return the source offsets, sorted, whose true image is needed to judge the translation.

    `wanted` yields the key of each position among the checkpoints and its partition of the source; `cut` holds the
    offsets up to which records are compared. Only partitions in which a group has a position are asked for: there
    MirrorMaker's own records count. At most one checkpoint per position and SYNCS_JUDGED syncs per partition.
    """
    asked: dict[TopicPartition, array[int]] = {}
    for key, tp in wanted:
        if tp not in asked:
            asked[tp] = array("q", [one.upstream for one in judged_syncs(found, tp, cut.get(tp, 0))])
        one = judged_checkpoint(found, key, cut.get(tp, 0))
        if one is not None:
            asked[tp].append(one.upstream)
    return {tp: array("q", sorted(set(held))) for tp, held in asked.items() if held}


def judged_checkpoint(found: OffsetTranslation, key: CheckpointKey, cut: int) -> Checkpoint | None:
    """Return the newest checkpoint that lies within what was compared."""
    history = found.checkpoints.get(key)
    return history.newest_up_to(cut) if history is not None else None


def judged_syncs(found: OffsetTranslation, tp: TopicPartition, cut: int) -> list[OffsetSync]:
    """Return the newest syncs of a partition that lie within what was compared."""
    history = (found.syncs or {}).get(tp)
    return [one for one in reversed(history.newest if history else ()) if one.upstream < cut][:SYNCS_JUDGED]


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length
