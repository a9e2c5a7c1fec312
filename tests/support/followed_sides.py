"""A follower of a simulated mirror: both logs, the offset syncs, the groups, and the topic in which maps are kept."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from kafka import checkpoints, group_commits
from kafka.checkpoints import CheckpointHistory, OffsetTranslation
from kafka.topic_partition import TopicPartition
from ops.follow import follower
from ops.follow.follower import Follower
from ops.follow.kept_maps import KeptMaps
from ops.follow.record_proof import RECORDS_MAX, RecordComparison, Records
from tests.support.recovery_pair import Side, known
from tests.unit.kafka.test_checkpoints import sync
from tests.unit.kafka.test_offset_syncs import SimulatedMirror, Step

ITEMS = TopicPartition("items", 0)
SYNCS = {"offset_syncs_topic": {"name": "syncs", "location": "target"}}
ORDERS = "orders"


class MadeUpRecords(RecordComparison):
    """Both logs of a simulated mirror; every third record has the content of others.

    `compacted`: the target's has lost all but the last copy of each record. `removed`: the source has lost these.
    """

    def __init__(self, source: Any, target: Any, mirror: SimulatedMirror) -> None:
        super().__init__(source, target, "read_committed")
        self.mirror = mirror
        self.uncopied = range(0)
        self.compacted = False
        self.removed = range(0)

    def _read(self, side: Any, wanted: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, Records]:
        at_source = {one: one for one in (*self.mirror.copies, *self.uncopied) if one not in self.removed}
        left = slice(-1, None) if self.compacted else slice(None)
        on_target = {at: upstream for upstream, places in self.mirror.copies.items() for at in places[left]}
        found = {}
        for tp, (start, end) in wanted.items():
            rows = sorted((at_source if side.side.role == "source" else on_target).items())
            held = [row for row in rows if start <= row[0] < end]
            found[tp] = Records(complete=len(held) <= RECORDS_MAX)
            for at, record in held:
                self._take(found[tp], at, end, record if record % 3 else 0)
        return found


class Followed:
    """A follower of a simulated mirror that copies `items-0`, and the groups on both sides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mirror: SimulatedMirror | None = None) -> None:
        self.mirror = mirror or SimulatedMirror()
        self.source: Any = Side("source", {ITEMS: 0})
        self.target: Any = Side("target", {ITEMS: 0})
        self.ids = {"source": "1", "target": "1"}
        self.claimed: dict[tuple[str, str, int], CheckpointHistory] = {}
        self.missing: set[int] = set()
        self.lost, self.asked_for_leaders = "", 0
        self.target.topic_reader = lambda _: self
        self.exists, self._taken = True, 0
        monkeypatch.setattr(follower, "topic_ids", lambda side, names: dict.fromkeys(names, self.ids[side.side.role]))
        monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: OffsetTranslation(checkpoints=self.claimed))
        monkeypatch.setattr(group_commits, "lost_partitions", self._lost_partitions)
        self.records = MadeUpRecords(self.source, self.target, self.mirror)
        self.follower = self.started()

    def copies(self, *steps: Step) -> None:
        """Let the mirror do these steps."""
        for kind, number in steps:
            self.mirror.step(kind, number)

    def ahead(self, number: int) -> None:
        """Let the source have so many records that are not copied yet."""
        self.records.uncopied = range(self.mirror.source_end, self.mirror.source_end + number)

    def started(self, kept: KeptMaps | None = None) -> Follower:
        """A process that knows nothing yet."""
        self._taken = 0
        made = Follower(known(SYNCS), self.source, self.target, kept)
        made._comparison = self.records
        return made

    def messages(self) -> Any:
        """The syncs that were written since the last call."""
        for number, one in enumerate(self.mirror.written):
            if number >= self._taken and number not in self.missing:
                key, value = sync(one.upstream, one.downstream)
                yield SimpleNamespace(
                    offset=lambda at=number: at, key=lambda key=key: key, value=lambda value=value: value
                )
        self._taken = len(self.mirror.written)

    def start_at(self, offset: int) -> None:
        self._taken = offset

    def close(self) -> None:
        pass

    def stands(self, offset: int, group: str = ORDERS, metadata: str = "") -> None:
        """Let a group stand at a source offset."""
        self.source.held.setdefault(group, {})[ITEMS] = offset
        self.source.metadata[group, ITEMS] = metadata
        self.source.states[group] = "STABLE"

    def on_target(self, offset: int, group: str = ORDERS, metadata: str = "", state: str = "EMPTY") -> None:
        """Let somebody have set a group on the target."""
        self.target.held.setdefault(group, {})[ITEMS] = offset
        self.target.metadata[group, ITEMS] = metadata
        self.target.states[group] = state

    def _lost_partitions(self, side: Any) -> str:
        assert side is self.source
        self.asked_for_leaders += 1
        return self.lost

    def round(self) -> dict[str, int]:
        """One round; return the states that positions are in."""
        self.source.log[ITEMS] = self.mirror.source_end + len(self.records.uncopied)
        self.target.log[ITEMS] = self.mirror.target_end
        found = self.follower.round()
        for group in self.target.held:
            self.target.states.setdefault(group, "EMPTY")
        return {state: number for state, number in found.positions.items() if number}

    def at(self, group: str = ORDERS) -> int | None:
        """Where the group stands on the target."""
        place: int | None = self.target.held.get(group, {}).get(ITEMS)
        return place


class KeptTopic:
    """The compacted topic in memory, as a target has it."""

    def __init__(self, side: Side) -> None:
        self.side = side.side
        self.records: dict[bytes, bytes | None] = {}
        self.refused: KafkaError | None = None
        self.exists = True
        self.admin = self

    def names(self, _: object) -> list[str]:
        return ["there"]

    def topic_reader(self, _: str) -> "KeptTopic":
        return self

    def read(self) -> list[tuple[bytes, bytes | None]]:
        return list(self.records.items())

    def close(self) -> None:
        pass

    def producer(self, _: object) -> "KeptTopic":
        return self

    def produce(self, _: str, *, key: bytes, value: bytes | None, on_delivery: Any) -> None:
        if self.refused is None:
            self.records[key] = value
        on_delivery(self.refused, None)

    def flush(self, _: float) -> int:
        return 0
